//! The heights of the cells of a raster, and the Delaunay triangulation.

use super::cells::Cells;
use super::disk::{self, weighted_disk, weighted_row};
use super::natural::natural_neighbor;
use super::order::height_value;
use super::star::own_triangles;
use super::tree::{DevicePoints, Missing};
use super::triangles::linear;
use crate::policy::{PER_ITEM_THREADS, TERRAIN_THREADS};
use crate::thread::items::own_item;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// The cells of a launch, whose values are computed.
#[derive(Clone, Copy, KernelArgs)]
pub struct Task<'a> {
    /// The points.
    pub points: crate::terrain::tree::DevicePoints<'a>,
    /// The cells.
    pub cells: crate::terrain::cells::Cells,
    /// The value of each cell.
    pub values: SliceMut<'a, f32>,
}

impl Task<'_> {
    /// Writes the value of the thread's cell, from the height in steps at its center.
    #[inline(always)]
    unsafe fn write(&self, height: impl FnOnce([i32; 2]) -> Result<f64, Missing>) {
        let cell = self.cells.in_block(thread::index_1d_u64());
        let Some(i) = self.cells.index(cell) else { return };
        self.values.store(i, self.cells.value(height(self.cells.center_of(cell))));
    }
}

/// Writes a statistic of the points within a radius of the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_statistic(task: Task<'_>, radius2: i64, statistic: u32) {
    task.write(|center| disk::statistic(&task.points, center, radius2, statistic));
}

/// Writes the average of the points within a radius of the center of each cell, weighted by inverse distance; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_weighted(task: Task<'_>, radius2: i64, power: u32) {
    task.write(|center| weighted_disk(&task.points, center, radius2, power));
}

/// Writes the height of the Delaunay triangle at the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_tin(task: Task<'_>, max_edge2: i64) {
    task.write(|center| linear(&task.points, center, max_edge2));
}

/// Writes the natural neighbor interpolation at the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_natural_neighbor(task: Task<'_>) {
    task.write(|center| natural_neighbor(&task.points, center));
}

/// Writes the center of each thread's cell, as queries in the order of the threads.
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_centers(cells: Cells, centers: SliceMut<i32>) {
    let Some(i) = own_item(centers.len() / 2) else { return };
    let [x, y] = cells.center_of(cells.in_block(i as u64));
    centers.store(2 * i, x);
    centers.store(2 * i + 1, y);
}

/// Writes the average of the `k` nearest points of each cell, weighted by inverse distance; a thread per query of [`terrain_centers`].
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_weighted_rows(
    task: Task<'_>,
    dist2: Slice<f64>,
    ids: Slice<u32>,
    k: u32,
    radius: f64,
    power: u32,
) {
    let begin = thread::index_1d_u64() as usize * k as usize;
    let row = |entry| (dist2.load(begin + entry), ids.load(begin + entry));
    task.write(|center| weighted_row(&task.points, center, (k as usize, radius, power), row));
}

/// Appends the triangles of the Delaunay triangulation in any order, those of each point in theirs; a thread per point. A triangle is
/// that point, which has the least slot of its corners, and the other two, the second in the high bits.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_triangles(
    points: DevicePoints<'_>,
    owners: SliceMut<u32>,
    others: SliceMut<u64>,
    count: SliceMut<u32>,
) {
    let Some(slot) = own_item(points.heights.len()) else { return };
    own_triangles(&points, slot as u32, |second, third| {
        let at = count.atomic_add(0, 1, Ordering::Relaxed, Scope::Device) as usize;
        if at < owners.len() {
            owners.store(at, slot as u32);
            others.store(at, (second as u64) << 32 | third as u64);
        }
    });
}

/// Writes the values of the corners of the first triangles; a thread per triangle.
#[kernel(family = "terrain", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_corners(
    owners: Slice<u32>,
    others: Slice<u64>,
    heights: Slice<i32>,
    corners: SliceMut<[u32; 3]>,
) {
    let Some(i) = own_item(corners.len()) else { return };
    let (first, others) = (owners.load(i), others.load(i));
    let slots = [first, (others >> 32) as u32, others as u32];
    corners.store(i, slots.map(|slot| height_value(heights.load(slot as usize))));
}
