//! The order of points: the Z-order of the integers of their lattice, so that of any two points the same one is first, whatever other points
//! there are.

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

/// Returns the code of x and y.
#[inline(always)]
pub fn code(point: [i32; 2]) -> u64 {
    Curve::ZOrder.code(point.map(|coordinate| (coordinate ^ i32::MIN) as u32), 2, u32::BITS)
}

/// Returns x and y of a code.
#[inline(always)]
pub fn decoded(code: u64) -> [i32; 2] {
    [code >> 1, code].map(|bits| compact(bits) as i32 ^ i32::MIN)
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
