// Left-balanced k-d trees after Wald 2022: tags, and one Thrust sort of (tag, point) by a comparator a level; and the stack-free
// walk of his companion paper, for the nearest point and with a short sorted list for k. This is what a CUDA C++ user gets
// from the papers and the libraries that follow them.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o kdtree_wald kdtree_wald.cu
#include "primitives.cuh"

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>
#include <thrust/tuple.h>

template <int D>
struct Point {
    float x[D];
    int id;
};

// Index rules of a left-balanced tree over n points in level order.
struct Rules {
    int n, levels;

    __host__ __device__ explicit Rules(int n) : n(n), levels(0) {
        while (levels < 31 && (n >> levels) != 0) levels++;
    }
    __host__ __device__ static int full(int levels) { return int((1u << levels) - 1); }
    __device__ static int level(int s) { return 31 - __clz(s + 1); }
    __device__ int size(int s) const {
        if (s >= n) return 0;
        const int below = levels - 1 - level(s);
        const int first = int(((unsigned(s) + 1) << below) - 1);
        const int lowest = first < n ? n - first : 0;
        const int width = 1 << below;
        return width - 1 + min(lowest, width);
    }
    __device__ int begin(int s) const {
        const int l = level(s), below = levels - 1 - l;
        const int left = s - full(l);
        return full(l) + left * ((1 << below) - 1) + min(left << below, n - full(levels - 1));
    }
    __device__ int pivot(int s) const { return begin(s) + size(2 * s + 1); }
};

template <int D>
struct ByTagAndCoordinate {
    int axis;
    template <class A, class B>
    __host__ __device__ bool operator()(const A &a, const B &b) const {
        const int tag_a = thrust::get<0>(a), tag_b = thrust::get<0>(b);
        if (tag_a != tag_b) return tag_a < tag_b;
        const Point<D> p = static_cast<const Point<D> &>(thrust::get<1>(a)), q = static_cast<const Point<D> &>(thrust::get<1>(b));
        return p.x[axis] < q.x[axis];
    }
};

template <int D>
__global__ void start(const float *coords, Point<D> *points, int *tags, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Point<D> p;
    for (int d = 0; d < D; d++) p.x[d] = coords[size_t(i) * D + d];
    p.id = i;
    points[i] = p;
    tags[i] = 0;
}

__global__ void update(int *tags, Rules rules, int level) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rules.n || i < Rules::full(level)) return;
    const int s = tags[i], pivot = rules.pivot(s);
    if (i < pivot) tags[i] = 2 * s + 1;
    else if (i > pivot) tags[i] = 2 * s + 2;
}

template <int D>
void build(const Array<float> &coords, Array<Point<D>> &points, Array<int> &tags) {
    const int n = int(points.len), blocks = (n + 255) / 256;
    const Rules rules(n);
    start<D><<<blocks, 256>>>(coords.data, points.data, tags.data, n);
    auto items = thrust::make_zip_iterator(
        thrust::make_tuple(thrust::device_pointer_cast(tags.data), thrust::device_pointer_cast(points.data)));
    for (int level = 0; level < rules.levels; level++) {
        thrust::sort(thrust::device, items, items + n, ByTagAndCoordinate<D>{level % D});
        if (level + 1 < rules.levels) update<<<blocks, 256>>>(tags.data, rules, level);
    }
}

// The k best so far, in order; the distance above the id.
template <int K>
struct List {
    unsigned long long best[K];
    __device__ List() {
#pragma unroll
        for (int i = 0; i < K; i++) best[i] = 0x7F800000FFFFFFFFull;
    }
    __device__ float bound() const { return __uint_as_float(unsigned(best[K - 1] >> 32)); }
    __device__ void offer(float distance, int id) {
        unsigned long long item = (unsigned long long)(__float_as_uint(distance)) << 32 | unsigned(id);
#pragma unroll
        for (int i = 0; i < K; i++) {
            const unsigned long long other = best[i];
            if (item < other) {
                best[i] = item;
                item = other;
            }
        }
    }
};

template <int D, int K>
__global__ void nearest(const Point<D> *points, int n, const float *queries, int *ids, float *dist2) {
    const int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    float query[D];
    for (int d = 0; d < D; d++) query[d] = queries[size_t(q) * D + d];
    List<K> list;
    int node = 0, previous = -1;
    while (node >= 0) {
        const int parent = (node + 1) / 2 - 1;
        if (node >= n) {
            previous = node;
            node = parent;
            continue;
        }
        const Point<D> p = points[node];
        const bool from_above = previous < node;
        if (from_above) {
            float d2 = 0;
            for (int d = 0; d < D; d++) d2 += (query[d] - p.x[d]) * (query[d] - p.x[d]);
            if (d2 <= list.bound()) list.offer(d2, p.id);
        }
        const int axis = Rules::level(node) % D;
        float along = 0;
#pragma unroll
        for (int d = 0; d < D; d++) if (d == axis) along = query[d] - p.x[d];
        const int near = 2 * node + 1 + (along > 0), far = 4 * node + 3 - near;
        int next = parent;
        if (from_above) next = near;
        else if (previous == near && along * along <= list.bound()) next = far;
        previous = node;
        node = next;
    }
#pragma unroll
    for (int i = 0; i < K; i++) {
        ids[size_t(q) * K + i] = int(unsigned(list.best[i]));
        dist2[size_t(q) * K + i] = __uint_as_float(unsigned(list.best[i] >> 32));
    }
}

template <int D, int K>
void query(const std::string &input, const Array<Point<D>> &points, const Array<float> &queries) {
    const size_t n = points.len;
    Array<int> ids(n * K);
    Array<float> dist2(n * K);
    row("Wald in CUDA", "nearest k=" + std::to_string(K), input, n, 0, [&] {
        nearest<D, K><<<(n + 127) / 128, 128>>>(points.data, int(n), queries.data, ids.data, dist2.data);
    });
}

template <int D>
void points(uint64_t seed, size_t n) {
    const std::string input = "f32 x " + std::to_string(D) + ", uniform";
    Array<float> coords(n * D), queries(n * D);
    auto uniform = [](uint64_t seed) {
        return [seed] __device__(size_t i) { return float(splitmix64(seed + i * 0x9E3779B97F4A7C15ull) >> 40) / float(1 << 24); };
    };
    make(coords, uniform(seed));
    make(queries, uniform(seed + 1));
    Array<Point<D>> points(n);
    Array<int> tags(n);
    size_t temp = n * (sizeof(Point<D>) + 2 * sizeof(int));
    row("Wald in CUDA", "build", input, n, temp, [&] { build<D>(coords, points, tags); });
    query<D, 1>(input, points, queries);
    query<D, 8>(input, points, queries);
    if (D == 3) query<D, 32>(input, points, queries);
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        points<3>(seed, n);
        points<2>(seed, n);
        points<4>(seed, n);
    });
}
