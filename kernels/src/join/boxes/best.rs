//! The best pairs of small sets of boxes, and of the best-scored boxes, by a nested loop.

use super::geometry::{Aabb, PairTest, Shape};
use super::nested::BoxTile;
use crate::join::curve::MAX_DIMS;
use crate::join::nested::{GROUP, NestedItems, NestedLoop, NestedSets, RIGHTS};
use crate::join::score::PairScores;
use crate::policy::JOIN_THREADS;
use crate::thread::coord::Float;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;
use cuda_std::shared::SharedSlice;

/// Shared memory of a nested loop: a tile of right boxes.
#[repr(C, align(16))]
pub struct BestNestedSmem<C, const D: usize> {
    corners: [[[C; D]; 2]; RIGHTS],
    ranks: [u64; RIGHTS],
    ids: [u32; RIGHTS],
    is_valid: [u32; RIGHTS],
}

/// Boxes of a nested loop.
#[derive(Clone, Copy)]
struct NestedBoxes<'a, C, const D: usize> {
    left: Slice<'a, C>,
    right: Slice<'a, C>,
    test: PairTest<C>,
    tile: BoxTile<'a, C, D>,
    /// 1 for right boxes that may have pairs, otherwise 0.
    is_valid: SharedSlice<'a, u32>,
}

impl<C: Float, const D: usize> NestedItems for NestedBoxes<'_, C, D> {
    type Item = Aabb<C, D>;

    #[inline(always)]
    unsafe fn left(&self, id: usize) -> Option<Aabb<C, D>> {
        let of = Aabb::load(self.left, id, self.test.dims);
        if of.is_valid(self.test.dims) { Some(of) } else { None }
    }

    #[inline(always)]
    unsafe fn stage(&self, slot: usize, id: usize) {
        let of = Aabb::<C, D>::load(self.right, id, self.test.dims);
        self.tile.store(slot, &of);
        self.is_valid.store(slot, of.is_valid(self.test.dims).into());
    }

    #[inline(always)]
    unsafe fn hits(&self, left: &Aabb<C, D>, slot: usize) -> u32 {
        let mut hits = self.tile.hits(&self.test, left, slot, GROUP);
        for member in 0..GROUP {
            hits &= !(1 << member) | self.is_valid.load(slot + member) << member;
        }
        hits
    }
}

/// Offers the pairs of some left boxes with some right boxes, as [`join_nested`](crate::join::nested::join_nested()) offers those of
/// points.
#[kernel(family = "join-boxes", block = JOIN_THREADS, shared = BestNestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_best_nested<C: Float, const D: usize>(
    sets: NestedSets<'_, C>,
    scores: PairScores<'_>,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
) {
    let smem = shared_mem::<BestNestedSmem<C, D>>();
    let Shape { predicate, norm, pairing, .. } = Shape::from_word(sets.shape);
    let dims = if D < MAX_DIMS { D } else { sets.dims as usize };
    let items = NestedBoxes::<C, D> {
        left: sets.coords,
        right: sets.right_coords,
        test: PairTest { predicate, norm, bound: C::from_f64(sets.bound), dims },
        tile: BoxTile { corners: shared_field!(smem, corners) },
        is_valid: shared_field!(smem, is_valid),
    };
    let (ranks, ids) = (shared_field!(smem, ranks), shared_field!(smem, ids));
    NestedLoop { sets, scores, pairing, items, ranks, ids }.offer(pairs, state);
}
