//! Joins of two sets of points by distance.
//!
//! | join | result |
//! |---|---|
//! | [`TopKDistanceJoin`] | the `k` pairs within a distance of each other whose scores together are the best |
//! | [`KnnJoin`] | the `k` nearest points of one set for each of another, maybe within a distance |
//! | [`DistanceJoin`] | all pairs within a distance of each other, or how many there are; also of one set with itself |
//!
//! Sets are points of 1 to 6 dimensions or places on the Earth, and need no index: cells of a grid, which is nowhere stored, are put in
//! the order of a [`Curve`], and a point's neighbors are found in the cells around its own by search (Løvik 2020, *Top-k spatial
//! distance join on the GPU*). A result does not depend on the device or the strategy, and on
//! the curve only the order of ids in a row of all pairs.
//!
//! Distances are compared as an index compares them ([`SpatialIndex::within`](crate::SpatialIndex::within)): in the type of the
//! coordinates, their squares under the Euclidean norm.

/// Runs `$body` with the constant `$D` = `$dims`, which must be 1 to 6.
macro_rules! with_exact_dims {
    ($dims:expr, $D:ident => $body:expr) => {
        with_exact_dims!(@ $dims, $D, $body, 1 2 3 4 5 6)
    };
    (@ $dims:expr, $D:ident, $body:expr, $($n:literal)*) => {
        match $dims {
            $($n => { const $D: usize = $n; $body })*
            dims => unreachable!("{dims} dimensions"),
        }
    };
}

mod cpu;
mod distance;
mod estimate;
mod gpu;
mod grid;
mod nearest;
mod plan;
mod scored;
mod strategy;
mod top_k;

pub use distance::DistanceJoin;
pub use gpu::DeviceScored;
pub use kauri_kernels::join::curve::Curve;
pub use kauri_kernels::join::rising::OwnLaunch;
pub use kauri_kernels::join::score::ScoreFunction;
pub use kauri_kernels::thread::measure::Norm;
pub use nearest::{KnnIndex, KnnJoin};
pub use plan::{JoinMethod, JoinPlan};
pub use scored::{PairScore, Score, Scored, ScoredPair};
pub use strategy::Strategy;
pub use top_k::{RankedPair, TopKDistanceJoin, TopPairs};

use crate::error::Result;
use crate::point::{Point, checked_coordinates, dims};
use crate::query::checked_bound;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::along;
use std::borrow::Cow;

/// What is near, and how cells are put in a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<C> {
    /// What distances are compared with.
    pub(crate) bound: C,
    pub(crate) norm: Norm,
    pub(crate) curve: Curve,
    pub(crate) pairing: Pairing,
    pub(crate) lookup: Lookup,
}

/// How a GPU finds the points of cells; results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// By a search among the codes of all points, which begins where a directory of their highest bits says.
    #[default]
    Points,
    /// By such a search in a list of the cells that are not empty (Gowanlock, Karsin 2018, *GPU accelerated self-join for the distance
    /// similarity metric*), which takes 12 bytes a point. On an H200 it was as fast where cells have 19 points, and slower else.
    Cells,
}

/// The checked coordinates of a left and a right set.
fn checked_sets<'a, P: Point>(left: &'a [P], right: &'a [P]) -> Result<[Cow<'a, [P::Coord]>; 2]> {
    top_k::check_count(left.len())?;
    top_k::check_count(right.len())?;
    Ok([checked_coordinates(left, "left point")?, checked_coordinates(right, "right point")?])
}

impl<C: Coord> Near<C> {
    /// Checks a distance.
    fn new<P: Point<Coord = C>>(epsilon: C, norm: Norm, curve: Curve, pairing: Pairing) -> Result<Self> {
        const { assert!(dims::<P>() <= MAX_DIMS, "points of a join have 1 to 6 coordinates") };
        Self::of::<P>(epsilon, norm, curve, pairing)
    }

    /// True if points are within the distance of each other.
    #[inline(always)]
    fn has<const D: usize>(&self, a: &[C; D], b: &[C; D]) -> bool {
        self.norm.put_together(D, |axis| along(a[axis], b[axis], C::ZERO)) <= self.bound
    }

    /// True if both sets are the same.
    fn is_one(&self) -> bool {
        matches!(self.pairing, Pairing::Both | Pairing::Once)
    }

    /// The same of points that may have more coordinates.
    fn of<P: Point<Coord = C>>(epsilon: C, norm: Norm, curve: Curve, pairing: Pairing) -> Result<Self> {
        let bound = checked_bound::<P>(epsilon, norm, "distance")?;
        Ok(Self { bound, norm, curve, pairing, lookup: Lookup::Points })
    }
}
