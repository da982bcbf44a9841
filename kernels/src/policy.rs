//! Tuning, as plain values.

/// Shape of the tiles of the radix sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadixSortPolicy {
    /// Warps of a block.
    pub warps: usize,
    /// Items of a thread.
    pub items: usize,
}

impl RadixSortPolicy {
    /// Items of a tile.
    pub const fn tile_items(self) -> usize {
        32 * self.warps * self.items
    }
}

/// Shape of the radix sort's tiles for items of those sizes, 0 bytes of value for keys alone. Measured on an H200 with 134M
/// items, in ms: keys of 4 bytes 2.66 by 12 x 28, 2.69 by 12 x 24, 2.89 by 12 x 20, 2.97 by 16 x 16, 3.18 by 12 x 16; with
/// values of 4 bytes 3.66, 3.77, 4.07, 4.11, 4.37; keys of 8 bytes 7.11 by 12 x 18, 7.38 by 12 x 16, 7.82 by 12 x 14, 8.10 by
/// 16 x 10, 8.40 by 12 x 12; with values of 4 bytes 9.97, 10.3, 10.8, 11.3, 11.6. Values of 8 and 16 bytes: untuned.
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

/// Most items that the radix sort counts in 32 bits. Counts of 64 bits take registers: tiles are smaller, so that no instance
/// with them spills on any architecture. Untuned.
pub const RADIX_SORT_NARROW_ITEMS: usize = 1 << 30;

/// From so many items on there are enough of the largest tiles for all multiprocessors of a large GPU: untuned.
pub const RADIX_SORT_MANY_ITEMS: usize = 1 << 22;

/// Blocks of the radix sort that a multiprocessor is to hold: large tiles need the registers.
pub const fn radix_sort_min_blocks(items: usize) -> usize {
    if items <= 4 { 5 } else { 2 }
}

/// Up to so many items the radix sort takes small tiles, so that they occupy more multiprocessors: untuned.
pub const RADIX_SORT_FEW_ITEMS: usize = 1 << 17;

/// Threads of a block that counts digits: untuned.
pub const HISTOGRAM_THREADS: usize = 512;

/// Keys of 4 bytes that a thread has on their way at a time while it counts digits; of larger ones fewer. Untuned.
pub const HISTOGRAM_ITEMS: usize = 8;

/// Keys that a block that counts digits takes at a time.
pub const fn histogram_tile(key_bytes: usize) -> usize {
    HISTOGRAM_THREADS * HISTOGRAM_ITEMS * 4 / key_bytes
}

/// Counters of a digit in a block that counts digits: untuned.
pub const HISTOGRAM_COPIES: usize = 4;

/// Most blocks that count digits, 4 a multiprocessor of a large GPU: untuned.
pub const HISTOGRAM_MAX_BLOCKS: u64 = 528;

/// Segments of up to 32 items that a warp sorts, one or more at a time: untuned.
pub const SEGMENTS_OF_WARP: usize = 8;

/// Up to so many items a segment is short: it is sorted by a small tile. Untuned.
pub const SEGMENT_SHORT_ITEMS: usize = 32 * 8 * 2;

/// Most blocks that take segments from a list: untuned.
pub const SEGMENT_MAX_BLOCKS: u64 = 1056;

/// Blocks that a multiprocessor is to hold of those that sort segments: without it the assembler aims higher and spills.
pub const SEGMENT_MIN_BLOCKS: usize = 2;

/// Words of other tiles that a lane asks for at a time, in a look-back by a warp: with 4 or 8 of them selections took 5 % longer
/// on an H200, for the registers.
pub const LOOK_BACK_WORDS: usize = 2;

/// Tiles that a look-back by a thread a column asks for at a time: untuned.
pub const LOOK_BACK_WINDOW: usize = 4;

/// Threads of a block of kernels in which every thread works on an item of its own: untuned.
pub const PER_ITEM_THREADS: usize = 256;

