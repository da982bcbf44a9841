//! The integers that cells are cut in, so that a point is in a cell or it is not, on every device and by every builder.
//!
//! Cells have a power of two of units on a side, and a unit is a power of two long: then a coordinate in units is exact, and so is its
//! number, the greatest integer that is not above it. Only a coordinate that is tiny beside a unit can underflow; its sign decides its
//! number. So no rounding comes between a point and the border of its cell.

use crate::join::curve::Curve;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Most levels below the root.
pub const MAX_LEVELS: u32 = 32;

/// The cell of the root, and the units that it is cut in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<const D: usize> {
    /// Units in a length of 1: a power of two.
    per_length: f64,
    /// The number of the root's low corner on each axis.
    origin: [i64; D],
    /// The root has 2^`levels` units on a side: cells of level `levels` are units.
    pub levels: u32,
}

impl<const D: usize> Frame<D> {
    /// The least root that has all points of a box, with cells of up to so many levels, from 1 to [`MAX_LEVELS`]. There are fewer if no
    /// two `f64` near those corners can be in different cells of the next level.
    ///
    /// The corners are finite, the low one not above the high one.
    pub fn new(low: [f64; D], high: [f64; D], max_levels: u32) -> Self {
        let (mut extent, mut largest) = (0.0, 0.0);
        for axis in 0..D {
            extent = f64::max(extent, high[axis] - low[axis]);
            largest = f64::max(largest, f64::max(low[axis].abs(), high[axis].abs()));
        }
        // A unit less than that would make numbers of more bits than an `f64` has.
        let least_unit = (exponent(largest) - 52).max(-1021);
        // The root is longer than the box, or as long and then one larger.
        let mut side = exponent(extent).max(least_unit);
        loop {
            let unit = (side - max_levels as i32).max(least_unit);
            let frame = Self { per_length: power(-unit), origin: [0; D], levels: (side - unit) as u32 };
            let origin = frame.numbers(low);
            let last = frame.numbers(high);
            if (0..D).all(|axis| last[axis] - origin[axis] < 1 << frame.levels) {
                return Self { origin, ..frame };
            }
            side += 1;
        }
    }

    /// The numbers of a point that is not far from the root.
    #[inline(always)]
    fn numbers<C: Coord>(&self, point: [C; D]) -> [i64; D] {
        let (mut numbers, mut axis) = ([0; D], 0);
        while axis < D {
            let x = point[axis].to_f64();
            numbers[axis] = number(x, x * self.per_length);
            axis += 1;
        }
        numbers
    }

    /// The unit that a point of the root is in.
    #[inline(always)]
    pub fn unit<C: Coord>(&self, point: [C; D]) -> [u32; D] {
        let (mut unit, mut axis) = (self.numbers(point), 0);
        while axis < D {
            unit[axis] = unit[axis].wrapping_sub(self.origin[axis]);
            axis += 1;
        }
        unit.map(|number| number as u32)
    }

    /// The unit of any point on each axis: -1 of one below the root, and as many as the root has of one above it.
    #[inline(always)]
    pub fn unit_of_any<C: Coord>(&self, point: [C; D]) -> [i64; D] {
        let (mut unit, above, mut axis) = ([0; D], 1 << self.levels, 0);
        while axis < D {
            let x = point[axis].to_f64();
            // Farther than any root is.
            let of_root = number(x, (x * self.per_length).clamp(-FAR, FAR)) - self.origin[axis];
            unit[axis] = if of_root < -1 { -1 } else { of_root };
            unit[axis] = if of_root < above { unit[axis] } else { above };
            axis += 1;
        }
        unit
    }

    /// True if a point is in the root.
    #[inline(always)]
    pub fn has<C: Coord>(&self, point: [C; D]) -> bool {
        let (unit, mut is_inside, mut axis) = (self.unit_of_any(point), true, 0);
        while axis < D {
            is_inside &= unit[axis] >= 0 && unit[axis] < 1 << self.levels;
            axis += 1;
        }
        is_inside
    }

    /// The way to a unit from one level on: for each of the next `num_levels` levels the child that it is in, in `D` bits, the first
    /// axis in the highest; the first level in the highest bits.
    #[inline(always)]
    pub fn code(&self, unit: [u32; D], level: u32, num_levels: u32) -> u32 {
        self.long_code(unit, level, num_levels) as u32
    }

    /// The same for as many levels as 64 bits have room for.
    #[inline(always)]
    pub fn long_code(&self, unit: [u32; D], level: u32, num_levels: u32) -> u64 {
        let (mut part, mut axis) = ([0; D], 0);
        while axis < D {
            // In 64 bits, where all 32 may be shifted out.
            let below = u64::from(unit[axis]) >> (self.levels - level - num_levels);
            part[axis] = (below & ((1 << num_levels) - 1)) as u32;
            axis += 1;
        }
        Curve::ZOrder.code(part, D, num_levels)
    }

    /// The square of how far a point is from a place in the root, in units; rounded.
    #[inline(always)]
    pub fn units_from<C: Coord>(&self, point: [C; D], place: [f64; D]) -> f64 {
        let (mut sum, mut axis) = (0.0, 0);
        while axis < D {
            let units = point[axis].to_f64() * self.per_length - self.origin[axis] as f64;
            sum += (units - place[axis]) * (units - place[axis]);
            axis += 1;
        }
        sum
    }

