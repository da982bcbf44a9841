//! Points with integer coordinates, as in the files of laser scans.

use crate::error::{Error, Result};

/// The most by which the offsets of two lattices may differ from a whole number of steps.
#[cfg(feature = "las")]
const TOLERANCE: f64 = 1e-6;

/// The lattice of integer coordinates: on each axis, integer `i` is at `offset + scale * i`, as LAS 1.4 (ASPRS 2019, section 2.4) has it.
///
/// An index over the integers is exact.
///
/// ```
/// use kauri::lidar::Lidar;
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// let scan = Lidar::new(1000, 1);
/// let lattice = scan.lattice();
/// let mut points: Vec<[i32; 2]> = Vec::new();
/// for point in scan.points(0..1000)? {
///     let [x, y, _] = lattice.nearest(point.position)?;
///     points.push([x, y]);
/// }
/// let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default())?;
///
/// // The cell, in meters, of the leaf that contains the first point.
/// let leaf = tree.leaf_of(&points[..1])?[0];
/// let [low, high] = tree.bounds(leaf)?.map(|corner| lattice.position(corner));
/// let point = lattice.position(points[0]);
/// assert!((0..2).all(|axis| low[axis] <= point[axis] && point[axis] < high[axis]));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    /// The distance of two neighbors on each axis, greater than 0.
    pub scale: [f64; 3],
    /// The position of the integers 0.
    pub offset: [f64; 3],
}

impl Lattice {
    /// Returns the position of a point, which has three coordinates or the first of them. They are [`i32`], or whole [`f64`] as the corners
    /// of cells, which may exceed 32 bits.
    pub fn position<T: Into<f64>, const D: usize>(&self, point: [T; D]) -> [f64; D] {
        const { assert!(D <= 3, "a lattice has three axes") };
        let mut axis = 0..D;
        point.map(|step| {
            let axis = axis.next().unwrap_or_default();
            self.offset[axis] + self.scale[axis] * step.into()
        })
    }

    /// Returns the point nearest to a position, which has three coordinates or the first of them.
    ///
    /// # Errors
    /// [`Error::LasOverflow`] for the first axis on which the integer would exceed 32 bits, or the position is NaN.
    pub fn nearest<const D: usize>(&self, position: [f64; D]) -> Result<[i32; D]> {
        const { assert!(D <= 3, "a lattice has three axes") };
        let mut point = [0; D];
        for axis in 0..D {
            let steps = ((position[axis] - self.offset[axis]) / self.scale[axis]).round();
            // The negated comparison refuses NaN as well.
            if !(steps >= i32::MIN.into() && steps <= i32::MAX.into()) {
                return Err(Error::LasOverflow { axis, value: position[axis] });
            }
            point[axis] = steps as i32;
        }
        Ok(point)
    }

    /// Returns what to add to the coordinates on another lattice to get those on this one, or `None` if its points are not on this lattice.
    #[cfg(feature = "las")]
    pub(crate) fn shift_of(&self, other: &Self) -> Option<[i64; 3]> {
        let mut shift = [0; 3];
        for (axis, shift) in shift.iter_mut().enumerate() {
            let steps = (other.offset[axis] - self.offset[axis]) / self.scale[axis];
            let is_on_lattice = self.scale[axis] == other.scale[axis]
                && (steps - steps.round()).abs() <= TOLERANCE
                && steps.abs() <= f64::from(u32::MAX);
            if !is_on_lattice {
                return None;
            }
            *shift = steps.round() as i64;
        }
        Some(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_points_or_an_error() {
        let meter = Lattice { scale: [1.0; 3], offset: [0.0, -10.0, 0.0] };
        let ends = [i32::MIN, i32::MAX];
        assert_eq!(meter.nearest(meter.position(ends)).unwrap(), ends);
        assert_eq!(meter.position([2.0_f64.powi(32), 0.0]), [2.0_f64.powi(32), -10.0]);
        for (position, of) in [([0.0, 2.0_f64.powi(31) - 10.0], 1), ([-2.0_f64.powi(31) - 1.0, 0.0], 0)] {
            let error = meter.nearest(position).unwrap_err();
            assert!(matches!(error, Error::LasOverflow { axis, .. } if axis == of), "{error}");
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(meter.nearest([value]).is_err());
        }
        assert!(Lattice { scale: [0.0; 3], ..meter }.nearest([0.0]).is_err());
        let fine = Lattice { scale: [0.01; 3], offset: [450_000.0, 4_400_000.0, 0.0] };
        for position in [[450_123.456, 4_400_000.004, -7.7], [449_999.991, 4_399_000.0, 0.006]] {
            let nearest = fine.position(fine.nearest(position).unwrap());
            assert!((0..3).all(|axis| (nearest[axis] - position[axis]).abs() <= 0.005 + 1e-9), "{nearest:?}");
        }
    }

    #[cfg(feature = "las")]
    #[test]
    fn offsets_differ_by_whole_steps() {
        let of = |scale: f64, offset: f64| Lattice { scale: [scale; 3], offset: [offset, 0.0, 0.0] };
        assert_eq!(of(0.01, 0.0).shift_of(&of(0.01, 1000.0)), Some([100_000, 0, 0]));
        assert_eq!(of(0.01, 1000.0).shift_of(&of(0.01, 0.0)), Some([-100_000, 0, 0]));
        assert_eq!(of(0.01, 0.0).shift_of(&of(0.01, 0.005)), None);
        assert_eq!(of(0.01, 0.0).shift_of(&of(0.001, 0.0)), None);
        assert_eq!(of(0.001, 0.0).shift_of(&of(0.001, 1e9)), None);
    }
}