/// Threads of a block of joins by cells: untuned.
pub const JOIN_THREADS: usize = 128;

/// Blocks of such joins that a multiprocessor is to hold: without it the assembler aims higher and spills.
pub const JOIN_MIN_BLOCKS: usize = 5;

/// The same of those that look for the best pairs, of so many dimensions and bytes of a coordinate: 64 registers of 2-D points where they
/// had 72 (100M points on an H200, most of whose pairs have good scores: 254 ms with those, 229 with 64).
pub const fn join_rising_min_blocks(dims: usize, coord_bytes: usize) -> usize {
    match dims * coord_bytes {
        0..=8 => 8,
        9..=16 => 7,
        _ => JOIN_MIN_BLOCKS,
    }
}

/// The same of those that do what others left.
pub const JOIN_REST_MIN_BLOCKS: usize = 4;

/// Left points that a thread goes through for a right point before the rest of them is divided among all: untuned.
pub const JOIN_SEGMENT: usize = 2048;

/// Points in whose keys a warp looks for nodes of a quadtree that split: untuned.
pub const QUADTREE_WARP_POINTS: usize = 1024;

/// Threads that move a tile of a large node's points, level by level: untuned.
pub const QUADTREE_TILE_THREADS: usize = 256;

/// Points that a thread of a block has at one time there: untuned.
pub const QUADTREE_PIECE_POINTS: usize = 8;

/// Points of a leaf up to which their order is found by counting, which for each takes as many loads: untuned. (80M points in leaves of up
/// to 2000 took 33 ms so.)
pub const QUADTREE_COUNTED_POINTS: u32 = 256;

/// Most levels of large nodes of a SAH k-d tree; small nodes go on to the last level that rays can remember.
pub const SAH_LARGE_DEPTH: u32 = 40;

/// Triangles of a large node that a block has, a thread each (Zhou et al. 2008).
pub const SAH_CHUNK_TRIANGLES: usize = 256;

/// Threads of a block that makes the masks of a small node's candidates: untuned.
pub const SAH_CANDIDATE_THREADS: usize = 128;

/// Warps of a block that splits small roots, a warp each: as many as the shared memory of a block has room for.
pub const SAH_ROOT_WARPS: usize = 4;

/// Threads of a block that traces rays: untuned.
pub const SAH_RAY_THREADS: usize = 128;

/// How the best pairs of a join are looked for.
#[derive(Clone, Copy, Debug)]
pub struct JoinPolicy {
    /// Up to so many pairs of all points are gone through by a nested loop.
    pub nested_pairs: u128,
    /// So many points of each set, those with the best scores, are joined first for 16 pairs.
    best_points: usize,
    /// Sets have so many times as many points if that is done unless asked for. On an H200 joins of 1M points took for 16, 256 and 1024
    /// pairs 0.16, 0.60 and 1.78 ms so, and 0.45, 0.55 and 0.74 by cells.
    pub threshold_from: usize,
    /// If that says too little of sets of so many times as many points or more …
    pub more_best_points_from: usize,
    /// … so many times as many are joined.
    pub more_best_points: usize,
    /// Up to so many points the work for both sets is done side by side: untuned.
    pub side_by_side_to: usize,
    /// Most blocks that make ranks of scores.
    pub ranks_max_blocks: u64,
    /// Room for tasks that are left to all …
    pub tasks: usize,
    /// … and for so many of a warp.
    pub tasks_of_warp: usize,
    /// Blocks that do them: untuned, as many as a large GPU holds.
    pub task_blocks: u64,
    /// The larger set stays in its order then if no more points of the small one are around each of its points: with 500 around (25,054
    /// and 964,214 points) a join took 2.4 ms so, and 1.9 in order.
    pub unordered_to: f64,
    /// Right points, or pairs, of the first part.
    pub first_part: usize,
    /// One of so many right points is of the first batch of heaps.
    pub first_rows: usize,
    /// Up to so many best pairs are kept by counting; more are sorted.
    pub counted_pairs: usize,
    /// Most best pairs that are kept at all unless it is asked for.
    pub most_kept: usize,
    /// Least room for pairs.
    least_room: usize,
}

