//! Cells in integer units, so that every device and every builder agrees on the cell of a point.
//!
//! On each axis, a coordinate is mapped to a unit number: the offset from a fixed coordinate, times the number of units per length, rounded
//! down. Both operations are rounded monotonically, so the map is monotone and has the same bits everywhere. A border between cells is the
//! least coordinate with a unit number, so the comparison of a coordinate with a border agrees with the unit numbers.
//!
//! - In a [`square`](Frame::new), the length of a unit is a power of two and offsets are from 0. A coordinate in units is then exact. Only a
//!   coordinate that is tiny compared with a unit can underflow; its sign then decides its unit number. Borders are exact numbers.
//! - In a [`box`](Frame::of_box), units have the proportions of the points, and offsets are from the low corner. Borders are found by
//!   search.

use crate::join::curve::Curve;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Maximum number of levels below the root.
pub const MAX_LEVELS: u32 = 32;

/// The cell of the root, and the units that cells are measured in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<const D: usize> {
    /// The coordinate that offsets are measured from, on each axis.
    shift: [f64; D],
    /// Units per length of 1, on each axis.
    per_length: [f64; D],
    /// The unit number of the root's low corner on each axis.
    origin: [i64; D],
    /// The root has 2^`levels` units on a side, so cells of level `levels` are single units.
    pub levels: u32,
}

impl<const D: usize> Frame<D> {
    /// Returns the smallest square root that contains a box, with up to `max_levels` levels, from 1 to [`MAX_LEVELS`]. Its side is a power of
    /// two. It has fewer levels if no two `f64` near the corners could be in different cells of the next level.
    ///
    /// The corners must be finite, the low one not above the high one.
    pub fn new(low: [f64; D], high: [f64; D], max_levels: u32) -> Self {
        let (mut extent, mut largest) = (0.0, 0.0);
        for axis in 0..D {
            extent = f64::max(extent, high[axis] - low[axis]);
            largest = f64::max(largest, f64::max(low[axis].abs(), high[axis].abs()));
        }
        // With a smaller unit, unit numbers would have more bits than the significand of an `f64`.
        let least_unit = Ord::max(exponent(largest) - 52, -1021);
        // The first side that may contain the box; aligned to units, the box may need the next.
        let mut side = Ord::max(exponent(extent), least_unit);
        loop {
            let unit = Ord::max(side - max_levels as i32, least_unit);
            let frame = Self {
                shift: [0.0; D],
                per_length: [power(-unit); D],
                origin: [0; D],
                levels: (side - unit) as u32,
            };
            let origin = frame.unit_numbers(low);
            let last = frame.unit_numbers(high);
            if (0..D).all(|axis| last[axis] - origin[axis] < 1 << frame.levels) {
                return Self { origin, ..frame };
            }
            side += 1;
        }
    }

    /// Returns the root that is a box, with up to `max_levels` levels, from 1 to [`MAX_LEVELS`]. The high corner is in the last unit of
    /// each axis, unless the side of the box has fewer `f64` than the root has units. The root has fewer levels if no two `f64` near the
    /// corners could be in different cells of the next level on any axis.
    ///
    /// The corners must be finite, the low one not above the high one.
    pub fn of_box(low: [f64; D], high: [f64; D], max_levels: u32) -> Self {
        let (mut levels, mut least_units) = (0, [0; D]);
        for axis in 0..D {
            let largest = f64::max(low[axis].abs(), high[axis].abs());
            least_units[axis] = Ord::max(exponent(largest) - 52, -1021);
            if low[axis] < high[axis] {
                let extent = Ord::max(exponent(high[axis] - low[axis]), least_units[axis]);
                levels = Ord::max(levels, extent - least_units[axis] + 1);
            }
        }
        levels = Ord::min(levels, max_levels as i32);
        let (mut per_length, end) = ([0.0; D], power(levels));
        for axis in 0..D {
            let extent = high[axis] - low[axis];
            per_length[axis] = end / extent.max(power(least_units[axis] + levels));
            while extent * per_length[axis] >= end {
                per_length[axis] = per_length[axis].next_down();
            }
        }
        // A low corner of -0.0 becomes 0.0, so that devices agree on the frame.
        Self { shift: low.map(|x| x + 0.0), per_length, origin: [0; D], levels: levels as u32 }
    }

    /// Returns the unit numbers of a point near the root.
    #[inline(always)]
    fn unit_numbers<C: Coord>(&self, point: [C; D]) -> [i64; D] {
        let mut numbers = [0; D];
        for axis in 0..D {
            let offset = point[axis].to_f64() - self.shift[axis];
            numbers[axis] = unit_number(offset, offset * self.per_length[axis]);
        }
        numbers
    }

