// Joins of boxes as Løvik 2020 describes them (Top-k spatial distance join on the GPU, chapter 4): the nested loop with tiles in shared
// memory, the multi-layered grid (Ward et al. 2014), and the sort-based filter (Aghajarian et al. 2016). Pairs are counted, or listed by
// appends that the lanes of a warp share. Boxes of floats that intersect; touching counts.
#pragma once

#include "primitives.cuh"

#include <cmath>

#include <cub/device/device_radix_sort.cuh>

template <int D>
struct Box {
    float low[D], high[D];
};

template <int D>
__device__ inline bool intersect(const Box<D> &a, const Box<D> &b) {
    bool all = true;
#pragma unroll
    for (int d = 0; d < D; d++) all = all && a.low[d] <= b.high[d] && b.low[d] <= a.high[d];
    return all;
}

// Equal cubes, as benches/src/points/boxes.rs makes them. No contraction, so that the bits are the same.
template <int D>
void make_cubes(Array<Box<D>> &boxes, double density, uint64_t seed) {
    const float side = float(std::pow(density / double(std::max<size_t>(boxes.len, 1)), 1.0 / D)), space = 1.0f - side;
    make(boxes, [=] __device__(size_t i) {
        Box<D> box;
        for (int d = 0; d < D; d++) {
            box.low[d] = __fmul_rn(unit(noise(seed, i * D + d)), space);
            box.high[d] = __fadd_rn(box.low[d], side);
        }
        return box;
    });
}

// Where pairs go: their number, and the list of as many as it holds; no list if they are counted only.
struct Output {
    unsigned long long *total;
    uint2 *pairs;
    unsigned long long capacity;

    // Appends the pair of each lane that has one; all lanes of the warp call.
    __device__ void append(bool has, uint32_t left, uint32_t right) const {
        const unsigned lanes = __ballot_sync(~0u, has);
        if (lanes == 0) return;
        const unsigned lane = threadIdx.x % 32;
        unsigned long long at = 0;
        if (lane == 0) at = atomicAdd(total, (unsigned long long)__popc(lanes));
        at = __shfl_sync(~0u, at, 0) + __popc(lanes & ((1u << lane) - 1));
        if (has && at < capacity) pairs[at] = make_uint2(left, right);
    }

    // Adds what the lanes of a warp have counted.
    __device__ void add(unsigned long long count) const {
        for (int step = 16; step > 0; step /= 2) count += __shfl_xor_sync(~0u, count, step);
        if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(total, count);
    }
};

constexpr int TILE = 128;

inline unsigned blocks(size_t n, int threads) { return unsigned((n + threads - 1) / threads); }

// Joins the left box of each thread with a tile of right boxes in shared memory; returns the number of pairs if they are not listed.
template <int D, bool LIST>
__device__ unsigned long long join_tile(const Box<D> &own, bool has_own, uint32_t id, const Box<D> *tile, const uint32_t *ids, unsigned len,
                                        Output output) {
    unsigned long long count = 0;
    for (unsigned j = 0; j < len; j++) {
        const bool hit = has_own && intersect(own, tile[j]);
        if (LIST) {
            output.append(hit, id, ids[j]);
        } else {
            count += hit;
        }
    }
    return count;
}

// Nested loop: a thread a left box; the blocks of blockIdx.y share the right boxes.
template <int D, bool LIST>
__global__ void nested(const Box<D> *left, uint32_t num_left, const Box<D> *right, uint32_t num_right, Output output) {
    __shared__ Box<D> tile[TILE];
    __shared__ uint32_t ids[TILE];
    const uint32_t i = blockIdx.x * TILE + threadIdx.x;
    Box<D> own{};
    if (i < num_left) own = left[i];
    unsigned long long count = 0;
    for (uint64_t begin = uint64_t(blockIdx.y) * TILE; begin < num_right; begin += uint64_t(gridDim.y) * TILE) {
        const unsigned len = unsigned(min(uint64_t(TILE), num_right - begin));
        __syncthreads();
        if (threadIdx.x < len) {
            tile[threadIdx.x] = right[begin + threadIdx.x];
            ids[threadIdx.x] = uint32_t(begin) + threadIdx.x;
        }
        __syncthreads();
        count += join_tile<D, LIST>(own, i < num_left, i, tile, ids, len, output);
    }
    if (!LIST) output.add(count);
}

// The cells of the unit cube, row by row; coordinates outside are in border cells.
struct Grid {
    float inverse;
    uint32_t side;

    __device__ uint32_t cell(float x) const { return min(uint32_t(max(x * inverse, 0.0f)), side - 1); }

