//! Build by selection and partition. The result is the tree of [`tags`](super::tags), to the last bit.
//!
//! The rank of each pivot is known in advance, so the points are never sorted as a whole. The points of a subtree are a *run*. A *round* splits
//! every run of a level into the runs of some levels below:
//!
//! 1. Samples of a run give a bracket around the pivot of each of its nodes in these levels ([`bracket`]; Floyd, Rivest 1975, *Expected time
//!    bounds for selection*).
//! 2. One pass takes every point down from the root of its run, to the left of a bracket or to the right ([`split`]). A point that is
//!    outside of all brackets is moved to its final run; a point inside a bracket is *undecided* at this node.
//! 3. Level by level, the undecided points of a node are few enough to find its pivot: they were counted in the bins of their bracket, so one
//!    pass takes all down but those in the bin of the pivot, and a block sorts these ([`settle`]).
//!
//! If a bracket does not contain its pivot, a block splits the whole run again ([`again`]), which only costs time. The order
//! (coordinate, id) has no ties, so the time does not depend on duplicates.
//!
//! Runs are in in-order sequence: a pivot is between its subtrees. Blocks finish the short runs ([`subtrees`]). At the end the pivots of the
//! top levels are written between the subtrees ([`top`]). In place, the passes move only ids; at the end [`in_place`] permutes the
//! coordinates.

pub mod again;
pub mod bracket;
pub mod in_place;
pub mod settle;
pub mod split;
pub mod subtrees;
pub mod top;

use crate::query::left_balanced::{in_order_begin, left_size, level, subtree_size};
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// The most levels of a round.
pub const MAX_LEVELS: usize = 4;

/// The most bins of a bracket.
pub const MAX_BINS: usize = crate::thread::radix_key::RADIX;

/// Number of counters of a node.
pub const COUNTS: usize = 5;
/// The points that were moved to the run of the node.
const MOVED: usize = 0;
/// The points of the run that were taken to the left of the bracket.
const LEFT: usize = 1;
/// The points inside the bracket.
const INSIDE: usize = 2;
/// The points in the bin of the pivot.
const IN_BIN: usize = 3;
/// 1 if a bracket of the run of this node does not contain its pivot, or a list was too short.
const HAS_FAILED: usize = 4;

/// The range of the points of a subtree.
#[derive(Clone, Copy)]
struct Run {
    node: u32,
    begin: usize,
    len: u32,
    /// The number of points of the left subtree.
    left_len: u32,
}

impl Run {
    /// Returns the run of a node of a tree over `n` points. It is empty if the node is beyond the tree.
    #[inline(always)]
    fn of(node: u32, n: u32) -> Self {
        if node < n {
            let (begin, len) = (in_order_begin(node, n) as usize, subtree_size(node, n));
            Self { node, begin, len, left_len: left_size(node, n) }
        } else {
            Self { node, begin: n as usize, len: 0, left_len: 0 }
        }
    }
}

/// Coordinates and ids of points. If `ids` is empty, the point at position `i` has id `i`.
#[derive(Clone, Copy)]
pub(super) struct Points<'a, C> {
    pub(super) coords: Slice<'a, C>,
    pub(super) ids: Slice<'a, u32>,
    pub(super) dims: usize,
    /// The coordinates are in the order of the ids, because only ids are moved.
    pub(super) by_id: bool,
}

impl<C: Coord> Points<'_, C> {
    #[inline(always)]
    unsafe fn id(&self, i: usize) -> u32 {
        if self.ids.is_empty() { i as u32 } else { self.ids.load(i) }
    }

    /// Returns the index of the coordinates of the point at position `i`.
    #[inline(always)]
    unsafe fn coords_index(&self, i: usize) -> usize {
        if self.by_id { self.id(i) as usize } else { i }
    }

    /// Returns a coordinate of the point at position `i`.
    #[inline(always)]
    unsafe fn coord(&self, i: usize, axis: usize) -> C {
        self.coords.load(self.coords_index(i) * self.dims + axis)
    }

    /// Returns the sort key (coordinate, id) of the point at position `i` on an axis.
    #[inline(always)]
    unsafe fn ranked(&self, i: usize, axis: usize) -> C::Ranked {
        Ranked::new(self.coord(i, axis).key(), self.id(i))
    }
}

