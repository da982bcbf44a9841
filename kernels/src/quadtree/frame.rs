//! Cells in integer units, so that every device and every builder agrees on the cell of a point.
//!
//! The side of a cell is a power of two of units, and the length of a unit is a power of two. A coordinate in units is therefore exact,
//! and so is its unit number, the greatest integer that is not above it. Only a coordinate that is tiny compared with a unit can
//! underflow; its sign then decides its unit number. No rounding affects the comparison of a point with the border of a cell.

use crate::join::curve::Curve;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Maximum number of levels below the root.
pub const MAX_LEVELS: u32 = 32;

/// The cell of the root, and the units that cells are measured in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<const D: usize> {
    /// Units per length of 1: a power of two.
    per_length: f64,
    /// The unit number of the root's low corner on each axis.
    origin: [i64; D],
    /// The root has 2^`levels` units on a side, so cells of level `levels` are single units.
    pub levels: u32,
}

impl<const D: usize> Frame<D> {
    /// Returns the smallest root that contains a box, with up to `max_levels` levels, from 1 to [`MAX_LEVELS`]. It has fewer levels if no
    /// two `f64` near the corners could be in different cells of the next level.
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
            let frame = Self { per_length: power(-unit), origin: [0; D], levels: (side - unit) as u32 };
            let origin = frame.unit_numbers(low);
            let last = frame.unit_numbers(high);
            if (0..D).all(|axis| last[axis] - origin[axis] < 1 << frame.levels) {
                return Self { origin, ..frame };
            }
            side += 1;
        }
    }

    /// Returns the unit numbers of a point near the root.
    #[inline(always)]
    fn unit_numbers<C: Coord>(&self, point: [C; D]) -> [i64; D] {
        let mut numbers = [0; D];
        for axis in 0..D {
            let x = point[axis].to_f64();
            numbers[axis] = unit_number(x, x * self.per_length);
        }
        numbers
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
            let x = point[axis].to_f64();
            // Clamped beyond any root, so that the conversion to an integer does not overflow.
            let in_root = unit_number(x, (x * self.per_length).clamp(-FAR, FAR)) - self.origin[axis];
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
            let units = point[axis].to_f64() * self.per_length - self.origin[axis] as f64;
            sum += (units - position[axis]) * (units - position[axis]);
        }
        sum
    }

    /// Returns the coordinates of a corner of units: exact, or infinite if they are beyond `f64`.
    pub fn corner(&self, units: [u64; D]) -> [f64; D] {
        let length = 1.0 / self.per_length;
        core::array::from_fn(|axis| (self.origin[axis] + units[axis] as i64) as f64 * length)
    }

    /// Number of words of a frame in memory and in files.
    pub const WORDS: usize = 2 + D;

    /// Returns the frame as words.
    pub fn to_words(&self) -> impl Iterator<Item = u64> {
        let origin = self.origin.into_iter().map(|number| number as u64);
        [self.per_length.to_bits(), self.levels.into()].into_iter().chain(origin)
    }

    /// Returns the frame that words encode, if they encode one.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let (&[per_length, levels], origin) = words.split_first_chunk()?;
        let origin: [u64; D] = origin.try_into().ok()?;
        let frame = Self {
            per_length: f64::from_bits(per_length),
            origin: origin.map(|number| number as i64),
            levels: u32::try_from(levels).ok()?,
        };
        // A power of two has no sign and no fraction bits.
        let is_power = frame.per_length.is_normal() && per_length >> 63 == 0 && per_length << 12 == 0;
        let is_near = frame.origin.iter().all(|number| number.unsigned_abs() <= 1 << 54);
        (is_power && is_near && frame.levels <= MAX_LEVELS).then_some(frame)
    }

    /// Loads a frame from device memory.
    ///
    /// # Safety
    /// The words encode a frame of `D` dimensions.
    #[inline(always)]
    pub(super) unsafe fn load(words: Slice<'_, u64>) -> Self {
        let mut origin = [0; D];
        for axis in 0..D {
            origin[axis] = words.load(2 + axis) as i64;
        }
        Self { per_length: f64::from_bits(words.load(0)), origin, levels: words.load(1) as u32 }
    }
}

/// 2^60 units; a root is at most 2^54 units from 0.
const FAR: f64 = (1_u64 << 60) as f64;

/// Returns the greatest integer that is not above `units`, which is coordinate `x` in units.
#[inline(always)]
fn unit_number(x: f64, units: f64) -> i64 {
    // Rounds towards 0, then corrects down. Within one unit of 0 the sign of `x` decides, since `units` may have underflowed to 0.
    let whole = units as i64;
    let is_above = if whole == 0 { x < 0.0 } else { whole as f64 > units };
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
    use super::*;

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
