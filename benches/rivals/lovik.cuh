// Top-k spatial distance join as Løvik 2020 describes it (Top-k spatial distance join on the GPU, algorithms 4 to 8): a Hilbert hash,
// both sets sorted by it with Thrust, and three strategies for a thread of each right point: a heap of K pairs in registers, the same in
// shared memory, both in batches bounded by a result buffer and with a sort of all heaps; or every pair appended by an atomic counter and a
// sort of all pairs. Points of two floats, scores of 24 bits summed.
#pragma once

#include "primitives.cuh"

#include <map>

#include <thrust/execution_policy.h>
#include <thrust/sort.h>

struct Point {
    float x, y;
    uint32_t score, id;
};

struct Pair {
    uint32_t r, s;
};

// The id of an entry without a pair.
constexpr uint32_t NONE = ~0u;

// Threads of a block that filters.
constexpr int THREADS = 64;

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

// What the filters take: both sets in the order of their hashes, and the distance.
struct Sides {
    const Point *left;
    const uint32_t *hashes;
    uint32_t num_left;
    const Point *right;
    uint32_t num_right;
    float epsilon;
    Grid grid;

    // Calls `visitor.visit` with each left point within the distance of a right point.
    template <class V>
    __device__ __forceinline__ void for_each_near(const Point &s, V &visitor) const {
        const int cx = grid.x(s), cy = grid.y(s), side = 1 << grid.bits;
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
                    // Explicit, so that all strategies round alike.
                    if (fmaf(ax, ax, ay * ay) <= epsilon * epsilon) visitor.visit(r, s);
                }
            }
        }
    }
};

// The best pairs of a thread in ascending order of scores, in registers.
template <int K>
struct Registers {
    uint32_t best[K];
    Pair pairs[K];

    __device__ __forceinline__ Registers() {
#pragma unroll
        for (int k = 0; k < K; k++) {
            best[k] = 0;
            pairs[k] = {NONE, NONE};
        }
    }

    __device__ __forceinline__ void visit(const Point &r, const Point &s) {
        const uint32_t score = r.score + s.score;
        if (score <= best[0]) return;
        best[0] = score;
        pairs[0] = {r.id, s.id};
#pragma unroll
        for (int k = 0; k + 1 < K; k++) {
            if (best[k] > best[k + 1]) {
                const uint32_t t = best[k];
                best[k] = best[k + 1];
                best[k + 1] = t;
                const Pair p = pairs[k];
                pairs[k] = pairs[k + 1];
                pairs[k + 1] = p;
            }
        }
    }
};

template <int K>
__global__ void filter_in_registers(Sides sides, uint32_t *scores, Pair *pairs) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= sides.num_right) return;
    const Point s = sides.right[i];
    Registers<K> best;
    sides.for_each_near(s, best);
#pragma unroll
    for (int k = 0; k < K; k++) {
        scores[size_t(i) * K + k] = best.best[k];
        pairs[size_t(i) * K + k] = best.pairs[k];
    }
}

// Bytes of the heaps of a block: 12 for each thread and pair.
constexpr int heap_bytes(int k) { return 3 * int(sizeof(uint32_t)) * k * THREADS; }

// The best pairs of a thread in shared memory: a binary heap with the least score at the root. Entry k of thread t is at k * THREADS + t, so
// that each lane has a bank.
template <int K>
struct Heap {
    uint32_t *best, *rs, *ss;

    __device__ __forceinline__ explicit Heap(uint32_t *memory)
        : best(memory + threadIdx.x), rs(best + K * THREADS), ss(rs + K * THREADS) {
        for (int k = 0; k < K; k++) {
            best[k * THREADS] = 0;
            rs[k * THREADS] = NONE;
            ss[k * THREADS] = NONE;
        }
    }

    __device__ __forceinline__ void visit(const Point &r, const Point &s) {
        const uint32_t score = r.score + s.score;
        if (score <= best[0]) return;
        int k = 0;
        for (int child = 1; child < K; child = 2 * k + 1) {
            if (child + 1 < K && best[(child + 1) * THREADS] < best[child * THREADS]) child++;
            if (best[child * THREADS] >= score) break;
            best[k * THREADS] = best[child * THREADS];
            rs[k * THREADS] = rs[child * THREADS];
            ss[k * THREADS] = ss[child * THREADS];
            k = child;
        }
        best[k * THREADS] = score;
        rs[k * THREADS] = r.id;
        ss[k * THREADS] = s.id;
    }
};

