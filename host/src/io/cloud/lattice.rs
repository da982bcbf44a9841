//! The lattice on which the points of a cloud lie.

/// The most by which the offsets of two lattices may differ from a whole number of steps.
const TOLERANCE: f64 = 1e-6;

/// The lattice of integer coordinates: on each axis, point `i` is at `offset + scale * i`, as LAS 1.4 (ASPRS 2019, section 2.4) has it.
///
/// ```
/// use kauri::io::Lattice;
/// let lattice = Lattice { scale: [0.01; 3], offset: [500_000.0, 0.0, 0.0] };
/// assert_eq!(lattice.position([25, 100, -50]), [500_000.25, 1.0, -0.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    /// The distance of two neighbors on each axis, finite and greater than 0.
    pub scale: [f64; 3],
    /// The position of the point with the coordinates 0.
    pub offset: [f64; 3],
}

impl Lattice {
    /// Returns the position of a point, in the units of the reference system.
    pub fn position(&self, point: [i32; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| self.offset[axis] + self.scale[axis] * f64::from(point[axis]))
    }

    /// Returns what to add to the coordinates on another lattice to get those on this one, or `None` if its points are not on this lattice.
    pub(super) fn shift_of(&self, other: &Self) -> Option<[i64; 3]> {
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
    fn offsets_differ_by_whole_steps() {
        let of = |scale: f64, offset: f64| Lattice { scale: [scale; 3], offset: [offset, 0.0, 0.0] };
        assert_eq!(of(0.01, 0.0).shift_of(&of(0.01, 1000.0)), Some([100_000, 0, 0]));
        assert_eq!(of(0.01, 1000.0).shift_of(&of(0.01, 0.0)), Some([-100_000, 0, 0]));
        assert_eq!(of(0.01, 0.0).shift_of(&of(0.01, 0.005)), None);
        assert_eq!(of(0.01, 0.0).shift_of(&of(0.001, 0.0)), None);
        assert_eq!(of(0.001, 0.0).shift_of(&of(0.001, 1e9)), None);
    }
}