    /// Returns the unit number of any coordinate on an axis, relative to the root's low corner. The number is inexact far outside of the
    /// root.
    #[inline(always)]
    fn number_of_any(&self, axis: usize, x: f64) -> i64 {
        let offset = x - self.shift[axis];
        // Clamped beyond any root, so that the conversion to an integer does not overflow.
        unit_number(offset, (offset * self.per_length[axis]).clamp(-FAR, FAR)) - self.origin[axis]
    }

    /// Returns the unit of a point in the root, relative to the root's low corner.
    #[inline(always)]
    pub fn unit<C: Coord>(&self, point: [C; D]) -> [u32; D] {
        let mut unit = self.unit_numbers(point);
        for axis in 0..D {
            unit[axis] = unit[axis].wrapping_sub(self.origin[axis]);
        }
        unit.map(|number| number as u32)
    }

    /// Returns the unit of any point, relative to the root's low corner: -1 on an axis on which the point is below the root, 2^`levels`
    /// where it is above.
    #[inline(always)]
    pub fn unit_of_any<C: Coord>(&self, point: [C; D]) -> [i64; D] {
        let (mut unit, above) = ([0; D], 1 << self.levels);
        for axis in 0..D {
            let in_root = self.number_of_any(axis, point[axis].to_f64());
            unit[axis] = if in_root < -1 { -1 } else { in_root };
            unit[axis] = if in_root < above { unit[axis] } else { above };
        }
        unit
    }

    /// Returns true if a point is in the root.
    #[inline(always)]
    pub fn contains<C: Coord>(&self, point: [C; D]) -> bool {
        let (unit, mut is_inside) = (self.unit_of_any(point), true);
        for axis in 0..D {
            is_inside &= unit[axis] >= 0 && unit[axis] < 1 << self.levels;
        }
        is_inside
    }

    /// Returns the Morton code of a unit over the `num_levels` levels below `level`: for each level the child number in `D` bits, the
    /// first level in the highest bits. The first axis is the highest bit of a child number.
    #[inline(always)]
    pub fn code(&self, unit: [u32; D], level: u32, num_levels: u32) -> u32 {
        self.long_code(unit, level, num_levels) as u32
    }

    /// Returns the [code](Self::code) of as many levels as fit in 64 bits.
    #[inline(always)]
    pub fn long_code(&self, unit: [u32; D], level: u32, num_levels: u32) -> u64 {
        let mut part = [0; D];
        for axis in 0..D {
            // 64 bits, since the shift may be 32.
            let below = u64::from(unit[axis]) >> (self.levels - level - num_levels);
            part[axis] = (below & ((1 << num_levels) - 1)) as u32;
        }
        Curve::ZOrder.code(part, D, num_levels)
    }

    /// Returns the squared distance, in units, between a point and a position relative to the root's low corner. The result is rounded.
    #[inline(always)]
    pub fn dist2_in_units<C: Coord>(&self, point: [C; D], position: [f64; D]) -> f64 {
        let mut sum = 0.0;
        for axis in 0..D {
            let offset = point[axis].to_f64() - self.shift[axis];
            let units = offset * self.per_length[axis] - self.origin[axis] as f64;
            sum += (units - position[axis]) * (units - position[axis]);
        }
        sum
    }

    /// Returns the coordinates of a corner of units: on each axis the least coordinate with this unit number or a greater one. In a square
    /// they are exact, or infinite if they are beyond `f64`.
    #[inline(always)]
    pub fn corner(&self, units: [u64; D]) -> [f64; D] {
        let mut corner = [0.0; D];
        for axis in 0..D {
            corner[axis] = self.border(axis, units[axis] as i64);
        }
        corner
    }

