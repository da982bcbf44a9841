// Top-k by CUB: its own top-k where this CUDA has it, and a radix sort of all keys with their positions; the least key by a
// reduction, which reads the input once. Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o cub_top_k cub_top_k.cu
#include "primitives.cuh"

#include <cub/cub.cuh>
#if __has_include(<cub/device/device_topk.cuh>)
#include <cub/device/device_topk.cuh>
#include <cuda/std/execution>
#define HAS_TOP_K
#endif

template <class T>
void one(const std::string &input, const Array<T> &keys) {
    const size_t n = keys.len;
    Array<T> best(n), least(1);
    Array<uint32_t> ids(n), best_ids(n);
    make(ids, [] __device__(size_t i) { return uint32_t(i); });
    cub_row("reduce min", input, n, [&](void *temp, size_t &bytes) {
        return cub::DeviceReduce::Min(temp, bytes, keys.data, least.data, n);
    });
    cub_row("top-k by sorting all", input, n, [&](void *temp, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(temp, bytes, keys.data, best.data, ids.data, best_ids.data, n);
    });
#ifdef HAS_TOP_K
    for (size_t k : {1, 32, 1024, 10000, 100000, 1000000}) {
        if (k > n) continue;
        // In any order, and with ties settled in any way: less work than a sorted result.
        auto environment = cuda::std::execution::env{cuda::execution::require(
            cuda::execution::determinism::not_guaranteed, cuda::execution::output_ordering::unsorted)};
        cub_row("top-k k=" + std::to_string(k), input, n, [&](void *temp, size_t &bytes) {
            return cub::DeviceTopK::MinPairs(temp, bytes, keys.data, best.data, ids.data, best_ids.data, n, k, environment);
        });
    }
#endif
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        {
            Array<float> keys(n);
            make(keys, [=] __device__(size_t i) { return float(splitmix64(seed + i) >> 40) / float(1 << 24); });
            one("f32", keys);
        }
        Array<uint64_t> keys(n);
        make(keys, [=] __device__(size_t i) { return splitmix64(seed + i); });
        one("u64", keys);
    });
}
