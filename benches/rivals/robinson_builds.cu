// The published experiment of Robinson (KdTreeGPU, after Brown 2015): a balanced k-d tree over distinct points, from one array of references
// an axis, which is merge-sorted by super key and then partitioned level by level. Written from the description, not from the author's
// program. For kauri's suite `kdtree-robinson`; a run with 64 blocks of 1024 threads has 2048 warps, one with 32 blocks of 512 has 512.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o robinson_builds robinson_builds.cu
#include "primitives.cuh"

// Reference of a node that does not exist.
constexpr unsigned NONE = ~0u;
constexpr unsigned ALL_LANES = ~0u;
constexpr unsigned MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / 32;
// Items that a block sorts in shared memory, and distance of the samples that cut a merge into intervals.
constexpr unsigned TILE = 1024, STRIDE = 128;
// Longest run that shares its warp with other runs.
constexpr unsigned SMALL_RUN = 16;

// The points, compared by the super key of an axis: by that coordinate, then by the next ones, cyclically.
template <int D>
struct Points {
    const float *coords;
    int axis;

    __device__ float key(unsigned ref) const { return coords[size_t(ref) * D + axis]; }

    // Returns a negative number if a comes before b, 0 if they are equal. Fetches the other coordinates only if the keys are equal.
    __device__ int compare(float key_a, unsigned a, float key_b, unsigned b) const {
        if (key_a != key_b) return key_a < key_b ? -1 : 1;
        for (int beyond = 1; beyond < D; beyond++) {
            const int at = (axis + beyond) % D;
            const float x = coords[size_t(a) * D + at], y = coords[size_t(b) * D + at];
            if (x != y) return x < y ? -1 : 1;
        }
        return 0;
    }