impl JoinPolicy {
    /// Pairs that there is room for, while the best `k` are looked for.
    pub const fn room(&self, k: usize) -> usize {
        let room = if k <= self.counted_pairs { 32 * k } else { k.saturating_mul(8) };
        let least = if k <= self.counted_pairs { self.least_room } else { 32 * self.counted_pairs };
        if room > least { room } else { least }
    }

    /// So many points of each set, those with the best scores, are joined first for the best `k` pairs: as many times more points as
    /// there are times more pairs of points.
    pub const fn best_points(&self, k: usize) -> usize {
        let (mut points, mut pairs) = (self.best_points, 16);
        while pairs < k && points < 16 * self.best_points {
            points *= 2;
            pairs *= 4;
        }
        points
    }

    /// Up to so many points in the cells around one the `k` nearest are found by cells, more by a tree. On an H200 of 1M and 10M points
    /// the nearest of 4 within the distance (12 around) took 0.51 and 3.8 ms by cells, 1.66 and 9.0 by a tree; of 30 (86 around) 0.74
    /// and 5.4, 1.56 and 9.0; 8 nearest of 30 2.4 and 24, 2.0 and 13.
    pub const fn nearest_by_cells_to(&self, k: usize) -> f64 {
        128.0 / k as f64
    }

    /// True if a set is so much smaller than another that it is the one to look in: so small that it is in the L2 cache. On an H200 joins
    /// of 1e8 with 1e3 points took 5.1 ms so, and 10.4 where the larger was looked in.
    pub const fn is_small_beside(&self, len: usize, other: usize) -> bool {
        len <= 1 << 20 && other / 8 >= len
    }

    /// By so much a part may be larger than all before it, so that what is better than their limit most often has room.
    pub const fn growth(&self, k: usize) -> usize {
        let growth = self.room(k) / k / 4;
        if growth < 64 { growth } else { 64 }
    }

    /// The same of both sides of a part that has two.
    pub const fn growth_of_sides(&self, k: usize) -> usize {
        if self.growth(k) >= 64 { 8 } else { 2 }
    }
}

/// Untuned.
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

/// Threads of a block of the stack-free nearest-neighbor walk: untuned.
pub const WALK_THREADS: usize = 128;

/// Blocks of that walk that a multiprocessor is to hold: without it the assembler aims higher and spills three instances.
pub const WALK_MIN_BLOCKS: usize = 8;

/// The same of walks with stacks.
pub const WALK_STACK_MIN_BLOCKS: usize = 3;

/// Threads of a block that sorts points by swaps: untuned.
pub const SWAPS_THREADS: usize = 512;

/// Threads of a block of primitives that hold a tile in registers.
pub const TILE_THREADS: usize = 256;

/// Rows of a tile, 16-byte accesses of a thread, where nothing but loads and arithmetic is done with it.
pub const STREAM_ROWS: usize = 8;

/// Rows of a tile of a scan: bytes on their way are what bounds it. On an H200 the sum of 134M `u32` took 0.346 ms by 20 rows and
/// 2 blocks a multiprocessor, 0.362 by 12 and 3, 0.369 by 16 and 2, 0.380 by 8 and 4, 0.382 by 10 and 3, 0.398 by 7 and 4; of
/// `u64` 0.737, 0.754, 0.784, 0.793, 0.800, 0.822. By 22 and 24 rows some spill.
pub const SCAN_ROWS: usize = 20;

/// Blocks of a scan that a multiprocessor is to hold.
pub const SCAN_MIN_BLOCKS: usize = 2;

