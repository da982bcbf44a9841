// The experiments of Løvik 2020 on joins of boxes, chapters 4 and 6: times over the number of right boxes by density, dimension, cell length
// and number of partitions. For kauri's suite `box-join-thesis`.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o thesis_boxes thesis_boxes.cu
#include "boxes.cuh"

constexpr size_t PUBLISHED = 10000000, LEFT = 100000;
const char *const CELL_TEXTS[] = {"0.0003", "0.001", "0.003", "0.01", "0.03", "0.1"};
constexpr double CELL_LENGTH = 0.003;

std::string of_density(int dims, const char *density, size_t num_left) {
    return "f32 x " + std::to_string(dims) + ", density " + density + ", " + std::to_string(num_left) + " left";
}

std::string grid_name(const char *cell, uint32_t partitions) {
    return ", multi-layered grid, cells " + std::string(cell) + ", " + std::to_string(partitions) + " partitions";
}

template <int D>
void nested_of_dims(size_t num_left, size_t num_right, uint64_t seed) {
    const Sets<D> sets(num_left, num_right, 1, seed, of_density(D, "1", num_left), 0);
    nested_loop<D, false>(sets, num_right, "boxes counted, nested loop");
}

int main(int argc, char **argv) {
    std::vector<size_t> sizes;
    uint64_t seed = 1;
    const int status = for_each_size(argc, argv, [&](uint64_t of, size_t n) {
        seed = of;
        sizes.push_back(n);
    });
    if (status != 0) return status;
    most_runs = 20;
    limit_ms = 1000;
    const size_t most = std::min(*std::max_element(sizes.begin(), sizes.end()), PUBLISHED);
    const size_t num_left = (LEFT * most + PUBLISHED - 1) / PUBLISHED;
    const std::string work = "boxes counted";
    for (size_t n : sizes) {
        for (const char *density : {"0.1", "1", "10"}) {
            const Sets<2> sets(num_left, n, std::atof(density), seed, of_density(2, density, num_left), 0);
            nested_loop<2, false>(sets, n, work + ", nested loop");
            sort_based_filter<2, false>(sets, n, work + ", sort-based filter");
            const bool is_one = std::string(density) == "1";
            multi_layered_grid<2, false>(sets, CELL_LENGTH, 64, n, work + grid_name("0.003", 64));
            if (!is_one) continue;
            for (const char *cell : CELL_TEXTS) {
                if (std::atof(cell) != CELL_LENGTH) {
                    multi_layered_grid<2, false>(sets, std::atof(cell), 64, n, work + grid_name(cell, 64));
                }
            }
            for (uint32_t partitions : {1, 2, 4, 8, 16, 32}) {
                multi_layered_grid<2, false>(sets, CELL_LENGTH, partitions, n, work + grid_name("0.003", partitions));
            }
        }
        nested_of_dims<3>(num_left, n, seed);
        nested_of_dims<4>(num_left, n, seed);
        nested_of_dims<5>(num_left, n, seed);
    }
    return 0;
}
