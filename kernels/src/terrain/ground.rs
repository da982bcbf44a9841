//! The progressive morphological filter (Zhang et al. 2003), which tells ground from buildings and trees.
//!
//! The least height of each cell of a raster is a first surface. An opening, the greatest of the least heights of a square window, removes
//! what is narrower than the window. Windows grow; each window opens the surface of the window before. A point that is above the opened
//! surface by more than the threshold of the window is not ground. Heights are integers, so the result is exact.

use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// The height of a cell without points. It is above all others.
pub const NO_HEIGHT: i32 = i32::MAX;

/// A raster of heights over points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelArgs)]
pub struct GroundCells {
    /// The least x of the points.
    pub low_x: i32,
    /// The least y of the points.
    pub low_y: i32,
    /// The side of a cell along x, in steps.
    pub side_x: u32,
    /// The side of a cell along y, in steps.
    pub side_y: u32,
    /// Cells of a row.
    pub columns: u32,
    /// Number of rows.
    pub rows: u32,
}

impl GroundCells {
    /// Returns the number of cells.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.columns as usize * self.rows as usize
    }

    /// Returns true if there are no cells.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cell of a point.
    #[inline(always)]
    pub fn cell(&self, [x, y]: [i32; 2]) -> usize {
        let column = x.wrapping_sub(self.low_x) as u32 / self.side_x;
        let row = y.wrapping_sub(self.low_y) as u32 / self.side_y;
        row as usize * self.columns as usize + column as usize
    }

    /// Returns the least or the greatest height of a cell and of the cells `step` before and after it along an axis. A cell outside of
    /// the raster stands for the cell at the border.
    ///
    /// If the heights are those of windows that end `radius` cells away, and `step` is at most `2 * radius + 1`, the results are those
    /// of windows that end `radius + step` cells away.
    #[inline(always)]
    pub fn widened(
        &self,
        heights: impl Fn(usize) -> i32,
        i: usize,
        step: u32,
        is_along_x: bool,
        is_min: bool,
    ) -> i32 {
        let (column, row) = (i as u32 % self.columns, i as u32 / self.columns);
        let (at, len, stride) =
            if is_along_x { (column, self.columns, 1) } else { (row, self.rows, self.columns as usize) };
        let before = if step < at { step } else { at };
        let after = if step < len - at { step } else { len - 1 - at };
        let [a, b, c] =
            [heights(i - before as usize * stride), heights(i), heights(i + after as usize * stride)];
        if is_min { a.min(b).min(c) } else { greatest(greatest(a, b), c) }
    }

    /// Returns the height of a cell; for a cell without one the least height of the cells that touch it.
    #[inline(always)]
    pub fn filled(&self, heights: impl Fn(usize) -> i32, i: usize) -> i32 {
        let height = heights(i);
        if height != NO_HEIGHT {
            return height;
        }
        let (column, row) = (i as u32 % self.columns, i as u32 / self.columns);
        let (mut least, mut y) = (NO_HEIGHT, row.saturating_sub(1));
        while y < self.rows && y <= row + 1 {
            let mut x = column.saturating_sub(1);
            while x < self.columns && x <= column + 1 {
                least = least.min(heights(y as usize * self.columns as usize + x as usize));
                x += 1;
            }
            y += 1;
        }
        least
    }
}

/// Returns the greater of two heights, either of which may be missing.
#[inline(always)]
fn greatest(a: i32, b: i32) -> i32 {
    if a == NO_HEIGHT || (b != NO_HEIGHT && b > a) { b } else { a }
}

/// Returns the height of a point that its cell takes: a point at [`NO_HEIGHT`] is a step lower.
#[inline(always)]
pub fn height_of_point(z: i32) -> i32 {
    z.min(NO_HEIGHT - 1)
}

/// Returns the greatest height of ground after a window, given that after the window before.
#[inline(always)]
pub fn lowered(limit: i32, opened: i32, threshold: i32) -> i32 {
    limit.min(opened.saturating_add(threshold))
}

/// Lowers the height of each point's cell to that of the point. One thread per point.
#[kernel(family = "terrain", block = PER_ITEM_THREADS, hot)]
pub unsafe fn terrain_ground_minima(points: Slice<i32>, cells: GroundCells, heights: SliceMut<i32>) {
    let Some(i) = own_item(points.len() / 3) else { return };
    let cell = cells.cell([points.load(3 * i), points.load(3 * i + 1)]);
    let height = height_of_point(points.load(3 * i + 2));
    heights.atomic_min(cell, height, Ordering::Relaxed, Scope::Device);
}

/// Fills cells without heights from the cells that touch them. One thread per cell.
#[kernel(family = "terrain", block = PER_ITEM_THREADS, hot)]
pub unsafe fn terrain_ground_fill(heights: Slice<i32>, cells: GroundCells, filled: SliceMut<i32>) {
    let Some(i) = own_item(filled.len()) else { return };
    filled.store(i, cells.filled(|i| heights.load(i), i));
}

/// [Widens](GroundCells::widened) windows. One thread per cell.
#[kernel(family = "terrain", block = PER_ITEM_THREADS, hot)]
pub unsafe fn terrain_ground_widen(
    heights: Slice<i32>,
    cells: GroundCells,
    step: u32,
    is_along_x: u32,
    is_min: u32,
    widened: SliceMut<i32>,
) {
    let Some(i) = own_item(widened.len()) else { return };
    widened.store(i, cells.widened(|i| heights.load(i), i, step, is_along_x != 0, is_min != 0));
}

/// Lowers the limit of each cell to the opened surface plus the threshold. One thread per cell.
#[kernel(family = "terrain", block = PER_ITEM_THREADS, hot)]
pub unsafe fn terrain_ground_limit(opened: Slice<i32>, threshold: i32, limits: SliceMut<i32>) {
    let Some(i) = own_item(limits.len()) else { return };
    limits.store(i, lowered(limits.load(i), opened.load(i), threshold));
}

/// Writes 1 for each point that is not above the limit of its cell, otherwise 0. One thread per point.
#[kernel(family = "terrain", block = PER_ITEM_THREADS, hot)]
pub unsafe fn terrain_ground_classify(
    points: Slice<i32>,
    cells: GroundCells,
    limits: Slice<i32>,
    is_ground: SliceMut<u8>,
) {
    let Some(i) = own_item(is_ground.len()) else { return };
    let cell = cells.cell([points.load(3 * i), points.load(3 * i + 1)]);
    is_ground.store(i, u8::from(points.load(3 * i + 2) <= limits.load(cell)));
}
