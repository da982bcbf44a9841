//! Axis-aligned boxes, and the predicates that make two of them a pair.

use crate::block::tile::load_16;
use crate::join::cells::Pairing;
use crate::join::curve::MAX_DIMS;
use crate::thread::coord::Float;
use crate::thread::items::strided;
use crate::thread::measure::Norm;
use crate::thread::point::load_point_up_to;
use cuda_std::prelude::*;

/// An axis-aligned box. The corners belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aabb<C, const D: usize> {
    /// The low corner.
    pub low: [C; D],
    /// The high corner.
    pub high: [C; D],
}

impl<C: Float, const D: usize> Aabb<C, D> {
    /// Loads box `i` of boxes with `dims` dimensions: the low corner, then the high corner. `dims` equals `D` unless `D` is [`MAX_DIMS`].
    ///
    /// # Safety
    /// `corners` has a box `i`.
    #[inline(always)]
    pub unsafe fn load(corners: Slice<'_, C>, i: usize, dims: usize) -> Self {
        let corner = |which| load_point_up_to::<C, D, MAX_DIMS>(corners, 2 * i + which, dims);
        Self { low: corner(0), high: corner(1) }
    }

    /// Loads box `i` as [`load`](Self::load), from an array that is aligned to 16 bytes: by accesses of 16 bytes if boxes have a multiple of
    /// that.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    pub(super) unsafe fn load_aligned(corners: Slice<'_, C>, i: usize, dims: usize) -> Self {
        if D == MAX_DIMS || !(2 * D).is_multiple_of(C::PER_16) {
            return Self::load(corners, i, dims);
        }
        let mut loaded = [[C::ZERO; D]; 2];
        for first in strided(0, 2 * D, C::PER_16) {
            let items = load_16(corners, 2 * D * i + first);
            for e in 0..C::PER_16 {
                loaded[(first + e) / D][(first + e) % D] = items[e];
            }
        }
        let [low, high] = loaded;
        Self { low, high }
    }

    /// True unless the low corner is above the high corner on one of the first `dims` axes. Other boxes, also with NaN, have no pairs.
    #[inline(always)]
    pub fn is_valid(&self, dims: usize) -> bool {
        let mut is_valid = true;
        for axis in 0..D {
            is_valid &= axis >= dims || self.low[axis] <= self.high[axis];
        }
        is_valid
    }
}

/// The relation of a left and a right box that makes them a pair. Borders belong to boxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Predicate {
    /// The boxes have a common point.
    #[default]
    Intersects = 0,
    /// Every point of the right box is in the left box.
    Contains = 1,
    /// The distance between the boxes is at most a given distance.
    Within = 2,
}

/// The condition for a pair of boxes.
#[derive(Clone, Copy, Debug)]
pub struct PairTest<C> {
    /// The relation of the boxes.
    pub predicate: Predicate,
    /// The norm of distances.
    pub norm: Norm,
    /// The largest distance as the norm computes it.
    pub bound: C,
    /// Number of dimensions.
    pub dims: usize,
}

impl<C: Float> PairTest<C> {
    /// True if a left and a right box are a pair. Both are [valid](Aabb::is_valid).
    #[inline(always)]
    pub fn holds<const D: usize>(&self, left: &Aabb<C, D>, right: &Aabb<C, D>) -> bool {
        let is_used = |axis: usize| D < MAX_DIMS || axis < self.dims;
        let mut holds = true;
        match self.predicate {
            Predicate::Intersects => {
                for axis in 0..D {
                    holds &= !is_used(axis)
                        || (left.low[axis] <= right.high[axis] && right.low[axis] <= left.high[axis]);
                }
            }
            Predicate::Contains => {
                for axis in 0..D {
                    holds &= !is_used(axis)
                        || (left.low[axis] <= right.low[axis] && right.high[axis] <= left.high[axis]);
                }
            }
            Predicate::Within => {
                let gap = |axis: usize| {
                    let (below, above) =
                        (right.low[axis] - left.high[axis], left.low[axis] - right.high[axis]);
                    if is_used(axis) { below.max(above).max(C::ZERO) } else { C::ZERO }
                };
                holds = self.norm.put_together(D, gap) <= self.bound;
            }
        }
        holds
    }
}

/// Grid, condition and pairing of a join of boxes, packed in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bits of a cell's coordinate on an axis, at level 0.
    pub bits: u32,
    /// The relation of a pair.
    pub predicate: Predicate,
    /// The norm of distances.
    pub norm: Norm,
    /// The pairs that the join has.
    pub pairing: Pairing,
}

impl Shape {
    /// Packs the shape in a word.
    pub const fn to_word(&self) -> u32 {
        self.bits | (self.predicate as u32) << 8 | (self.norm as u32) << 16 | (self.pairing as u32) << 24
    }

    /// Unpacks a word.
    #[inline(always)]
    pub(super) const fn from_word(word: u32) -> Self {
        let predicate = match word >> 8 & 0xFF {
            0 => Predicate::Intersects,
            1 => Predicate::Contains,
            _ => Predicate::Within,
        };
        Self {
            bits: word & 0xFF,
            predicate,
            norm: Norm::of(word >> 16 & 0xFF),
            pairing: Pairing::of(word >> 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(predicate: Predicate, bound: f64) -> PairTest<f64> {
        PairTest { predicate, norm: Norm::Euclidean, bound, dims: 2 }
    }

    fn square(low: f64, high: f64) -> Aabb<f64, 2> {
        Aabb { low: [low; 2], high: [high; 2] }
    }

    #[test]
    fn borders_belong_to_boxes() {
        let intersects = test(Predicate::Intersects, 0.0);
        assert!(intersects.holds(&square(0.0, 1.0), &square(1.0, 2.0)));
        assert!(!intersects.holds(&square(0.0, 1.0), &square(1.0f64.next_up(), 2.0)));
        let contains = test(Predicate::Contains, 0.0);
        assert!(contains.holds(&square(0.0, 1.0), &square(0.0, 1.0)));
        assert!(!contains.holds(&square(0.5, 1.0), &square(0.0, 1.0)));
    }

    #[test]
    fn distances_are_those_of_the_gaps() {
        // Three apart on one axis, four on the other.
        let other = Aabb { low: [4.0, 5.0], high: [9.0, 9.0] };
        assert!(test(Predicate::Within, 25.0).holds(&square(0.0, 1.0), &other));
        assert!(!test(Predicate::Within, 25.0f64.next_down()).holds(&square(0.0, 1.0), &other));
        assert!(test(Predicate::Within, 0.0).holds(&square(0.0, 1.0), &square(1.0, 1.0)));
    }

    #[test]
    fn words_hold_shapes() {
        for predicate in [Predicate::Intersects, Predicate::Contains, Predicate::Within] {
            let shape = Shape { bits: 31, predicate, norm: Norm::Chebyshev, pairing: Pairing::Once };
            assert_eq!(Shape::from_word(shape.to_word()), shape);
        }
    }
}
