// Joins of equal uniform squares by a nested loop, a multi-layered grid with cells as long as the boxes, and a sort-based filter. For kauri's
// suite `box-join`: the nested loop beside that of kauri, the others beside kauri's default.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o join_boxes join_boxes.cu
#include "boxes.cuh"

// The most boxes of each set of a nested loop, and of the other methods, whose time grows with the square of the number too.
constexpr size_t NESTED_TO = 100000, OTHERS_TO = 1000000;

template <bool LIST>
void join(const Sets<2> &sets, const std::string &work) {
    const size_t n = sets.len();
    if (n > OTHERS_TO) return;
    if (n <= NESTED_TO) nested_loop<2, LIST>(sets, n, work + ", nested loop");
    multi_layered_grid<2, LIST>(sets, sets.side, 64, n, work);
    sort_based_filter<2, LIST>(sets, n, work);
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        for (double density : {1.0, 0.1, 10.0}) {
            const std::string input = density == 1.0 ? "uniform" : density < 1.0 ? "uniform, density 0.1" : "uniform, density 10";
            // A box has about 4 * density partners.
            const Sets<2> sets(n, n, density, seed, "f32 x 2, " + input, size_t(5 * density * double(n)) + 1000);
            join<false>(sets, "boxes counted");
            join<true>(sets, "boxes listed");
        }
    });
}
