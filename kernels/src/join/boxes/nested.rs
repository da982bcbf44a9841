//! All pairs of boxes by a nested loop: a thread per left box; tiles of right boxes are staged in shared memory (Løvik 2020, *Top-k
//! spatial distance join on the GPU*, algorithm 2, with tiles).

use super::geometry::{Aabb, PairTest, Shape};
use super::output::PairOutput;
use crate::join::cells::Pairing;
use crate::policy::{JOIN_THREADS, NESTED_BOXES};
use crate::thread::coord::Coord;
use cuda_std::prelude::*;
use cuda_std::shared::SharedSlice;

/// Two sets of boxes and the condition for a pair.
#[derive(Clone, Copy, KernelArgs)]
pub struct BoxSets<'a, C> {
    /// The corners of the left boxes.
    pub left: Slice<'a, C>,
    /// The corners of the right boxes.
    pub right: Slice<'a, C>,
    /// Number of dimensions.
    pub dims: u32,
    /// Predicate, norm and pairing: [`Shape::to_word`].
    pub shape: u32,
    /// The largest distance of a pair, as the norm computes it.
    pub bound: f64,
}

impl<C: Coord> BoxSets<'_, C> {
    /// Returns the numbers of boxes as [left, right].
    #[inline(always)]
    pub(super) const fn lens(&self) -> [usize; 2] {
        let width = 2 * self.dims as usize;
        [self.left.len() / width, self.right.len() / width]
    }

    /// Returns the condition for a pair, and the pairs that the join has.
    #[inline(always)]
    pub(super) fn test(&self) -> (PairTest<C>, Pairing) {
        let Shape { predicate, norm, pairing, .. } = Shape::from_word(self.shape);
        let bound = C::from_f64(self.bound);
        (PairTest { predicate, norm, bound, dims: self.dims as usize }, pairing)
    }
}

/// Shared memory of a nested loop: a tile of right boxes.
#[repr(C, align(16))]
pub struct NestedSmem<C, const D: usize> {
    low: [[C; D]; NESTED_BOXES],
    high: [[C; D]; NESTED_BOXES],
    is_valid: [u32; NESTED_BOXES],
    ids: [u32; NESTED_BOXES],
}

/// A tile of right boxes in shared memory. Each thread of a block compares its left box with all of them.
pub(super) struct Tile<'a, C, const D: usize> {
    boxes: BoxTile<'a, C>,
    ids: SharedSlice<'a, u32>,
    sets: BoxSets<'a, C>,
    test: PairTest<C>,
    pairing: Pairing,
}

impl<'a, C: Coord, const D: usize> Tile<'a, C, D> {
    #[inline(always)]
    pub(super) unsafe fn new(smem: *mut NestedSmem<C, D>, sets: BoxSets<'a, C>) -> Self {
        let (low, high) = (shared_field!(smem, low), shared_field!(smem, high));
        let boxes = BoxTile { low, high, is_valid: shared_field!(smem, is_valid) };
        let (test, pairing) = sets.test();
        Self { boxes, ids: shared_field!(smem, ids), sets, test, pairing }
    }

    /// Stores a right box at a position of the tile.
    #[inline(always)]
    pub(super) unsafe fn stage(&self, at: usize, id: u32) {
        let of = Aabb::<C, D>::load(self.sets.right, id as usize, self.test.dims);
        self.boxes.stage(at, &of, self.test.dims);
        self.ids.store(at, id);
    }

    /// Returns a left box, or `None` if it has no pairs.
    #[inline(always)]
    pub(super) unsafe fn left_box(&self, i: usize) -> Option<Aabb<C, D>> {
        let own = Aabb::load(self.sets.left, i, self.test.dims);
        if own.is_valid(self.test.dims) { Some(own) } else { None }
    }

    /// Counts the pairs of a left box and the first `len` boxes of the tile. Adds them to its row, if rows are counted, and writes
    /// them, if the offsets are known.
    #[inline(always)]
    pub(super) unsafe fn join(&self, id: u32, own: &Aabb<C, D>, len: usize, output: &PairOutput<'_>) -> u32 {
        let is_pair = |at: usize| {
            self.boxes.is_pair(&self.test, own, at) && self.pairing.includes(self.ids.load(at), id)
        };
        let mut count = 0_u32;
        for at in 0..len {
            count += u32::from(is_pair(at));
        }
        if count == 0 || output.counts.is_empty() {
            return count;
        }
        let mut index = output.reserve(id, count);
        if !output.offsets.is_empty() {
            let row_begin = output.begin(id);
            for at in 0..len {
                if is_pair(at) {
                    output.write(row_begin, id, index, self.ids.load(at));
                    index += 1;
                }
            }
        }
        count
    }
}

/// A tile of boxes in shared memory.
#[derive(Clone, Copy)]
pub(super) struct BoxTile<'a, C> {
    pub(super) low: SharedSlice<'a, C>,
    pub(super) high: SharedSlice<'a, C>,
    /// 1 for boxes that may have pairs, otherwise 0.
    pub(super) is_valid: SharedSlice<'a, u32>,
}

impl<C: Coord> BoxTile<'_, C> {
    /// Writes a box to a slot.
    #[inline(always)]
    pub(super) unsafe fn stage<const D: usize>(&self, slot: usize, of: &Aabb<C, D>, dims: usize) {
        for axis in 0..D {
            self.low.store(slot * D + axis, of.low[axis]);
            self.high.store(slot * D + axis, of.high[axis]);
        }
        self.is_valid.store(slot, u32::from(of.is_valid(dims)));
    }

    /// True if a left box makes a pair with the box of a slot.
    #[inline(always)]
    pub(super) unsafe fn is_pair<const D: usize>(
        &self,
        test: &PairTest<C>,
        left: &Aabb<C, D>,
        slot: usize,
    ) -> bool {
        let mut other = *left;
        for axis in 0..D {
            other.low[axis] = self.low.load(slot * D + axis);
            other.high[axis] = self.high.load(slot * D + axis);
        }
        self.is_valid.load(slot) != 0 && test.holds(left, &other)
    }
}

/// Counts or writes the pairs of a tile of left boxes, one per thread, with a tile of [`NESTED_BOXES`] right boxes. Blocks of one left
/// tile are adjacent. Counts are 0 before.
#[kernel(family = "join-boxes", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_nested<C: Coord, const D: usize>(sets: BoxSets<'_, C>, output: PairOutput<'_>) {
    let tile = Tile::<C, D>::new(shared_mem(), sets);
    let thread = thread::thread_idx_x() as usize;
    let [num_left, num_right] = sets.lens();
    let num_tiles = num_right.div_ceil(NESTED_BOXES);
    let block = thread::block_idx_x() as usize;
    let (i, begin) = (block / num_tiles * JOIN_THREADS + thread, block % num_tiles * NESTED_BOXES);
    let remaining = num_right - begin;
    let len = if remaining < NESTED_BOXES { remaining } else { NESTED_BOXES };

    let mut staged = thread;
    while staged < len {
        tile.stage(staged, (begin + staged) as u32);
        staged += JOIN_THREADS;
    }
    thread::sync_threads();

    let mut count = 0;
    if i < num_left
        && let Some(own) = tile.left_box(i)
    {
        count = tile.join(i as u32, &own, len, &output);
    }
    output.add_to_total(count);
}