/// Rows of a tile of selections, partitions and unique. On an H200 10 % of 134M `u32` took 0.213 ms by 8 rows and 4 blocks a
/// multiprocessor, 0.236 by 6 and 4, 0.248 by 4 and 6, 0.278 by 4 and 5.
pub const SELECT_ROWS: usize = 8;

/// Blocks of selections that a multiprocessor is to hold: without it the assembler aims higher for some, and spills.
pub const SELECT_MIN_BLOCKS: usize = 4;

/// Rows of a tile of segmented scans and reductions. On an H200 the scan of 134M `f32` took 0.70 ms by 6 rows, 0.64 by 7 and
/// 0.60 by 8, all with 2 blocks a multiprocessor; of 8 the smallest and largest of `f32` spill, and so do many by 6 and 3 blocks.
pub const SEGMENTED_ROWS: usize = 7;

/// Most blocks of the first launch of a reduction: untuned, a little under two waves of a large GPU.
pub const REDUCE_MAX_BLOCKS: usize = 2048;

/// Warps of a two-pass selection, each with a piece of the input (Robinson's 64 blocks of 32 warps): untuned.
pub const TWO_PASS_WARPS: usize = 4096;

/// Blocks of segmented scans and reductions that a multiprocessor is to hold: without it the assembler aims higher on some
/// architectures, and spills.
pub const SEGMENTED_MIN_BLOCKS: usize = 2;

/// Items of a thread of the second pass of a segmented partition: untuned.
pub const PARTITION_ITEMS: usize = 4;

/// Blocks of that pass that a multiprocessor is to hold: without it the assembler aims higher and spills items of 32 bits on some
/// architectures, and by more than 2 items of 64 bits. Untuned.
pub const fn partition_min_blocks(item_bytes: usize) -> usize {
    if item_bytes == 4 { 4 } else { 2 }
}

/// Items of a block of gather and scatter, a whole number of times its threads. On an H200 134M items of 4 bytes in order took
/// 0.380 ms by 1024, 0.443 by 512, 0.379 by 2048; of 12 bytes 0.936, 1.139, 0.976; shuffled ones of 4 bytes 2.92, 2.90, 3.05.
pub const PERMUTE_BLOCK_ITEMS: usize = 1024;

/// Most blocks of kernels that keep a result a block: bounds, histograms. Untuned.
pub const FOLD_MAX_BLOCKS: usize = 1024;

/// Bins of a histogram that a block counts in its shared memory.
pub const MAX_BINS: usize = 4096;

/// Tuning of top-k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKPolicy {
    /// Threads of a block that samples.
    pub sample_threads: usize,
    /// Blocks that sample that a multiprocessor is to hold.
    pub sample_min_blocks: usize,
    /// Most blocks that sample.
    pub sample_max_blocks: usize,
    /// Items for each block that samples.
    pub items_per_sample_block: usize,
    /// Most samples of a lane, for up to [`few`](Self::few) and for more of the best.
    pub max_lane_samples: [u32; 2],
    /// So many of the best are few.
    pub few: usize,
    /// Samples that a lane loads at once.
    pub sample_batch: usize,
    /// Up to so many items all are candidates.
    pub sampled_items: usize,
    /// Most blocks of the pass over all items.
    pub filter_max_blocks: usize,
    /// Most blocks of the selection by digits.
    pub select_max_blocks: usize,
    /// Blocks that a multiprocessor is to hold: of the pass over all items, and where candidates find their places. The
    /// assembler aims higher by itself, and spills.
    pub min_blocks: usize,
    /// Candidates that a block holds in shared memory.
    pub staged_items: usize,
    /// Threads of a block that finds places of candidates.
    pub rank_threads: usize,
    /// Candidates of a warp of it.
    pub rank_items: usize,
    /// Up to so many candidates find their places by counting, more are sorted.
    pub ranked_items: usize,
    /// Threads of a block that has a segment.
    pub segment_threads: usize,
    /// Items of a thread of its tile; odd, as in [`MergePolicy`].
    pub segment_items: usize,
    /// Items of a thread between looks at the room in a block's tile, where a block has a segment.
    pub segment_round_items: usize,
    /// Blocks with a segment each that a multiprocessor is to hold: with more, items of 16 bytes spill.
    pub segment_min_blocks: usize,
    /// Segments of more items on average have a block each, even for small k.
    pub warp_segment_items: usize,
}

