//! Tuning values: tile shapes, occupancy targets and thresholds, as plain values for kernels and host.
//!
//! "Untuned" marks a value without a measurement. All other measurements are from an H200. A "minimum of blocks" is the
//! number of blocks that a multiprocessor must hold: it limits the registers of a kernel.

/// The tile shape of the radix sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadixSortPolicy {
    /// The number of warps of a block.
    pub warps: usize,
    /// The number of items of a thread.
    pub items: usize,
}

impl RadixSortPolicy {
    /// Returns the number of items of a tile.
    pub const fn tile_items(self) -> usize {
        32 * self.warps * self.items
    }
}

/// Returns the tile shape of the radix sort. `value_bytes` is 0 for keys alone. Values of 8 and 16 bytes: untuned. Sort
/// of 134M items, in ms, by warps x items per thread:
///
/// | keys, values | | | | | |
/// |---|---|---|---|---|---|
/// | 4, 0 bytes | 12 x 28: 2.66 | 12 x 24: 2.69 | 12 x 20: 2.89 | 16 x 16: 2.97 | 12 x 16: 3.18 |
/// | 4, 4 bytes | 12 x 28: 3.66 | 12 x 24: 3.77 | 12 x 20: 4.07 | 16 x 16: 4.11 | 12 x 16: 4.37 |
/// | 8, 0 bytes | 12 x 18: 7.11 | 12 x 16: 7.38 | 12 x 14: 7.82 | 16 x 10: 8.10 | 12 x 12: 8.40 |
/// | 8, 4 bytes | 12 x 18: 9.97 | 12 x 16: 10.3 | 12 x 14: 10.8 | 16 x 10: 11.3 | 12 x 12: 11.6 |
pub const fn radix_sort(key_bytes: usize, value_bytes: usize, num_items: usize) -> RadixSortPolicy {
    if num_items <= RADIX_SORT_FEW_ITEMS && value_bytes <= 4 {
        return RadixSortPolicy { warps: 8, items: 4 };
    }
    let is_wide = num_items > RADIX_SORT_NARROW_ITEMS;
    let (warps, items) = match (key_bytes, value_bytes) {
        (4, 0 | 4) if is_wide => (12, 20),
        (4, 0 | 4) if num_items > RADIX_SORT_MANY_ITEMS => (12, 28),
        (4, 0 | 4) => (12, 16),
        (8, 0 | 4) if is_wide => (12, 14),
        (8, 0 | 4) => (12, 18),
        (4, 8) if is_wide => (12, 10),
        (_, 8) => (12, 12),
        _ => (8, 8),
    };
    RadixSortPolicy { warps, items }
}

/// The most items that the radix sort counts in 32 bits. Counts of 64 bits need more registers and therefore smaller
/// tiles, so that no instance spills on any architecture. Untuned.
pub const RADIX_SORT_NARROW_ITEMS: usize = 1 << 30;

/// The number of items above which the largest tiles occupy all multiprocessors of a large GPU. Untuned.
pub const RADIX_SORT_MANY_ITEMS: usize = 1 << 22;

/// Returns the minimum of blocks of the radix sort: large tiles need the registers.
pub const fn radix_sort_min_blocks(items: usize) -> usize {
    if items <= 4 { 5 } else { 2 }
}

/// The most items that the radix sort splits into small tiles, so that they occupy more multiprocessors. Untuned.
pub const RADIX_SORT_FEW_ITEMS: usize = 1 << 17;

/// The threads of a block that counts digits. Untuned.
pub const HISTOGRAM_THREADS: usize = 512;

/// The 4-byte keys that a thread loads at once while it counts digits; proportionally fewer of larger keys. Untuned.
pub const HISTOGRAM_ITEMS: usize = 8;

/// Returns the number of keys that a block counts per round.
pub const fn histogram_tile(key_bytes: usize) -> usize {
    HISTOGRAM_THREADS * HISTOGRAM_ITEMS * 4 / key_bytes
}

/// The copies of each digit counter in a block. Untuned.
pub const HISTOGRAM_COPIES: usize = 4;

/// The most blocks that count digits: 4 per multiprocessor of a large GPU. Untuned.
pub const HISTOGRAM_MAX_BLOCKS: u64 = 528;

/// Returns the number of segments per warp of the segmented sort, at most 32. With more of them a warp reads their begins less often, but a
/// warp sorts the ones of more than 32 items one by one. Untuned.
pub const fn segments_of_warp(num_items: usize, num_segments: usize) -> usize {
    if num_items / 32 <= num_segments { 32 } else { 8 }
}

/// The most items of a segment that a warp sorts. The ids of 10M rows of 40 items, found and sorted, on an H100, in ms: 32: 116, 128: 28.
pub const SEGMENT_WARP_ITEMS: usize = 128;

/// The most items of a short segment, which is sorted by a small tile. Untuned.
pub const SEGMENT_SHORT_ITEMS: usize = 32 * 8 * 2;

/// The most blocks that take segments from a list. Untuned.
pub const SEGMENT_MAX_BLOCKS: u64 = 1056;

/// The minimum of blocks of the segmented sort. Without it ptxas aims higher and spills.
pub const SEGMENT_MIN_BLOCKS: usize = 2;

/// The words of other tiles that a lane loads at once in a look-back by a warp. With 4 or 8, selections take 5 % longer
/// because of the registers.
pub const LOOK_BACK_WORDS: usize = 2;

