//! Building by selection and partition: the tree of [`tags`](super::tags), to the last bit.
//!
//! Only the rank of each pivot is known, and only that is needed: points are never sorted as a whole. Every subtree is a run of
//! points, and the runs of a level are split at once. A sample of a run gives a bracket around its pivot ([`bracket`]); one pass
//! over all points sends those below and above it to their side ([`split`]); of the few inside, the pivot is found by sorting
//! them ([`settle`]) (sample and bracket after Floyd, Rivest 1975, *Expected time bounds for selection*). Runs lie in the order
//! of a walk in order: a pivot between its subtrees. When runs are short a block finishes each in shared memory
//! ([`subtrees`]), and at last the pivots found before that go to their places ([`top`]).
//!
//! Where memory is short, coordinates stay where they are and only ids are moved; [`in_place`] brings coordinates to them at last.
//!
//! By (coordinate, id) no two points are equal, so that what the data are like changes nothing. A bracket that misses costs
//! time: its whole run is split by one block.

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

/// Most times that the points inside a bracket are bracketed again.
pub const MAX_STAGES: usize = 9;

/// Counters of a run: of points on the left, on the right, without room, and inside the bracket of each stage and of the pivot.
pub const COUNTS: usize = 4 + MAX_STAGES;
const LEFT: usize = 0;
const RIGHT: usize = 1;
const LOST: usize = 2;
const INSIDE: usize = 3;

/// The points of a subtree, one behind the other.
#[derive(Clone, Copy)]
struct Run {
    node: u32,
    begin: usize,
    len: u32,
    /// How many of them go left.
    left: u32,
}

impl Run {
    /// That of a node of a tree over `n` points, which may be beyond the tree and is empty then.
    #[inline(always)]
    fn of(node: u32, n: u32) -> Self {
        if node < n {
            let (begin, len) = (in_order_begin(node, n) as usize, subtree_size(node, n));
            Self { node, begin, len, left: left_size(node, n) }
        } else {
            Self { node, begin: n as usize, len: 0, left: 0 }
        }
    }
}

/// Points as the coordinates of one after the other, and their ids; without ids they are the positions.
#[derive(Clone, Copy)]
struct Points<'a, C> {
    coords: Slice<'a, C>,
    ids: Slice<'a, u32>,
    dims: usize,
    /// Coordinates are in the order of the ids, where only these are moved.
    by_id: bool,
}

impl<C: Coord> Points<'_, C> {
    #[inline(always)]
    unsafe fn id(&self, i: usize) -> u32 {
        if self.ids.is_empty() { i as u32 } else { self.ids.load(i) }
    }

    /// Where the coordinates of point `i` are, in points.
    #[inline(always)]
    unsafe fn place(&self, i: usize) -> usize {
        if self.by_id { self.id(i) as usize } else { i }
    }

    /// A coordinate of point `i`.
    #[inline(always)]
    unsafe fn coord(&self, i: usize, axis: usize) -> C {
        self.coords.load(self.place(i) * self.dims + axis)
    }

    /// Point `i` as the order on an axis sees it.
    #[inline(always)]
    unsafe fn ranked(&self, i: usize, axis: usize) -> C::Ranked {
        Ranked::new(self.coord(i, axis).key(), self.id(i))
    }
}

/// Room for points, or for their ids alone.
#[derive(Clone, Copy)]
struct PointsMut<'a, C> {
    coords: SliceMut<'a, C>,
    ids: SliceMut<'a, u32>,
}

impl<C: Coord> PointsMut<'_, C> {
    /// Writes a point of others.
    #[inline(always)]
    unsafe fn set(&self, i: usize, from: Points<'_, C>, point: usize) {
        self.ids.store(i, from.id(point));
        if !self.coords.is_empty() {
            let mut axis = 0;
            while axis < from.dims {
                self.coords.store(i * from.dims + axis, from.coord(point, axis));
                axis += 1;
            }
        }
    }
}

/// Which points of a run are left to be split: all, or those inside the bracket of the stage before.
#[derive(Clone, Copy)]
struct Left<'a> {
    /// Their positions; empty if they are all.
    positions: Slice<'a, u32>,
    begin: usize,
    len: u32,
}

impl<'a> Left<'a> {
    /// Of run number `i` of its level, before a stage; of each run there is room for `capacity` positions.
    #[inline(always)]
    unsafe fn new(
        run: Run,
        i: usize,
        positions: Slice<'a, u32>,
        counts: Slice<'_, u32>,
        stage: u32,
        capacity: u32,
    ) -> Self {
        if stage == 0 {
            return Self { positions, begin: run.begin, len: run.len };
        }
        let inside = counts.load(i * COUNTS + INSIDE + stage as usize - 1);
        let len = if inside < capacity { inside } else { capacity };
        Self { positions: positions.part(i * capacity as usize, len as usize), begin: 0, len }
    }

    /// Position of point `i` of them.
    #[inline(always)]
    unsafe fn position(&self, i: u32) -> usize {
        if self.positions.is_empty() {
            self.begin + i as usize
        } else {
            self.positions.load(i as usize) as usize
        }
    }
}
