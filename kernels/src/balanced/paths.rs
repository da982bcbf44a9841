//! Partition by path codes: a byte per point holds the last bits of the address of its run, so a partition loads no coordinates.
//!
//! An array must be partitioned into the runs of a level only when that level splits on its axis. Until then the levels are *pending*. One
//! pass later adds all pending levels and splits a run into up to [`CLASSES`] classes. So a level takes one pass over one array, rather
//! than one pass over every array. The pass over the array of a level's split axis also writes the next bit of all path codes.
//!
//! A pass reads path codes by the number of the point, in the order of an axis. These random accesses dominate the time. Points are
//! therefore numbered in the order of the first axis, so the numbers of a run are close. If there are so many points that the path codes of
//! a run do not fit in the cache, points are renumbered on a lower level.

use super::{NONE, Run};
use crate::block::look_back::ColumnLookBack;
use crate::block::tile::load_16;
use crate::policy::{PATHS_MIN_BLOCKS, PATHS_ROWS, PATHS_THREADS, PER_ITEM_THREADS};
use crate::query::left_balanced::full_tree;
use crate::thread::coord::{Coord, Float};
use crate::thread::items::own_item;
use crate::warp::look_back::Ticket;
use cuda_std::prelude::*;

/// Number of positions of a tile.
pub const TILE: usize = PATHS_THREADS * PATHS_ROWS;
/// Maximum number of pending levels of an array.
pub const MAX_PENDING: u32 = 3;
/// Maximum number of runs that a pass splits one run into.
pub const CLASSES: usize = 1 << MAX_PENDING;

const WARPS: usize = PATHS_THREADS / 32;

/// The path code of a point that has left the runs: it is a median, or equals another point. The path code of any other point is the last
/// [`MAX_PENDING`] bits of the address of its run.
pub const GONE: u8 = 0x80;

/// Returns the path code one level down.
#[inline(always)]
pub(super) const fn next_path(path: u8, is_greater: bool) -> u8 {
    (path << 1 | is_greater as u8) & (CLASSES as u8 - 1)
}

/// Returns the number of pending levels, before `level`, of the array that is sorted on `axis`. All arrays were partitioned into the runs
/// of level `first`. An array catches up when [`MAX_PENDING`] levels are pending, and on each level that splits on its axis.
pub const fn pending(level: u32, axis: u32, dims: u32, first: u32) -> u32 {
    // Number of levels since the last one that splits on the axis.
    let since = (level + dims - 1 - axis % dims) % dims;
    let behind = if since < level - first { since } else { level - first };
    if behind == 0 { 0 } else { (behind - 1) % MAX_PENDING + 1 }
}

/// Writes the keys of each axis but the first, one axis after another, by the numbers of the points. `ids` are the ids of the points in
/// the order of the first axis; the position in it is the number of a point. One thread per point.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_number_points<C: Float>(
    coords: Slice<C>,
    dims: u32,
    ids: Slice<u32>,
    keys: SliceMut<<C as Coord>::Key>,
) {
    let Some(position) = own_item(ids.len()) else { return };
    let (dims, begin) = (dims as usize, ids.load(position) as usize * dims as usize);
    let write_key = |axis: usize, coord: C| {
        if axis > 0 {
            keys.store((axis - 1) * ids.len() + position, coord.key());
        }
    };
    let is_aligned = dims.is_multiple_of(C::PER_16);
    let mut axis = 0;
    while axis < dims && is_aligned {
        let coords = load_16(coords, begin + axis);
        for i in 0..C::PER_16 {
            write_key(axis + i, coords[i]);
        }
        axis += C::PER_16;
    }
    while axis < dims {
        write_key(axis, coords.load(begin + axis));
        axis += 1;
    }
}

/// Initializes the path codes for the first level, the array of the first axis, and the root. One thread per position.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_begin_paths(
    ids: Slice<u32>,
    primary: SliceMut<u32>,
    paths: SliceMut<u8>,
    medians: SliceMut<u32>,
) {
    let Some(position) = own_item(primary.len()) else { return };
    let median = Run::of(0, 0, primary.len() as u32).median() as usize;
    primary.store(position, position as u32);
    paths.store(position, if position == median { GONE } else { next_path(0, position > median) });
    if position == median {
        medians.store(0, ids.load(position));
    }
}

/// Renumbers the points of the runs of a level by their positions in an array that is partitioned into these runs. Writes the new number of
/// each old number, and the ids and path codes by new number. Points that have left the runs get no new number. One thread per
/// position.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_renumber(
    array: SliceMut<u32>,
    level: u32,
    ids: Slice<u32>,
    paths: Slice<u8>,
    numbers: SliceMut<u32>,
    new_ids: SliceMut<u32>,
    new_paths: SliceMut<u8>,
) {
    let Some(position) = own_item(array.len()) else { return };
    if is_median_above(position as u32, level, array.len() as u32) {
        return;
    }
    let old = array.load(position) as usize;
    numbers.store(old, position as u32);
    new_ids.store(position, ids.load(old));
    new_paths.store(position, paths.load(old));
    array.store(position, position as u32);
}

