//! Partition by paths: every point has a byte with the last bits of the address of its run, so that no coordinate is fetched.
//!
//! An array has to be in the order of the runs of a level only when the level is split on its axis. Until then it waits, and takes the
//! levels that went by in one pass, by up to [`CLASSES`] classes a run: so a level takes one pass over one array, and not one over each.
//! The pass that puts an array in the order of the level whose medians are in it also tells all points where they go on that level.
//!
//! Paths are read and written in the order of one axis by another's numbers of points, which is what takes the time. Points are numbered
//! in the order of the first axis, so that those of a run are among a part of all numbers; and once more on a lower level, if there are
//! so many points that the paths of such a part do not fit in the cache.

use super::{NONE, Run};
use crate::block::look_back::LookBack;
use crate::block::tile::load_16;
use crate::policy::{PATHS_MIN_BLOCKS, PATHS_ROWS, PATHS_THREADS, PER_ITEM_THREADS};
use crate::query::left_balanced::full_tree;
use crate::thread::coord::Coord;
use crate::warp::look_back::Ticket;
use cuda_std::prelude::*;

/// Places of a tile.
pub const TILE: usize = PATHS_THREADS * PATHS_ROWS;
/// Most levels that an array waits for.
pub const MAX_PENDING: u32 = 3;
/// Into how many runs a pass splits one, at most.
pub const CLASSES: usize = 1 << MAX_PENDING;

const WARPS: usize = PATHS_THREADS / 32;

/// Path of a point that is in no run any more: the median of one, or equal to another point. Others have the last [`MAX_PENDING`] bits
/// of the address of their run.
pub const GONE: u8 = 0x80;

/// The path of a point one level down.
#[inline(always)]
pub(super) const fn next_path(path: u8, is_greater: bool) -> u8 {
    (path << 1 | is_greater as u8) & (CLASSES as u8 - 1)
}

/// For how many levels before `level` the array that is sorted on `axis` has waited, if all arrays were in the order of level `first`.
/// One that has waited for [`MAX_PENDING`] takes them at once; and none waits for the level that is split on its axis.
pub const fn pending(level: u32, axis: u32, dims: u32, first: u32) -> u32 {
    // Levels since the last one that was split on the axis.
    let since = (level + dims - 1 - axis % dims) % dims;
    let waited = if since < level - first { since } else { level - first };
    if waited == 0 { 0 } else { (waited - 1) % MAX_PENDING + 1 }
}

/// Numbers the points in the order of the first axis, in which their ids are their `names`: writes the keys of each other axis in that
/// order, an axis behind the other. A thread a point.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_number_points<C: Coord>(
    coords: Slice<C>,
    dims: u32,
    names: Slice<u32>,
    keys: SliceMut<<C as Coord>::Key>,
) {
    let place = thread::index_1d_u64() as usize;
    if place < names.len() {
        let (dims, begin) = (dims as usize, names.load(place) as usize * dims as usize);
        let put = |axis: usize, coord: C| {
            if axis > 0 {
                keys.store((axis - 1) * names.len() + place, coord.key());
            }
        };
        let is_aligned = dims.is_multiple_of(C::PER_16);
        let mut axis = 0;
        while axis < dims && is_aligned {
            let (coords, mut i) = (load_16(coords, begin + axis), 0);
            while i < C::PER_16 {
                put(axis + i, coords[i]);
                i += 1;
            }
            axis += C::PER_16;
        }
        while axis < dims {
            put(axis, coords.load(begin + axis));
            axis += 1;
        }
    }
}

/// Tells each point where it goes on the first level, and makes the array of the first axis; a thread a place.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_begin_paths(
    names: Slice<u32>,
    primary: SliceMut<u32>,
    paths: SliceMut<u8>,
    medians: SliceMut<u32>,
) {
    let place = thread::index_1d_u64();
    if place < primary.len() as u64 {
        let (place, median) = (place as usize, Run::of(0, 0, primary.len() as u32).median() as usize);
        primary.store(place, place as u32);
        paths.store(place, if place == median { GONE } else { next_path(0, place > median) });
        if place == median {
            medians.store(0, names.load(place));
        }
    }
}