    // Calls `visit` with each cell of a box.
    template <int D, class F>
    __device__ void each(const Box<D> &box, F visit) const {
        uint32_t first[D], last[D], at[D];
        for (int d = 0; d < D; d++) at[d] = first[d] = cell(box.low[d]), last[d] = cell(box.high[d]);
        while (true) {
            uint64_t index = 0;
            for (int d = D - 1; d >= 0; d--) index = index * side + at[d];
            visit(index);
            int d = 0;
            while (d < D && at[d] == last[d]) at[d] = first[d], d++;
            if (d == D) return;
            at[d]++;
        }
    }
};

template <int D>
__global__ void mark(const Box<D> *left, uint32_t num_left, uint32_t partitions, Grid grid, unsigned long long *words) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_left) return;
    const unsigned long long bit = 1ull << (uint64_t(i) * partitions / num_left);
    grid.each(left[i], [=](uint64_t cell) { atomicOr(words + cell, bit); });
}

template <int D>
__global__ void probe(const Box<D> *right, uint32_t num_right, Grid grid, const unsigned long long *words, unsigned long long *bits) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_right) return;
    unsigned long long found = 0;
    grid.each(right[i], [&](uint64_t cell) { found |= words[cell]; });
    bits[i] = found;
}

// Counts the right boxes of each partition's stream; with ids also writes the streams, from `begins` on.
__global__ void write_streams(const unsigned long long *bits, uint32_t num_right, uint32_t partitions, uint32_t *lens,
                              const uint64_t *begins, uint32_t *ids) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const unsigned long long own = i < num_right ? bits[i] : 0;
    for (uint32_t p = 0; p < partitions; p++) {
        const unsigned lanes = __ballot_sync(~0u, own >> p & 1);
        if (lanes == 0) continue;
        uint32_t at = 0;
        if (lane == 0) at = atomicAdd(lens + p, uint32_t(__popc(lanes)));
        at = __shfl_sync(~0u, at, 0) + __popc(lanes & ((1u << lane) - 1));
        if (ids && (own >> p & 1)) ids[begins[p] + at] = i;
    }
}

__global__ void sum_lens(const uint32_t *lens, uint32_t partitions, uint64_t *begins) {
    begins[0] = 0;
    for (uint32_t p = 0; p < partitions; p++) begins[p + 1] = begins[p] + lens[p];
}

// A block a tile of left boxes of one partition (blockIdx.x) and a part of its stream (blockIdx.y).
template <int D, bool LIST>
__global__ void join_streams(const Box<D> *left, uint32_t num_left, const Box<D> *right, uint32_t partitions, uint32_t tiles,
                             const uint32_t *lens, const uint64_t *begins, const uint32_t *stream_ids, Output output) {
    __shared__ Box<D> tile[TILE];
    __shared__ uint32_t ids[TILE];
    const uint32_t p = blockIdx.x / tiles;
    auto first_of = [=](uint32_t p) { return uint32_t((uint64_t(p) * num_left + partitions - 1) / partitions); };
    const uint32_t i = first_of(p) + blockIdx.x % tiles * TILE + threadIdx.x, end = first_of(p + 1);
    if (i - threadIdx.x >= end) return;
    Box<D> own{};
    if (i < end) own = left[i];
    unsigned long long count = 0;
    for (uint64_t begin = uint64_t(blockIdx.y) * TILE; begin < lens[p]; begin += uint64_t(gridDim.y) * TILE) {
        const unsigned len = unsigned(min(uint64_t(TILE), lens[p] - begin));
        __syncthreads();
        if (threadIdx.x < len) {
            ids[threadIdx.x] = stream_ids[begins[p] + begin + threadIdx.x];
            tile[threadIdx.x] = right[ids[threadIdx.x]];
        }
        __syncthreads();
        count += join_tile<D, LIST>(own, i < end, i, tile, ids, len, output);
    }
    if (!LIST) output.add(count);
}

// The ends of all boxes along the first axis: all low ends, then all high ends, so that a stable sort puts low ends first. End 2i is the
// low one of box i, 2i + 1 the high one; the left boxes come first.
template <int D>
__global__ void make_ends(const Box<D> *left, uint32_t num_left, const Box<D> *right, uint32_t num_right, float *keys, uint32_t *ends) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, num = num_left + num_right;
    if (i >= num) return;
    const Box<D> &box = i < num_left ? left[i] : right[i - num_left];
    keys[i] = box.low[0];
    keys[num + i] = box.high[0];
    ends[i] = 2 * i;
    ends[num + i] = 2 * i + 1;
}

__global__ void rank_ends(const uint32_t *ends, uint32_t num_ends, uint32_t *ranks) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < num_ends) ranks[ends[i]] = i;
}