/// Top-k. On an H200 the best of 134M `f32` took 0.161 ms by 8 samples a lane, 0.175 by 16, 0.186 by 4; the 1024 best 0.193, 0.186
/// and 0.194. The other numbers: untuned.
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

/// Tuning of merges and merge sorts. Of three numbers the first is for keys of 4 bytes, the others for 8 and 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// Threads of a block.
    pub threads_per_block: usize,
    /// Items of a thread; odd, so that lanes which read theirs meet different banks of shared memory. Instances of the kernels
    /// name the same numbers.
    pub items_per_thread: [usize; 3],
    /// Blocks that a multiprocessor is to hold of those that sort tiles. The assembler aims higher by itself, and spills.
    pub sort_min_blocks: [usize; 3],
    /// The same of those that merge keys alone.
    pub merge_keys_min_blocks: [usize; 3],
    /// The same of those that merge keys with values.
    pub merge_pairs_min_blocks: [usize; 3],
    /// The same of both kinds, where values are compared too.
    pub lookup_min_blocks: [usize; 3],
    /// Lanes that search for where a tile begins, powers of two, of few tiles and of many: with more there are fewer rounds, but
    /// more memory is touched.
    pub split_lanes: [usize; 2],
    /// Blocks of that search that a multiprocessor is to hold: without it the assembler aims higher, and spills.
    pub split_min_blocks: usize,
    /// From so many tiles on there are many.
    pub many_tiles: usize,
    /// Up to so many tiles a multiprocessor each finds for itself where it begins.
    pub self_split_tiles_per_sm: usize,
}

impl MergePolicy {
    /// Which of three numbers is that of keys of so many words.
    pub const fn key_class(key_words: usize) -> usize {
        match key_words {
            1 => 0,
            2 => 1,
            _ => 2,
        }
    }

    /// Lanes that search for where each of so many tiles begins.
    pub const fn split_lanes(self, num_tiles: usize) -> usize {
        if num_tiles < self.many_tiles { self.split_lanes[0] } else { self.split_lanes[1] }
    }

    /// Items of a tile.
    pub const fn tile_items(self, key_words: usize) -> usize {
        self.threads_per_block * self.items_per_thread[Self::key_class(key_words)]
    }
}

/// Merge and merge sort. On an H200 10M `u32` took 0.463 ms to sort, with values 0.739, by 256 threads and 23 items; 0.511 and
/// 0.791 by 256 and 17; 0.572 and 0.860 by 512 and 17. A merge of two halves took 0.038, 0.038 and 0.044 ms. By super key 10M
/// points took 2.00, 1.60 and 2.03 ms. A merge of 134M took 0.366 ms by 8 lanes a split, 0.354 by 4, 0.346 by 2, but the sort of
/// 10M 0.471, 0.488 and 0.538; where tiles find their own splits the sort of 1M 0.089 in place of 0.114. The other numbers:
/// untuned.
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

/// Shape of the tiles of load-balancing search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpandPolicy {
    /// Threads of a block.
    pub threads_per_block: usize,
    /// Outputs and segments of a thread.
    pub items_per_thread: usize,
}

/// Load-balancing search: untuned.
pub const EXPAND: ExpandPolicy = ExpandPolicy { threads_per_block: 256, items_per_thread: 7 };

