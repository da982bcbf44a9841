// Top-k distance join as Løvik 2020 describes it (Top-k spatial distance join on the GPU, algorithms 4 to 8): a Hilbert hash, both
// sets sorted by it with Thrust, a thread a right point with a heap of K pairs in registers, batches bounded by a result buffer of
// 4 GB, a sort of all heaps. Points of two floats, scores of 24 bits summed.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda --use_fast_math -o join_lovik join_lovik.cu
#include "primitives.cuh"

#include <thrust/execution_policy.h>
#include <thrust/sort.h>

struct Point {
    float x, y;
    uint32_t score, id;
};

struct Pair {
    uint32_t r, s;
};

// Hilbert's curve of so many bits an axis.
__host__ __device__ inline uint32_t hilbert(uint32_t x, uint32_t y, int bits) {
    uint32_t place = 0;
    for (int s = bits - 1; s >= 0; s--) {
        const uint32_t rx = x >> s & 1, ry = y >> s & 1;
        place += ((3 * rx) ^ ry) << (2 * s);
        if (ry == 0) {
            if (rx == 1) {
                x = (1u << bits) - 1 - x;
                y = (1u << bits) - 1 - y;
            }
            const uint32_t t = x;
            x = y;
            y = t;
        }
    }
    return place;
}

__global__ void hash_points(const Point *points, size_t n, float inverse, int bits, uint32_t *hashes) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) hashes[i] = hilbert(uint32_t(points[i].x * inverse), uint32_t(points[i].y * inverse), bits);
}

__device__ inline uint32_t lower_bound(const uint32_t *items, uint32_t len, uint32_t value) {
    uint32_t begin = 0;
    while (len > 0) {
        const uint32_t half = len / 2;
        if (items[begin + half] < value) {
            begin += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    return begin;
}

template <int K>
__global__ void filter(const Point *left, const uint32_t *hashes, uint32_t num_left, const Point *right, uint32_t num_right,
                       float epsilon, int bits, uint32_t *scores, Pair *pairs) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_right) return;
    const Point s = right[i];
    const float inverse = 1.0f / epsilon;
    const int cx = int(s.x * inverse), cy = int(s.y * inverse), side = 1 << bits;
    uint32_t best[K];
    Pair best_pairs[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        best[k] = 0;
        best_pairs[k] = {~0u, ~0u};
    }
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            const int x = cx + dx, y = cy + dy;
            if (x < 0 || y < 0 || x >= side || y >= side) continue;
            const uint32_t hash = hilbert(x, y, bits);
            const uint32_t begin = lower_bound(hashes, num_left, hash);
            const uint32_t end = begin + lower_bound(hashes + begin, num_left - begin, hash + 1);
            for (uint32_t j = begin; j < end; j++) {
                const Point r = left[j];
                const float ax = r.x - s.x, ay = r.y - s.y;
                const uint32_t score = r.score + s.score;
                if (ax * ax + ay * ay <= epsilon * epsilon && score > best[0]) {
                    best[0] = score;
                    best_pairs[0] = {r.id, s.id};
#pragma unroll
                    for (int k = 0; k + 1 < K; k++) {
                        if (best[k] > best[k + 1]) {
                            const uint32_t t = best[k];
                            best[k] = best[k + 1];
                            best[k + 1] = t;
                            const Pair p = best_pairs[k];
                            best_pairs[k] = best_pairs[k + 1];
                            best_pairs[k + 1] = p;
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        scores[size_t(i) * K + k] = best[k];
        pairs[size_t(i) * K + k] = best_pairs[k];
    }
}

template <int K>
void join(uint64_t seed, size_t n, float epsilon, const char *epsilon_text, const std::vector<std::string> &names) {
    Array<Point> left(n), right(n), left_input(n), right_input(n);
    Array<uint32_t> left_hashes(n), right_hashes(n);
    auto points = [](uint64_t seed, uint64_t of_scores) {
        return [=] __device__(size_t i) {
            return Point{unit(noise(seed, 2 * i)), unit(noise(seed, 2 * i + 1)), uint32_t(noise(of_scores, i) >> 40), uint32_t(i)};
        };
    };
    make(left_input, points(seed, seed + 2));
    make(right_input, points(seed + 1, seed + 3));
    const size_t batch = std::min(n, (size_t(4) << 30) / (K * 12));
    Array<uint32_t> scores(batch * K);
    Array<Pair> pairs(batch * K);
    int bits = 0;
    while (float(1 << bits) * epsilon < 1.0f) bits++;
    auto grid = [](size_t n, int threads) { return unsigned((n + threads - 1) / threads); };
    std::vector<uint32_t> best;
    auto run = [&] {
        hash_points<<<grid(n, 256), 256>>>(left.data, n, 1.0f / epsilon, bits, left_hashes.data);
        hash_points<<<grid(n, 256), 256>>>(right.data, n, 1.0f / epsilon, bits, right_hashes.data);
        thrust::sort_by_key(thrust::device, left_hashes.data, left_hashes.data + n, left.data);
        thrust::sort_by_key(thrust::device, right_hashes.data, right_hashes.data + n, right.data);
        std::vector<std::pair<uint32_t, Pair>> found;
        for (size_t begin = 0; begin < n; begin += batch) {
            const size_t len = std::min(batch, n - begin);
            filter<K><<<grid(len, 64), 64>>>(left.data, left_hashes.data, uint32_t(n), right.data + begin, uint32_t(len), epsilon,
                                             bits, scores.data, pairs.data);
            thrust::sort_by_key(thrust::device, scores.data, scores.data + len * K, pairs.data);
            uint32_t some[K];
            Pair some_pairs[K];
            CHECK(cudaMemcpy(some, scores.data + len * K - K, sizeof some, cudaMemcpyDeviceToHost));
            CHECK(cudaMemcpy(some_pairs, pairs.data + len * K - K, sizeof some_pairs, cudaMemcpyDeviceToHost));
            for (int k = 0; k < K; k++) found.push_back({some[k], some_pairs[k]});
        }
        std::sort(found.begin(), found.end(), [](auto &a, auto &b) { return a.first > b.first; });
        best.clear();
        for (int k = 0; k < K; k++) best.push_back(found[k].first);
    };
    auto restore = [&] {
        CHECK(cudaMemcpy(left.data, left_input.data, n * sizeof(Point), cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(right.data, right_input.data, n * sizeof(Point), cudaMemcpyDeviceToDevice));
    };
    const std::string work = "top " + std::to_string(K) + " within " + epsilon_text;
    row("Lovik in CUDA", work, "f32 x 2, u24, uniform", n, n * 8 + batch * K * 12, run, restore, names);
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        join<16>(seed, n, 0.001f, "0.001", {"", ", cells", ", registers", ", shared memory", ", filter"});
        if (n <= 10000000) {
            join<32>(seed, n, 0.001f, "0.001", {"", ", cells"});
            join<64>(seed, n, 0.001f, "0.001", {"", ", cells"});
        }
        if (n <= 1000000) {
            join<16>(seed, n, 0.01f, "0.01", {"", ", cells"});
            join<16>(seed, n, 0.1f, "0.1", {"", ", cells"});
        }
    });
}
