// The published experiment of Wald 2022: trees over points of one integer and of four floats, without ids, split on one axis after
// the other or on the widest side. For kauri's suite `kdtree-wald`.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o wald_builds wald_builds.cu
#include "wald.cuh"

#include <exception>

// Trees that tags of 32 bits have room for.
constexpr size_t MOST = size_t(1) << 30;

// Times a build and checks its tree; what does not fit in memory is left out.
template <class P, class F>
void timed_build(const char *work, const std::string &input, Array<P> &points, Array<unsigned> &tags, bool by_tag, F build) {
    // The tags, and what a merge sort moves to and fro.
    const size_t temp = points.len * (sizeof(P) + 2 * sizeof(unsigned));
    try {
        row("Wald in CUDA", work, input, points.len, temp, build);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s, %s, %zu left out: %s\n", work, input.c_str(), points.len, error.what());
        cudaGetLastError();
        return;
    }
    check_tree(points, tags, by_tag);
}

template <class T, int D, class F>
void builds(const std::string &input, size_t n, F item) {
    using P = Point<T, D>;
    size_t free_bytes = 0, all_bytes = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &all_bytes));
    const size_t bytes = n * (3 * sizeof(P) + 2 * sizeof(unsigned));
    if (n == 0 || n > MOST || bytes > free_bytes) {
        std::fprintf(stderr, "%s, %zu left out: takes %zu bytes, %zu are free\n", input.c_str(), n, bytes, free_bytes);
        return;
    }
    Array<T> coords(n * D);
    make(coords, item);
    Array<P> points(n);
    Array<unsigned> tags(n);
    timed_build("build", input, points, tags, false, [&] { build<P>(coords, points, tags); });
    // One axis is always the widest.
    if constexpr (D > 1) {
        timed_build("build, widest", input, points, tags, true, [&] { build_widest<P>(coords, points, tags); });
    }
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        builds<int, 1>("int1, uniform", n, [seed] __device__(size_t i) { return int(noise(seed, i) >> 32); });
        builds<float, 4>("float4, uniform", n, [seed] __device__(size_t i) { return unit(noise(seed, i)); });
    });
}
