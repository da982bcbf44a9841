//! Moves the points of a run to the left or to the right of their bracket.

use super::{COUNTS, INSIDE, LEFT, LevelRuns, OVERFLOW, Points, PointsMut, RIGHT, Remaining, Run};
use crate::policy::SELECTION;
use crate::thread::coord::Coord;
use crate::thread::divisor::Divisor;
use crate::thread::radix_key::RadixKey;
use crate::thread::ranked::Ranked;
use crate::thread::words::computed;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.split.0;
const ITEMS: usize = SELECTION.split.1;
/// Points of a tile.
pub const TILE: usize = THREADS * ITEMS;
/// Maximum number of warps of a block.
const MAX_WARPS: usize = 32;

/// Number of coordinates that a thread loads at a time.
const BATCH: usize = 4;

/// The missing output position of a point, and of a coordinate.
const NO_POSITION: u32 = u32::MAX;
const NO_COORD_POSITION: u64 = u64::MAX;

/// Moves the points below the bracket of their run to the begin of the run and those above to its end. Writes the positions of the points
/// inside to `inside`; it drops and counts those beyond `inside_capacity`. One block per tile, `tiles_per_run` tiles per run.
#[kernel(family = "kdtree", block = THREADS, shared = SplitSmem<THREADS, ITEMS>, hot)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_split<C: Coord>(
    level: LevelRuns<'_, C>,
    counts: SliceMut<u32>,
    brackets: Slice<<C as Coord>::Ranked>,
    to: PointsMut<'_, C>,
    inside: SliceMut<u32>,
    inside_capacity: u32,
    tiles_per_run: u32,
) {
    let (i, tile) = (thread::block_idx_x() / tiles_per_run, thread::block_idx_x() % tiles_per_run);
    let (run, i) = (level.run(i), i as usize);
    let remaining = level.remaining(run, i, counts.read_only());
    let split = Split::<C, THREADS, ITEMS> {
        from: level.points(),
        to,
        axis: level.axis(run),
        run,
        counts: counts.part(i * COUNTS, COUNTS),
        stage: level.stage,
        bracket: (brackets.load(2 * i), brackets.load(2 * i + 1)),
        smem: shared_mem(),
    };
    let begin = tile * TILE as u32;
    if begin < remaining.len {
        let inside = inside.part(i * inside_capacity as usize, inside_capacity as usize);
        split.tile(remaining, begin, |i, position, _| {
            if (i as usize) < inside.len() {
                inside.store(i as usize, position);
            } else {
                split.counts.atomic_add(OVERFLOW, 1, Ordering::Relaxed, Scope::Device);
            }
        })
    }
}

/// Shared memory of a tile.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SplitSmem<const THREADS: usize, const ITEMS: usize> {
    from: [[u32; THREADS]; ITEMS],
    to: [[u32; THREADS]; ITEMS],
    /// The number of points of each class in each warp.
    warp_counts: [[u32; MAX_WARPS]; 3],
    /// The first rank of the points of the tile on the left, inside, and on the right.
    begins: [u32; 3],
}

/// The split of a run by blocks of `THREADS` threads with `ITEMS` points each.
pub(super) struct Split<'a, C: Coord, const THREADS: usize, const ITEMS: usize> {
    pub(super) from: Points<'a, C>,
    pub(super) to: PointsMut<'a, C>,
    pub(super) axis: usize,
    pub(super) run: Run,
    pub(super) counts: SliceMut<'a, u32>,
    pub(super) stage: u32,
    pub(super) bracket: (C::Ranked, C::Ranked),
    pub(super) smem: *mut SplitSmem<THREADS, ITEMS>,
}