/// The tiles that a look-back by one thread per column loads at once. Untuned.
pub const LOOK_BACK_WINDOW: usize = 4;

/// Threads of a block of the searches in terrain.
pub const TERRAIN_THREADS: usize = 128;

/// The minimum of blocks of weighted averages in a radius. Without it ptxas aims higher and spills.
pub const TERRAIN_MIN_BLOCKS: usize = 8;

/// The minimum of blocks of searches for triangles. With more of them some architectures spill.
pub const TERRAIN_TRIANGLES_MIN_BLOCKS: usize = 3;

/// The threads of a block of kernels with one item per thread. Untuned.
pub const PER_ITEM_THREADS: usize = 256;

/// The most bits of the codes that order the points of an R-tree: six passes of the sort. Untuned. The curve, 10M `f32` x 3 on an H200, in
/// ms: Hilbert: build 1.37, nearest 3.81 (clustered 5.75); Z-order: build 1.22, nearest 6.82 (10.5).
pub const RTREE_CODE_BITS: u32 = 48;

/// The threads of a block of joins by cells. Top 16 pairs of 1M x 1M points within 0.001, in ms: 64: 0.395, 128: 0.386, 256: 0.404.
pub const JOIN_THREADS: usize = 128;

/// The most cells of a grid with layers that a thread visits for its box; a warp visits the cells of larger boxes. Untuned.
pub const LAYER_OWN_CELLS: u32 = 64;

/// The ends of boxes that a block of a sort-based join visits before another block continues. Untuned.
pub const SWEEP_TASK: usize = 1 << 14;

/// The minimum of blocks of joins by cells. Without it ptxas aims higher and spills.
pub const JOIN_MIN_BLOCKS: usize = 5;

/// Returns the minimum of blocks of joins of boxes: that of points, fewer where the general kernel would spill.
pub const fn boxes_min_blocks(dims: usize, coord_bytes: usize) -> usize {
    match (dims, coord_bytes) {
        (0..=3, _) => JOIN_MIN_BLOCKS,
        (_, 4) => JOIN_MIN_BLOCKS - 1,
        _ => JOIN_MIN_BLOCKS - 2,
    }
}

/// Returns the minimum of blocks of top-k joins. For 2-D points it limits registers to 64 of 72: a join of 100M points,
/// most of whose pairs have good scores, takes 229 ms instead of 254.
pub const fn join_rising_min_blocks(dims: usize, coord_bytes: usize) -> usize {
    match dims * coord_bytes {
        0..=8 => 8,
        9..=16 => 7,
        _ => JOIN_MIN_BLOCKS,
    }
}

/// The minimum of blocks of the kernels for residual work.
pub const JOIN_REST_MIN_BLOCKS: usize = 4;

/// Returns the minimum of blocks of top-k joins of boxes: with more, ptxas spills.
pub const fn join_boxes_rising_min_blocks(dims: usize, coord_bytes: usize) -> usize {
    match dims * coord_bytes {
        0..=16 => JOIN_MIN_BLOCKS,
        17..=24 => 4,
        _ => 3,
    }
}

/// The left points that a thread joins with a right point before the remaining ones are divided among all threads.
/// Untuned.
pub const JOIN_SEGMENT: usize = 2048;

/// The points in whose keys a warp searches for quadtree nodes that split. Untuned.
pub const QUADTREE_WARP_POINTS: usize = 1024;

/// The threads of a block that moves a tile of a large node's points, level by level. Untuned.
pub const QUADTREE_TILE_THREADS: usize = 256;

/// The points that a thread of such a block holds at once. Untuned.
pub const QUADTREE_PIECE_POINTS: usize = 8;

/// The most points of a leaf that are ordered by counting, with as many loads per point. Untuned. (80M points in leaves
/// of up to 2000 take 33 ms.)
pub const QUADTREE_COUNTED_POINTS: u32 = 256;

/// The most levels of large nodes of a SAH k-d tree. Small nodes continue down to the last level that the traversal's
/// stack can represent.
pub const SAH_LARGE_DEPTH: u32 = 40;

/// The triangles of a large node per block, one per thread (Zhou et al. 2008).
pub const SAH_CHUNK_TRIANGLES: usize = 256;

/// The threads of a block that computes the candidate masks of a small node. Untuned.
pub const SAH_CANDIDATE_THREADS: usize = 128;

/// The warps of a block that splits small roots, one root per warp: limited by shared memory.
pub const SAH_ROOT_WARPS: usize = 4;

/// The blocks of a multiprocessor that traces rays through a tree. With 7 the assembler spills registers.
pub const SAH_RAY_MIN_BLOCKS: u32 = 6;

/// The bits of a triangle's cell on each axis, for the order in which a hierarchy is built. Untuned.
pub const BVH_AXIS_BITS: u32 = 16;

/// The threads of a block that merges clusters; its warps are independent, and a block lasts as long as the last of them. The dragon of
/// 871,414 triangles built on an H200, in ms: 32: 0.558, 128: 0.590.
/// Tried: an ascent begins at the largest subtree of up to 16 triangles, which each warp finds without atomics, and clusters are stored with
/// their boxes: a quarter fewer instructions, in the same time (0.59 and, with blocks of 64, 0.61).
pub const BVH_CLUSTER_THREADS: usize = 32;

