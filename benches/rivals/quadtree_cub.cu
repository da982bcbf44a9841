// The sort that a quadtree by codes has in it, alone: 64-bit codes of uniform points, by CUB.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o quadtree_cub quadtree_cub.cu
#include "primitives.cuh"

#include <cub/cub.cuh>

__device__ uint64_t spread(uint64_t x) {
    x = (x | x << 16) & 0x0000FFFF0000FFFFull;
    x = (x | x << 8) & 0x00FF00FF00FF00FFull;
    x = (x | x << 4) & 0x0F0F0F0F0F0F0F0Full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        Array<uint64_t> codes(n), sorted(n);
        make(codes, [=] __device__(size_t i) {
            // 24 bits of each coordinate are all that there are, in the highest of 32.
            const uint64_t x = noise(seed, 2 * i) >> 40 << 8, y = noise(seed, 2 * i + 1) >> 40 << 8;
            return spread(x) << 1 | spread(y);
        });
        size_t temp_bytes = 0;
        CHECK(cub::DeviceRadixSort::SortKeys(nullptr, temp_bytes, codes.data, sorted.data, n));
        Array<char> temp(temp_bytes);
        // One sort stands beside the builds of all leaf sizes.
        for (const char *leaves : {"20 points a leaf", "200 points a leaf", "2000 points a leaf"}) {
            row("CUB's sort of codes alone", std::string("build, ") + leaves, "f32 x 2, uniform", n, temp_bytes + n * 8,
                [&] { CHECK(cub::DeviceRadixSort::SortKeys(temp.data, temp_bytes, codes.data, sorted.data, n)); });
        }
    });
}
