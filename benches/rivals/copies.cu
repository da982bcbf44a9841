// Copies between host memory and a GPU by the driver. Build: nvcc -O3 -std=c++17 -arch=native -o copies copies.cu
#include "primitives.cuh"

#include <cstring>

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t, size_t n) {
        const size_t bytes = 4 * n;
        Array<uint32_t> device(n);
        CHECK(cudaMemset(device.data, 1, bytes));
        std::vector<uint32_t> pageable(n, 1);
        uint32_t *locked = nullptr;
        CHECK(cudaMallocHost(&locked, bytes));
        std::memset(locked, 1, bytes);
        for (auto [host, input] : {std::pair(pageable.data(), "u32, pageable"), std::pair(locked, "u32, page-locked")}) {
            row("CUDA", "copy to the device", input, n, 0, [&, host = host] {
                CHECK(cudaMemcpy(device.data, host, bytes, cudaMemcpyHostToDevice));
            });
            row("CUDA", "copy from the device", input, n, 0, [&, host = host] {
                CHECK(cudaMemcpy(host, device.data, bytes, cudaMemcpyDeviceToHost));
            });
        }
        row("CUDA", "copy from the device", "u32, new vector", n, 0, [&] {
            void *host = std::malloc(bytes);
            CHECK(cudaMemcpy(host, device.data, bytes, cudaMemcpyDeviceToHost));
            std::free(host);
        });
        CHECK(cudaFreeHost(locked));
    });
}
