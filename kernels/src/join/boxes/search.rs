//! Finds the boxes of one set that make a pair with a box of the other: in runs of cells at some levels.
//!
//! A pair is found by one of its boxes, and their levels say by which. Both sets therefore search each other, in two passes; the pairs of
//! one level are found by one of them.

use super::geometry::{Aabb, PairTest, Shape};
use super::levels::{LevelGrid, NeighborCells, searched_levels};
use crate::join::cells::{Directory, NOWHERE, Pairing, SortedCodes};
use crate::policy::levels_below;
use crate::thread::coord::Float;
use crate::thread::items::strided;
use cuda_std::prelude::*;

/// Positions that are tested together, so that their loads overlap. The corners have padding of this many boxes after the last box.
pub const GROUP: usize = 4;

/// The boxes of a set in the order of their keys.
#[derive(Clone, Copy, KernelArgs)]
pub struct SortedBoxes<'a, C> {
    /// The keys.
    pub keys: Slice<'a, u64>,
    /// Where equal ranges of keys begin: entry `i` is the position of the first key whose highest bits are at least `i`.
    pub directory: Slice<'a, u32>,
    /// The corners of each box, the low one first.
    pub corners: Slice<'a, C>,
    /// The ids.
    pub ids: Slice<'a, u32>,
    /// One word: the levels that have boxes.
    pub levels: Slice<'a, u32>,
}

/// Two sets of boxes and the condition for a pair.
#[derive(Clone, Copy, KernelArgs)]
pub struct BoxSides<'a, C> {
    /// The left set.
    pub left: crate::join::boxes::search::SortedBoxes<'a, C>,
    /// The right set.
    pub right: crate::join::boxes::search::SortedBoxes<'a, C>,
    /// Number of dimensions.
    pub dims: u32,
    /// The words of the grid.
    pub grid: Slice<'a, f64>,
    /// The grid's bits, predicate, norm and pairing: [`Shape::to_word`].
    pub shape: u32,
    /// The largest distance of a pair, as the norm computes it.
    pub bound: f64,
    /// Number of left boxes of the whole set that come before those of this join.
    pub num_before: u32,
}

/// A pass of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// True if the left boxes search the right ones, so that each box has a row of its own.
    pub probes_left: bool,
    /// True if the pass finds the pairs of boxes of one level.
    pub finds_equal: bool,
}

impl Pass {
    /// Packs the pass in a word.
    pub const fn to_word(self) -> u32 {
        self.probes_left as u32 | (self.finds_equal as u32) << 1
    }

    /// Unpacks a word.
    #[inline(always)]
    pub(super) const fn from_word(word: u32) -> Self {
        Self { probes_left: word & 1 != 0, finds_equal: word & 2 != 0 }
    }
}

impl<'a, C: Float> BoxSides<'a, C> {
    /// True unless the pass that probes the right boxes searches levels without left boxes only.
    #[inline(always)]
    pub(super) unsafe fn has_second_pass(&self, first: Pass) -> bool {
        let below = levels_below(self.dims as usize);
        let left_levels = u64::from(self.left.levels.load(0));
        bits_of(self.right.levels.load(0))
            .any(|level| left_levels & searched_levels(level, below, !first.finds_equal) != 0)
    }

    /// Returns the search of a pass.
    #[inline(always)]
    pub(super) unsafe fn search<const D: usize>(&self, pass: Pass) -> BoxSearch<'a, C, D> {
        let Shape { bits, predicate, norm, pairing } = Shape::from_word(self.shape);
        let grid = LevelGrid::load(self.grid, self.dims as usize, bits);
        let test = PairTest { predicate, norm, bound: C::from_f64(self.bound), dims: grid.dims() };
        let (probe, build) = if pass.probes_left { (self.left, self.right) } else { (self.right, self.left) };
        let keys =
            SortedCodes { codes: build.keys, directory: Directory::new(build.directory, grid.key_bits()) };
        BoxSearch { probe, build, pass, grid, test, keys, pairing, num_before: self.num_before }
    }
}

