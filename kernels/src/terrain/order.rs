//! The order of positions: the Z-order of the lattice, so that slots are ordered by position whatever other points there are.

use super::cells::MAX_COORDINATE;
use crate::join::curve::Curve;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Bits of a coordinate of a code.
pub const CODE_BITS: u32 = 30;

/// From points to positions and values.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Frame {
    /// The least x and y that points may have.
    pub low_x: i32,
    /// See `low_x`.
    pub low_y: i32,
    /// Steps of a position in a step of the points' lattice.
    pub steps: i32,
    /// Coordinates of a point: x, y and, if there are three, the height.
    pub stride: u32,
}

impl Frame {
    /// Returns the position of a point, from 0 to [`MAX_COORDINATE`].
    #[inline(always)]
    pub fn position(&self, [x, y]: [i32; 2]) -> [i32; 2] {
        [x.wrapping_sub(self.low_x), y.wrapping_sub(self.low_y)].map(|steps| steps.wrapping_mul(self.steps))
    }
}

/// Returns the code of a position.
#[inline(always)]
pub fn code(position: [i32; 2]) -> u64 {
    Curve::ZOrder.code(
        position.map(|coordinate| (coordinate & (2 * MAX_COORDINATE - 1)) as u32),
        2,
        CODE_BITS,
    )
}

/// Returns the position of a code.
#[inline(always)]
pub fn position(code: u64) -> [i32; 2] {
    [compact(code >> 1), compact(code)]
}

/// Returns every second bit of a number, from the lowest on.
#[inline(always)]
fn compact(bits: u64) -> i32 {
    let x = bits & 0x5555_5555_5555_5555;
    let x = (x | x >> 1) & 0x3333_3333_3333_3333;
    let x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
    let x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
    let x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF;
    (x | x >> 16) as u32 as i32
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

/// Writes the code of each point, and its value: of its height, or else its index; a thread per point.
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_codes(points: Slice<i32>, frame: Frame, codes: SliceMut<u64>, values: SliceMut<u32>) {
    let Some(i) = own_item(codes.len()) else { return };
    let begin = i * frame.stride as usize;
    codes.store(i, code(frame.position([points.load(begin), points.load(begin + 1)])));
    values.store(i, if frame.stride > 2 { height_value(points.load(begin + 2)) } else { i as u32 });
}

/// Writes the positions of sorted codes and their heights; a thread per code. Without values there are no heights.
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_positions(
    codes: Slice<u64>,
    values: Slice<u32>,
    coords: SliceMut<i32>,
    heights: SliceMut<i32>,
) {
    let Some(i) = own_item(codes.len()) else { return };
    let [x, y] = position(codes.load(i));
    coords.store(2 * i, x);
    coords.store(2 * i + 1, y);
    if i < heights.len() {
        heights.store(i, value_height(values.load(i)));
    }
}