/// Tuning of the k-d tree's builder by selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionPolicy {
    /// Threads of a block that brackets a pivot.
    pub bracket_threads: usize,
    /// Threads of a block that splits tiles, and points of each.
    pub split: (usize, usize),
    /// The same of a block that finds a pivot by sorting what is left.
    pub settle: (usize, usize),
    /// Threads of a block that finishes a subtree.
    pub subtrees_threads: usize,
    /// Samples of a run of up to [`few`](Self::few) points, and of a longer one; powers of two.
    pub samples: [usize; 2],
    /// So many points are few.
    pub few: usize,
    /// The larger of the two numbers of samples.
    pub max_samples: usize,
    /// Standard deviations of a sample's rank between the pivot and the ends of its bracket, of a few points and of more: where
    /// it misses, a block splits the run anew.
    pub deviations: [u32; 2],
    /// Blocks that look for pivots that a multiprocessor is to hold: without it the assembler aims higher, and spills.
    pub settle_min_blocks: usize,
    /// Blocks that finish subtrees that a multiprocessor is to hold.
    pub subtrees_min_blocks: usize,
}

/// Builder by selection. On an H200 10M points of 3 `f32` took 7.5 ms by 256 threads everywhere and loads of a tile one by one, 7.1
/// ms without that, 6.5 ms (1M 0.94) since samples are sorted by warps, as here; with 256 threads and 8 items that settle 1M 1.00.
/// 256 or 1024 samples of a few points in place of 512 took 6.8 and 6.5 ms, 1024 of more in place of 2048 6.7, 3 deviations of a few
/// 7.6, 5 6.7. By Nsight Compute, of 7.9 ms at its clock: first splits of 13 levels 2.4 (0.18 each, 59 % of the issue slots, 48 % of
/// the warps; fewer instructions for copies changed nothing), later ones 1.2 (17 us each however few the points), subtrees 2.5,
/// brackets 1.1, pivots 0.7.
pub const SELECTION: SelectionPolicy = SelectionPolicy {
    bracket_threads: 1024,
    split: (256, 8),
    settle: (512, 4),
    subtrees_threads: 256,
    samples: [512, 2048],
    few: 1 << 13,
    max_samples: 2048,
    deviations: [4, 5],
    settle_min_blocks: 1,
    subtrees_min_blocks: 3,
};

/// Shape of the queries of k-d trees over buckets.
#[derive(Clone, Copy, Debug)]
pub struct QueriesPolicy {
    /// Threads of a block, whose warps do not work together.
    pub threads: usize,
    /// Blocks that a multiprocessor is to hold: of kernels that take few registers, of those of wider points, and of those of 8
    /// dimensions.
    pub min_blocks: [usize; 3],
    /// The same of lists in registers. (With 3 those of 32 take 42 ms where the row below has 35.5.)
    pub list_min_blocks: usize,
    /// Lanes look at their buckets when fewer than that are searching for one.
    pub searching_from: u32,
    /// Queries are compared with every point where there are no more points than that: lane by lane, and by warps for more
    /// neighbors than a lane keeps.
    pub brute_force_up_to: [usize; 2],
    /// Queries that are not in order are put in order from this number on.
    pub ordered_from: usize,
}

impl QueriesPolicy {
    /// Blocks that a multiprocessor is to hold, of kernels of so many dimensions and bytes of a coordinate.
    pub const fn min_blocks(&self, dims: usize, coord_bytes: usize) -> usize {
        self.min_blocks[if dims > 4 { 2 } else { (dims * coord_bytes > 16) as usize }]
    }

    /// The same of queues of so many items a lane.
    pub const fn queue_min_blocks(&self, dims: usize, coord_bytes: usize, num_items: usize) -> usize {
        self.min_blocks[if dims > 4 || coord_bytes * num_items > 32 { 2 } else { (coord_bytes > 4) as usize }]
    }
}

