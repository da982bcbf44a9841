// Top-k spatial distance join as Løvik 2020 describes it (Top-k spatial distance join on the GPU, algorithms 4 to 8): a Hilbert hash,
// both sets sorted by it with Thrust, a thread a right point with a heap of K pairs in registers, batches bounded by a result buffer, a
// sort of all heaps. Points of two floats, scores of 24 bits summed.
#pragma once

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

// Where the cells of the grid are: of so many bits an axis, from a corner on.
struct Grid {
    float low_x, low_y, inverse;
    int bits;

    __device__ int x(const Point &p) const { return int((p.x - low_x) * inverse); }
    __device__ int y(const Point &p) const { return int((p.y - low_y) * inverse); }
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

__global__ void hash_points(const Point *points, size_t n, Grid grid, uint32_t *hashes) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) hashes[i] = hilbert(uint32_t(grid.x(points[i])), uint32_t(grid.y(points[i])), grid.bits);
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
                       float epsilon, Grid grid, uint32_t *scores, Pair *pairs) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_right) return;
    const Point s = right[i];
    const int cx = grid.x(s), cy = grid.y(s), side = 1 << grid.bits;
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
            const uint32_t hash = hilbert(x, y, grid.bits);
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

// Two sets in a square of that side from a corner on; what rows say of them.
struct Sets {
    Array<Point> left, right;
    float low_x, low_y, side;
    std::string input;
};

// Uniform points of the unit square, as kauri's suites make them.
inline void make_uniform(Sets &sets, uint64_t seed) {
    auto points = [](uint64_t seed, uint64_t of_scores) {
        return [=] __device__(size_t i) {
            return Point{unit(noise(seed, 2 * i)), unit(noise(seed, 2 * i + 1)), uint32_t(noise(of_scores, i) >> 40), uint32_t(i)};
        };
    };
    make(sets.left, points(seed, seed + 2));
    make(sets.right, points(seed + 1, seed + 3));
}

// Milliseconds of phases, between events of a run.
struct Phases {
    static constexpr const char *NAMES[3] = {"hash and sort", "filter", "final sort"};
    std::vector<cudaEvent_t> events;
    size_t used = 0;
    std::vector<float> times[3];

    // The end of a phase, or the begin of the first.
    void mark() {
        if (used == events.size()) {
            events.emplace_back();
            CHECK(cudaEventCreate(&events.back()));
        }
        CHECK(cudaEventRecord(events[used++]));
    }

    // Takes the times of a run: its begin, the end of the sort, then of each batch the end of the filter and of the sort of its heaps, and
    // where the next one begins.
    void take() {
        float sums[3] = {0, 0, 0};
        CHECK(cudaEventSynchronize(events[used - 1]));
        for (size_t i = 1; i < used; i++) {
            float ms = 0;
            CHECK(cudaEventElapsedTime(&ms, events[i - 1], events[i]));
            sums[i == 1 ? 0 : (i % 2 == 0 ? 1 : 2)] += ms;
        }
        for (int phase = 0; phase < 3; phase++) times[phase].push_back(sums[phase]);
        used = 0;
    }

    // The medians, as a part of a row.
    std::string text() {
        std::string text = ",\"phases\":[";
        for (int phase = 0; phase < 3; phase++) {
            std::sort(times[phase].begin(), times[phase].end());
            text += std::string(phase ? "," : "") + "{\"name\":\"" + NAMES[phase] + "\",\"ms\":" +
                    std::to_string(times[phase][times[phase].size() / 2]) + "}";
        }
        return text + "]";
    }

    ~Phases() {
        for (cudaEvent_t event : events) cudaEventDestroy(event);
    }
};

// Joins two sets by a result buffer of so many bytes, and prints the rows of these names.
template <int K>
void join(const Sets &sets, float epsilon, const char *epsilon_text, size_t result_bytes, const std::vector<std::string> &names,
          bool in_phases) {
    const size_t num_left = sets.left.len, num_right = sets.right.len;
    Array<Point> left(num_left), right(num_right);
    Array<uint32_t> left_hashes(num_left), right_hashes(num_right);
    const size_t batch = std::max<size_t>(1, std::min(num_right, result_bytes / (K * 12)));
    Array<uint32_t> scores(batch * K);
    Array<Pair> pairs(batch * K);
    Grid grid{sets.low_x, sets.low_y, 1.0f / epsilon, 0};
    while (float(1 << grid.bits) * epsilon < sets.side) grid.bits++;
    auto blocks = [](size_t n, int threads) { return unsigned((n + threads - 1) / threads); };
    std::vector<uint32_t> best;
    Phases phases;
    auto run = [&] {
        if (in_phases) phases.mark();
        hash_points<<<blocks(num_left, 256), 256>>>(left.data, num_left, grid, left_hashes.data);
        hash_points<<<blocks(num_right, 256), 256>>>(right.data, num_right, grid, right_hashes.data);
        thrust::sort_by_key(thrust::device, left_hashes.data, left_hashes.data + num_left, left.data);
        thrust::sort_by_key(thrust::device, right_hashes.data, right_hashes.data + num_right, right.data);
        if (in_phases) phases.mark();
        std::vector<std::pair<uint32_t, Pair>> found;
        for (size_t begin = 0; begin < num_right; begin += batch) {
            const size_t len = std::min(batch, num_right - begin);
            filter<K><<<blocks(len, 64), 64>>>(left.data, left_hashes.data, uint32_t(num_left), right.data + begin, uint32_t(len),
                                               epsilon, grid, scores.data, pairs.data);
            if (in_phases) phases.mark();
            thrust::sort_by_key(thrust::device, scores.data, scores.data + len * K, pairs.data);
            uint32_t some[K];
            Pair some_pairs[K];
            CHECK(cudaMemcpy(some, scores.data + len * K - K, sizeof some, cudaMemcpyDeviceToHost));
            CHECK(cudaMemcpy(some_pairs, pairs.data + len * K - K, sizeof some_pairs, cudaMemcpyDeviceToHost));
            if (in_phases) phases.mark();
            for (int k = 0; k < K; k++) found.push_back({some[k], some_pairs[k]});
        }
        std::sort(found.begin(), found.end(), [](auto &a, auto &b) { return a.first > b.first; });
        best.clear();
        for (int k = 0; k < K; k++) best.push_back(found[k].first);
    };
    auto restore = [&] {
        if (in_phases && phases.used > 0) phases.take();
        CHECK(cudaMemcpy(left.data, sets.left.data, num_left * sizeof(Point), cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(right.data, sets.right.data, num_right * sizeof(Point), cudaMemcpyDeviceToDevice));
    };
    auto more = [&] {
        if (!in_phases) return std::string();
        phases.take();
        return phases.text();
    };
    const std::string work = "top " + std::to_string(K) + " within " + epsilon_text;
    const size_t temp_bytes = (num_left + num_right) * sizeof(uint32_t) + batch * K * (sizeof(uint32_t) + sizeof(Pair));
    row("Lovik in CUDA", work, sets.input, num_right, temp_bytes, run, restore, names, more);
}
