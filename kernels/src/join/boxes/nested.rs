//! All pairs of boxes by a nested loop: a thread per left box; tiles of right boxes are staged in shared memory (Løvik 2020, *Top-k
//! spatial distance join on the GPU*, algorithm 2, with tiles).

use super::geometry::{Aabb, PairTest, Predicate, Shape};
use super::output::PairOutput;
use super::search::bits_of;
use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::block::tile::load_shared_16;
use crate::join::cells::Pairing;
use crate::join::curve::MAX_DIMS;
use crate::join::nested::bits_from;
use crate::policy::JOIN_THREADS;
use crate::thread::coord::Float;
use crate::thread::items::strided;
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

impl<C: Float> BoxSets<'_, C> {
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

/// Returns the number of right boxes that are tested together. With twice as many, some instances spill registers.
const fn group<C, const D: usize>() -> usize {
    if D < MAX_DIMS && size_of::<C>() == 4 { 8 } else { 4 }
}

/// Shared memory of a nested loop: a tile of right boxes.
#[repr(C, align(16))]
pub struct NestedSmem<C, const D: usize> {
    corners: [[[C; D]; 2]; JOIN_THREADS],
    ids: [u32; JOIN_THREADS],
    scan: ScanSmem,
}

/// A tile of right boxes in shared memory. Each thread of a block compares its left box with all of them.
pub(super) struct Tile<'a, C, const D: usize> {
    boxes: BoxTile<'a, C, D>,
    ids: SharedSlice<'a, u32>,
    scan: *mut ScanSmem,
    sets: BoxSets<'a, C>,
    test: PairTest<C>,
    pairing: Pairing,
}

impl<'a, C: Float, const D: usize> Tile<'a, C, D> {
    #[inline(always)]
    pub(super) unsafe fn new(smem: *mut NestedSmem<C, D>, sets: BoxSets<'a, C>) -> Self {
        let boxes = BoxTile { corners: shared_field!(smem, corners) };
        let (test, pairing) = sets.test();
        Self { boxes, ids: shared_field!(smem, ids), scan: &raw mut (*smem).scan, sets, test, pairing }
    }

    /// Stages the right box of each thread that has one, unless it has no pairs. Returns the number of staged boxes. Barriers are before
    /// and after.
    ///
    /// # Safety
    /// All threads of the block call.
    #[inline(always)]
    pub(super) unsafe fn stage(&self, id: Option<u32>) -> usize {
        let of = id.and_then(|id| self.load(self.sets.right, id as usize));
        let (at, len) = exclusive_sum(of.is_some().into(), self.scan);
        if let (Some(id), Some(of)) = (id, of) {
            self.boxes.store(at as usize, &of);
            self.ids.store(at as usize, id);
        }
        // The last group is tested as a whole.
        let thread = thread::thread_idx_x();
        if thread >= len && thread < len.next_multiple_of(group::<C, D>() as u32) {
            self.boxes.store(thread as usize, &Aabb { low: [C::ZERO; D], high: [C::ZERO; D] });
        }
        thread::sync_threads();
        len as usize
    }

    /// Returns a left box, or `None` if it has no pairs.
    #[inline(always)]
    pub(super) unsafe fn left_box(&self, i: usize) -> Option<Aabb<C, D>> {
        self.load(self.sets.left, i)
    }

    #[inline(always)]
    unsafe fn load(&self, set: Slice<'_, C>, i: usize) -> Option<Aabb<C, D>> {
        let of = Aabb::load(set, i, self.test.dims);
        if of.is_valid(self.test.dims) { Some(of) } else { None }
    }

    /// Counts the pairs of a left box and the first `len` boxes of the tile. Adds them to its row, if rows are counted, and writes
    /// them, if the offsets are known.
    #[inline(always)]
    pub(super) unsafe fn join(&self, id: u32, own: &Aabb<C, D>, len: usize, output: &PairOutput<'_>) -> u32 {
        // The loop over the tile is compiled for each predicate.
        match self.test.predicate {
            Predicate::Intersects => self.join_by(Predicate::Intersects, id, own, len, output),
            Predicate::Contains => self.join_by(Predicate::Contains, id, own, len, output),
            Predicate::Within => self.join_by(Predicate::Within, id, own, len, output),
        }
    }

