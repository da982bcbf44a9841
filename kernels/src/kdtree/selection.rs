//! Build by selection and partition. The result is the tree of [`tags`](super::tags), to the last bit.
//!
//! The rank of each pivot is known in advance, so the points are never sorted as a whole. The points of a subtree are a *run*, and a few
//! launches split all runs of a level:
//!
//! 1. Samples of a run give a bracket around its pivot ([`bracket`]; Floyd, Rivest 1975, *Expected time bounds for selection*).
//! 2. One pass over all points moves those below and above the bracket to their side ([`split`]).
//! 3. A sort of the few points inside the bracket finds the pivot ([`settle`]).
//!
//! Runs are in in-order sequence: a pivot is between its subtrees. A block finishes each short run in shared memory ([`subtrees`]). At the
//! end the pivots of the top levels are written between the subtrees ([`top`]).
//!
//! In place, the passes move only ids; at the end [`in_place`] permutes the coordinates.
//!
//! The order (coordinate, id) has no ties, so the time does not depend on duplicates. A bracket that misses its pivot only costs time: one
//! block splits the whole run again.

pub mod bracket;
pub mod in_place;
pub mod settle;
pub mod split;
pub mod subtrees;
pub mod top;

use crate::query::left_balanced::{in_order_begin, left_size, subtree_size};
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// Maximum number of stages, each of which brackets the points inside the bracket of the stage before.
pub const MAX_STAGES: usize = 9;

/// Number of counters of a run: points moved left, points moved right, positions beyond the capacity, and points inside the bracket of each
/// stage and of the pivot.
pub const COUNTS: usize = 4 + MAX_STAGES;
const LEFT: usize = 0;
const RIGHT: usize = 1;
const OVERFLOW: usize = 2;
const INSIDE: usize = 3;

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

/// The runs of one level at one stage: what its kernels share.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelRuns<'a, C> {
    /// The coordinates, in the order of the points, or in the order of ids if `by_id`.
    pub coords: Slice<'a, C>,
    /// The ids of the points; empty if the point at position `i` has id `i`.
    pub ids: Slice<'a, u32>,
    /// 1 if only ids are moved, otherwise 0.
    pub by_id: u32,
    /// The split axes of the nodes.
    pub axes: crate::query::axes::Axes<'a>,
    /// The first node of the level.
    pub first_node: u32,
    /// Number of the stage.
    pub stage: u32,
    /// The positions of the points inside the brackets of the stage before, `capacity` per run.
    pub positions: Slice<'a, u32>,
    /// Number of positions that a run can store.
    pub capacity: u32,
}

impl<'a, C: Coord> LevelRuns<'a, C> {
    #[inline(always)]
    fn points(&self) -> Points<'a, C> {
        Points { coords: self.coords, ids: self.ids, dims: self.axes.dims as usize, by_id: self.by_id != 0 }
    }

    /// Returns run `i` of the level.
    #[inline(always)]
    fn run(&self, i: u32) -> Run {
        Run::of(self.first_node + i, (self.coords.len() / self.axes.dims as usize) as u32)
    }

    #[inline(always)]
    unsafe fn axis(&self, run: Run) -> usize {
        self.axes.of(run.node, self.axes.cycle())
    }

    /// Returns the points of run `i` that are not split yet. `counts` are the counters of all runs.
    #[inline(always)]
    unsafe fn remaining(&self, run: Run, i: usize, counts: Slice<'_, u32>) -> Remaining<'a> {
        if self.stage == 0 {
            return Remaining { positions: self.positions, begin: run.begin, len: run.len };
        }
        let inside = counts.load(i * COUNTS + INSIDE + self.stage as usize - 1);
        let len = if inside < self.capacity { inside } else { self.capacity };
        let positions = self.positions.part(i * self.capacity as usize, len as usize);
        Remaining { positions, begin: 0, len }
    }
}

/// The points of a run that are not split yet: all points, or those inside the bracket of the stage before.
#[derive(Clone, Copy)]
struct Remaining<'a> {
    /// The positions of the points; empty for all points of the run.
    positions: Slice<'a, u32>,
    begin: usize,
    len: u32,
}

impl Remaining<'_> {
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
