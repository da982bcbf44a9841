//! The validated parameters of a join of boxes.

use super::method::BoxMethod;
#[cfg(feature = "research")]
use super::options::BoxMethodOptions;
use crate::error::Result;
use crate::join::grid::reach_of;
use crate::point::{Point, dims};
use crate::query::checked_bound;
use kauri_kernels::join::boxes::geometry::{PairTest, Predicate, Shape};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;

/// The validated parameters of a join of boxes.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxParams<C> {
    pub(super) test: PairTest<C>,
    pub(super) pairing: Pairing,
    pub(super) method: BoxMethod,
    #[cfg(feature = "research")]
    pub(super) options: BoxMethodOptions,
}

impl<C: Float> BoxParams<C> {
    /// Validates the distance of a join.
    pub(super) fn new<P: Point<Coord: Coord<Distance = C>>>(
        predicate: Predicate,
        epsilon: C,
        norm: Norm,
        pairing: Pairing,
        method: BoxMethod,
    ) -> Result<Self> {
        const { assert!(dims::<P>() <= MAX_DIMS, "boxes of a join have 1 to 6 dimensions") };
        let bound = checked_bound::<P>(epsilon, norm, "distance")?;
        Ok(Self {
            test: PairTest { predicate, norm, bound, dims: P::DIMS },
            pairing,
            method,
            #[cfg(feature = "research")]
            options: BoxMethodOptions::default(),
        })
    }

    /// Returns the number of coordinates of a box.
    pub(super) fn width(&self) -> usize {
        2 * self.test.dims
    }

    /// Returns the largest gap of a pair along an axis.
    pub(super) fn reach(&self) -> f64 {
        match self.test.predicate {
            Predicate::Within => reach_of(self.test.norm, self.test.bound),
            Predicate::Intersects | Predicate::Contains => 0.0,
        }
    }

    /// Returns the argument of kernels for a grid of `bits` bits.
    pub(super) fn shape(&self, bits: u32) -> u32 {
        let PairTest { predicate, norm, .. } = self.test;
        Shape { bits, predicate, norm, pairing: self.pairing }.to_word()
    }
}