/// Replaces the old numbers in another array by the new ones, or [`NONE`]. One thread per position.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_put_numbers(numbers: Slice<u32>, array: SliceMut<u32>) {
    let Some(position) = own_item(array.len()) else { return };
    let old = array.load(position);
    if old != NONE {
        array.store(position, numbers.load(old as usize));
    }
}

/// Returns true if a position holds the median of a level above `level`.
#[inline(always)]
fn is_median_above(position: u32, level: u32, num_points: u32) -> bool {
    let (mut run, mut depth) = (Run::of(0, 0, num_points), 0);
    while depth < level && position != run.median() {
        run = if position > run.median() { run.greater() } else { run.less() };
        depth += 1;
    }
    depth < level
}

/// Shared memory of a tile.
#[repr(C, align(16))]
pub struct PathsSmem {
    ticket: [u64; 1],
    /// The number of points of each class in the preceding warps.
    counts: [[u32; CLASSES]; WARPS],
    /// The first output position of each class for the points of the tile.
    begins: [u32; CLASSES],
}

/// The ids and the path codes of the points, by number.
#[derive(Clone, Copy, KernelArgs)]
pub struct NumberedPoints<'a> {
    /// The ids.
    pub ids: Slice<'a, u32>,
    /// The path codes.
    pub paths: SliceMut<'a, u8>,
}

/// A pass that partitions an array by path codes.
#[derive(Clone, Copy, KernelArgs)]
pub struct Pass<'a> {
    /// The array.
    pub from: Slice<'a, u32>,
    /// The partitioned array.
    pub to: SliceMut<'a, u32>,
    /// The level whose runs the array is partitioned into.
    pub level: u32,
    /// The number of levels that the pass adds.
    pub pending: u32,
    /// Receives the medians of the output level if that level splits on the axis of the array; else empty.
    pub medians: SliceMut<'a, u32>,
}

/// Partitions an array from the runs of a level into the runs `pending` levels below, in a tree of `num_points` points. If `medians` is not
/// empty, the pass writes the ids of the medians and the next bit of all path codes. Level 0 may have more points than the tree, because
/// removed points are still in the array. One block per tile; each run has `tiles_per_run` tiles. `words` is initialized to 0: a ticket
/// counter, and [`CLASSES`] words per tile.
#[kernel(family = "balanced", block = PATHS_THREADS, min_blocks = PATHS_MIN_BLOCKS, shared = PathsSmem, hot)]
pub unsafe fn balanced_partition_by_paths(
    pass: Pass<'_>,
    points: NumberedPoints<'_>,
    num_points: u32,
    tiles_per_run: u32,
    words: SliceMut<u64>,
) {
    let level = pass.level;
    let smem = shared_mem::<PathsSmem>();
    let tile = Ticket { counter: words.part(0, 1) }.take(shared_field!(smem, ticket)) as u32;
    let (address, tile) = (tile / tiles_per_run, tile % tiles_per_run);
    let mut run = Run::of(address, level, num_points);
    if level == 0 {
        run.len = pass.from.len() as u32;
    }
    let first = (address * tiles_per_run) as usize;
    let words = words.part(1 + first * CLASSES, tiles_per_run as usize * CLASSES);
    Tile { pass, points, num_points, run, address, tile, words, smem }.run()
}

/// The tile of a block.
struct Tile<'a> {
    pass: Pass<'a>,
    points: NumberedPoints<'a>,
    num_points: u32,
    run: Run,
    address: u32,
    /// The index of the tile in its run.
    tile: u32,
    /// The look-back words of the run.
    words: SliceMut<'a, u64>,
    smem: *mut PathsSmem,
}

