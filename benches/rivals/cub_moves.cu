// Fill, gather and scatter by Thrust, histograms by CUB, beside a copy by the driver. Build: nvcc -O3 -std=c++17
// -arch=native --extended-lambda -o cub_moves cub_moves.cu
#include "primitives.cuh"

#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>

template <int N>
struct Item {
    uint32_t words[N];
};

template <int N>
void permutes(const std::string &name, const Array<uint32_t> &straight, const Array<uint32_t> &shuffled) {
    const size_t n = straight.len;
    if (n * N * 8 > size_t(64) << 30) return;
    Array<Item<N>> items(n), out(n);
    CHECK(cudaMemset(items.data, 1, n * sizeof(Item<N>)));
    const std::pair<const Array<uint32_t> *, const char *> orders[] = {{&straight, ", in order"}, {&shuffled, ", shuffled"}};
    for (const auto &kind : orders) {
        const std::string order = kind.second;
        auto first = thrust::device_pointer_cast(kind.first->data);
        auto from = thrust::device_pointer_cast(items.data), to = thrust::device_pointer_cast(out.data);
        row("Thrust", "gather", name + order, n, 0, [&] {
            thrust::gather(thrust::device, first, first + n, from, to);
        });
        row("Thrust", "scatter", name + order, n, 0, [&] {
            thrust::scatter(thrust::device, from, from + n, first, to);
        });
    }
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        {
            Array<uint32_t> items(n), copy(n);
            auto begin = thrust::device_pointer_cast(items.data);
            row("Thrust", "fill", "u32", n, 0, [&] { thrust::fill(thrust::device, begin, begin + n, 7u); });
            row("Thrust", "iota", "u32", n, 0, [&] { thrust::sequence(thrust::device, begin, begin + n); });
            row("CUDA", "device copy", "u32", n, 0, [&] {
                CHECK(cudaMemcpyAsync(copy.data, items.data, 4 * n, cudaMemcpyDeviceToDevice));
            });
        }
        {
            Array<uint32_t> straight(n), shuffled(n);
            make(straight, [] __device__(size_t i) { return uint32_t(i); });
            make(shuffled, [=] __device__(size_t i) { return uint32_t(i * 0x9E3779B1ull % n); });
            permutes<1>("4 bytes", straight, shuffled);
            permutes<3>("12 bytes", straight, shuffled);
            permutes<4>("16 bytes", straight, shuffled);
            permutes<16>("64 bytes", straight, shuffled);
        }
        Array<float> items(n);
        make(items, [=] __device__(size_t i) { return float(splitmix64(seed + i) >> 40) / float(1 << 24); });
        for (int bins : {256, 4096}) {
            Array<unsigned long long> counts(bins);
            cub_row("histogram", "f32, " + std::to_string(bins) + " bins", n, [&](void *temp, size_t &bytes) {
                return cub::DeviceHistogram::HistogramEven(temp, bytes, items.data, counts.data, bins + 1, 0.0f, 1.0f,
                                                           (long long)n);
            });
        }
    });
}