/// The number of clusters on each side among which a cluster looks for the nearest (Benthin et al. 2024 take 8). With fewer, more clusters are
/// nearest to one another, so fewer rounds of merges are enough. The same build, and 2.07 million rays of a camera, in ms: 8: 0.583 and 0.461, 6:
/// 0.512 and 0.470, 4: 0.473 and 0.440; by a later kernel 4: 0.465 and 0.413, 3: 0.449 and 0.411. With 2, rays through a terrain take 4 % longer.
pub const BVH_RADIUS: u32 = 3;

/// The threads of a block that traces rays, or searches a hierarchy. Untuned.
pub const RAY_THREADS: usize = 128;

/// The blocks of a multiprocessor that traces rays through a hierarchy. Rays of a camera and random ones through the dragon on an H200, 2.07
/// million each, in ms, with stacks of 12 entries: 7: 0.423 and 0.869, 8 (registers spill): 0.421 and 0.872.
/// Tried: subtrees in any order for rays that need any hit: 9 % less time in most meshes, 40 % more in a hairball, where near triangles hide
/// most others; only the nearest subtree first: no less time than all in order.
pub const BVH_RAY_MIN_BLOCKS: u32 = 7;

/// The blocks of a multiprocessor that searches a hierarchy for the nearest items, by the bytes of an item: triangles need more registers than
/// boxes. Without the number of blocks the assembler spills registers. Untuned.
pub const fn bvh_nearest_min_blocks(item_bytes: usize) -> u32 {
    if item_bytes < 48 { BVH_RAY_MIN_BLOCKS } else { 4 }
}

/// The lanes of a warp that are without a ray when the warp takes new ones. The same rays, in ms: 10: 0.556 and 1.057, 16: 0.548 and 1.068, 22:
/// 0.524 and 1.125 (the last by a later kernel, which took 0.528 and 1.054 at 16); by a still later one, 12: 0.425 and 0.847, 16: 0.413 and 0.850.
/// Tried: a warp that takes 64 rays at once, and gives them to its lanes as these end: rays of a camera take 20 % longer (bunny, dragon), since warps
/// end at different times; random rays 2 % longer.
pub const RAY_IDLE: u32 = 16;

/// The entries of a ray's stack in shared memory, which the first-level cache lacks; deeper indexes have the others in global memory. The same
/// rays, in ms: 24: 0.428 and 0.874, 16: 0.418 and 0.860, 12: 0.423 and 0.869, 8: 0.446 and 0.888; random rays through a hairball and through long
/// thin triangles, a million each, 24: 3.3 and 248, 16: 4.4 and 310.
pub const RAY_STACK: usize = 24;

/// The cells of a level of a join of boxes are `2^BOX_LEVEL_STEP` times as long as those of the level below. 10M x 10M boxes with log-normal
/// sides counted on an H100, in ms: 1: 6.63, 2: 5.76.
pub const BOX_LEVEL_STEP: u32 = 2;

/// Returns the number of levels below its own in which a box searches for smaller boxes. Boxes of still lower levels search for the larger
/// box themselves. 1M x 1M boxes with log-normal sides counted on an H100, in ms: 0: 0.850, 2: 0.763, 4: 1.048, 6: 4.646; 10M x 10M: 5.72,
/// 5.45, 5.15, 7.49.
pub const fn levels_below(dims: usize) -> u32 {
    match dims {
        0..=3 => 2,
        _ => 0,
    }
}

/// Thresholds of the joins of boxes.
#[derive(Clone, Copy, Debug)]
pub struct BoxPolicy {
    /// The most pairs of boxes that are joined by a nested loop. 10k x 10k boxes on an H100, counted and found, in ms: 0.087 and 0.197 by a
    /// nested loop, 0.175 and 0.268 by cells; 14k x 14k: 0.157 and 0.344, 0.284 and 0.376.
    pub nested_pairs: u128,
    /// The share of boxes of a sample, in percent, that are of the lowest level. 10M x 10M boxes with log-normal sides counted on an H100,
    /// uniform and in clusters, in ms: 90: 5.12 and 5.06, 97: 4.54 and 5.86, 99: 4.53 and 11.3; 1M x 1M: 0.67 and 0.75, 0.68 and 1.34, 0.69 and
    /// 1.68.
    pub level_0_percent: usize,
    /// The most cells of the lowest level, along an axis, for the space of one box if boxes lie evenly.
    pub cells_per_spacing: f64,
    /// If the right set is this many times as large as the left one, its threads find the pairs of boxes of one level.
    pub larger_set: usize,
}

/// The thresholds of the joins of boxes. Values without a measurement are untuned.
pub const BOXES: BoxPolicy =
    BoxPolicy { nested_pairs: 1 << 27, level_0_percent: 90, cells_per_spacing: 16.0, larger_set: 8 };