    // Number of items before (key, ref) in a sorted piece; with `after_equal` equal items count too.
    __device__ unsigned rank(const float *keys, const unsigned *refs, unsigned len, float key, unsigned ref, bool after_equal) const {
        unsigned low = 0, high = len;
        while (low < high) {
            const unsigned middle = low + (high - low) / 2;
            const int order = compare(keys[middle], refs[middle], key, ref);
            if (order < 0 || (after_equal && order == 0)) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};

// Keys and references that are sorted together.
struct Pairs {
    float *keys;
    unsigned *refs;
};

// ---- Merge sort (Satish, Harris, Garland 2009)

// Sorts tiles in shared memory by merges, in which an item's position is its own index plus its rank in the other half.
template <int D>
__global__ void __launch_bounds__(TILE / 2) sort_tiles(Points<D> points, unsigned n, Pairs to) {
    __shared__ float keys[TILE];
    __shared__ unsigned refs[TILE];
    const unsigned begin = blockIdx.x * TILE, thread = threadIdx.x, len = n - begin < TILE ? n - begin : TILE;
    for (unsigned i = thread; i < len; i += TILE / 2) {
        keys[i] = points.key(begin + i);
        refs[i] = begin + i;
    }
    for (unsigned half = 1; half < TILE; half *= 2) {
        const unsigned own = thread % half, first = 2 * (thread - own), second = first + half;
        const unsigned end = second + half < len ? second + half : len;
        const bool has_a = first + own < len, has_b = second + own < len;
        float key_a = 0, key_b = 0;
        unsigned ref_a = 0, ref_b = 0, to_a = 0, to_b = 0;
        __syncthreads();
        if (has_a) {
            key_a = keys[first + own];
            ref_a = refs[first + own];
            const unsigned others = end > second ? end - second : 0;
            to_a = first + own + points.rank(keys + second, refs + second, others, key_a, ref_a, false);
        }
        if (has_b) {
            key_b = keys[second + own];
            ref_b = refs[second + own];
            to_b = first + own + points.rank(keys + first, refs + first, half, key_b, ref_b, true);
        }
        __syncthreads();
        if (has_a) {
            keys[to_a] = key_a;
            refs[to_a] = ref_a;
        }
        if (has_b) {
            keys[to_b] = key_b;
            refs[to_b] = ref_b;
        }
    }
    __syncthreads();
    for (unsigned i = thread; i < len; i += TILE / 2) {
        to.keys[begin + i] = keys[i];
        to.refs[begin + i] = refs[i];
    }
}

// Two sorted runs that are merged.
struct RunPair {
    unsigned begin, len_a, len_b;

    __device__ RunPair(unsigned position, unsigned run, unsigned n) {
        const size_t width = 2 * size_t(run);
        begin = unsigned(position / width * width);
        len_a = n - begin < run ? n - begin : run;
        const unsigned rest = n - begin - len_a;
        len_b = rest < run ? rest : run;
    }
};

// Ranks every sample in the other run of its pair. The samples of a pair in order cut both runs into intervals of at most STRIDE items.
template <int D>
__global__ void rank_samples(Points<D> points, Pairs from, unsigned n, unsigned run, uint2 *cuts) {
    const size_t position = (blockIdx.x * size_t(blockDim.x) + threadIdx.x) * STRIDE;
    if (position >= n) return;
    const RunPair pair(unsigned(position), run, n);
    const unsigned in_pair = unsigned(position) - pair.begin;
    const bool is_b = in_pair >= run;
    const unsigned own = is_b ? in_pair - run : in_pair, other = is_b ? pair.begin : pair.begin + pair.len_a;
    const unsigned rank = points.rank(from.keys + other, from.refs + other, is_b ? pair.len_a : pair.len_b, from.keys[position],
                                      from.refs[position], is_b);
    const unsigned before = own / STRIDE + (rank + STRIDE - 1) / STRIDE;
    cuts[pair.begin / STRIDE + before] = is_b ? make_uint2(rank, own) : make_uint2(own, rank);
}

// Merges one interval a block, in shared memory.
template <int D>
__global__ void __launch_bounds__(STRIDE) merge_intervals(Points<D> points, Pairs from, unsigned n, unsigned run, const uint2 *cuts, Pairs to) {
    __shared__ float keys[2][STRIDE], merged_keys[2 * STRIDE];
    __shared__ unsigned refs[2][STRIDE], merged_refs[2 * STRIDE];
    const unsigned thread = threadIdx.x, position = blockIdx.x * STRIDE;
    const RunPair pair(position, run, n);
    const bool is_last = position + size_t(STRIDE) >= size_t(pair.begin) + pair.len_a + pair.len_b;
    const uint2 begin = cuts[blockIdx.x], end = is_last ? make_uint2(pair.len_a, pair.len_b) : cuts[blockIdx.x + 1];
    const unsigned len_a = end.x - begin.x, len_b = end.y - begin.y;
    const unsigned a = pair.begin + begin.x, b = pair.begin + pair.len_a + begin.y;
    if (thread < len_a) {
        keys[0][thread] = from.keys[a + thread];
        refs[0][thread] = from.refs[a + thread];
    }
    if (thread < len_b) {
        keys[1][thread] = from.keys[b + thread];
        refs[1][thread] = from.refs[b + thread];
    }
    __syncthreads();
    for (int side = 0; side < 2; side++) {
        if (thread < (side == 0 ? len_a : len_b)) {
            const float key = keys[side][thread];
            const unsigned ref = refs[side][thread];
            const unsigned at = thread + points.rank(keys[1 - side], refs[1 - side], side == 0 ? len_b : len_a, key, ref, side == 1);
            merged_keys[at] = key;
            merged_refs[at] = ref;
        }
    }
    __syncthreads();
    const unsigned out = pair.begin + begin.x + begin.y;
    for (unsigned i = thread; i < len_a + len_b; i += STRIDE) {
        to.keys[out + i] = merged_keys[i];
        to.refs[out + i] = merged_refs[i];
    }
}

// ---- Compaction by warps (Billeter, Olsson, Assarsson 2009)

__device__ unsigned lane_of() { return threadIdx.x % 32; }
__device__ unsigned warp_of() { return (blockIdx.x * blockDim.x + threadIdx.x) / 32; }
__device__ unsigned lanes_below() { return (1u << lane_of()) - 1; }

// Kept references of a warp on their way to the output: two segments of 32 in shared memory. A full one is written by one coalesced store.
struct CoalescingBuffer {
    unsigned *segments, *out, len;

    __device__ void push(bool keep, unsigned ref) {
        const unsigned kept = __ballot_sync(ALL_LANES, keep);
        if (keep) segments[(len + __popc(kept & lanes_below())) & 63] = ref;
        __syncwarp();
        const unsigned segment = len / 32 * 32;
        len += __popc(kept);
        if (len / 32 * 32 != segment) {
            store(segment);
            __syncwarp();
        }
    }
    __device__ void finish() const {
        if (lane_of() < len % 32) store(len / 32 * 32);
        __syncwarp();
    }
    __device__ void store(unsigned segment) const { out[segment + lane_of()] = segments[(segment + lane_of()) & 63]; }
};

// Copies with one warp.
__device__ void copy(const unsigned *from, unsigned len, unsigned *to) {
    for (unsigned i = lane_of(); i < len; i += 32) to[i] = from[i];
}

// Sums the counts number first, first + step, … below end, with all lanes.
__device__ unsigned sum(const unsigned *counts, unsigned first, unsigned end, unsigned step) {
    unsigned total = 0;
    for (unsigned i = first + lane_of() * step; i < end; i += 32 * step) total += counts[i];
    for (unsigned offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(ALL_LANES, total, offset);
    return total;
}

// ---- Removal of equal points

// Compacts the first of equal points within the piece of each warp. `failed` becomes 1 if a point comes before its predecessor.
template <int D>
__global__ void __launch_bounds__(MAX_THREADS)
    distinct_pieces(Points<D> points, Pairs sorted, unsigned n, unsigned piece, unsigned *compacted, unsigned *counts, unsigned *failed) {
    __shared__ float keys[MAX_WARPS][33];
    __shared__ unsigned refs[MAX_WARPS][33], segments[MAX_WARPS][64];
    const unsigned lane = lane_of(), in_block = threadIdx.x / 32, warp = warp_of();
    const size_t first = size_t(warp) * piece;
    const unsigned begin = first < n ? unsigned(first) : n, end = n - begin < piece ? n : begin + piece;
    CoalescingBuffer buffer{segments[in_block], compacted + begin, 0};
    // The left neighbor of lane 0: the last point before the round.
    if (lane == 0 && begin > 0 && begin < end) {
        keys[in_block][0] = sorted.keys[begin - 1];
        refs[in_block][0] = sorted.refs[begin - 1];
    }
    for (unsigned round = begin; round < end; round += 32) {
        const bool is_item = round + lane < end;
        const unsigned i = is_item ? round + lane : end - 1;
        const float key = sorted.keys[i];
        const unsigned ref = sorted.refs[i];
        keys[in_block][lane + 1] = key;
        refs[in_block][lane + 1] = ref;
        __syncwarp();
        bool keep = is_item;
        if (is_item && i > 0) {
            const int order = points.compare(keys[in_block][lane], refs[in_block][lane], key, ref);
            if (order > 0) *failed = 1;
            keep = order < 0;
        }
        __syncwarp();
        if (lane == 31) {
            keys[in_block][0] = key;
            refs[in_block][0] = ref;
        }
        buffer.push(keep, ref);
    }
    buffer.finish();
    if (lane == 0) counts[warp] = buffer.len;
}

// Moves what each warp kept behind what the lower warps kept.
static __global__ void __launch_bounds__(MAX_THREADS)
    distinct_close_gaps(const unsigned *compacted, const unsigned *counts, unsigned n, unsigned piece, unsigned *to, unsigned *total) {
    const unsigned warp = warp_of(), num_warps = gridDim.x * blockDim.x / 32;
    const size_t first = size_t(warp) * piece;
    const unsigned before = sum(counts, 0, warp, 1);
    copy(compacted + (first < n ? first : n), counts[warp], to + before);
    if (lane_of() == 0 && warp == num_warps - 1) *total = before + counts[warp];
}

// ---- Partitions

// The range of positions of a subtree. On the levels that are partitioned it is never empty.
struct Run {
    unsigned begin, len;

    // The address is the path from the root, a bit a level: 0 for the less child.
    __device__ static Run of(unsigned address, unsigned level, unsigned n) {
        Run run{0, n};
        while (level-- > 0) {
            const unsigned less = run.before_median();
            if (address >> level & 1) run = Run{run.begin + less + 1, run.len - less - 1};
            else run.len = less;
        }
        return run;
    }
    __device__ unsigned before_median() const { return (len - 1) / 2; }
    __device__ unsigned median() const { return begin + before_median(); }
};

// The tree: the references at each address, level by level, and the children of each point.
struct Nodes {
    unsigned *medians;
    uint2 *children;

    // Creates the node at an address, and sets the child of its parent, which exists.
    __device__ void store(unsigned level, unsigned address, unsigned ref) const {
        medians[(1u << level) - 1 + address] = ref;
        if (level == 0) return;
        uint2 &parent = children[medians[(1u << (level - 1)) - 1 + address / 2]];
        if (address & 1) parent.y = ref;
        else parent.x = ref;
    }
};

// A level, whose medians are those of the array that is sorted on its axis.
template <int D>
struct Level {
    Points<D> points;
    const unsigned *primary;
    unsigned n, level;
    Nodes nodes;
    bool writes_nodes;

    __device__ Run run(unsigned address) const { return Run::of(address, level, n); }
    __device__ unsigned median(unsigned address, Run run, bool is_writer) const {
        const unsigned ref = primary[run.median()];
        if (is_writer && writes_nodes) nodes.store(level, address, ref);
        return ref;
    }
    // Returns a negative number for points of the less child, 0 for the median.
    __device__ int side(unsigned ref, float median_key, unsigned median) const {
        return ref == median ? 0 : points.compare(points.key(ref), ref, median_key, median);
    }
};

// Both compactions of a warp at once, so that every warp writes as much, whatever the data.
template <int D>
__device__ uint2 partition(const Level<D> &level, const unsigned *from, unsigned begin, unsigned end, unsigned median, unsigned (*segments)[64],
                           unsigned *less_to, unsigned *greater_to) {
    CoalescingBuffer less{segments[0], less_to, 0}, greater{segments[1], greater_to, 0};
    const float median_key = level.points.key(median);
    for (unsigned round = begin; round < end; round += 32) {
        const bool is_item = round + lane_of() < end;
        const unsigned ref = from[is_item ? round + lane_of() : end - 1];
        const int side = level.side(ref, median_key, median);
        less.push(is_item && side < 0, ref);
        greater.push(is_item && side > 0, ref);
    }
    less.finish();
    greater.finish();
    return make_uint2(less.len, greater.len);
}

// The part of a run that one of its warps partitions.
struct Piece {
    Run run;
    unsigned address, number, begin, end;

    __device__ Piece(unsigned warp, unsigned num_warps, unsigned level, unsigned n) {
        const unsigned per_run = num_warps >> level;
        address = warp / per_run;
        number = warp % per_run;
        run = Run::of(address, level, n);
        const size_t len = (run.len + per_run - 1) / per_run, first = number * len, last = first + len;
        begin = run.begin + unsigned(first < run.len ? first : run.len);
        end = run.begin + unsigned(last < run.len ? last : run.len);
    }
};

// Partitioner 1: many warps a run, each to its own piece of both temporary arrays.
template <int D>
__global__ void __launch_bounds__(MAX_THREADS)
    partition_pieces(Level<D> level, const unsigned *from, unsigned *less, unsigned *greater, uint2 *counts) {
    __shared__ unsigned segments[MAX_WARPS][2][64];
    const unsigned warp = warp_of();
    const Piece piece(warp, gridDim.x * blockDim.x / 32, level.level, level.n);
    const unsigned median = level.median(piece.address, piece.run, lane_of() == 0 && piece.number == 0);
    const uint2 count = partition(level, from, piece.begin, piece.end, median, segments[threadIdx.x / 32], less + piece.begin,
                                  greater + piece.begin);
    if (lane_of() == 0) counts[warp] = count;
}

// Closes the gaps of partitioner 1, back into the array.
static __global__ void __launch_bounds__(MAX_THREADS)
    partition_close_gaps(const unsigned *less, const unsigned *greater, const uint2 *counts, unsigned level, unsigned n, unsigned *to) {
    const unsigned warp = warp_of();
    const Piece piece(warp, gridDim.x * blockDim.x / 32, level, n);
    const unsigned first = warp - piece.number, *words = &counts->x;
    const unsigned before_less = sum(words, 2 * first, 2 * warp, 2), before_greater = sum(words, 2 * first + 1, 2 * warp + 1, 2);
    copy(less + piece.begin, counts[warp].x, to + piece.run.begin + before_less);
    copy(greater + piece.begin, counts[warp].y, to + piece.run.median() + 1 + before_greater);
}

// Partitioner 2: a warp a run.
template <int D>
__global__ void __launch_bounds__(MAX_THREADS) partition_runs(Level<D> level, const unsigned *from, unsigned *to) {
    __shared__ unsigned segments[MAX_WARPS][2][64];
    const unsigned num_warps = gridDim.x * blockDim.x / 32;
    for (unsigned address = warp_of(); address >> level.level == 0; address += num_warps) {
        const Run run = level.run(address);
        const unsigned median = level.median(address, run, lane_of() == 0);
        partition(level, from, run.begin, run.begin + run.len, median, segments[threadIdx.x / 32], to + run.begin, to + run.median() + 1);
    }
}

// Partitioner 3: runs of at most `lanes` points, 16, 8 or 4, share a warp and are partitioned in place.
template <int D>
__global__ void __launch_bounds__(MAX_THREADS) partition_small_runs(Level<D> level, unsigned *array, unsigned lanes) {
    const unsigned lane = lane_of(), offset = lane % lanes, runs = 32 / lanes;
    const unsigned below = (ALL_LANES >> (32 - lanes)) << (lane - offset) & lanes_below();
    const unsigned step = gridDim.x * blockDim.x / 32 * runs;
    for (unsigned first = warp_of() * runs; first >> level.level == 0; first += step) {
        const unsigned address = first + lane / lanes;
        Run run{0, 0};
        if (address >> level.level == 0) run = level.run(address);
        unsigned ref = 0;
        int side = 0;
        if (offset < run.len) {
            const unsigned median = level.median(address, run, offset == 0);
            ref = array[run.begin + offset];
            side = level.side(ref, level.points.key(median), median);
        }
        // The ballots wait until all lanes have loaded.
        const unsigned less = __ballot_sync(ALL_LANES, side < 0), greater = __ballot_sync(ALL_LANES, side > 0);
        if (side < 0) array[run.begin + __popc(less & below)] = ref;
        if (side > 0) array[run.median() + 1 + __popc(greater & below)] = ref;
        __syncwarp();
    }
}

// Partitioner 4: the last nodes, of runs of one to three points, a thread a run.
template <int D>
__global__ void __launch_bounds__(MAX_THREADS) finish_runs(Level<D> level) {
    const unsigned step = gridDim.x * blockDim.x;
    for (unsigned address = blockIdx.x * blockDim.x + threadIdx.x; address >> level.level == 0; address += step) {
        const Run run = level.run(address);
        level.nodes.store(level.level, address, level.primary[run.median()]);
        if (run.len > 1) level.nodes.store(level.level + 1, 2 * address + 1, level.primary[run.median() + 1]);
        if (run.len > 2) level.nodes.store(level.level + 1, 2 * address, level.primary[run.begin]);
    }
}

// ---- Checks

// Checks the nodes of a level, and counts them: where a run has points, there is a node; it is the child of its parent; it is on its side of
// the parent by super key. With WHOLE it is on its side of every ancestor. As the lengths of the runs are fixed, every node is then the
// median of its run, and no point is in two nodes.
template <int D, bool WHOLE>
__global__ void check_level(const float *coords, unsigned num_points, unsigned n, unsigned level, Nodes nodes, unsigned *count, unsigned *wrong) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    bool is_node = false;
    if (i >> level == 0) {
        const unsigned address = unsigned(i), ref = nodes.medians[(1u << level) - 1 + address];
        // Above the last two levels every run has points.
        Run run{0, n};
        for (unsigned above = level; above-- > 0 && run.len > 0;) {
            const unsigned less = run.before_median();
            run.len = address >> above & 1 ? run.len - less - 1 : less;
        }
        is_node = ref < num_points;
        bool is_right = is_node == (run.len > 0) && (is_node || ref == NONE);
        for (unsigned up = 1; is_right && is_node && up <= level && (WHOLE || up == 1); up++) {
            const unsigned ancestor = nodes.medians[(1u << (level - up)) - 1 + (address >> up)];
            const bool is_greater = address >> (up - 1) & 1;
            is_right = ancestor < num_points;
            if (!is_right) break;
            const Points<D> points{coords, int((level - up) % D)};
            const int order = points.compare(points.key(ref), ref, points.key(ancestor), ancestor);
            is_right = is_greater ? order > 0 : order < 0;
            if (up == 1) is_right = is_right && ref == (is_greater ? nodes.children[ancestor].y : nodes.children[ancestor].x);
        }
        if (!is_right) *wrong = 1;
    }
    const unsigned found = __popc(__ballot_sync(ALL_LANES, is_node));
    if (lane_of() == 0 && found > 0) atomicAdd(count, found);
}

// ---- The phases of a build

template <class... P, class... A>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, A... args) {
    kernel<<<blocks, threads>>>(P(args)...);
}

inline unsigned floor_log2(size_t n) {
    unsigned log = 0;
    while (n >> (log + 1)) log++;
    return log;
}

template <int D>
struct Build {
    const std::vector<float> &host;
    const unsigned n, blocks, threads;
    unsigned num_nodes = 0;
    Array<float> coords, sorted_keys, temp_keys;
    // The arrays of all axes, one after another. `spare` is one array more, `compacted` two.
    Array<unsigned> sorted_refs, temp_refs, refs, compacted, counts, words, medians;
    Array<uint2> cuts, children;
    // The arrays that partitions read and, at the end, the spare one.
    unsigned *arrays[D + 1];