    /// A corner of units in the lengths of points; exact, or infinite beyond what there is.
    pub fn corner(&self, units: [u64; D]) -> [f64; D] {
        let length = 1.0 / self.per_length;
        core::array::from_fn(|axis| (self.origin[axis] + units[axis] as i64) as f64 * length)
    }

    /// Words of a frame in memory.
    pub const WORDS: usize = 2 + D;

    /// Those.
    pub fn to_words(&self) -> impl Iterator<Item = u64> {
        let origin = self.origin.into_iter().map(|number| number as u64);
        [self.per_length.to_bits(), self.levels.into()].into_iter().chain(origin)
    }

    /// The frame of such words, if they are those of one.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let (&[per_length, levels], origin) = words.split_first_chunk()?;
        let origin: [u64; D] = origin.try_into().ok()?;
        let frame = Self {
            per_length: f64::from_bits(per_length),
            origin: origin.map(|number| number as i64),
            levels: u32::try_from(levels).ok()?,
        };
        // No sign, no fraction.
        let is_power = frame.per_length.is_normal() && per_length >> 63 == 0 && per_length << 12 == 0;
        let is_near = frame.origin.iter().all(|number| number.unsigned_abs() <= 1 << 54);
        (is_power && is_near && frame.levels <= MAX_LEVELS).then_some(frame)
    }

    /// The frame of such words.
    ///
    /// # Safety
    /// They are those of a frame.
    #[inline(always)]
    pub(super) unsafe fn load(words: Slice<'_, u64>) -> Self {
        let (mut origin, mut axis) = ([0; D], 0);
        while axis < D {
            origin[axis] = words.load(2 + axis) as i64;
            axis += 1;
        }
        Self { per_length: f64::from_bits(words.load(0)), origin, levels: words.load(1) as u32 }
    }
}

/// 2^60 units: more than the 2^54 that a root may be from 0.
const FAR: f64 = (1_u64 << 60) as f64;

/// The greatest integer that is not above a coordinate `x` in units.
#[inline(always)]
fn number(x: f64, units: f64) -> i64 {
    // Towards 0, then down. Within one unit of 0 the sign of `x` decides: `units` may have underflowed to 0.
    let whole = units as i64;
    let is_above = if whole == 0 { x < 0.0 } else { whole as f64 > units };
    whole - i64::from(is_above)
}

/// The exponent of a number's highest bit, of less than the least normal number that one's.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52 & 0x7FF) as i32 - 1023).max(-1022)
}

/// A power of two that is a normal number.
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
        // Differences of numbers so near 0 from the corner are rounded to that of 0.
        let frame = Frame::<1>::new([-1.0], [1.0 - f64::EPSILON], 32);
        assert_eq!(frame.corner([1 << (frame.levels - 1)]), [0.0]);
        assert!(frame.unit([-1e-300])[0] < frame.unit([0.0])[0]);
        assert_eq!(frame.unit([0.0_f64])[0], frame.unit([-0.0_f64])[0]);
    }

    #[test]
    fn coordinates_that_underflow_keep_their_side_of_zero() {
        for far in [1e20, 1e150] {
            let frame = Frame::<1>::new([-far], [far], 32);
            let [of_zero] = frame.unit([0.0_f64]);
            for tiny in [5e-324, f64::MIN_POSITIVE, 1e-300, 1e-200, 1e-20] {
                assert_eq!(frame.unit([tiny]), [of_zero]);
                assert_eq!(frame.unit([-tiny]), [of_zero - 1], "-{tiny:e} in {frame:?}");
                assert_eq!(frame.unit_of_any([-tiny]), [i64::from(of_zero) - 1]);
            }
            assert_eq!(frame.unit([-0.0_f64]), [of_zero]);
            assert_eq!(frame.unit([-f32::from_bits(1)]), [of_zero - 1]);
        }
        // The root begins at 0: what is just below is outside.
        let frame = Frame::<1>::new([0.0], [1e150], 32);
        assert!(frame.has([0.0_f64]) && frame.has([-0.0_f64]) && !frame.has([-1e-200]));
    }

    #[test]
    fn the_root_has_the_box() {
        let ends = [0.0, 1.0, -1.0, 1e-30, 1e30, -1e30, 5e-324, 1e300, 3.0, 1.0 + f64::EPSILON, 4_500_000.25];
        for low in ends {
            for high in ends.into_iter().filter(|high| *high >= low) {
                for levels in [1, 2, 16, 32] {
                    let frame = Frame::<2>::new([low, low], [high, low], levels);
                    assert!(frame.levels <= levels && frame.has([high, low]) && frame.has([low, low]));
                    assert_eq!(frame.unit([low, low]), [0, 0]);
                    let top = frame.corner([1 << frame.levels; 2]);
                    assert!(top[0] > high && top[1] > low, "{low} to {high}, {frame:?}");
                    // Not twice as long as it need be, unless nothing is.
                    let side = top[0] - low;
                    assert!(frame.levels <= 1 || side <= 4.0 * (high - low), "{low} to {high}, {frame:?}");
                }
            }
        }
    }

    #[test]
    fn codes_are_ways() {
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
