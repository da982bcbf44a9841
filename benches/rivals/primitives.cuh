// What the rivals share: the same inputs as benches/src/suites and benches/src/points.rs, timing by events, rows as JSON
// lines. Each program takes a seed and then sizes, as 1000000 or 1e6.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

// As kauri's benchmarks: 3 runs of warm-up or fewer within 2 seconds, then up to 30 within 4 seconds;
// a program may want less.
inline int warm_ups = 3;
inline int most_runs = 30;
inline double limit_ms = 4000;

__host__ __device__ inline uint64_t splitmix64(uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

// Random bits number i of a seed, and of such bits a number from 0 to 1: the points of kauri's benchmarks.
__host__ __device__ inline uint64_t noise(uint64_t seed, uint64_t i) { return splitmix64(seed + i * 0x9E3779B97F4A7C15ull); }
__host__ __device__ inline float unit(uint64_t bits) { return float(bits >> 40) / float(1 << 24); }

template <class T, class F>
__global__ void make_kernel(T *out, size_t n, F item) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        out[i] = item(i);
    }
}

// Device memory.
template <class T>
struct Array {
    T *data = nullptr;
    size_t len;

    explicit Array(size_t len) : len(len) { CHECK(cudaMalloc(&data, std::max<size_t>(len, 1) * sizeof(T))); }
    Array(const Array &) = delete;
    ~Array() { cudaFree(data); }
};

// Fills an array with items that follow from their positions.
template <class T, class F>
void make(Array<T> &out, F item) {
    make_kernel<<<4096, 256>>>(out.data, out.len, item);
    CHECK(cudaDeviceSynchronize());
}

// What a row of these programs has more than all have.
inline std::string nothing_more() { return ""; }

// Times `run`, before each of which `prepare` is called, and prints its row. `more` gives the end of its text when all runs are done.
template <class F, class P, class M = std::string (*)()>
void row(const char *system, const std::string &work, const std::string &input, size_t n, size_t temp_bytes, F run, P prepare,
         M more = nothing_more) {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    double warm_up_ms = 0, total_ms = 0;
    int warm_up = warm_ups;
    for (int i = 0; i < warm_up + most_runs && (i <= warm_up || total_ms < limit_ms); i++) {
        prepare();
        CHECK(cudaEventRecord(start));
        run();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, end));
        if (i < warm_up) {
            warm_up_ms += ms;
            if (warm_up_ms > limit_ms / 2) warm_up = i + 1;
            continue;
        }
        times.push_back(ms);
        total_ms += ms;
    }
    CHECK(cudaGetLastError());
    std::sort(times.begin(), times.end());
    std::printf("{\"system\":\"%s\",\"work\":\"%s\",\"input\":\"%s\",\"n\":%zu,\"median_ms\":%.6f,\"min_ms\":%.6f,"
                "\"max_ms\":%.6f,\"runs\":%zu,\"temp_bytes\":%zu%s}\n",
                system, work.c_str(), input.c_str(), n, times[times.size() / 2], times.front(), times.back(), times.size(),
                temp_bytes, more().c_str());
    std::fflush(stdout);
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
}

// The same with nothing to prepare.
template <class F>
void row(const char *system, const std::string &work, const std::string &input, size_t n, size_t temp_bytes, F run) {
    row(system, work, input, n, temp_bytes, run, [] {});
}

// Calls a CUB function twice, as it wants: for the size of its temporary memory, then for real.
template <class F>
void cub_row(const std::string &work, const std::string &input, size_t n, F call) {
    size_t temp_bytes = 0;
    CHECK(call(nullptr, temp_bytes));
    Array<char> temp(temp_bytes);
    row("CUB", work, input, n, temp_bytes, [&] { CHECK(call(temp.data, temp_bytes)); });
}

// Calls `run` with the seed and each size of the command line.
template <class F>
int for_each_size(int argc, char **argv, F run) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s SEED SIZE...\n", argv[0]);
        return 2;
    }
    const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
    for (int i = 2; i < argc; i++) run(seed, size_t(std::strtod(argv[i], nullptr)));
    return 0;
}
