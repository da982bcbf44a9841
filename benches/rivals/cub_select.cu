// Select, partition and unique by CUB. Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o cub_select cub_select.cu
#include "primitives.cuh"

#include <cub/cub.cuh>

struct Below {
    uint32_t bound;
    __host__ __device__ bool operator()(uint32_t x) const { return x < bound; }
};

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        Array<uint32_t> items(n), out(n);
        Array<uint64_t> count(1);
        make(items, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + i)); });
        for (unsigned percent : {10u, 50u, 90u}) {
            const Below below{uint32_t(uint64_t(UINT32_MAX) * percent / 100)};
            const std::string input = "u32, " + std::to_string(percent) + " %";
            cub_row("select below", input, n, [&](void *temp, size_t &bytes) {
                return cub::DeviceSelect::If(temp, bytes, items.data, out.data, count.data, n, below);
            });
            Array<uint8_t> flags(n);
            make(flags, [=] __device__(size_t i) { return uint8_t(below(uint32_t(splitmix64(seed + i)))); });
            cub_row("select flagged", input, n, [&](void *temp, size_t &bytes) {
                return cub::DeviceSelect::Flagged(temp, bytes, items.data, flags.data, out.data, count.data, n);
            });
            // The rejected items come out in reverse.
            cub_row("partition below", input, n, [&](void *temp, size_t &bytes) {
                return cub::DevicePartition::If(temp, bytes, items.data, out.data, count.data, n, below);
            });
        }
        for (size_t run : {size_t(2), size_t(100)}) {
            make(items, [=] __device__(size_t i) { return uint32_t(splitmix64(seed + i / run)); });
            cub_row("unique", "u32, runs of " + std::to_string(run), n, [&](void *temp, size_t &bytes) {
                return cub::DeviceSelect::Unique(temp, bytes, items.data, out.data, count.data, n);
            });
        }
    });
}