    Build(const std::vector<float> &host, unsigned n, unsigned blocks, unsigned threads)
        : host(host), n(n), blocks(blocks), threads(threads), coords(size_t(n) * D), sorted_keys(size_t(n) * D), temp_keys(n),
          sorted_refs(size_t(n) * D), temp_refs(n), refs(size_t(n) * (D + 1)), compacted(2 * size_t(n)), counts(2 * num_warps()), words(2),
          medians((size_t(2) << floor_log2(n)) - 1), cuts(n / STRIDE + 1), children(n) {}

    unsigned num_warps() const { return blocks * threads / 32; }
    Points<D> points(int axis) const { return Points<D>{coords.data, axis}; }
    Pairs sorted(int axis) const { return Pairs{sorted_keys.data + size_t(axis) * n, sorted_refs.data + size_t(axis) * n}; }
    Nodes nodes() const { return Nodes{medians.data, children.data}; }

    // Bytes beyond the points and the nodes.
    size_t temp_bytes() const {
        return 4 * (sorted_keys.len + temp_keys.len + sorted_refs.len + temp_refs.len + refs.len + compacted.len + counts.len) + 8 * cuts.len;
    }

    void init() {
        CHECK(cudaMemcpyAsync(coords.data, host.data(), coords.len * sizeof(float), cudaMemcpyHostToDevice));
        CHECK(cudaMemsetAsync(medians.data, 0xff, medians.len * sizeof(unsigned)));
        CHECK(cudaMemsetAsync(children.data, 0xff, children.len * sizeof(uint2)));
    }

