// Scan and reduce by CUB, also of segments. Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o cub_scan cub_scan.cu
#include "primitives.cuh"

#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

struct Sum {
    template <class T>
    __host__ __device__ T operator()(const T &a, const T &b) const { return a + b; }
};

struct Max {
    template <class T>
    __host__ __device__ T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};

template <class T, class Op>
void one(const std::string &name, const std::string &type, const Array<T> &items, Op op) {
    Array<T> out(items.len), sum(1);
    const size_t n = items.len;
    cub_row("scan " + name, type, n, [&](void *temp, size_t &bytes) {
        return cub::DeviceScan::InclusiveScan(temp, bytes, items.data, out.data, op, n);
    });
    cub_row("reduce " + name, type, n, [&](void *temp, size_t &bytes) {
        return cub::DeviceReduce::Reduce(temp, bytes, items.data, sum.data, n, op, T(0));
    });
}

template <class T>
void segments(const std::string &type, const Array<T> &items) {
    const size_t n = items.len;
    const std::pair<size_t, const char *> kinds[] = {
        {8, ", segments of 8"}, {1000, ", segments of 1000"}, {SIZE_MAX, ", one segment"}};
    for (const auto &kind : kinds) {
        const size_t length = kind.first;
        const std::string name = kind.second;
        const size_t num_segments = std::max<size_t>(length == SIZE_MAX ? 1 : (n + length - 1) / length, 1);
        Array<uint64_t> offsets(num_segments + 1);
        make(offsets, [=] __device__(size_t i) { return i == num_segments ? uint64_t(n) : uint64_t(i * length); });
        Array<T> sums(num_segments);
        cub_row("segmented reduce sum", type + name, n, [&](void *temp, size_t &bytes) {
            return cub::DeviceSegmentedReduce::Sum(temp, bytes, items.data, sums.data, num_segments, offsets.data,
                                                   offsets.data + 1);
        });
        // A scan by key is what CUB has for a segmented scan: the segment's number is the key.
        Array<uint32_t> keys(n);
        make(keys, [=] __device__(size_t i) { return uint32_t(i / length); });
        Array<T> out(n);
        cub_row("segmented scan sum", type + name, n, [&](void *temp, size_t &bytes) {
            return cub::DeviceScan::InclusiveSumByKey(temp, bytes, keys.data, items.data, out.data, n);
        });
    }
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        {
            Array<uint32_t> items(n);
            make(items, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + i)); });
            one("sum", "u32", items, Sum());
            one("max", "u32", items, Max());
            segments("u32", items);
            Array<uint32_t> out(n);
            row("Thrust", "scan sum", "u32", n, 0, [&] {
                auto begin = thrust::device_pointer_cast(items.data);
                thrust::inclusive_scan(thrust::device, begin, begin + n, thrust::device_pointer_cast(out.data));
            });
        }
        {
            Array<uint64_t> items(n);
            make(items, [=] __device__(size_t i) { return splitmix64(seed + i); });
            one("sum", "u64", items, Sum());
        }
        Array<float> items(n);
        make(items, [=] __device__(size_t i) { return float(splitmix64(seed + i) >> 40) / float(1 << 24); });
        one("sum", "f32", items, Sum());
        segments("f32", items);
    });
}
