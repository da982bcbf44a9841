// Merge, merge sort, sorts by super key, search and expansion by CUB and Thrust. Build: nvcc -O3 -std=c++17 -arch=native
// --extended-lambda -o cub_merge cub_merge.cu
#include "primitives.cuh"

#include <cub/cub.cuh>
#include <thrust/binary_search.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

struct Less {
    template <class T>
    __host__ __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};

// Points by all coordinates in turn, then by id: what a comparator sort looks up for every comparison.
struct SuperKey {
    const float4 *points;
    __device__ bool operator()(uint32_t a, uint32_t b) const {
        const float4 p = points[a], q = points[b];
        if (p.x != q.x) return p.x < q.x;
        if (p.y != q.y) return p.y < q.y;
        if (p.z != q.z) return p.z < q.z;
        if (p.w != q.w) return p.w < q.w;
        return a < b;
    }
};

void merges(uint64_t seed, size_t n) {
    Array<uint32_t> first(n / 2), second(n - n / 2), merged(n);
    make(first, [=] __device__(size_t i) { return uint32_t(8 * i) + uint32_t(splitmix64(seed + i) % 8); });
    make(second, [=] __device__(size_t i) {
        return uint32_t(8 * i) + uint32_t(splitmix64(seed + i + (uint64_t(1) << 40)) % 8);
    });
    cub_row("merge", "u32", n, [&](void *temp, size_t &bytes) {
        return cub::DeviceMerge::MergeKeys(temp, bytes, first.data, int(first.len), second.data, int(second.len),
                                           merged.data, Less());
    });
    Array<uint32_t> ids_1(first.len), ids_2(second.len), ids(n);
    make(ids_1, [] __device__(size_t i) { return uint32_t(i); });
    make(ids_2, [] __device__(size_t i) { return uint32_t(i); });
    cub_row("merge", "u32, u32", n, [&](void *temp, size_t &bytes) {
        return cub::DeviceMerge::MergePairs(temp, bytes, first.data, ids_1.data, int(first.len), second.data, ids_2.data,
                                            int(second.len), merged.data, ids.data, Less());
    });
}

void sorts(uint64_t seed, size_t n) {
    Array<uint32_t> keys(n), sorted(n), ids(n), order(n);
    make(keys, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + i)); });
    make(ids, [] __device__(size_t i) { return uint32_t(i); });
    cub_row("merge sort", "u32", n, [&](void *temp, size_t &bytes) {
        return cub::DeviceMergeSort::StableSortKeysCopy(temp, bytes, keys.data, sorted.data, n, Less());
    });
    cub_row("merge sort", "u32, u32", n, [&](void *temp, size_t &bytes) {
        return cub::DeviceMergeSort::SortPairsCopy(temp, bytes, keys.data, ids.data, sorted.data, order.data, n, Less());
    });
}

void super_keys(uint64_t seed, size_t n) {
    if (n > size_t(1) << 28) return;
    const std::pair<int, const char *> kinds[] = {{24, "f32 x 4"}, {8, "f32 x 4, 256 distinct"}};
    for (const auto &kind : kinds) {
        const int bits = kind.first;
        Array<float4> points(n);
        make(points, [=] __device__(size_t i) {
            const auto c = [=](size_t axis) { return float(splitmix64(seed + 4 * i + axis) >> (64 - bits)); };
            return make_float4(c(0), c(1), c(2), c(3));
        });
        Array<uint32_t> ids(n);
        auto begin = thrust::device_pointer_cast(ids.data);
        row("Thrust", "super key sort", kind.second, n, 0, [&] {
            thrust::sequence(thrust::device, begin, begin + n);
            thrust::stable_sort(thrust::device, begin, begin + n, SuperKey{points.data});
        });
        cub_row("super key sort", kind.second, n, [&](void *temp, size_t &bytes) {
            // Sorted ids stay sorted: the comparisons are as many, and go the same way every time.
            if (temp) thrust::sequence(thrust::device, begin, begin + n);
            return cub::DeviceMergeSort::StableSortKeys(temp, bytes, ids.data, n, SuperKey{points.data});
        });
    }
}

void searches(uint64_t seed, size_t n) {
    Array<uint32_t> sorted(n), random(n), in_order(n);
    Array<uint64_t> positions(n);
    const uint64_t range = 4 * uint64_t(n);
    make(sorted, [] __device__(size_t i) { return uint32_t(4 * i); });
    make(random, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + i) % range); });
    make(in_order, [] __device__(size_t i) { return uint32_t(4 * i + 2); });
    auto begin = thrust::device_pointer_cast(sorted.data);
    auto to = thrust::device_pointer_cast(positions.data);
    const std::pair<Array<uint32_t> *, const char *> kinds[] = {{&random, "u32, random queries"},
                                                                {&in_order, "u32, queries in order"}};
    for (const auto &kind : kinds) {
        auto queries = thrust::device_pointer_cast(kind.first->data);
        row("Thrust", "lower bound", kind.second, n, 0, [&] {
            thrust::lower_bound(thrust::device, begin, begin + n, queries, queries + n, to);
        });
    }
}

// The segment of each output by binary search: what Thrust has for load-balancing search. It does not write indices.
void expands(size_t n) {
    Array<uint32_t> segments(n);
    auto to = thrust::device_pointer_cast(segments.data);
    for (size_t length : {size_t(1), size_t(8), size_t(1000)}) {
        const size_t num_segments = (n + length - 1) / length;
        const std::string name = "segments of " + std::to_string(length);
        Array<uint64_t> offsets(num_segments + 1);
        make(offsets, [=] __device__(size_t i) { return i == num_segments ? uint64_t(n) : uint64_t(i * length); });
        auto begin = thrust::device_pointer_cast(offsets.data);
        auto outputs = thrust::counting_iterator<uint64_t>(0);
        row("Thrust", "expand", name, n, 0, [&] {
            thrust::upper_bound(thrust::device, begin, begin + num_segments + 1, outputs, outputs + n, to);
        });
    }
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        merges(seed, n);
        sorts(seed, n);
        super_keys(seed, n);
        searches(seed, n);
        expands(n);
    });
}
