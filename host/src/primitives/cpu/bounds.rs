//! Bounding box of points on the CPU; see [the GPU version](crate::primitives::bounds).

use kauri_kernels::thread::coord::Coord;
use std::ops::Range;

use crate::parallel::{self, TASK_ITEMS};

/// Returns the least and the greatest corner of the bounding box of points.
pub fn bounds<C: Coord, const D: usize>(points: &[[C; D]]) -> [[C; D]; 2] {
    let empty = [[C::EMPTY[0]; D], [C::EMPTY[1]; D]];
    let lesser = |a: C, b: C| if b < a { b } else { a };
    let greater = |a: C, b: C| if a < b { b } else { a };
    let fold = |[mut least, mut greatest]: [[C; D]; 2], point: &[C; D]| {
        for axis in 0..D {
            // A NaN is neither less nor greater.
            let x = point[axis].without_negative_zero();
            least[axis] = lesser(least[axis], x);
            greatest[axis] = greater(greatest[axis], x);
        }
        [least, greatest]
    };
    let bounds_of = |range: Range<usize>| points[range].iter().fold(empty, fold);
    let around = |a, b: [[C; D]; 2]| [fold(a, &b[0])[0], fold(a, &b[1])[1]];
    parallel::reduce(points.len(), TASK_ITEMS, bounds_of, around).unwrap_or(empty)
}