/// Thresholds of the point joins.
#[derive(Clone, Copy, Debug)]
pub struct JoinPolicy {
    /// The most pairs of points that are joined by a nested loop.
    pub nested_pairs: u128,
    /// The number of best-scored points of each set that are joined first, for 16 pairs.
    best_points: usize,
    /// Sets with at least this multiple of those points are joined by a running threshold, unless the caller chooses.
    /// Joins of 1M points for 16, 256 and 1024 pairs take 0.16, 0.60 and 1.78 ms with a threshold, and 0.45, 0.55 and
    /// 0.74 ms by cells.
    pub threshold_from: usize,
    /// If the first threshold is weak, sets with at least this multiple of those points …
    pub more_best_points_from: usize,
    /// … are joined again with this multiple of best-scored points.
    pub more_best_points: usize,
    /// The most points for which both sets are processed concurrently. Untuned.
    pub side_by_side_to: usize,
    /// The most blocks that rank scores.
    pub ranks_max_blocks: u64,
    /// The capacity of the global task list …
    pub tasks: usize,
    /// … and of a warp's task list.
    pub tasks_of_warp: usize,
    /// The blocks that process the tasks: as many as a large GPU holds. Untuned.
    pub task_blocks: u64,
    /// The larger set keeps its order if each of its points has at most this many neighbors in the smaller set. With
    /// 500 neighbors (25,054 and 964,214 points) a join takes 2.4 ms in input order and 1.9 ms sorted.
    pub unordered_to: f64,
    /// The right points, or pairs, of the first batch.
    pub first_part: usize,
    /// One of this many right points is in the first batch of heaps.
    pub first_rows: usize,
    /// The most best pairs that are selected by counting; more are sorted.
    pub counted_pairs: usize,
    /// The most best pairs that are kept, unless the caller asks for more.
    pub most_kept: usize,
    /// The smallest capacity for pairs.
    least_room: usize,
}

impl JoinPolicy {
    /// Returns the capacity for pairs during a search for the best `k`.
    pub const fn room(&self, k: usize) -> usize {
        let room = if k <= self.counted_pairs { 32 * k } else { k.saturating_mul(8) };
        let least = if k <= self.counted_pairs { self.least_room } else { 32 * self.counted_pairs };
        if room > least { room } else { least }
    }

    /// Returns the number of best-scored points of each set that are joined first for the best `k` pairs. It grows with
    /// the square root of `k`, because the number of pairs is the product of both.
    pub const fn best_points(&self, k: usize) -> usize {
        let (mut points, mut pairs) = (self.best_points, 16);
        while pairs < k && points < 16 * self.best_points {
            points *= 2;
            pairs *= 4;
        }
        points
    }

    /// Returns the number of points in the neighbor cells of a point up to which cells find the `k` nearest neighbors
    /// faster than a tree. In ms, for 1M and 10M points:
    ///
    /// | | by cells | by a tree |
    /// |---|---|---|
    /// | 1 nearest, 4 points within the distance (12 in the cells) | 0.51, 3.8 | 1.66, 9.0 |
    /// | 1 nearest, 30 points within the distance (86 in the cells) | 0.74, 5.4 | 1.56, 9.0 |
    /// | 8 nearest, 30 points within the distance | 2.4, 24 | 2.0, 13 |
    pub const fn nearest_by_cells_to(&self, k: usize) -> f64 {
        128.0 / k as f64
    }

    /// Returns true if a set is so much smaller than the other one that it becomes the build side: it fits in the L2
    /// cache. A join of 1e8 with 1e3 points takes 5.1 ms that way, and 10.4 ms with the larger set as build side.
    pub const fn is_small_beside(&self, len: usize, other: usize) -> bool {
        len <= 1 << 20 && other / 8 >= len
    }

    /// Returns the growth factor of batches. It is limited so that the pairs above the running threshold usually fit.
    pub const fn growth(&self, k: usize) -> usize {
        let growth = self.room(k) / k / 4;
        if growth < 64 { growth } else { 64 }
    }

    /// Returns the growth factor of each side of a batch of two sides.
    pub const fn growth_of_sides(&self, k: usize) -> usize {
        if self.growth(k) >= 64 { 8 } else { 2 }
    }
}

/// The thresholds of the point joins. Values without a measurement at their field are untuned.
pub const JOIN: JoinPolicy = JoinPolicy {
    nested_pairs: 1 << 26,
    best_points: 4096,
    threshold_from: 50,
    more_best_points_from: 1000,
    more_best_points: 4,
    side_by_side_to: 1 << 23,
    ranks_max_blocks: 1056,
    tasks: 1 << 20,
    tasks_of_warp: 8,
    task_blocks: 528,
    unordered_to: 32.0,
    first_part: 1024,
    first_rows: 32,
    counted_pairs: 1024,
    most_kept: 1 << 20,
    least_room: 1 << 14,
};

/// The threads of a block of the stack-free nearest-neighbor traversal. Untuned.
pub const WALK_THREADS: usize = 128;

/// The minimum of blocks of this traversal. Without it ptxas aims higher and three instances spill.
pub const WALK_MIN_BLOCKS: usize = 8;

/// The minimum of blocks of traversals with stacks.
pub const WALK_STACK_MIN_BLOCKS: usize = 3;

/// The threads of a block that sorts points by swaps. Untuned.
pub const SWAPS_THREADS: usize = 512;

/// The threads of a block of primitives that hold a tile in registers.
pub const TILE_THREADS: usize = 256;

/// The rows of a tile (16-byte accesses per thread) of kernels that only load, compute and store.
pub const STREAM_ROWS: usize = 8;

/// The rows of a tile of a scan: bytes in flight bound its throughput. With 22 and 24 rows some instances spill. Sum
/// scan of 134M items, in ms, by rows and minimum of blocks:
///
/// | | 20, 2 | 12, 3 | 16, 2 | 8, 4 | 10, 3 | 7, 4 |
/// |---|---|---|---|---|---|---|
/// | `u32` | 0.346 | 0.362 | 0.369 | 0.380 | 0.382 | 0.398 |
/// | `u64` | 0.737 | 0.754 | 0.784 | 0.793 | 0.800 | 0.822 |
pub const SCAN_ROWS: usize = 20;

