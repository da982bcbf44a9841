//! The order of points: along the Hilbert curve over the integers of their lattice, so that of any two points the same one is first, whatever other
//! points there are.
//!
//! Consecutive points are near each other. In Z-order, runs of points cross gaps of the curve: of 2.9M points the 12 nearest then took 54
//! buckets.

use crate::join::curve::Curve;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// From points to positions.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Frame {
    /// x of the point whose position is 0.
    pub low_x: i32,
    /// y of the point whose position is 0.
    pub low_y: i32,
    /// Steps of a position in a step of the points' lattice.
    pub steps: i32,
}

impl Frame {
    /// Returns the position of a point. It is in the range of positions if the point is in that of the frame.
    #[inline(always)]
    pub fn position(&self, [x, y]: [i32; 2]) -> [i32; 2] {
        [x.wrapping_sub(self.low_x), y.wrapping_sub(self.low_y)].map(|steps| steps.wrapping_mul(self.steps))
    }
}

/// Returns the code of x and y. Points in a square that is aligned to a power of two have the same high bits.
#[inline(always)]
pub fn code(point: [i32; 2]) -> u64 {
    Curve::Hilbert.code(cell(point), 2, u32::BITS)
}

/// Returns the Z-order code of x and y, which is faster to compute than [`code`]. If the first `n` bits of one code agree for two points and `n` is
/// even, those of the other code agree too: the points are in the same square.
#[inline(always)]
pub fn z_code(point: [i32; 2]) -> u64 {
    Curve::ZOrder.code(cell(point), 2, u32::BITS)
}

#[inline(always)]
fn cell(point: [i32; 2]) -> [u32; 2] {
    point.map(|coordinate| (coordinate ^ i32::MIN) as u32)
}

/// Returns x and y of a code (Skilling 2004, *Programming the Hilbert curve*).
#[inline(always)]
pub fn decoded(code: u64) -> [i32; 2] {
    let [mut x, mut y] = [compact(code >> 1), compact(code)];
    // Undo the Gray code, then the swaps and mirrors from the lowest bit on.
    (x, y) = (x ^ y >> 1, y ^ x);
    let mut bit = 1;
    while bit < u32::BITS {
        let below = (1 << bit) - 1;
        let mut swapped = (x ^ y) & below;
        if y >> bit & 1 == 1 {
            x ^= below;
        } else {
            (x, y) = (x ^ swapped, y ^ swapped);
        }
        swapped = if x >> bit & 1 == 1 { below } else { 0 };
        x ^= swapped;
        bit += 1;
    }
    [x, y].map(|coordinate| coordinate as i32 ^ i32::MIN)
}

/// Returns every second bit of a number, from the lowest on.
#[inline(always)]
fn compact(bits: u64) -> u32 {
    let x = bits & 0x5555_5555_5555_5555;
    let x = (x | x >> 1) & 0x3333_3333_3333_3333;
    let x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
    let x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
    let x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF;
    (x | x >> 16) as u32
}

/// Returns the value that orders points at one position: the height as an unsigned integer of the same order.
#[inline(always)]
pub fn height_value(height: i32) -> u32 {
    height as u32 ^ 1 << 31
}

/// Returns the height of a value.
#[inline(always)]
pub fn value_height(value: u32) -> i32 {
    (value ^ 1 << 31) as i32
}

/// Writes the code of each point, and its value: of its height if there are three coordinates a point, or else its index; a thread per point.
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_codes(points: Slice<i32>, codes: SliceMut<u64>, values: SliceMut<u32>) {
    let Some(i) = own_item(codes.len()) else { return };
    let stride = points.len() / codes.len();
    let begin = i * stride;
    codes.store(i, code([points.load(begin), points.load(begin + 1)]));
    values.store(i, if stride > 2 { height_value(points.load(begin + 2)) } else { i as u32 });
}

/// Writes the positions of sorted codes, and their heights; a thread per code.
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_positions(
    codes: Slice<u64>,
    values: Slice<u32>,
    frame: Frame,
    coords: SliceMut<i32>,
    heights: SliceMut<i32>,
) {
    let Some(i) = own_item(codes.len()) else { return };
    let [x, y] = frame.position(decoded(codes.load(i)));
    coords.store(2 * i, x);
    coords.store(2 * i + 1, y);
    heights.store(i, value_height(values.load(i)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        let mut number = 1_u64;
        for i in 0..20_000 {
            number = number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let shift = i % 32;
            let point = [(number >> 32) as i32 >> shift, number as i32 >> shift];
            assert_eq!(decoded(code(point)), point);
        }
        for end in [i32::MIN, -1, 0, 1, i32::MAX] {
            assert_eq!(decoded(code([end, i32::MIN])), [end, i32::MIN]);
            assert_eq!(decoded(code([0, end])), [0, end]);
        }
    }

    #[test]
    fn consecutive_codes_are_neighbors() {
        let mut codes = [0; 4096];
        for i in 0..4096 {
            codes[i as usize] = code([i % 64, i / 64]);
        }
        codes.sort_unstable();
        for pair in codes.windows(2) {
            let [a, b] = [decoded(pair[0]), decoded(pair[1])];
            assert_eq!((a[0] - b[0]).abs() + (a[1] - b[1]).abs(), 1);
            assert_eq!(pair[0] + 1, pair[1]);
        }
    }
}
