//! The heights of the cells of a raster, and the Delaunay triangulation.

use super::disk::{self, weighted_disk};
use super::natural::natural_neighbor;
use super::nearest_k::weighted_nearest;
use super::order::height_value;
use super::star::own_triangles;
use super::tree::{DevicePoints, Missing, NO_SLOT};
use super::triangles::linear;
use crate::policy::{PER_ITEM_THREADS, TERRAIN_MIN_BLOCKS, TERRAIN_THREADS, TERRAIN_TRIANGLES_MIN_BLOCKS};
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
    /// Writes the value of the thread's cell, from the height in steps at its center. A thread without a cell passes no center.
    #[inline(always)]
    unsafe fn write(&self, height: impl FnOnce(Option<[i32; 2]>) -> Result<f64, Missing>) {
        let cell = self.cells.in_block(thread::index_1d_u64());
        let i = self.cells.index(cell);
        let value = self.cells.value(height(i.map(|_| self.cells.center_of(cell))));
        if let Some(i) = i {
            self.values.store(i, value);
        }
    }
}

/// Writes a statistic of the points within a radius of the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_statistic(task: Task<'_>, radius2: i64, statistic: u32) {
    task.write(|center| disk::statistic(&task.points, center, radius2, statistic));
}

/// Writes the average of the points within a radius of the center of each cell, weighted by inverse distance; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, min_blocks = TERRAIN_MIN_BLOCKS, hot)]
pub unsafe fn terrain_weighted(task: Task<'_>, radius2: i64, power: u32) {
    task.write(|center| weighted_disk(&task.points, center, radius2, power));
}

/// Writes the average of up to `k` nearest points of the center of each cell within a radius, weighted by inverse distance; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
#[instances(K = [1, 8, 16, 32])]
pub unsafe fn terrain_nearest<const K: usize>(task: Task<'_>, k: u32, radius2: i64, power: u32) {
    task.write(|center| weighted_nearest::<_, K>(&task.points, center, k as usize, radius2, power));
}

/// Writes the height of the Delaunay triangle at the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, min_blocks = TERRAIN_TRIANGLES_MIN_BLOCKS, hot)]
pub unsafe fn terrain_tin(task: Task<'_>, max_edge2: i64) {
    task.write(|center| linear(&task.points, center, max_edge2));
}

/// Writes the natural neighbor interpolation at the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, min_blocks = TERRAIN_TRIANGLES_MIN_BLOCKS, hot)]
pub unsafe fn terrain_natural_neighbor(task: Task<'_>) {
    task.write(|center| natural_neighbor(&task.points, center));
}

/// Appends the triangles of the Delaunay triangulation in any order, those of each point in theirs; a thread per point. A triangle is
/// that point, which has the least slot of its corners, and the other two, the second in the high bits.
#[kernel(family = "terrain", block = TERRAIN_THREADS, min_blocks = TERRAIN_TRIANGLES_MIN_BLOCKS, hot)]
pub unsafe fn terrain_triangles(
    points: DevicePoints<'_>,
    owners: SliceMut<u32>,
    others: SliceMut<u64>,
    count: SliceMut<u32>,
) {
    let slot = own_item(points.heights.len()).map(|slot| slot as u32);
    own_triangles(&points, slot, |second, third| {
        let at = count.atomic_add(0, 1, Ordering::Relaxed, Scope::Device) as usize;
        if at < owners.len() {
            owners.store(at, slot.unwrap_or(NO_SLOT));
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