/// The minimum of blocks of a scan.
pub const SCAN_MIN_BLOCKS: usize = 2;

/// The rows of a tile of select, partition and unique. Selection of 10 % of 134M `u32`, by rows and minimum of blocks:
/// 8, 4: 0.213 ms; 6, 4: 0.236; 4, 6: 0.248; 4, 5: 0.278.
pub const SELECT_ROWS: usize = 8;

/// The minimum of blocks of selections. Without it ptxas aims higher for some instances and spills.
pub const SELECT_MIN_BLOCKS: usize = 4;

/// The rows of a tile of segmented scans. The scan of 134M `f32` takes 0.70 ms with 6 rows, 0.64 with 7
/// and 0.60 with 8, with a minimum of 2 blocks. With 8 rows the minimum and maximum of `f32` spill; with 6 rows and 3
/// blocks many instances do.
pub const SEGMENTED_ROWS: usize = 7;

/// The most blocks of the first launch of a reduction: a little under two waves of a large GPU. Untuned.
pub const REDUCE_MAX_BLOCKS: usize = 2048;

/// The warps of a two-pass selection, one per piece of the input (Robinson's 64 blocks of 32 warps). Untuned.
pub const TWO_PASS_WARPS: usize = 4096;

/// The minimum of blocks of segmented scans. Without it ptxas aims higher on some architectures and
/// spills.
pub const SEGMENTED_MIN_BLOCKS: usize = 2;

/// The rows of a warp's chunk in a segmented reduction: 16 bytes of a lane each. Untuned.
pub const SEGMENTED_REDUCE_ROWS: usize = 4;

/// The minimum of blocks of segmented reductions. Untuned.
pub const SEGMENTED_REDUCE_MIN_BLOCKS: usize = 4;

/// The most blocks of a segmented reduction: a little under four waves of a large GPU. Untuned.
pub const SEGMENTED_REDUCE_MAX_BLOCKS: usize = 2048;

/// The least number of items and segments of a warp of a segmented reduction. Untuned.
pub const SEGMENTED_REDUCE_MIN_SHARE: usize = 1024;

/// The most items of a segment within a chunk that one lane adds. Untuned.
pub const SEGMENTED_REDUCE_LANE_ITEMS: u32 = 32;

/// The items of a thread of the second pass of a segmented partition. Untuned.
pub const PARTITION_ITEMS: usize = 4;

/// Returns the minimum of blocks of that pass. Without it ptxas aims higher and spills: items of 32 bits on some
/// architectures, items of 64 bits with more than 2 blocks. Untuned.
pub const fn partition_min_blocks(item_bytes: usize) -> usize {
    if item_bytes == 4 { 4 } else { 2 }
}

/// The items of a block of gather and scatter, a multiple of its threads. 134M items, in ms:
///
/// | items of a block | 512 | 1024 | 2048 |
/// |---|---|---|---|
/// | 4 bytes, in order | 0.443 | 0.380 | 0.379 |
/// | 12 bytes, in order | 1.139 | 0.936 | 0.976 |
/// | 4 bytes, shuffled | 2.90 | 2.92 | 3.05 |
pub const PERMUTE_BLOCK_ITEMS: usize = 1024;

/// The most blocks that look for axes on which points differ. Few, since every warp writes to one address. Untuned.
pub const VARYING_MAX_BLOCKS: usize = 256;

/// The most blocks of kernels that keep one result per block: bounds, histograms. Untuned.
pub const FOLD_MAX_BLOCKS: usize = 1024;

/// The bins of a histogram that a block counts in shared memory.
pub const MAX_BINS: usize = 4096;

/// Tuning of top-k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKPolicy {
    /// The threads of a block that samples.
    pub sample_threads: usize,
    /// The minimum of blocks of the sampling kernel.
    pub sample_min_blocks: usize,
    /// The most blocks that sample.
    pub sample_max_blocks: usize,
    /// The items per block that samples.
    pub items_per_sample_block: usize,
    /// The most samples of a lane: for a `k` of up to [`few`](Self::few), and for a larger `k`.
    pub max_lane_samples: [u32; 2],
    /// The largest `k` that counts as few.
    pub few: usize,
    /// The samples that a lane loads at once.
    pub sample_batch: usize,
    /// The most items that all become candidates, without a sample.
    pub sampled_items: usize,
    /// The most blocks of the pass over all items.
    pub filter_max_blocks: usize,
    /// The most blocks of the selection by digits.
    pub select_max_blocks: usize,
    /// The minimum of blocks of the pass over all items and of the ranking of candidates. Without it ptxas aims higher
    /// and spills.
    pub min_blocks: usize,
    /// The candidates that a block holds in shared memory.
    pub staged_items: usize,
    /// The threads of a block that ranks candidates.
    pub rank_threads: usize,
    /// The candidates that a warp ranks.
    pub rank_items: usize,
    /// The most candidates that are ranked by counting; more are sorted.
    pub ranked_items: usize,
    /// The threads of a block that handles a segment.
    pub segment_threads: usize,
    /// The items per thread of that block's tile; odd, as in [`MergePolicy`].
    pub segment_items: usize,
    /// The items that a thread of that block adds before the block checks the capacity of its tile.
    pub segment_round_items: usize,
    /// The minimum of blocks that handle a segment each. With more, items of 16 bytes spill.
    pub segment_min_blocks: usize,
    /// The average segment length above which segments get a block each, even for small k.
    pub warp_segment_items: usize,
}