// A block a box: the boxes of the other set that begin between its ends.
template <int D, bool LIST>
__global__ void sweep(const Box<D> *left, uint32_t num_left, const Box<D> *right, const uint32_t *ends, const uint32_t *ranks,
                      Output output) {
    const uint32_t i = blockIdx.x;
    const bool is_left = i < num_left;
    const Box<D> own = is_left ? left[i] : right[i - num_left];
    const uint64_t first = ranks[2 * i] + 1, end = ranks[2 * i + 1];
    unsigned long long count = 0;
    for (uint64_t begin = first; begin < end; begin += blockDim.x) {
        const uint64_t rank = begin + threadIdx.x;
        const uint32_t other = rank < end ? ends[rank] : 1, j = other / 2;
        const bool is_candidate = other % 2 == 0 && (j < num_left) != is_left;
        const bool hit = is_candidate && intersect(own, is_left ? right[j - num_left] : left[j]);
        if (LIST) {
            output.append(hit, is_left ? i : j, (is_left ? j : i) - num_left);
        } else {
            count += hit;
        }
    }
    if (!LIST) output.add(count);
}

// Times of phases: the medians over the runs between marks.
struct Phases {
    std::vector<const char *> names;
    std::vector<cudaEvent_t> events;
    std::vector<std::vector<float>> times;
    size_t used = 0;

    explicit Phases(std::vector<const char *> names) : names(names), events(names.size() + 1), times(names.size()) {
        for (cudaEvent_t &event : events) CHECK(cudaEventCreate(&event));
    }
    Phases(const Phases &) = delete;
    ~Phases() {
        for (cudaEvent_t event : events) cudaEventDestroy(event);
    }

    // The begin of the first phase, or the end of one.
    void mark() { CHECK(cudaEventRecord(events[used++])); }

    // Takes the times of the last run, if there was one.
    void take() {
        if (used == 0) return;
        used = 0;
        CHECK(cudaEventSynchronize(events.back()));
        for (size_t i = 0; i < names.size(); i++) {
            float ms = 0;
            CHECK(cudaEventElapsedTime(&ms, events[i], events[i + 1]));
            times[i].push_back(ms);
        }
    }

    std::string text() {
        take();
        std::string text = ",\"phases\":[";
        for (size_t i = 0; i < names.size(); i++) {
            std::sort(times[i].begin(), times[i].end());
            text += std::string(i ? "," : "") + "{\"name\":\"" + names[i] + "\",\"ms\":" +
                    std::to_string(times[i][times[i].size() / 2]) + "}";
        }
        return text + "]";
    }
};

// Two sets and the memory of the result.
template <int D>
struct Sets {
    Array<Box<D>> left, right;
    Array<unsigned long long> total;
    Array<uint2> pairs;
    std::string input;
    double side;

    // Lists have space for `most_pairs` pairs.
    Sets(size_t num_left, size_t num_right, double density, uint64_t seed, std::string input, size_t most_pairs)
        : left(num_left), right(num_right), total(1), pairs(most_pairs), input(input),
          side(std::pow(density / double(num_left), 1.0 / D)) {
        make_cubes(left, density, seed);
        make_cubes(right, density, seed + 1);
    }

    Output output() const { return {total.data, pairs.data, pairs.len}; }
    size_t len() const { return std::max(left.len, right.len); }

    void clear() const { CHECK(cudaMemsetAsync(total.data, 0, sizeof(unsigned long long))); }

    unsigned long long count() const {
        unsigned long long count = 0;
        CHECK(cudaMemcpy(&count, total.data, sizeof count, cudaMemcpyDeviceToHost));
        return count;
    }
};

inline std::string items(unsigned long long count) { return ",\"items\":" + std::to_string(count); }

// Prints the rows of a nested loop.
template <int D, bool LIST>
void nested_loop(const Sets<D> &sets, size_t n, const std::string &work) {
    const unsigned tiles = blocks(sets.left.len, TILE), all = blocks(sets.right.len, TILE);
    // Enough blocks for a large GPU.
    const dim3 grid(tiles, std::min(std::min(all, 65535u), std::max(1u, 16384 / tiles)));
    auto run = [&] {
        sets.clear();
        nested<D, LIST><<<grid, TILE>>>(sets.left.data, uint32_t(sets.left.len), sets.right.data, uint32_t(sets.right.len), sets.output());
    };
    row("Nested loop in CUDA", work, sets.input, n, 0, run, [] {}, [&] { return items(sets.count()); });
}