impl Tile<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let begin = self.tile as usize * TILE + (thread / 32) as usize * (32 * PATHS_ROWS) + lane as usize;
        let mut ids = [NONE; PATHS_ROWS];
        for row in 0..PATHS_ROWS {
            let position = begin + 32 * row;
            if position < self.run.len as usize {
                ids[row] = self.pass.from.load(self.run.begin as usize + position);
            }
        }
        let mut paths = [GONE; PATHS_ROWS];
        for row in 0..PATHS_ROWS {
            if ids[row] != NONE {
                paths[row] = self.points.paths.load(ids[row] as usize);
            }
        }

        let mut ranks = [0; PATHS_ROWS];
        let mut counter = Counter::new(self.pass.pending);
        for row in 0..PATHS_ROWS {
            ranks[row] = counter.rank(paths[row]);
        }
        self.find_class_begins(&counter);

        // Each lane holds, for its class, the first output position of the warp and the median of the output run.
        let class = lane as usize % CLASSES;
        let first = shared_field!(self.smem, begins).load(class)
            + shared_field!(self.smem, counts).load((thread / 32) as usize * CLASSES + class);
        let median = self.run_of(class as u32).median();
        let is_primary = !self.pass.medians.is_empty();
        for row in 0..PATHS_ROWS {
            let class = counter.class(paths[row]);
            let to = warp::shuffle_idx(warp::FULL_MASK, first, class) + ranks[row];
            let median = warp::shuffle_idx(warp::FULL_MASK, median, class);
            if paths[row] != GONE {
                self.pass.to.store(to as usize, ids[row]);
                if is_primary {
                    let path = if to == median { GONE } else { next_path(paths[row], to > median) };
                    self.points.paths.store(ids[row] as usize, path);
                    if to == median {
                        let address = full_tree(self.pass.level + self.pass.pending) + self.address_of(class);
                        self.pass.medians.store(address as usize, self.points.ids.load(ids[row] as usize));
                    }
                }
            }
        }
    }

    /// Returns the address of the output run of a class.
    #[inline(always)]
    fn address_of(&self, class: u32) -> u32 {
        self.address << self.pass.pending | class
    }

    #[inline(always)]
    fn run_of(&self, class: u32) -> Run {
        // Maps lanes of unused classes to a valid run.
        let class = class & ((1 << self.pass.pending) - 1);
        Run::of(self.address_of(class), self.pass.level + self.pass.pending, self.num_points)
    }

    /// Computes the first output position of each class for the tile, and the number of its points in the preceding warps.
    #[inline(always)]
    unsafe fn find_class_begins(&self, counter: &Counter) {
        let (thread, lane) = (thread::thread_idx_x() as usize, warp::lane_id() as usize);
        let counts = shared_field!(self.smem, counts);
        if lane < CLASSES {
            counts.store(thread / 32 * CLASSES + lane, counter.count);
        }
        thread::sync_threads();
        if thread < CLASSES {
            let mut total = 0;
            for warp in 0..WARPS {
                let count = counts.load(warp * CLASSES + thread);
                counts.store(warp * CLASSES + thread, total);
                total += count;
            }
            let look_back = ColumnLookBack { words: self.words, stride: CLASSES, column: thread };
            look_back.publish_sum(self.tile, u64::from(total));
            let before = look_back.exclusive_prefix(self.tile, u64::from(total)) as u32;
            shared_field!(self.smem, begins).store(thread, self.run_of(thread as u32).begin + before);
        }
        thread::sync_threads();
    }
}

/// Ranks the points of a warp within their class, row by row.
pub(super) struct Counter {
    pending: u32,
    /// The number of points so far of the class `lane % CLASSES`.
    count: u32,
}

impl Counter {
    #[inline(always)]
    pub(super) fn new(pending: u32) -> Self {
        Self { pending, count: 0 }
    }

    /// Returns the class of a path code.
    #[inline(always)]
    pub(super) fn class(&self, path: u8) -> u32 {
        u32::from(path) & ((1 << self.pending) - 1)
    }

    /// Returns the number of points of the lane's class in preceding rows and lanes. Points that are [`GONE`] have no rank.
    #[inline(always)]
    unsafe fn rank(&mut self, path: u8) -> u32 {
        let (class, row) = (self.class(path), Row::of(self.class(path), path != GONE));
        let before = warp::shuffle_idx(warp::FULL_MASK, self.count, class);
        self.count += row.lanes_of(warp::lane_id()).count_ones();
        before + (row.lanes_of(class) & warp::lane_mask_lt()).count_ones()
    }
}

/// The classes of a row of points.
#[derive(Clone, Copy)]
pub(super) struct Row {
    is_point: u32,
    bits: [u32; MAX_PENDING as usize],
}

impl Row {
    /// Makes the row of the class of each lane's point; `is_point` is false for lanes without a point.
    ///
    /// # Safety
    /// All lanes of the warp call it together.
    #[inline(always)]
    pub(super) unsafe fn of(class: u32, is_point: bool) -> Self {
        let ballot = |is: bool| warp::warp_vote_ballot(warp::FULL_MASK, is);
        Self {
            is_point: ballot(is_point),
            bits: [ballot(class & 1 != 0), ballot(class & 2 != 0), ballot(class & 4 != 0)],
        }
    }

    /// Returns the mask of the lanes whose points have a class. Only the lowest [`MAX_PENDING`] bits of the class count.
    #[inline(always)]
    pub(super) fn lanes_of(&self, class: u32) -> u32 {
        let with = |bit: usize| self.bits[bit] ^ if class & 1 << bit == 0 { warp::FULL_MASK } else { 0 };
        self.is_point & with(0) & with(1) & with(2)
    }
}