/// Tuning of top-k. With 4, 8 and 16 samples per lane the best of 134M `f32` takes 0.186, 0.161 and 0.175 ms, the 1024
/// best 0.194, 0.193 and 0.186 ms. The other numbers: untuned.
pub const TOP_K: TopKPolicy = TopKPolicy {
    sample_threads: 256,
    sample_min_blocks: 3,
    sample_max_blocks: 256,
    items_per_sample_block: 1 << 14,
    max_lane_samples: [8, 16],
    few: 64,
    sample_batch: 8,
    sampled_items: 1 << 13,
    filter_max_blocks: 1056,
    select_max_blocks: 528,
    min_blocks: 4,
    staged_items: 1024,
    rank_threads: 256,
    rank_items: 4,
    ranked_items: 1 << 14,
    segment_threads: 256,
    segment_items: 7,
    segment_round_items: 3,
    segment_min_blocks: 2,
    warp_segment_items: 4096,
};

/// Tuning of merges and merge sorts. Arrays of three have an entry for keys of 4, 8 and 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// The threads of a block.
    pub threads_per_block: usize,
    /// The items of a thread; odd, so that the lanes' accesses to shared memory hit different banks. The kernels'
    /// instances name the same numbers.
    pub items_per_thread: [usize; 3],
    /// The minimum of blocks of the tile sort. Without it ptxas aims higher and spills.
    pub sort_min_blocks: [usize; 3],
    /// The minimum of blocks of merges of keys alone.
    pub merge_keys_min_blocks: [usize; 3],
    /// The minimum of blocks of merges of keys with values.
    pub merge_pairs_min_blocks: [usize; 3],
    /// The minimum of blocks of both kernels if the order compares values.
    pub lookup_min_blocks: [usize; 3],
    /// The lanes that search for the begin of a tile, powers of two: for few and for many tiles. More lanes need fewer
    /// rounds, but touch more memory.
    pub split_lanes: [usize; 2],
    /// The minimum of blocks of that search. Without it ptxas aims higher and spills.
    pub split_min_blocks: usize,
    /// The number of tiles from which on they count as many.
    pub many_tiles: usize,
    /// The most tiles per multiprocessor with which each tile searches for its own begin.
    pub self_split_tiles_per_sm: usize,
}

impl MergePolicy {
    /// Returns the index into the arrays of three for keys of `key_words` words.
    pub const fn key_class(key_words: usize) -> usize {
        match key_words {
            1 => 0,
            2 => 1,
            _ => 2,
        }
    }

    /// Returns the number of lanes that search for the begin of each of `num_tiles` tiles.
    pub const fn split_lanes(self, num_tiles: usize) -> usize {
        if num_tiles < self.many_tiles { self.split_lanes[0] } else { self.split_lanes[1] }
    }

    /// Returns the number of items of a tile.
    pub const fn tile_items(self, key_words: usize) -> usize {
        self.threads_per_block * self.items_per_thread[Self::key_class(key_words)]
    }
}

/// Tuning of merge and merge sort. The other numbers: untuned. In ms, by threads and items per thread:
///
/// | | 256, 23 | 256, 17 | 512, 17 |
/// |---|---|---|---|
/// | sort of 10M `u32` | 0.463 | 0.511 | 0.572 |
/// | sort of 10M `u32` with values | 0.739 | 0.791 | 0.860 |
/// | merge of two halves | 0.038 | 0.038 | 0.044 |
/// | sort of 10M points by super key | 2.00 | 1.60 | 2.03 |
///
/// With 8, 4 and 2 lanes per split a merge of 134M takes 0.366, 0.354 and 0.346 ms, but the sort of 10M 0.471, 0.488
/// and 0.538. The sort of 1M takes 0.089 ms if tiles find their own splits, else 0.114.
pub const MERGE: MergePolicy = MergePolicy {
    threads_per_block: 256,
    items_per_thread: [23, 13, 7],
    sort_min_blocks: [4, 3, 2],
    merge_keys_min_blocks: [4, 4, 3],
    merge_pairs_min_blocks: [3, 3, 3],
    lookup_min_blocks: [2, 2, 2],
    split_lanes: [8, 2],
    split_min_blocks: 4,
    many_tiles: 1 << 13,
    self_split_tiles_per_sm: 4,
};

/// The tile shape of load-balancing search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpandPolicy {
    /// The threads of a block.
    pub threads_per_block: usize,
    /// The outputs and segments of a thread.
    pub items_per_thread: usize,
}

/// Tuning of load-balancing search. Untuned.
pub const EXPAND: ExpandPolicy = ExpandPolicy { threads_per_block: 256, items_per_thread: 7 };

/// Tuning of the k-d tree's builder by selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionPolicy {
    /// The threads of a block that brackets a pivot.
    pub bracket_threads: usize,
    /// The threads of a block that splits tiles, and the points per thread.
    pub split: (usize, usize),
    /// The threads of a block that finds a pivot by sorting the remaining points, and the points per thread.
    pub settle: (usize, usize),
    /// The threads of a block that finishes subtrees.
    pub subtrees_threads: usize,
    /// The points per thread of these blocks, for coordinates of 32 bits and of 64 bits; powers of two.
    pub subtrees_items: [usize; 2],
    /// The samples of a run of up to [`few`](Self::few) points, and of a longer one; powers of two.
    pub samples: [usize; 2],
    /// The most points that count as few.
    pub few: usize,
    /// The larger of the two numbers of samples.
    pub max_samples: usize,
    /// The standard deviations of a sample's rank from the pivot to the ends of its bracket, for few points and for
    /// more. If the bracket misses the pivot, a block splits the run again.
    pub deviations: [u32; 2],
    /// The minimum of blocks that search for pivots. Without it ptxas aims higher and spills.
    pub settle_min_blocks: usize,
    /// The minimum of blocks that finish subtrees, for coordinates of 32 bits and of 64 bits. With more they spill.
    pub subtrees_min_blocks: [usize; 2],
}