/// Memory for points, or for their ids alone.
#[derive(Clone, Copy, KernelArgs)]
pub struct PointsMut<'a, C> {
    /// The coordinates of one point after another; empty for ids alone.
    pub coords: SliceMut<'a, C>,
    /// The ids of the points.
    pub ids: SliceMut<'a, u32>,
}

impl<C: Coord> PointsMut<'_, C> {
    /// Copies a point.
    #[inline(always)]
    pub(super) unsafe fn set(&self, i: usize, from: Points<'_, C>, point: usize) {
        self.ids.store(i, from.id(point));
        if !self.coords.is_empty() {
            for axis in 0..from.dims {
                self.coords.store(i * from.dims + axis, from.coord(point, axis));
            }
        }
    }
}

/// A number for each level of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, KernelArgs)]
pub struct PerLevel {
    /// That of the level of the roots of the runs.
    pub first: u32,
    /// That of the next level.
    pub second: u32,
    /// That of the third level.
    pub third: u32,
    /// That of the fourth level.
    pub fourth: u32,
}

impl PerLevel {
    /// Makes the numbers by a function of the level.
    pub fn new(of: impl Fn(u32) -> u32) -> Self {
        Self { first: of(0), second: of(1), third: of(2), fourth: of(3) }
    }

    /// Returns the number of a level.
    #[inline(always)]
    pub const fn get(&self, level: u32) -> u32 {
        match level {
            0 => self.first,
            1 => self.second,
            2 => self.third,
            _ => self.fourth,
        }
    }

    /// Returns the sum of the numbers of the levels before `level`, each times the nodes of its level in a run.
    #[inline(always)]
    const fn before(&self, level: u32) -> usize {
        let mut sum = 0;
        let mut i = 0;
        while i < MAX_LEVELS as u32 {
            if i < level {
                sum += (self.get(i) as usize) << i;
            }
            i += 1;
        }
        sum
    }
}

/// One round: what its kernels share. Within a run, the nodes are numbered as in a tree whose root is node 1.
#[derive(Clone, Copy, KernelArgs)]
pub struct Round<'a, C: Coord> {
    /// The coordinates, in the order of the points, or in the order of ids if `by_id`.
    pub coords: Slice<'a, C>,
    /// The ids of the points; empty if the point at position `i` has id `i`.
    pub ids: Slice<'a, u32>,
    /// 1 if only ids are moved, otherwise 0.
    pub by_id: u32,
    /// The split axes of the nodes.
    pub axes: crate::query::axes::Axes<'a>,
    /// The root of the first run.
    pub first_node: u32,
    /// Number of levels that the round splits; 1 if nodes have axes of their own.
    pub num_levels: u32,
    /// Counters, [`COUNTS`] per node of the tree.
    pub counts: SliceMut<'a, u32>,
    /// Number of bins of a bracket, even.
    pub num_bins: crate::kdtree::selection::PerLevel,
    /// The ends of the bins, in ascending order: one more than bins per node of the round, run by run and level by level.
    pub ends: SliceMut<'a, <C as crate::thread::coord::Coord>::Ranked>,
    /// The number of undecided points in each bin.
    pub bins: SliceMut<'a, u32>,
    /// The positions of undecided points, a list per node of the round.
    pub undecided: SliceMut<'a, u32>,
    /// The capacity of these lists.
    pub capacity: crate::kdtree::selection::PerLevel,
    /// The positions of the points in the bin of the pivot, a list per node of a level.
    pub in_bin: SliceMut<'a, u32>,
    /// The capacity of these lists.
    pub bin_capacity: u32,
    /// Memory for the points in their new runs.
    pub to: crate::kdtree::selection::PointsMut<'a, C>,
    /// The pivots.
    pub top: crate::kdtree::selection::PointsMut<'a, C>,
}

