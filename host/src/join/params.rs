//! The parameters that every join has: distance, norm, order of cells.

use crate::error::Result;
use crate::point::{Point, dims};
use crate::query::checked_bound;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::{Curve, MAX_DIMS};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::{Norm, along};

/// The validated parameters of a join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinParams<C> {
    /// The largest distance of a pair, squared under the Euclidean norm.
    pub(crate) bound: C,
    pub(crate) norm: Norm,
    pub(crate) curve: Curve,
    pub(crate) pairing: Pairing,
    pub(crate) lookup: Lookup,
}

/// How a GPU finds the points of a range of cells. Results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// Binary search in the cell codes of all points. A directory of the highest bits of the codes narrows the search.
    #[default]
    Points,
    /// Binary search in a list of the cells that are not empty (Gowanlock, Karsin 2018, *GPU accelerated self-join for the distance
    /// similarity metric*), which takes 12 bytes per point. On an H200 it was as fast at 19 points per cell, and slower otherwise.
    Cells,
}

impl<C: Coord> JoinParams<C> {
    /// Validates the distance of a join by a grid.
    pub(super) fn new<P: Point<Coord = C>>(
        epsilon: C,
        norm: Norm,
        curve: Curve,
        pairing: Pairing,
    ) -> Result<Self> {
        const { assert!(dims::<P>() <= MAX_DIMS, "points of a join have 1 to 6 coordinates") };
        Self::of_any_dims::<P>(epsilon, norm, curve, pairing)
    }

    /// Validates the distance of a join that falls back to a tree for points with too many dimensions for a grid.
    pub(super) fn of_any_dims<P: Point<Coord = C>>(
        epsilon: C,
        norm: Norm,
        curve: Curve,
        pairing: Pairing,
    ) -> Result<Self> {
        let bound = checked_bound::<P>(epsilon, norm, "distance")?;
        Ok(Self { bound, norm, curve, pairing, lookup: Lookup::Points })
    }

    /// True if the points are within the distance of each other.
    #[inline(always)]
    pub(super) fn is_near<const D: usize>(&self, a: &[C; D], b: &[C; D]) -> bool {
        self.norm.put_together(D, |axis| along(a[axis], b[axis], C::ZERO)) <= self.bound
    }

    /// True if a set is joined with itself.
    pub(super) fn is_self_join(&self) -> bool {
        matches!(self.pairing, Pairing::Both | Pairing::Once)
    }
}