template <int K>
__global__ void filter_in_shared(Sides sides, uint32_t *scores, Pair *pairs) {
    extern __shared__ uint32_t memory[];
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= sides.num_right) return;
    const Point s = sides.right[i];
    Heap<K> heap(memory);
    sides.for_each_near(s, heap);
    for (int k = 0; k < K; k++) {
        scores[size_t(i) * K + k] = heap.best[k * THREADS];
        pairs[size_t(i) * K + k] = {heap.rs[k * THREADS], heap.ss[k * THREADS]};
    }
}

// A list of all pairs, up to the capacity; a thread that meets the end stops counting.
struct List {
    uint32_t *scores;
    Pair *pairs;
    unsigned long long capacity, *count;
    bool is_full;

    __device__ __forceinline__ void visit(const Point &r, const Point &s) {
        if (is_full) return;
        const unsigned long long at = atomicAdd(count, 1ull);
        is_full = at >= capacity;
        if (is_full) return;
        scores[at] = r.score + s.score;
        pairs[at] = {r.id, s.id};
    }
};

__global__ void filter_append(Sides sides, List list) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= sides.num_right) return;
    const Point s = sides.right[i];
    List own = list;
    sides.for_each_near(s, own);
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
    bool are_wanted;

    explicit Phases(bool are_wanted) : are_wanted(are_wanted) {}
    Phases(const Phases &) = delete;

    // The end of a phase, or the begin of the first.
    void mark() {
        if (!are_wanted) return;
        if (used == events.size()) {
            events.emplace_back();
            CHECK(cudaEventCreate(&events.back()));
        }
        CHECK(cudaEventRecord(events[used++]));
    }

    // Takes the times of a run, if there was one: its begin, the end of the sort, then of each batch the end of the filter and of the sort
    // of its pairs, and where the next one begins.
    void take() {
        if (used == 0) return;
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
        take();
        if (!are_wanted) return "";
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

inline unsigned blocks(size_t n, int threads) { return unsigned((n + threads - 1) / threads); }

// Copies of two sets, which are sorted by their hashes, and the pairs that a filter writes.
struct Join {
    const Sets &sets;
    Array<Point> left, right;
    Array<uint32_t> left_hashes, right_hashes;
    Array<uint32_t> scores;
    Array<Pair> pairs;
    float epsilon;
    Grid grid;
    Phases phases;
    // The best pairs of all batches, with their scores.
    std::vector<std::pair<uint32_t, Pair>> found;

    Join(const Sets &sets, float epsilon, size_t num_pairs, bool in_phases)
        : sets(sets), left(sets.left.len), right(sets.right.len), left_hashes(left.len), right_hashes(right.len), scores(num_pairs),
          pairs(num_pairs), epsilon(epsilon), grid{sets.low_x, sets.low_y, 1.0f / epsilon, 0}, phases(in_phases) {
        while (float(1 << grid.bits) * epsilon < sets.side) grid.bits++;
    }

    // Puts both sets into their first order.
    void restore() {
        phases.take();
        CHECK(cudaMemcpy(left.data, sets.left.data, left.len * sizeof(Point), cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(right.data, sets.right.data, right.len * sizeof(Point), cudaMemcpyDeviceToDevice));
    }

    void sort() {
        phases.mark();
        hash_points<<<blocks(left.len, 256), 256>>>(left.data, left.len, grid, left_hashes.data);
        hash_points<<<blocks(right.len, 256), 256>>>(right.data, right.len, grid, right_hashes.data);
        thrust::sort_by_key(thrust::device, left_hashes.data, left_hashes.data + left.len, left.data);
        thrust::sort_by_key(thrust::device, right_hashes.data, right_hashes.data + right.len, right.data);
        phases.mark();
    }

    // Some of the right points with all left ones.
    Sides sides(size_t begin, size_t len) const {
        return {left.data, left_hashes.data, uint32_t(left.len), right.data + begin, uint32_t(len), epsilon, grid};
    }

    // Sorts the first pairs by score, and adds the best `k` of them to those found.
    void sort_pairs(size_t len, size_t k) {
        k = std::min(k, len);
        std::vector<uint32_t> some(k);
        std::vector<Pair> some_pairs(k);
        thrust::sort_by_key(thrust::device, scores.data, scores.data + len, pairs.data);
        CHECK(cudaMemcpy(some.data(), scores.data + len - k, k * sizeof(uint32_t), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(some_pairs.data(), pairs.data + len - k, k * sizeof(Pair), cudaMemcpyDeviceToHost));
        phases.mark();
        for (size_t i = k; i-- > 0;) found.push_back({some[i], some_pairs[i]});
    }

    // The scores of the best pairs must be those that another strategy found.
    void check(const std::string &which) {
        static std::map<std::string, std::vector<uint32_t>> known;
        std::vector<uint32_t> best;
        for (const auto &[score, pair] : found) {
            if (pair.r != NONE) best.push_back(score);
        }
        if (known.emplace(which, best).first->second != best) {
            std::fprintf(stderr, "strategies disagree: %s\n", which.c_str());
            std::exit(1);
        }
    }

    // Times `run`, and prints a row.
    template <class F>
    void print(size_t k, const char *epsilon_text, const std::string &name, F run) {
        const std::string work = "top " + std::to_string(k) + " within " + epsilon_text;
        const size_t temp_bytes = (left.len + right.len) * sizeof(uint32_t) + scores.len * (sizeof(uint32_t) + sizeof(Pair));
        row("Lovik in CUDA", work + name, sets.input, right.len, temp_bytes, run, [&] { restore(); }, [&] { return phases.text(); });
        check(work + ", " + sets.input + ", " + std::to_string(right.len));
    }
};

// Joins two sets by heaps in registers or in shared memory, with a result buffer of so many bytes. `end` ends the name of the row.
template <int K>
void join_by_heaps(const Sets &sets, float epsilon, const char *epsilon_text, size_t result_bytes, bool in_phases, const char *end = "") {
    const size_t num_right = sets.right.len, batch = std::max<size_t>(1, std::min(num_right, result_bytes / (K * 12)));
    CHECK(cudaFuncSetAttribute(filter_in_shared<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, heap_bytes(K)));
    for (bool is_shared : {false, true}) {
        Join join(sets, epsilon, batch * K, in_phases);
        auto run = [&] {
            join.sort();
            auto &found = join.found;
            found.clear();
            for (size_t begin = 0; begin < num_right; begin += batch) {
                const size_t len = std::min(batch, num_right - begin);
                const Sides sides = join.sides(begin, len);
                if (is_shared) {
                    filter_in_shared<K><<<blocks(len, THREADS), THREADS, heap_bytes(K)>>>(sides, join.scores.data, join.pairs.data);
                } else {
                    filter_in_registers<K><<<blocks(len, THREADS), THREADS>>>(sides, join.scores.data, join.pairs.data);
                }
                join.phases.mark();
                join.sort_pairs(len * K, K);
            }
            std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
            found.resize(std::min<size_t>(found.size(), K));
        };
        join.print(K, epsilon_text, std::string(is_shared ? ", shared memory" : ", registers") + end, run);
    }
}

// Joins two sets by a list of all pairs, if it fits into so many bytes.
inline void join_by_list(const Sets &sets, float epsilon, const char *epsilon_text, size_t result_bytes, size_t k, bool in_phases) {
    const size_t num_right = sets.right.len, capacity = result_bytes / 12;
    Join join(sets, epsilon, capacity, in_phases);
    Array<unsigned long long> count(1);
    unsigned long long num_pairs = 0;
    auto filter = [&] {
        join.sort();
        CHECK(cudaMemset(count.data, 0, sizeof num_pairs));
        const List list{join.scores.data, join.pairs.data, capacity, count.data, false};
        filter_append<<<blocks(num_right, THREADS), THREADS>>>(join.sides(0, num_right), list);
        CHECK(cudaMemcpy(&num_pairs, count.data, sizeof num_pairs, cudaMemcpyDeviceToHost));
        join.phases.mark();
    };
    join.restore();
    filter();
    join.phases.used = 0;
    if (num_pairs > capacity) {
        std::fprintf(stderr, "left out: top %zu within %s by a list, %s: more than %zu pairs\n", k, epsilon_text, sets.input.c_str(),
                     capacity);
        return;
    }
    join.print(k, epsilon_text, ", append and sort", [&] {
        filter();
        join.found.clear();
        join.sort_pairs(num_pairs, k);
    });
}

// Joins two sets by all three strategies.
template <int K>
void join(const Sets &sets, float epsilon, const char *epsilon_text, size_t result_bytes, bool in_phases) {
    join_by_heaps<K>(sets, epsilon, epsilon_text, result_bytes, in_phases);
    join_by_list(sets, epsilon, epsilon_text, result_bytes, K, in_phases);
}