/// Numbers the points of the runs of a level anew, by their places in an array that is in the order of the runs: writes the new number to
/// the place of the old one, and names and paths in the new order. Points that are in no run any more have no new number. A thread a
/// place.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_number_anew(
    array: SliceMut<u32>,
    level: u32,
    names: Slice<u32>,
    paths: Slice<u8>,
    numbers: SliceMut<u32>,
    new_names: SliceMut<u32>,
    new_paths: SliceMut<u8>,
) {
    let place = thread::index_1d_u64();
    if place < array.len() as u64 && !is_median_above(place as u32, level, array.len() as u32) {
        let place = place as usize;
        let old = array.load(place) as usize;
        numbers.store(old, place as u32);
        new_names.store(place, names.load(old));
        new_paths.store(place, paths.load(old));
        array.store(place, place as u32);
    }
}

/// Puts new numbers in another array, or [`NONE`]; a thread a place.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_put_numbers(numbers: Slice<u32>, array: SliceMut<u32>) {
    let place = thread::index_1d_u64() as usize;
    if place < array.len() {
        let old = array.load(place);
        if old != NONE {
            array.store(place, numbers.load(old as usize));
        }
    }
}

/// True if at a place is the median of a level above another.
#[inline(always)]
fn is_median_above(place: u32, level: u32, num_points: u32) -> bool {
    let (mut run, mut depth) = (Run::of(0, 0, num_points), 0);
    while depth < level && place != run.median() {
        run = if place > run.median() { run.greater() } else { run.less() };
        depth += 1;
    }
    depth < level
}

/// Shared memory of a tile.
#[repr(C, align(16))]
pub struct PathsSmem {
    ticket: [u64; 1],
    /// Of each class how many points are in the warps before.
    counts: [[u32; CLASSES]; WARPS],
    /// Of each class the first place for the tile's points.
    begins: [u32; CLASSES],
}

/// Puts an array that is in the order of the runs of `level`, of a tree of `num_points` points, in that of the runs `pending` levels
/// below. If there are medians, the array is the one sorted on the axis of that level: then its medians are stored, by their names, and all
/// paths go one level down. Level 0 may have more points than the tree, of which some are gone. A block a tile of a run, of which each run has
/// `tiles_a_run`; `words` are zeros: one for tickets, and [`CLASSES`] a tile.
#[kernel(family = "balanced", block = PATHS_THREADS, min_blocks = PATHS_MIN_BLOCKS, shared = PathsSmem, hot)]
pub unsafe fn balanced_partition_by_paths(
    from: Slice<u32>,
    to: SliceMut<u32>,
    num_points: u32,
    level: u32,
    pending: u32,
    paths: SliceMut<u8>,
    names: Slice<u32>,
    medians: SliceMut<u32>,
    tiles_a_run: u32,
    words: SliceMut<u64>,
) {
    let smem = shared_mem::<PathsSmem>();
    let tile = Ticket { counter: words.part(0, 1) }.take(shared_field!(smem, ticket)) as u32;
    let address = tile / tiles_a_run;
    let mut run = Run::of(address, level, num_points);
    if level == 0 {
        run.len = from.len() as u32;
    }
    let words =
        words.part(1 + (tile / tiles_a_run * tiles_a_run) as usize * CLASSES, tiles_a_run as usize * CLASSES);
    let tile = tile % tiles_a_run;
    Tile { from, to, num_points, run, address, level, pending, paths, names, medians, tile, words, smem }
        .run()
}

/// One block's tile.
struct Tile<'a> {
    from: Slice<'a, u32>,
    to: SliceMut<'a, u32>,
    num_points: u32,
    run: Run,
    address: u32,
    level: u32,
    pending: u32,
    paths: SliceMut<'a, u8>,
    names: Slice<'a, u32>,
    medians: SliceMut<'a, u32>,
    /// Number of the tile in its run.
    tile: u32,
    /// Those of the run.
    words: SliceMut<'a, u64>,
    smem: *mut PathsSmem,
}