/// The search of a pass: each box of the probe side searches the build side.
#[derive(Clone, Copy)]
pub(super) struct BoxSearch<'a, C, const D: usize> {
    pub(super) probe: SortedBoxes<'a, C>,
    pub(super) build: SortedBoxes<'a, C>,
    pub(super) pass: Pass,
    grid: LevelGrid<D>,
    test: PairTest<C>,
    keys: SortedCodes<'a>,
    pairing: Pairing,
    num_before: u32,
}

impl<C: Float, const D: usize> BoxSearch<'_, C, D> {
    /// Calls `visit` for up to [`GROUP`] build boxes that make pairs with probe box `i` and that `accepts` accepts, which is tested first,
    /// by position: with the position of the first and a bit for each. Goes on while `goes_on` is true.
    #[inline(always)]
    pub(super) unsafe fn for_each_group(
        &self,
        i: usize,
        goes_on: impl Fn() -> bool,
        accepts: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, u32),
    ) {
        let Self { probe, build, grid, .. } = self;
        let key = probe.keys.load(i);
        if key == NOWHERE {
            return;
        }
        let below = levels_below(grid.dims());
        let searched = searched_levels(grid.level_of_key(key), below, self.pass.finds_equal);
        let mut levels = u64::from(build.levels.load(0)) & searched;
        if levels == 0 {
            return;
        }
        let own: Aabb<C, D> = Aabb::load_aligned(probe.corners, i, grid.dims());
        let Some(cells) = grid.cells(&own) else { return };
        let own_id = probe.ids.load(i);
        while levels != 0 && goes_on() {
            let neighbors = NeighborCells::new(&cells, levels.trailing_zeros());
            levels &= levels - 1;
            for run in 0..neighbors.num_runs(grid) {
                let (first, last) = neighbors.run(grid, run);
                let begin = self.keys.lower_bound(first);
                let end = self.keys.upper_bound(begin, last);
                for position in strided(begin, end, GROUP) {
                    let mut hits = 0_u32;
                    for member in 0..GROUP {
                        hits |=
                            u32::from(accepts(position + member) && self.is_pair(&own, position + member))
                                << member;
                    }
                    // Positions after the end do not count.
                    let remaining = end - position;
                    hits &= if remaining < GROUP { (1 << remaining) - 1 } else { (1 << GROUP) - 1 };
                    hits = self.included(own_id, position, hits);
                    if hits != 0 {
                        visit(position, hits);
                    }
                }
            }
        }
    }

    /// Returns the hits that are pairs of the join; bit `i` of `hits` is the build box at `position + i`.
    #[inline(always)]
    unsafe fn included(&self, own_id: u32, position: usize, hits: u32) -> u32 {
        // A join of two sets has them all, and needs no ids here.
        if matches!(self.pairing, Pairing::All | Pairing::Swapped) {
            return hits;
        }
        let mut included = 0;
        for member in bits_of(hits) {
            let id = self.build.ids.load(position + member as usize);
            let (left, right) = if self.pass.probes_left { (own_id, id) } else { (id, own_id) };
            included |= u32::from(self.pairing.includes(right, left + self.num_before)) << member;
        }
        included
    }

    /// True if a probe box makes a pair with the build box at a position.
    #[inline(always)]
    unsafe fn is_pair(&self, own: &Aabb<C, D>, position: usize) -> bool {
        let other = Aabb::load_aligned(self.build.corners, position, self.grid.dims());
        if self.pass.probes_left { self.test.holds(own, &other) } else { self.test.holds(&other, own) }
    }
}

/// Returns the indices of the bits that are 1, in order.
#[inline(always)]
pub(super) fn bits_of(mut word: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros();
        word &= word - 1;
        Some(bit)
    })
}
