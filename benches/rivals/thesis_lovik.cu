// The experiments of Løvik 2020, chapter 7, by each of his strategies: uniform sets of all pairs of the sizes, then over the distance and the
// number of pairs with the time of each phase, then real-like sets. For kauri's suite `join-thesis`.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda --use_fast_math -o thesis_lovik thesis_lovik.cu
// With ONCE=1 in the environment the join over distances and numbers run once each, and nothing else does: for ncu.
#include "lovik.cuh"
#include "real_like.cuh"

constexpr size_t RESULTS = size_t(4) << 30, SMALL_RESULTS = size_t(50) << 20, PUBLISHED = 1000000;
// The end of names of rows with small results.
const char *const SMALL = ", 50 MiB of results";

struct Distance {
    float epsilon;
    const char *text;
};
const Distance DISTANCES[] = {{0.0001f, "0.0001"}, {0.0003f, "0.0003"}, {0.001f, "0.001"}, {0.003f, "0.003"},
                              {0.01f, "0.01"},     {0.03f, "0.03"},     {0.1f, "0.1"}};

std::string input(const std::string &what, size_t num_left) {
    return "f32 x 2, u24, " + what + ", " + std::to_string(num_left) + " left";
}

// As many points as were published, or the same part of less if no size is as much as a million.
size_t published(const std::vector<size_t> &sizes, size_t len) {
    const size_t most = std::min(*std::max_element(sizes.begin(), sizes.end()), PUBLISHED);
    return (len * most + PUBLISHED - 1) / PUBLISHED;
}

void over_sizes(uint64_t seed, const std::vector<size_t> &sizes) {
    for (size_t num_left : sizes) {
        for (size_t num_right : sizes) {
            Sets sets{Array<Point>(num_left), Array<Point>(num_right), 0, 0, 1, input("uniform", num_left)};
            make_uniform(sets, seed);
            // The row over distances and numbers has the phases.
            if (num_left != published(sizes, PUBLISHED) || num_right != num_left) {
                join<16>(sets, 0.001f, "0.001", RESULTS, false);
            }
            join_by_heaps<16>(sets, 0.001f, "0.001", SMALL_RESULTS, false, SMALL);
        }
    }
}

void over_distances_and_numbers(uint64_t seed, size_t n) {
    Sets sets{Array<Point>(n), Array<Point>(n), 0, 0, 1, input("uniform", n)};
    make_uniform(sets, seed);
    for (auto [epsilon, text] : DISTANCES) join<16>(sets, epsilon, text, RESULTS, true);
    join<1>(sets, 0.001f, "0.001", RESULTS, true);
    join<2>(sets, 0.001f, "0.001", RESULTS, true);
    join<4>(sets, 0.001f, "0.001", RESULTS, true);
    join<8>(sets, 0.001f, "0.001", RESULTS, true);
    join<32>(sets, 0.001f, "0.001", RESULTS, true);
    join<64>(sets, 0.001f, "0.001", RESULTS, true);
    join<128>(sets, 0.001f, "0.001", RESULTS, true);
    for (size_t k : {256, 512, 1024, 10000, 100000}) join_by_list(sets, 0.001f, "0.001", RESULTS, k, true);
}

template <class L, class R>
void of_real_sets(uint64_t seed, const char *what, size_t num_left, size_t num_right, L left, R right) {
    Sets sets{Array<Point>(num_left), Array<Point>(num_right), -74.26f, 40.49f, 0.53f, input(what, num_left)};
    auto bring = [](const Array<Point> &to, uint64_t seed, auto make) {
        std::vector<Point> points(to.len);
        for (size_t i = 0; i < to.len; i++) {
            const real_like::Place place = make(seed, i);
            points[i] = {place.x, place.y, uint32_t(noise(seed + 2, i) >> 40), uint32_t(i)};
        }
        CHECK(cudaMemcpy(to.data, points.data(), to.len * sizeof(Point), cudaMemcpyHostToDevice));
    };
    bring(sets.left, seed, left);
    bring(sets.right, seed + 1, right);
    for (auto [epsilon, text] : DISTANCES) join<16>(sets, epsilon, text, RESULTS, false);
}

int main(int argc, char **argv) {
    std::vector<size_t> sizes;
    uint64_t seed = 1;
    const int status = for_each_size(argc, argv, [&](uint64_t of, size_t n) {
        seed = of;
        sizes.push_back(n);
    });
    if (status != 0) return status;
    limit_ms = 500;
    if (std::getenv("ONCE")) {
        warm_ups = 0;
        most_runs = 1;
        over_distances_and_numbers(seed, published(sizes, PUBLISHED));
        return 0;
    }
    over_sizes(seed, sizes);
    over_distances_and_numbers(seed, published(sizes, PUBLISHED));
    of_real_sets(seed, "harbours and trees", published(sizes, 89545), published(sizes, 683788), real_like::harbour,
                 real_like::inland);
    of_real_sets(seed, "tanks and addresses", published(sizes, 25054), published(sizes, 964214), real_like::inland,
                 real_like::inland);
    return 0;
}