    void sort() {
        unsigned rounds = 0;
        while ((size_t(TILE) << rounds) < n) rounds++;
        const unsigned samples = (n + STRIDE - 1) / STRIDE;
        for (int axis = 0; axis < D; axis++) {
            // The last round writes to the sorted arrays.
            Pairs to = sorted(axis), other{temp_keys.data, temp_refs.data};
            if (rounds % 2 == 1) std::swap(to, other);
            launch(sort_tiles<D>, (n + TILE - 1) / TILE, TILE / 2, points(axis), n, to);
            for (unsigned round = 0; round < rounds; round++) {
                const unsigned run = TILE << round;
                std::swap(to, other);
                launch(rank_samples<D>, (samples + 255) / 256, 256u, points(axis), other, n, run, cuts.data);
                launch(merge_intervals<D>, samples, STRIDE, points(axis), other, n, run, cuts.data, to);
            }
        }
    }

    void dedupe() {
        const unsigned piece = unsigned((size_t(n) + 32 * size_t(num_warps()) - 1) / (32 * size_t(num_warps())) * 32);
        for (int axis = 0; axis <= D; axis++) arrays[axis] = refs.data + size_t(axis) * n;
        for (int axis = 0; axis < D; axis++) {
            CHECK(cudaMemsetAsync(words.data, 0, 2 * sizeof(unsigned)));
            launch(distinct_pieces<D>, blocks, threads, points(axis), sorted(axis), n, piece, compacted.data, counts.data, words.data + 1);
            launch(distinct_close_gaps, blocks, threads, compacted.data, counts.data, n, piece, arrays[axis], words.data);
            const unsigned found = read_words("the sort failed");
            if (axis > 0 && found != num_nodes) fail("the axes have different numbers of distinct points");
            num_nodes = found;
        }
    }

