// Løvik's top-k spatial distance join of uniform sets of one size, by a result buffer of 4 GB, with each of his strategies. For kauri's suite
// `join`.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda --use_fast_math -o join_lovik join_lovik.cu
#include "lovik.cuh"

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        Sets sets{Array<Point>(n), Array<Point>(n), 0, 0, 1, "f32 x 2, u24, uniform"};
        make_uniform(sets, seed);
        constexpr size_t RESULTS = size_t(4) << 30;
        join<16>(sets, 0.001f, "0.001", RESULTS, false);
        if (n <= 10000000) {
            join<32>(sets, 0.001f, "0.001", RESULTS, false);
            join<64>(sets, 0.001f, "0.001", RESULTS, false);
            join<128>(sets, 0.001f, "0.001", RESULTS, false);
            for (size_t k : {256, 1024, 10000, 100000}) join_by_list(sets, 0.001f, "0.001", RESULTS, k, false);
        }
        if (n <= 1000000) {
            join<16>(sets, 0.01f, "0.01", RESULTS, false);
            join<16>(sets, 0.1f, "0.1", RESULTS, false);
        }
    });
}