impl Tile<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let begin = self.tile as usize * TILE + (thread / 32) as usize * (32 * PATHS_ROWS) + lane as usize;
        let mut ids = [NONE; PATHS_ROWS];
        let mut row = 0;
        while row < PATHS_ROWS {
            let place = begin + 32 * row;
            if place < self.run.len as usize {
                ids[row] = self.from.load(self.run.begin as usize + place);
            }
            row += 1;
        }
        let mut paths = [GONE; PATHS_ROWS];
        let mut row = 0;
        while row < PATHS_ROWS {
            if ids[row] != NONE {
                paths[row] = self.paths.load(ids[row] as usize);
            }
            row += 1;
        }

        let mut ranks = [0; PATHS_ROWS];
        let mut counter = Counter::new(self.pending);
        let mut row = 0;
        while row < PATHS_ROWS {
            ranks[row] = counter.rank(paths[row]);
            row += 1;
        }
        self.place_classes(&counter);

        // The lane of a class knows its first place for the warp, and the median of the run that it becomes.
        let class = lane as usize % CLASSES;
        let first = shared_field!(self.smem, begins).load(class)
            + shared_field!(self.smem, counts).load((thread / 32) as usize * CLASSES + class);
        let median = self.run_of(class as u32).median();
        let is_primary = !self.medians.is_empty();
        let mut row = 0;
        while row < PATHS_ROWS {
            let class = counter.class(paths[row]);
            let to = warp::shuffle_idx(warp::FULL_MASK, first, class) + ranks[row];
            let median = warp::shuffle_idx(warp::FULL_MASK, median, class);
            if paths[row] != GONE {
                self.to.store(to as usize, ids[row]);
                if is_primary {
                    let path = if to == median { GONE } else { next_path(paths[row], to > median) };
                    self.paths.store(ids[row] as usize, path);
                    if to == median {
                        let address = full_tree(self.level + self.pending) + self.address_of(class);
                        self.medians.store(address as usize, self.names.load(ids[row] as usize));
                    }
                }
            }
            row += 1;
        }
    }

    /// The address that the points of a class go to.
    #[inline(always)]
    fn address_of(&self, class: u32) -> u32 {
        self.address << self.pending | class
    }

    #[inline(always)]
    fn run_of(&self, class: u32) -> Run {
        // Lanes of classes that there are not have no run to look for.
        let class = class & ((1 << self.pending) - 1);
        Run::of(self.address_of(class), self.level + self.pending, self.num_points)
    }

    /// Finds for each class the first place for the tile's points, and how many are in the warps before each.
    #[inline(always)]
    unsafe fn place_classes(&self, counter: &Counter) {
        let (thread, lane) = (thread::thread_idx_x() as usize, warp::lane_id() as usize);
        let counts = shared_field!(self.smem, counts);
        if lane < CLASSES {
            counts.store(thread / 32 * CLASSES + lane, counter.of_class);
        }
        thread::sync_threads();
        if thread < CLASSES {
            let (mut total, mut warp) = (0, 0);
            while warp < WARPS {
                let count = counts.load(warp * CLASSES + thread);
                counts.store(warp * CLASSES + thread, total);
                total += count;
                warp += 1;
            }
            let look_back = LookBack { words: self.words, stride: CLASSES, column: thread };
            look_back.publish_own(self.tile, u64::from(total));
            let before = look_back.prefix(self.tile, u64::from(total)) as u32;
            shared_field!(self.smem, begins).store(thread, self.run_of(thread as u32).begin + before);
        }
        thread::sync_threads();
    }
}

/// Ranks the points of a warp among those of their class, row by row.
pub(super) struct Counter {
    pending: u32,
    /// How many points are of the class that is the lane's number, modulo their number.
    of_class: u32,
}

impl Counter {
    #[inline(always)]
    pub(super) fn new(pending: u32) -> Self {
        Self { pending, of_class: 0 }
    }

    /// The class of a path.
    #[inline(always)]
    pub(super) fn class(&self, path: u8) -> u32 {
        u32::from(path) & ((1 << self.pending) - 1)
    }

    /// How many points of a lane's class are in the rows and lanes before. Those that are gone have none.
    #[inline(always)]
    unsafe fn rank(&mut self, path: u8) -> u32 {
        let (class, row) = (self.class(path), Row::of(self.class(path), path != GONE));
        let before = warp::shuffle_idx(warp::FULL_MASK, self.of_class, class);
        self.of_class += row.lanes_of(warp::lane_id()).count_ones();
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
    /// The row whose lanes have points of a class, or none.
    ///
    /// # Safety
    /// All lanes call.
    #[inline(always)]
    pub(super) unsafe fn of(class: u32, is_point: bool) -> Self {
        let ballot = |is: bool| warp::warp_vote_ballot(warp::FULL_MASK, is);
        Self {
            is_point: ballot(is_point),
            bits: [ballot(class & 1 != 0), ballot(class & 2 != 0), ballot(class & 4 != 0)],
        }
    }

    /// Lanes with points of a class, of which the lowest bits count.
    #[inline(always)]
    pub(super) fn lanes_of(&self, class: u32) -> u32 {
        let with = |bit: usize| self.bits[bit] ^ if class & 1 << bit == 0 { warp::FULL_MASK } else { 0 };
        self.is_point & with(0) & with(1) & with(2)
    }
}