    /// Returns the least coordinate on an axis with a unit number or a greater one, relative to the root's low corner.
    #[inline(always)]
    fn border(&self, axis: usize, unit: i64) -> f64 {
        let (shift, per_length) = (self.shift[axis], self.per_length[axis]);
        // A power of two has no fraction bits.
        if shift == 0.0 && per_length.to_bits() << 12 == 0 {
            return (self.origin[axis] + unit) as f64 * (1.0 / per_length);
        }
        let is_below = |x: f64| self.number_of_any(axis, x) < unit;
        let guess = shift + unit as f64 / per_length;
        let margin = (guess.abs() + shift.abs()) * (8.0 * f64::EPSILON);
        let (mut low, mut high) = (guess - margin, guess + margin);
        if !is_below(low) || is_below(high) {
            (low, high) = (-f64::MAX, f64::MAX);
        }
        // The order of the keys is that of the numbers.
        let (mut below, mut above) = (low.key(), high.key());
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if is_below(f64::from_key(middle)) {
                below = middle;
            } else {
                above = middle;
            }
        }
        f64::from_key(above)
    }

    /// Number of words of a frame in memory.
    pub const WORDS: usize = 1 + 3 * D;

    /// Returns the frame as words: the number of levels, then for each axis the coordinate that offsets are measured from, the units per
    /// length of 1, and the unit number of the root's low corner.
    pub fn to_words(&self) -> impl Iterator<Item = u64> {
        let Self { shift, per_length, origin, levels } = *self;
        let axis =
            move |axis: usize| [shift[axis].to_bits(), per_length[axis].to_bits(), origin[axis] as u64];
        core::iter::once(levels.into()).chain((0..D).flat_map(axis))
    }

    /// Returns the frame that words encode, if they encode one.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let (&levels, axes) = words.split_first()?;
        if axes.len() != 3 * D || levels > MAX_LEVELS.into() {
            return None;
        }
        let frame = Self {
            shift: core::array::from_fn(|axis| f64::from_bits(axes[3 * axis])),
            per_length: core::array::from_fn(|axis| f64::from_bits(axes[3 * axis + 1])),
            origin: core::array::from_fn(|axis| axes[3 * axis + 2] as i64),
            levels: levels as u32,
        };
        let are_lengths = frame.per_length.iter().all(|&x| x.is_normal() && x > 0.0);
        let are_near = frame.origin.iter().all(|number| number.unsigned_abs() <= 1 << 54);
        (are_lengths && are_near && frame.shift.iter().all(|x| x.is_finite())).then_some(frame)
    }

    /// Loads a frame from device memory.
    ///
    /// # Safety
    /// The words encode a frame of `D` dimensions.
    #[inline(always)]
    pub(crate) unsafe fn load(words: Slice<'_, u64>) -> Self {
        let (mut shift, mut per_length, mut origin) = ([0.0; D], [0.0; D], [0; D]);
        for axis in 0..D {
            shift[axis] = f64::from_bits(words.load(1 + 3 * axis));
            per_length[axis] = f64::from_bits(words.load(2 + 3 * axis));
            origin[axis] = words.load(3 + 3 * axis) as i64;
        }
        Self { shift, per_length, origin, levels: words.load(0) as u32 }
    }
}

/// 2^60 units; a root is at most 2^54 units from 0.
const FAR: f64 = (1_u64 << 60) as f64;

/// Returns the greatest integer that is not above `units`, which is an offset in units.
#[inline(always)]
fn unit_number(offset: f64, units: f64) -> i64 {
    // Rounds towards 0, then corrects down. Within one unit of 0 the sign of the offset decides, since `units` may have underflowed to 0.
    let whole = units as i64;
    let is_above = if whole == 0 { offset < 0.0 } else { whole as f64 > units };
    whole - i64::from(is_above)
}

/// Returns the exponent of a number's highest bit; for subnormal numbers, that of the least normal number.
fn exponent(x: f64) -> i32 {
    Ord::max((x.to_bits() >> 52 & 0x7FF) as i32 - 1023, -1022)
}

