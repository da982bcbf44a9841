// Radix sort by CUB, also of segments. Build: nvcc -O3 -std=c++17 -arch=native -o cub_sort cub_sort.cu --extended-lambda
#include "primitives.cuh"

#include <cub/cub.cuh>

template <class K>
void sort(const std::string &type, uint64_t seed, size_t n) {
    Array<K> keys(n), sorted(n);
    make(keys, [=] __device__(size_t i) { return K(splitmix64(seed + i)); });
    cub_row("radix sort keys", type + ", uniform", n, [&](void *temp, size_t &bytes) {
        return cub::DeviceRadixSort::SortKeys(temp, bytes, keys.data, sorted.data, n);
    });
    Array<uint32_t> values(n), sorted_values(n);
    make(values, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + 1 + i)); });
    const auto pairs = [&](void *temp, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(temp, bytes, keys.data, sorted.data, values.data, sorted_values.data, n);
    };
    cub_row("radix sort pairs", type + "/u32, uniform", n, pairs);
    // Two values a digit.
    make(keys, [=] __device__(size_t i) { return K(splitmix64(seed + i) & 0x1010101010101010ull); });
    cub_row("radix sort pairs", type + "/u32, few distinct", n, pairs);
}

void segments(uint64_t seed, size_t n, size_t length) {
    const size_t num_segments = (n + length - 1) / length;
    Array<uint32_t> keys(n), sorted(n), values(n), sorted_values(n);
    Array<int64_t> offsets(num_segments + 1);
    make(keys, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + i)); });
    make(values, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + 1 + i)); });
    make(offsets, [=] __device__(size_t i) { return int64_t(i * length < n ? i * length : n); });
    const std::string input = "u32/u32, segments of " + std::to_string(length);
    cub_row("segmented sort pairs", input, n, [&](void *temp, size_t &bytes) {
        return cub::DeviceSegmentedSort::StableSortPairs(temp, bytes, keys.data, sorted.data, values.data,
                                                         sorted_values.data, int64_t(n), int64_t(num_segments),
                                                         offsets.data, offsets.data + 1);
    });
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        sort<uint32_t>("u32", seed, n);
        sort<uint64_t>("u64", seed, n);
        for (size_t length : {16, 200, 5000}) segments(seed, n, length);
    });
}
