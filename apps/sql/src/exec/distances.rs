//! Distances of pairs that a join without distances has found.

use super::side::{Shapes, Side};
use crate::functions::{squared, unit_vectors};
use datafusion::common::internal_err;
use datafusion::error::Result;
use kauri::LonLat;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// The points of both sides of a join, for distances of pairs with the bits that an index gives.
pub(super) enum PairDistances<'a> {
    /// The points of both sides.
    Planar([&'a [[f64; 2]]; 2]),
    /// The unit vectors of both sides.
    LonLat([Vec<f64>; 2]),
}

impl<'a> PairDistances<'a> {
    pub(super) fn new(left: &'a Side, right: &'a Side) -> Result<Self> {
        match (&left.shapes, &right.shapes) {
            (Shapes::Planar(a), Shapes::Planar(b)) => Ok(Self::Planar([a, b])),
            (Shapes::LonLat(a), Shapes::LonLat(b)) => Ok(Self::LonLat([unit_vectors(a)?, unit_vectors(b)?])),
            _ => internal_err!("the sides of a join have different geometries"),
        }
    }

    /// Returns the distance of each pair of a left and a right id.
    pub(super) fn of(&self, left: &[u32], right: &[u32]) -> Vec<f64> {
        match self {
            Self::Planar([a, b]) => distances(left, right, |l, r| squared(a[l], b[r]).sqrt()),
            Self::LonLat([a, b]) => {
                let (a, b) = (a.as_chunks::<3>().0, b.as_chunks::<3>().0);
                distances(left, right, |l, r| LonLat::chord2_to_meters(squared(a[l], b[r])))
            }
        }
    }
}

fn distances(left: &[u32], right: &[u32], distance: impl Fn(usize, usize) -> f64 + Sync) -> Vec<f64> {
    left.par_iter()
        .zip(right)
        .with_min_len(1 << 14)
        .map(|(&l, &r)| distance(l as usize, r as usize))
        .collect()
}