/// On an H200, 10M uniform points and as many queries, f32 x 3, k = 1, 8, 32: lanes look at their buckets when fewer than 20 are
/// searching 6.5, 15.0, 48 ms, 12 6.1, 13.6, 43, 6 6.0, 13.1, 40, 1 6.5, 14.4, 41 (without homes; with them 5.0, 12.7, 35.5).
/// 1M queries to 64 points by brute force k = 1, 8, 100 0.109, 0.310, 1.52 ms, by buckets 0.158, 0.360, 1.54; to 128 points 0.194,
/// 0.548, 2.49 and 0.188, 0.463, 2.52; to 512 points k = 100 6.88 and 8.50, to 1024 10.3 and 9.7. Lanes that take another query
/// when 16 of a warp are done took 5.1, 18.2, 44 ms, with registers for a query that changes. As they come, queries to 10K, 100K, 1M,
/// 10M points take, of what they take in order, k = 1: 10K of them 0.74, 0.89, 0.97, 1.51, 100K 0.87, 0.94, 1.07, 1.40, 1M 1.33, 1.36,
/// 1.33, 1.54; k = 8: 10K 1.12, 1.24, 1.21, 1.81.
pub const QUERIES: QueriesPolicy = QueriesPolicy {
    threads: 128,
    min_blocks: [8, 6, 4],
    list_min_blocks: 4,
    searching_from: 6,
    brute_force_up_to: [64, 512],
    ordered_from: 1 << 10,
};

/// Warps that partition the arrays of a balanced k-d tree. On an H200, 16.8M points of f32 x 4: 512, 1024, 2048, 4096, 8192, 16384,
/// 65536 warps take 113, 63.7, 42.0, 35.1, 36.4, 34.7, 41.0 ms, and for the removal of equal points 7.5, 4.2, 3.2, 2.3, 2.2, 2.4, 4.8.
pub const BALANCED_WARPS: u32 = 1 << 12;

/// Threads of a block that partitions a tile by paths.
pub const PATHS_THREADS: usize = 256;
/// Places of each.
pub const PATHS_ROWS: usize = 8;
/// Blocks of a multiprocessor that registers are to suffice for. A level of 16,777,216 points of four coordinates on an H200 takes 0.51,
/// 0.54, 0.66 ms by 3, 4, 6; and by one of 16 places a thread 0.55.
pub const PATHS_MIN_BLOCKS: u32 = 3;
/// Threads of a block that makes a subtree of a balanced tree. Of 16,777,216 points of four coordinates on an H200 all levels take 7.43 ms by
/// 512 threads of 8 places, two blocks at a time, 7.70 by 256 of 16, three at a time, and took 8.1 by 256 of 8 and a level more above.
pub const BALANCED_SUBTREES_THREADS: usize = 512;
/// Places of a thread in a subtree of a balanced tree, of points of up to four coordinates.
pub const BALANCED_SUBTREES_ROWS: usize = 8;
/// Blocks of a multiprocessor that registers are to suffice for.
pub const BALANCED_SUBTREES_MIN_BLOCKS: u32 = 2;

/// Builds of at least this many points renumber the points on the way down, once runs have at most [`RENUMBER_MAX_RUN`] points.
pub const RENUMBER_MIN_POINTS: usize = 1 << 26;
/// Length of the runs on whose level points are renumbered.
pub const RENUMBER_MAX_RUN: usize = 1 << 21;

/// Most points of one coordinate that a thread sorts by the others, after a radix sort by this one.
pub const MAX_TIES: usize = 32;

/// Levels of the subtrees that are buckets of a k-d tree, at most: 16 points. Of 10M uniform points, f32 x 3, on an H200 k = 1, 8,
/// 32, 100 takes 5.0, 12.7, 35.5, 182 ms by 4 levels, and 5.0, 13.2, 37.8, 247 by 3.
pub const BUCKET_LEVELS: u32 = 4;

/// Levels of boxes that a block makes: the threads of a block have a node each on the lowest.
pub const BOXES_LEVELS: u32 = 8;