/// Tuning of the builder by selection. 10M points of 3 `f32`, in ms; 1M points take 0.94, and 1.00 with 256 threads and
/// 8 items that settle. Measured before subtrees were built by sorts in registers:
///
/// | variant | ms |
/// |---|---|
/// | as here | 6.5 |
/// | 256 threads everywhere | 7.1 |
/// | 256 threads everywhere, loads of a tile one by one | 7.5 |
/// | 256, 1024 samples of few points | 6.8, 6.5 |
/// | 1024 samples of more points | 6.7 |
/// | 3, 5 deviations of few points | 7.6, 6.7 |
///
/// By Nsight Compute, at its clock: first splits of 13 levels 2.0 (0.15 each), later splits 1.1 (17 us each, however few
/// the points), subtrees 1.7 (62 % of the issue slots; 2.5 when the points were sorted once on each axis, and partitioned),
/// brackets 1.3, pivots 0.8. Tried: the samples of brackets and the points of pivots sorted in registers too, 1.5 and 1.0.
pub const SELECTION: SelectionPolicy = SelectionPolicy {
    bracket_threads: 1024,
    split: (256, 8),
    settle: (512, 4),
    subtrees_threads: 128,
    subtrees_items: [16, 8],
    samples: [512, 2048],
    few: 1 << 13,
    max_samples: 2048,
    deviations: [4, 5],
    settle_min_blocks: 1,
    subtrees_min_blocks: [5, 4],
};

/// Tuning of the queries of bucket indexes.
#[derive(Clone, Copy, Debug)]
pub struct QueriesPolicy {
    /// The threads of a block; its warps are independent.
    pub threads: usize,
    /// The minimum of blocks: of kernels with few registers, of kernels of wider points, and of kernels of 8
    /// dimensions.
    pub min_blocks: [usize; 3],
    /// The minimum of blocks of the search for the nearest point: of kernels with few registers, of kernels of wider points, and of
    /// kernels of 8 dimensions.
    pub one_min_blocks: [usize; 3],
    /// The minimum of blocks of kernels with lists in registers. (With 3, the 8 nearest of `f64` x 3 take 17.3 ms, with 4 and a few
    /// spills 15.0.)
    pub list_min_blocks: usize,
    /// Lanes scan their buckets when fewer lanes than this are still searching for one.
    pub searching_from: u32,
    /// The most points that queries are compared with by brute force: per lane, and per warp for more neighbors than a
    /// lane keeps.
    pub brute_force_up_to: [usize; 2],
    /// The number of queries from which on unordered range queries are sorted.
    pub ordered_from: usize,
    /// The number of neighbors of all queries from which on unordered nearest queries are sorted; fewer only find their start
    /// buckets.
    pub nearest_ordered_from: usize,
}

impl QueriesPolicy {
    /// Returns the minimum of blocks for a number of dimensions and bytes of a coordinate.
    pub const fn min_blocks(&self, dims: usize, coord_bytes: usize) -> usize {
        self.min_blocks[if dims > 4 { 2 } else { (dims * coord_bytes > 16) as usize }]
    }

    /// Returns the minimum of blocks of the search for the nearest point.
    pub const fn one_min_blocks(&self, dims: usize, coord_bytes: usize) -> usize {
        self.one_min_blocks[if dims > 4 { 2 } else { (dims * coord_bytes > 12) as usize }]
    }

    /// Returns the minimum of blocks of kernels with queues of `num_items` items per lane.
    pub const fn queue_min_blocks(&self, dims: usize, coord_bytes: usize, num_items: usize) -> usize {
        self.min_blocks[if dims > 4 || coord_bytes * num_items > 32 { 2 } else { (coord_bytes > 4) as usize }]
    }
}