// Prints the rows of a multi-layered grid of up to 64 partitions.
template <int D, bool LIST>
void multi_layered_grid(const Sets<D> &sets, double cell_length, uint32_t partitions, size_t n, const std::string &work) {
    const uint32_t num_left = uint32_t(sets.left.len), num_right = uint32_t(sets.right.len);
    const Grid grid{float(1 / cell_length), uint32_t(std::ceil(1 / cell_length))};
    const size_t num_cells = size_t(std::pow(double(grid.side), D) + 0.5);
    Array<unsigned long long> words(num_cells), bits(num_right);
    Array<uint32_t> lens(partitions);
    Array<uint64_t> begins(partitions + 1);
    uint32_t *ids = nullptr;
    size_t most_ids = 0;
    const uint32_t tiles = blocks((num_left + partitions - 1) / partitions, TILE);
    const dim3 shape(partitions * tiles, std::min(blocks(num_right, TILE), std::max(1u, 16384 / (partitions * tiles))));
    Phases phases({"build", "probe", "streams", "join"});
    auto run = [&] {
        sets.clear();
        phases.mark();
        CHECK(cudaMemsetAsync(words.data, 0, num_cells * sizeof(unsigned long long)));
        mark<<<blocks(num_left, 256), 256>>>(sets.left.data, num_left, partitions, grid, words.data);
        phases.mark();
        probe<<<blocks(num_right, 256), 256>>>(sets.right.data, num_right, grid, words.data, bits.data);
        phases.mark();
        CHECK(cudaMemsetAsync(lens.data, 0, partitions * sizeof(uint32_t)));
        write_streams<<<blocks(num_right, 256), 256>>>(bits.data, num_right, partitions, lens.data, nullptr, nullptr);
        sum_lens<<<1, 1>>>(lens.data, partitions, begins.data);
        uint64_t num_ids = 0;
        CHECK(cudaMemcpy(&num_ids, begins.data + partitions, sizeof num_ids, cudaMemcpyDeviceToHost));
        // The first run allocates.
        if (num_ids > most_ids) {
            CHECK(cudaFree(ids));
            CHECK(cudaMalloc(&ids, num_ids * sizeof(uint32_t)));
            most_ids = num_ids;
        }
        CHECK(cudaMemsetAsync(lens.data, 0, partitions * sizeof(uint32_t)));
        if (num_ids > 0) {
            write_streams<<<blocks(num_right, 256), 256>>>(bits.data, num_right, partitions, lens.data, begins.data, ids);
        }
        phases.mark();
        join_streams<D, LIST><<<shape, TILE>>>(sets.left.data, num_left, sets.right.data, partitions, tiles, lens.data, begins.data, ids,
                                               sets.output());
        phases.mark();
    };
    // The memory of the streams is known after a run.
    run();
    const size_t temp_bytes = 8 * (num_cells + num_right) + 4 * most_ids;
    row("MLG in CUDA", work, sets.input, n, temp_bytes, run, [&] { phases.take(); },
        [&] { return items(sets.count()) + phases.text(); });
    CHECK(cudaFree(ids));
}

// Prints the rows of a sort-based filter.
template <int D, bool LIST>
void sort_based_filter(const Sets<D> &sets, size_t n, const std::string &work) {
    const uint32_t num_left = uint32_t(sets.left.len), num_right = uint32_t(sets.right.len), num = num_left + num_right;
    Array<float> keys(2 * size_t(num)), sorted_keys(2 * size_t(num));
    Array<uint32_t> ends(2 * size_t(num)), sorted(2 * size_t(num)), ranks(2 * size_t(num));
    size_t temp_bytes = 0;
    auto sort = [&](void *temp) {
        return cub::DeviceRadixSort::SortPairs(temp, temp_bytes, keys.data, sorted_keys.data, ends.data, sorted.data, int64_t(2 * size_t(num)));
    };
    CHECK(sort(nullptr));
    Array<char> temp(temp_bytes);
    Phases phases({"sort", "join"});
    auto run = [&] {
        sets.clear();
        phases.mark();
        make_ends<<<blocks(num, 256), 256>>>(sets.left.data, num_left, sets.right.data, num_right, keys.data, ends.data);
        CHECK(sort(temp.data));
        rank_ends<<<blocks(2 * size_t(num), 256), 256>>>(sorted.data, 2 * num, ranks.data);
        phases.mark();
        sweep<D, LIST><<<num, 128>>>(sets.left.data, num_left, sets.right.data, sorted.data, ranks.data, sets.output());
        phases.mark();
    };
    row("SMF in CUDA", work, sets.input, n, temp_bytes + 20 * 2 * size_t(num), run, [&] { phases.take(); },
        [&] { return items(sets.count()) + phases.text(); });
}