    void partition() {
        const unsigned last = num_nodes < 2 ? 0 : floor_log2(num_nodes) - 1;
        for (unsigned at = 0; at < last; at++) {
            const int axis = int(at % D);
            const unsigned longest = unsigned((num_nodes + (size_t(1) << at)) >> at) - 1;
            for (int offset = 1; offset < D; offset++) {
                unsigned *&array = arrays[(axis + offset) % D];
                // The first partition of a level writes its nodes.
                const Level<D> level{points(axis), arrays[axis], num_nodes, at, nodes(), offset == 1};
                if ((1u << at) < num_warps()) {
                    unsigned *less = compacted.data, *greater = less + n;
                    uint2 *pairs = reinterpret_cast<uint2 *>(counts.data);
                    launch(partition_pieces<D>, blocks, threads, level, array, less, greater, pairs);
                    launch(partition_close_gaps, blocks, threads, less, greater, pairs, at, num_nodes, array);
                } else if (longest > SMALL_RUN) {
                    launch(partition_runs<D>, blocks, threads, level, array, arrays[D]);
                    std::swap(array, arrays[D]);
                } else {
                    const unsigned lanes = longest > 8 ? 16 : longest > 4 ? 8 : 4;
                    launch(partition_small_runs<D>, blocks, threads, level, array, lanes);
                }
            }
        }
        launch(finish_runs<D>, blocks, threads, Level<D>{points(last % D), arrays[last % D], num_nodes, last, nodes(), true});
    }