    #[inline(always)]
    unsafe fn join_by(
        &self,
        predicate: Predicate,
        id: u32,
        own: &Aabb<C, D>,
        len: usize,
        output: &PairOutput<'_>,
    ) -> u32 {
        let test = PairTest { predicate, ..self.test };
        let mut count = 0;
        for begin in strided(0, len, group::<C, D>()) {
            let mut hits = self.boxes.hits(&test, own, begin, group::<C, D>()) & !bits_from(len - begin);
            if self.pairing.is_self_join() {
                for member in bits_of(hits) {
                    let is_in = self.pairing.includes(self.ids.load(begin + member as usize), id);
                    hits &= !(u32::from(!is_in) << member);
                }
            }
            count += hits.count_ones();
            if hits == 0 || output.counts.is_empty() {
                continue;
            }
            let mut index = output.reserve(id, hits.count_ones());
            if !output.offsets.is_empty() {
                let row_begin = output.begin(id);
                for member in bits_of(hits) {
                    output.write(row_begin, id, index, self.ids.load(begin + member as usize));
                    index += 1;
                }
            }
        }
        count
    }
}

/// A tile of boxes in shared memory.
#[derive(Clone, Copy)]
pub(super) struct BoxTile<'a, C, const D: usize> {
    /// The corners of each box, the low one first.
    pub(super) corners: SharedSlice<'a, C>,
}

impl<C: Float, const D: usize> BoxTile<'_, C, D> {
    /// Writes a box to a slot.
    #[inline(always)]
    pub(super) unsafe fn store(&self, slot: usize, of: &Aabb<C, D>) {
        for axis in 0..D {
            self.corners.store(2 * D * slot + axis, of.low[axis]);
            self.corners.store(2 * D * slot + D + axis, of.high[axis]);
        }
    }

    /// Returns which of the `num` boxes from a slot on make a pair with a left box, as a bit for each. `num` is a multiple of 4 and
    /// divides the slot.
    #[inline(always)]
    pub(super) unsafe fn hits(&self, test: &PairTest<C>, left: &Aabb<C, D>, slot: usize, num: usize) -> u32 {
        // Loads of the same 16 bytes become one.
        let first = 2 * D * slot;
        let coord = |i: usize| load_shared_16(self.corners, first + i / C::PER_16 * C::PER_16)[i % C::PER_16];
        let mut hits = 0;
        for member in 0..num {
            let mut right = *left;
            for axis in 0..D {
                right.low[axis] = coord(2 * D * member + axis);
                right.high[axis] = coord(2 * D * member + D + axis);
            }
            hits |= u32::from(test.holds(left, &right)) << member;
        }
        hits
    }
}

/// Counts or writes the pairs of [`JOIN_THREADS`] left boxes, one per thread, with as many right boxes. Blocks with the same left boxes are
/// adjacent. Counts are 0 before.
#[kernel(family = "join-boxes", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_nested<C: Float, const D: usize>(sets: BoxSets<'_, C>, output: PairOutput<'_>) {
    let tile = Tile::<C, D>::new(shared_mem(), sets);
    let thread = thread::thread_idx_x() as usize;
    let [num_left, num_right] = sets.lens();
    let num_tiles = num_right.div_ceil(JOIN_THREADS);
    let block = thread::block_idx_x() as usize;
    let (i, right) = (block / num_tiles * JOIN_THREADS + thread, block % num_tiles * JOIN_THREADS + thread);
    let len = tile.stage(if right < num_right { Some(right as u32) } else { None });
    let mut count = 0;
    if i < num_left
        && let Some(own) = tile.left_box(i)
    {
        count = tile.join(i as u32, &own, len, &output);
    }
    output.add_to_total(count);
}