impl<'a, C: Coord> Round<'a, C> {
    #[inline(always)]
    fn points(&self) -> Points<'a, C> {
        Points { coords: self.coords, ids: self.ids, dims: self.axes.dims as usize, by_id: self.by_id != 0 }
    }

    #[inline(always)]
    fn num_points(&self) -> u32 {
        (self.coords.len() / self.axes.dims as usize) as u32
    }

    /// Returns the node of the tree that is node `code` of run `i`.
    #[inline(always)]
    fn node(&self, i: u32, code: u32) -> u32 {
        let depth = level(code - 1);
        ((self.first_node + i + 1) << depth) - 1 + (code - (1 << depth))
    }

    /// Returns the run of node `code` of run `i`.
    #[inline(always)]
    fn run(&self, i: u32, code: u32) -> Run {
        Run::of(self.node(i, code), self.num_points())
    }

    /// Returns the counters of node `code` of run `i`.
    #[inline(always)]
    unsafe fn counts(&self, i: u32, code: u32) -> SliceMut<'a, u32> {
        self.counts.part(self.node(i, code) as usize * COUNTS, COUNTS)
    }

    /// Returns the split axis of the nodes of a run on the level at `depth` below its root.
    #[inline(always)]
    unsafe fn axis(&self, i: u32, depth: u32) -> usize {
        if self.axes.axes.is_empty() {
            self.axes.cycle().of_level(level(self.first_node) + depth, self.axes.dims)
        } else {
            self.axes.of(self.first_node + i, self.axes.cycle())
        }
    }

    /// Returns the begin and the length of the array of node `code` of run `i`, given the lengths of the arrays of a level.
    #[inline(always)]
    const fn array(&self, i: u32, code: u32, lens: PerLevel) -> (usize, u32) {
        let depth = level(code - 1);
        let of_run = i as usize * lens.before(self.num_levels) + lens.before(depth);
        let len = lens.get(depth);
        (of_run + (code as usize - (1 << depth)) * len as usize, len)
    }

    /// Returns the ends of the bins of node `code` of run `i`.
    #[inline(always)]
    unsafe fn ends(&self, i: u32, code: u32) -> SliceMut<'a, C::Ranked> {
        let (begin, num_bins) = self.array(i, code, self.num_bins);
        let nodes_before = i as usize * ((1 << self.num_levels) - 1) + code as usize - 1;
        self.ends.part(begin + nodes_before, num_bins as usize + 1)
    }

    /// Returns the bins of node `code` of run `i`.
    #[inline(always)]
    unsafe fn bins(&self, i: u32, code: u32) -> SliceMut<'a, u32> {
        let (begin, num_bins) = self.array(i, code, self.num_bins);
        self.bins.part(begin, num_bins as usize)
    }

    /// Returns the begin and the length of the list of the undecided points of node `code` of run `i`.
    #[inline(always)]
    const fn list(&self, i: u32, code: u32) -> (usize, u32) {
        self.array(i, code, self.capacity)
    }

    /// Returns the begin of the list of the points in the bin of the pivot of node `code` of run `i`.
    #[inline(always)]
    fn bin_list(&self, i: u32, code: u32) -> usize {
        (((i as usize) << level(code - 1)) + code as usize - (1 << level(code - 1)))
            * self.bin_capacity as usize
    }
}

/// The points that a block splits: all points of a run, or those of a list.
#[derive(Clone, Copy)]
struct Remaining<'a> {
    /// The positions of the points; empty for all points of the run.
    positions: Slice<'a, u32>,
    begin: usize,
    len: u32,
}

impl<'a> Remaining<'a> {
    #[inline(always)]
    unsafe fn all(run: Run, positions: Slice<'a, u32>) -> Self {
        Self { positions: positions.part(0, 0), begin: run.begin, len: run.len }
    }

    #[inline(always)]
    unsafe fn list(lists: Slice<'a, u32>, begin: usize, len: u32) -> Self {
        Self { positions: lists.part(begin, len as usize), begin: 0, len }
    }

    /// Returns the position of remaining point `i`.
    #[inline(always)]
    unsafe fn position(&self, i: u32) -> usize {
        if self.positions.is_empty() {
            self.begin + i as usize
        } else {
            self.positions.load(i as usize) as usize
        }
    }
}
