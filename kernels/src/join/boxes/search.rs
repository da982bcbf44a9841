//! Finds the boxes of one set that make a pair with a box of the other: in runs of cells at some levels.
//!
//! A pair is found by one of its boxes, and their levels say by which. Both sets therefore search each other, in two passes; the pairs of
//! one level are found by one of them. For a box that has many runs, far below its own level, a warp searches.

use super::geometry::{Aabb, PairTest, Shape};
use super::levels::{LevelGrid, NeighborCells, SearchedLevels};
use crate::join::cells::{Directory, NOWHERE, Pairing, SortedCodes};
use crate::policy::levels_below;
use crate::thread::coord::Coord;
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

/// What a thread searches for a box.
#[derive(Clone, Copy)]
pub(super) enum Share {
    /// The levels that are not far below the box.
    Thread,
    /// The runs of a lane at the other levels.
    Lane(u32),
}

impl<'a, C: Coord> BoxSides<'a, C> {
    /// Returns the levels that boxes search in a join of all pairs.
    #[inline(always)]
    fn levels(&self, pass: Pass) -> SearchedLevels {
        let [by_thread, by_warp] = levels_below(self.dims as usize);
        SearchedLevels { by_thread, by_warp, with_equal: pass.finds_equal }
    }

    /// True if the threads of the left boxes may leave pairs to others.
    #[inline(always)]
    pub(super) unsafe fn has_more_pairs(&self, left: Pass) -> bool {
        let right_levels = u64::from(self.right.levels.load(0));
        bits_of(self.left.levels.load(0)).any(|level| right_levels & !self.levels(left).of_thread(level) != 0)
    }

    /// Returns the search of a pass.
    #[inline(always)]
    pub(super) unsafe fn search<const D: usize>(&self, pass: Pass) -> BoxSearch<'a, C, D> {
        let Shape { bits, predicate, norm, pairing } = Shape::from_word(self.shape);
        let grid = LevelGrid::load(self.grid, self.dims as usize, bits);
        let test = PairTest { predicate, norm, bound: C::from_f64(self.bound), dims: grid.dims() };
        let (probe, build) = if pass.probes_left { (self.left, self.right) } else { (self.right, self.left) };
        let levels = self.levels(pass);
        BoxSearch { probe, build, pass, levels, grid, test, pairing, num_before: self.num_before }
    }
}

/// The search of a pass: each box of the probe side searches the build side.
#[derive(Clone, Copy)]
pub(super) struct BoxSearch<'a, C, const D: usize> {
    pub(super) probe: SortedBoxes<'a, C>,
    pub(super) build: SortedBoxes<'a, C>,
    pub(super) pass: Pass,
    levels: SearchedLevels,
    grid: LevelGrid<D>,
    test: PairTest<C>,
    pairing: Pairing,
    num_before: u32,
}

impl<'a, C: Coord, const D: usize> BoxSearch<'a, C, D> {
    /// Returns the same search without warps: boxes of levels far below search for a box themselves.
    #[inline(always)]
    pub(super) const fn by_threads(mut self) -> Self {
        self.levels.by_warp = self.levels.by_thread;
        self
    }

    /// Returns the number of probe boxes for which warps search; they come first.
    #[inline(always)]
    pub(super) unsafe fn num_for_warps(&self) -> usize {
        // The highest level that is too low; without build boxes, above all levels.
        let level = self.build.levels.load(0).trailing_zeros() + self.levels.by_thread;
        if level >= self.grid.bits {
            return 0;
        }
        self.codes(&self.probe).lower_bound(self.grid.key(level, [0; D]))
    }

    /// Returns the keys of a set.
    #[inline(always)]
    fn codes(&self, set: &SortedBoxes<'a, C>) -> SortedCodes<'a> {
        SortedCodes { codes: set.keys, directory: Directory::new(set.directory, self.grid.key_bits()) }
    }

    /// Calls `visit` for up to [`GROUP`] build boxes that make pairs with probe box `i` and that `accepts` accepts, which is tested first,
    /// by position: with the position of the first and a bit for each. Goes on while `goes_on` is true.
    #[inline(always)]
    pub(super) unsafe fn for_each_group(
        &self,
        i: usize,
        share: Share,
        goes_on: impl Fn() -> bool,
        accepts: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, u32),
    ) {
        let Self { probe, build, grid, .. } = self;
        let key = probe.keys.load(i);
        if key == NOWHERE {
            return;
        }
        let level = grid.level_of_key(key);
        let (searched, first_run, step) = match share {
            Share::Thread => (self.levels.of_thread(level), 0, 1),
            Share::Lane(lane) => (self.levels.of_warp(level), lane, thread::warp_size()),
        };
        let mut levels = u64::from(build.levels.load(0)) & searched;
        if levels == 0 {
            return;
        }
        let own: Aabb<C, D> = Aabb::load_aligned(probe.corners, i, grid.dims());
        let Some(cells) = grid.cells(&own) else { return };
        let (own_id, keys) = (probe.ids.load(i), self.codes(build));
        while levels != 0 && goes_on() {
            let neighbors = NeighborCells::new(&cells, levels.trailing_zeros());
            levels &= levels - 1;
            for run in strided(first_run, neighbors.num_runs(grid), step) {
                let (first, last) = neighbors.run(grid, run);
                let begin = keys.lower_bound(first);
                let end = keys.upper_bound(begin, last);
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

    /// Returns those of the `hits` from a position on that the join has.
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