    // Checks the tree breadth first: every node against its parent, or WHOLE against all ancestors.
    template <bool WHOLE>
    void verify() {
        CHECK(cudaMemsetAsync(words.data, 0, 2 * sizeof(unsigned)));
        for (unsigned level = 0; level <= floor_log2(num_nodes); level++) {
            const unsigned grid = unsigned(((size_t(1) << level) + 255) / 256);
            launch(check_level<D, WHOLE>, grid, 256u, coords.data, n, num_nodes, level, nodes(), words.data, words.data + 1);
        }
        if (read_words("a node is wrong") != num_nodes) fail("the tree has another number of nodes");
    }

    // Returns the first word. The second one tells a failure.
    unsigned read_words(const char *failure) const {
        unsigned found[2];
        CHECK(cudaMemcpy(found, words.data, sizeof found, cudaMemcpyDeviceToHost));
        if (found[1] != 0) fail(failure);
        return found[0];
    }

    static void fail(const char *what) {
        std::fprintf(stderr, "%s\n", what);
        std::exit(1);
    }
};

// The rows of one number of blocks and threads. Before each run the earlier phases run again.
template <int D>
void builds(const std::string &input, const std::vector<float> &host, unsigned n, unsigned blocks, unsigned threads) {
    Build<D> build(host, n, blocks, threads);
    const std::string name = "Robinson, " + std::to_string(build.num_warps()) + " warps: ";
    const auto phase = [&](const char *what, auto run, auto prepare) {
        row("Robinson in CUDA", name + what, input, n, build.temp_bytes(), run, prepare);
    };
    phase("init", [&] { build.init(); }, [] {});
    phase("sort", [&] { build.sort(); }, [] {});
    phase("dedupe", [&] { build.dedupe(); }, [] {});
    phase("partition", [&] { build.partition(); }, [&] { build.dedupe(); });
    phase("verify", [&] { build.template verify<false>(); }, [] {});
    build.template verify<true>();
    build.init();
    phase("sort, dedupe and partition", [&] {
        build.sort();
        build.dedupe();
        build.partition();
    }, [] {});
    build.template verify<true>();
    std::fprintf(stderr, "%u blocks of %u threads: %u nodes, each the median of its run\n", blocks, threads, build.num_nodes);
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        constexpr int D = 4;
        if (n == 0 || n > size_t(1) << 30) {
            std::fprintf(stderr, "%zu points left out\n", n);
            return;
        }
        std::vector<float> points(n * D);
        for (size_t i = 0; i < points.size(); i++) points[i] = unit(noise(seed, i));
        builds<D>("f32 x 4, uniform", points, unsigned(n), 64, 1024);
        builds<D>("f32 x 4, uniform", points, unsigned(n), 32, 512);
    });
}