/// Tuning of the queries of bucket indexes. 10M uniform points and as many queries, `f32` x 3, in ms: each lane on its own, by
/// [`searching_from`](QueriesPolicy::searching_from) without start buckets and with them; and the lanes of a warp
/// together (`query::traversal::together`). These start with the smallest subtree that has at least `k` points, twice
/// `k` or four times `k`:
///
/// | k | 20 | 12 | 6 | 1 | 6, with start buckets | together | twice | four times |
/// |---|---|---|---|---|---|---|---|---|
/// | 1 | 6.5 | 6.1 | 6.0 | 6.5 | 5.0 | 3.5 | 3.7 | 4.0 |
/// | 8 | 15.0 | 13.6 | 13.1 | 14.4 | 12.7 | 9.8 | 10.0 | 10.1 |
/// | 32 | 48 | 43 | 40 | 41 | 35.5 | 32.3 | 34.0 | 36.9 |
///
/// Lanes on their own that take another query when 16 of a warp are done take 5.1, 18.2 and 44 ms, because a query that
/// changes needs registers. Nodes and buckets tested by the lanes against the box of all queries of a warp, and the points
/// near that box compared with each query, take 4.0 and 11.0 ms for k = 1 and 8 (5.3 and 13.4 on the same H100 by lanes
/// on their own), but 6.9 and 17.9 for clustered points (5.3 and 14.2).
///
/// 1M queries by brute force and by buckets, in ms:
///
/// | points | k = 1 | k = 8 | k = 100 |
/// |---|---|---|---|
/// | 64 | 0.109, 0.158 | 0.310, 0.360 | 1.52, 1.54 |
/// | 128 | 0.194, 0.188 | 0.548, 0.463 | 2.49, 2.52 |
/// | 512 | | | 6.88, 8.50 |
/// | 1024 | | | 10.3, 9.7 |
///
/// Time of unsorted queries with start buckets relative to sorted ones, by the number of points of `f32` x 3:
///
/// | queries, k | 10K | 100K | 1M | 10M |
/// |---|---|---|---|---|
/// | 10K, 1 | 0.62 | 0.69 | 0.64 | 0.70 |
/// | 100K, 1 | 0.78 | 0.85 | 0.91 | 0.88 |
/// | 1M, 1 | 1.17 | 1.42 | 1.57 | 1.71 |
/// | 10K, 8 | 0.86 | 0.91 | 0.78 | 0.92 |
/// | 100K, 8 | 1.03 | 1.05 | 1.02 | 1.07 |
/// | 10K, 32 | 1.05 | 1.02 | 0.93 | 0.99 |
/// | 100K, 32 | 1.30 | 1.22 | 1.09 | 1.19 |
pub const QUERIES: QueriesPolicy = QueriesPolicy {
    threads: 128,
    min_blocks: [8, 6, 4],
    one_min_blocks: [8, 6, 3],
    list_min_blocks: 4,
    searching_from: 6,
    brute_force_up_to: [64, 512],
    ordered_from: 1 << 10,
    nearest_ordered_from: 1 << 18,
};

/// The warps that partition the arrays of a balanced k-d tree. 16.8M points of `f32` x 4, in ms:
///
/// | warps | 512 | 1024 | 2048 | 4096 | 8192 | 16384 | 65536 |
/// |---|---|---|---|---|---|---|---|
/// | partition | 113 | 63.7 | 42.0 | 35.1 | 36.4 | 34.7 | 41.0 |
/// | removal of equal points | 7.5 | 4.2 | 3.2 | 2.3 | 2.2 | 2.4 | 4.8 |
pub const BALANCED_WARPS: u32 = 1 << 12;

/// The threads of a block that partitions a tile by path codes.
pub const PATHS_THREADS: usize = 256;
/// The points of each thread.
pub const PATHS_ROWS: usize = 8;
/// The minimum of blocks. A level of 16,777,216 points of four coordinates takes 0.51, 0.54 and 0.66 ms with 3, 4 and
/// 6, and 0.55 ms with one of 16 points per thread.
pub const PATHS_MIN_BLOCKS: u32 = 3;
/// The threads of a block that builds a subtree of a balanced tree. All levels of 16,777,216 points of four coordinates
/// take 7.43 ms with 512 threads of 8 points and 2 blocks, 7.70 ms with 256 threads of 16 points and 3 blocks, and 8.1
/// ms with 256 threads of 8 points and one more level above.
pub const BALANCED_SUBTREES_THREADS: usize = 512;
/// The points of a thread in a subtree of a balanced tree, for points of up to four coordinates.
pub const BALANCED_SUBTREES_ROWS: usize = 8;
/// The minimum of blocks of the subtree kernel.
pub const BALANCED_SUBTREES_MIN_BLOCKS: u32 = 2;

/// The bits of a digit of the radix selection that cuts the points of several GPUs: two or three passes for keys of 32 bits. Untuned.
pub const CUT_BITS: u32 = 11;
/// The threads of a block that counts digits, or that orders the points at a cut. Untuned.
pub const CUT_THREADS: usize = 256;
/// The points of each thread. Untuned.
pub const CUT_ROWS: usize = 8;
/// The most blocks that count digits. Untuned.
pub const CUT_MAX_BLOCKS: usize = 1024;
/// The selection ends when at most this many points may be the median: the host selects among them. Untuned.
pub const CUT_MAX_CANDIDATES: usize = 2048;

/// Builds of at least this many points renumber the points on the way down, once runs have at most [`RENUMBER_MAX_RUN`] points.
pub const RENUMBER_MIN_POINTS: usize = 1 << 26;
/// Length of the runs on whose level points are renumbered.
pub const RENUMBER_MAX_RUN: usize = 1 << 21;

/// The most points with an equal coordinate that a thread sorts by the other coordinates, after a radix sort by this
/// one.
pub const MAX_TIES: usize = 32;

/// The most levels of the subtrees that are buckets of a k-d tree: up to 16 points. 10M uniform points, `f32` x 3, k =
/// 1, 8, 32, 100: 5.0, 12.7, 35.5, 182 ms with 4 levels, and 5.0, 13.2, 37.8, 247 ms with 3.
pub const BUCKET_LEVELS: u32 = 4;

/// The levels of boxes that a block computes. Its threads have one node each on the lowest level.
pub const BOXES_LEVELS: u32 = 8;

/// The threads of a block that solves the systems of splines. Untuned.
pub const SPLINE_THREADS: usize = 128;

/// The minimum of blocks of that kernel. Without it ptxas aims higher and spills.
pub const SPLINE_MIN_BLOCKS: usize = 3;