/// Returns 2^`exponent`, which must be a normal number.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::vec::Vec;

    #[test]
    fn units_are_exact() {
        // The border of two halves and what is next to it; far from 0, so that a difference would be rounded.
        let frame = Frame::<1>::new([-1000.0], [1000.0], 32);
        let half = 1_u32 << (frame.levels - 1);
        let [middle] = frame.corner([half.into()]);
        assert_eq!(frame.unit([middle]), [half]);
        assert_eq!(frame.unit([middle.next_down()]), [half - 1]);
        // The difference between such a tiny number and the corner would round to that of 0.
        let frame = Frame::<1>::new([-1.0], [1.0 - f64::EPSILON], 32);
        assert_eq!(frame.corner([1 << (frame.levels - 1)]), [0.0]);
        assert!(frame.unit([-1e-300])[0] < frame.unit([0.0])[0]);
        assert_eq!(frame.unit([0.0_f64])[0], frame.unit([-0.0_f64])[0]);
    }

    #[test]
    fn coordinates_that_underflow_keep_their_side_of_zero() {
        for far in [1e20, 1e150] {
            let frame = Frame::<1>::new([-far], [far], 32);
            let [zero_unit] = frame.unit([0.0_f64]);
            for tiny in [5e-324, f64::MIN_POSITIVE, 1e-300, 1e-200, 1e-20] {
                assert_eq!(frame.unit([tiny]), [zero_unit]);
                assert_eq!(frame.unit([-tiny]), [zero_unit - 1], "-{tiny:e} in {frame:?}");
                assert_eq!(frame.unit_of_any([-tiny]), [i64::from(zero_unit) - 1]);
            }
            assert_eq!(frame.unit([-0.0_f64]), [zero_unit]);
            assert_eq!(frame.unit([-f32::from_bits(1)]), [zero_unit - 1]);
        }
        // The root begins at 0: a number just below is outside.
        let frame = Frame::<1>::new([0.0], [1e150], 32);
        assert!(frame.contains([0.0_f64]) && frame.contains([-0.0_f64]) && !frame.contains([-1e-200]));
    }

    #[test]
    fn the_root_contains_the_box() {
        let ends = [0.0, 1.0, -1.0, 1e-30, 1e30, -1e30, 5e-324, 1e300, 3.0, 1.0 + f64::EPSILON, 4_500_000.25];
        for low in ends {
            for high in ends.into_iter().filter(|high| *high >= low) {
                for levels in [1, 2, 16, 32] {
                    let frame = Frame::<2>::new([low, low], [high, low], levels);
                    assert!(
                        frame.levels <= levels && frame.contains([high, low]) && frame.contains([low, low])
                    );
                    assert_eq!(frame.unit([low, low]), [0, 0]);
                    let top = frame.corner([1 << frame.levels; 2]);
                    assert!(top[0] > high && top[1] > low, "{low} to {high}, {frame:?}");
                    // At most four times as long as the box.
                    let side = top[0] - low;
                    assert!(frame.levels <= 1 || side <= 4.0 * (high - low), "{low} to {high}, {frame:?}");
                }
            }
        }
    }

    #[test]
    fn a_box_has_the_borders_of_its_units() {
        let ends = [0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, 5e-324, 1e150, 3.0, 1.0 + f64::EPSILON, 4_500_000.25];
        for low in ends {
            for high in ends.into_iter().filter(|high| *high >= low) {
                for levels in [1, 2, 16, 32] {
                    let frame = Frame::<2>::of_box([low, low], [high, low], levels);
                    let what = format!("{low} to {high}, {frame:?}");
                    assert_eq!(Frame::from_words(&frame.to_words().collect::<Vec<_>>()), Some(frame));
                    assert!(frame.levels <= levels && frame.contains([high, low]), "{what}");
                    assert_eq!(frame.unit([low, low]), [0, 0], "{what}");
                    let end = 1_u64 << frame.levels;
                    let least_unit = Ord::max(exponent(f64::max(low.abs(), high.abs())) - 52, -1021);
                    if high - low >= power(least_unit + frame.levels as i32) {
                        assert_eq!(u64::from(frame.unit([high, low])[0]), end - 1, "{what}");
                    }
                    assert_eq!(frame.corner([0, 0]), [low, low], "{what}");
                    let top = frame.corner([end, end]);
                    assert!(top[0] > high && !frame.contains([top[0], low]), "{what}");
                    assert!(!frame.contains([low.next_down(), low]), "{what}");
                    for unit in [1, end / 4, end / 2, end / 3, end - 1, end] {
                        let [border, _] = frame.corner([unit, 0]);
                        let number = |x: f64| frame.unit_of_any([x, low])[0];
                        assert!(number(border) >= unit as i64, "unit {unit}, {what}");
                        assert!(number(border.next_down()) < unit as i64, "unit {unit}, {what}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_box_has_the_proportions_of_the_points() {
        let frame = Frame::<2>::of_box([10.0, -3.0], [20.0, -1.0], 32);
        assert_eq!(frame.levels, 32);
        let half = 1_u64 << 31;
        let [x, y] = frame.corner([half, half]);
        assert!((x - 15.0).abs() < 1e-8 && (y + 2.0).abs() < 1e-8, "{x} {y}");
        // Equal coordinates on all axes have no levels.
        assert_eq!(Frame::<2>::of_box([7.0; 2], [7.0; 2], 32).levels, 0);
        // Adjacent numbers are in different halves.
        let frame = Frame::<1>::of_box([1.0], [1.0_f64.next_up()], 32);
        assert_eq!((frame.unit([1.0]), frame.unit([1.0_f64.next_up()])), ([0], [(1 << frame.levels) - 1]));
        assert!(frame.levels > 0);
    }

    #[test]
    fn codes_are_child_numbers() {
        let frame = Frame::<2>::new([0.0, 0.0], [15.0, 15.0], 4);
        assert_eq!(frame.levels, 4);
        let unit = frame.unit([0b1011 as f32, 0b0110 as f32]);
        assert_eq!(unit, [0b1011, 0b0110]);
        assert_eq!(frame.code(unit, 0, 4), 0b10_01_11_10);
        assert_eq!(frame.code(unit, 1, 2), 0b01_11);
        assert_eq!(frame.code(unit, 4, 0), 0);
        assert_eq!(frame.unit_of_any([-3.0_f32, 99.0]), [-1, 16]);
        assert_eq!(frame.unit_of_any([f64::NEG_INFINITY, f64::INFINITY]), [-1, 16]);
        assert_eq!(frame.unit_of_any([0.0_f32, 15.5]), [0, 15]);
    }
}