impl<C: Coord, const THREADS: usize, const ITEMS: usize> Split<'_, C, THREADS, ITEMS> {
    /// Points of a tile.
    const TILE: usize = THREADS * ITEMS;

    /// Splits the tile that begins at remaining point `begin`. Calls `keep` for each point inside the bracket, with its rank among these,
    /// its position and its id.
    #[inline(always)]
    pub(super) unsafe fn tile(&self, remaining: Remaining<'_>, begin: u32, keep: impl Fn(u32, u32, u32)) {
        let (from, to) = (shared_field!(self.smem, from), shared_field!(self.smem, to));
        let thread = thread::thread_idx_x();
        let (lane, warp) = (thread % 32, thread / 32);
        let rest = remaining.len - begin;
        let len = if rest < Self::TILE as u32 { rest } else { Self::TILE as u32 };
        // The points of a warp are consecutive; a lane takes every 32nd of them.
        let first = warp * 32 * ITEMS as u32 + lane;

        let mut ids = [0; ITEMS];
        let mut classes = [3; ITEMS];
        // The class, above the rank within the warp, in one register.
        let mut ranks = [0; ITEMS];
        let mut counts = [0; 3];
        // Loads in steps, so that the loads of a step are independent.
        let mut positions = [0; ITEMS];
        let mut row = 0;
        while row < ITEMS {
            let i = first + 32 * row as u32;
            if i < len {
                positions[row] = computed(remaining.position(begin + i) as u32);
            }
            row += 1;
        }
        let mut row = 0;
        while row < ITEMS {
            if first + 32 * (row as u32) < len {
                ids[row] = computed(self.from.id(positions[row] as usize));
            }
            row += 1;
        }
        // Two cases, so that the loads of coordinates wait for ids only if they need them.
        let keys =
            if self.from.by_id { self.keys(ids, first, len) } else { self.keys(positions, first, len) };
        let mut row = 0;
        while row < ITEMS {
            let i = first + 32 * row as u32;
            if i < len {
                let point = C::Ranked::new(keys[row], ids[row]);
                let (low, high) = self.bracket;
                classes[row] = if point.is_before(low) { 0 } else { 1 + u32::from(high.is_before(point)) };
                from.store(i as usize, positions[row]);
            }
            row += 1;
        }
        let mut row = 0;
        while row < ITEMS {
            let class = classes[row];
            let mut lanes = [0; 3];
            // A lane without a point (class 3) is not counted, and its rank is not used.
            let (mut same_class, mut before) = (0, 0);
            let mut other = 0;
            while other < 3 {
                lanes[other] = warp::warp_vote_ballot(warp::FULL_MASK, class == other as u32);
                if class == other as u32 {
                    (same_class, before) = (lanes[other], counts[other]);
                }
                other += 1;
            }
            ranks[row] = computed(class << 16 | (before + (same_class & warp::lane_mask_lt()).count_ones()));
            let mut other = 0;
            while other < 3 {
                counts[other] += lanes[other].count_ones();
                other += 1;
            }
            row += 1;
        }
        let begins = self.reserve(warp as usize, counts);

        let mut row = 0;
        while row < ITEMS {
            let i = first + 32 * row as u32;
            if i < len {
                let (class, rank) = (ranks[row] >> 16, ranks[row] & 0xFFFF);
                let target = if class == 0 {
                    self.run.begin as u32 + begins[0] + rank
                } else if class == 1 {
                    keep(begins[1] + rank, from.load(i as usize), ids[row]);
                    NO_POSITION
                } else {
                    self.run.begin as u32 + self.run.len - 1 - (begins[2] + rank)
                };
                if target != NO_POSITION {
                    self.to.ids.store(target as usize, ids[row]);
                }
                to.store(i as usize, target);
            }
            row += 1;
        }
        thread::sync_threads();
        if !self.to.coords.is_empty() {
            self.copy(len);
        }
        // Before shared memory is reused.
        thread::sync_threads();
    }

    /// Returns the keys of the points whose coordinates are at `indices`.
    #[inline(always)]
    unsafe fn keys(&self, indices: [u32; ITEMS], first: u32, len: u32) -> [C::Key; ITEMS] {
        let mut keys = [C::Key::ZERO; ITEMS];
        let mut row = 0;
        while row < ITEMS {
            if first + 32 * (row as u32) < len {
                let coord = self.from.coords.load(indices[row] as usize * self.from.dims + self.axis);
                keys[row] = computed(coord.key());
            }
            row += 1;
        }
        keys
    }

    /// Reserves output ranks for the points of the tile. Returns the first rank of the warp's points of each class. A barrier precedes the
    /// return.
    #[inline(always)]
    unsafe fn reserve(&self, warp: usize, counts: [u32; 3]) -> [u32; 3] {
        let warp_counts = shared_field!(self.smem, warp_counts);
        let begins = shared_field!(self.smem, begins);
        let thread = thread::thread_idx_x() as usize;
        if thread.is_multiple_of(32) {
            let mut class = 0;
            while class < 3 {
                warp_counts.store(class * MAX_WARPS + warp, counts[class]);
                class += 1;
            }
        }
        thread::sync_threads();
        let mut before = [0; 3];
        let mut total = [0; 3];
        let mut other = 0;
        while other < THREADS / 32 {
            let mut class = 0;
            while class < 3 {
                let count = warp_counts.load(class * MAX_WARPS + other);
                before[class] += if other < warp { count } else { 0 };
                total[class] += count;
                class += 1;
            }
            other += 1;
        }
        if thread < 3 {
            let (counter, count) = match thread {
                0 => (LEFT, total[0]),
                1 => (INSIDE + self.stage as usize, total[1]),
                _ => (RIGHT, total[2]),
            };
            begins.store(thread, self.counts.atomic_add(counter, count, Ordering::Relaxed, Scope::Device));
        }
        thread::sync_threads();
        [begins.load(0) + before[0], begins.load(1) + before[1], begins.load(2) + before[2]]
    }

    /// Copies the coordinates; adjacent lanes copy adjacent coordinates.
    #[inline(always)]
    unsafe fn copy(&self, len: u32) {
        let (from, to) = (shared_field!(self.smem, from), shared_field!(self.smem, to));
        let dims = self.from.dims as u32;
        let divisor = Divisor::new(dims);
        // The step from one coordinate of a thread to its next, in points and axes.
        let points = divisor.quotient(THREADS as u32);
        let axes = THREADS as u32 - points * dims;
        let mut point = divisor.quotient(thread::thread_idx_x());
        let mut axis = thread::thread_idx_x() - point * dims;
        while point < len {
            // All loads of a batch are issued before the first store.
            let mut targets = [NO_COORD_POSITION; BATCH];
            let mut coords = [C::ZERO; BATCH];
            let mut j = 0;
            while j < BATCH {
                if point < len {
                    let target = to.load(point as usize);
                    if target != NO_POSITION {
                        let coord_at = |point: u32| u64::from(point) * u64::from(dims) + u64::from(axis);
                        let from = coord_at(from.load(point as usize));
                        (targets[j], coords[j]) =
                            (coord_at(target), computed(self.from.coords.load(from as usize)));
                    }
                }
                (point, axis) = (point + points, axis + axes);
                if axis >= dims {
                    (point, axis) = (point + 1, axis - dims);
                }
                j += 1;
            }
            let mut j = 0;
            while j < BATCH {
                if targets[j] != NO_COORD_POSITION {
                    self.to.coords.store(targets[j] as usize, coords[j]);
                }
                j += 1;
            }
        }
    }
}
