//! The heights of the cells of a raster, and the Delaunay triangulation.

use super::apex::Vertex;
use super::cells::Cells;
use super::disk::{Disk, WeightedDisk, weighted_row};
use super::natural::natural_neighbor;
use super::order::height_value;
use super::star::own_triangles;
use super::tree::{NO_SLOT, Nearest, PointTree, search};
use super::triangles::{edges_are_within, interpolate, locate};
use crate::policy::{PER_ITEM_THREADS, TERRAIN_THREADS};
use crate::query::buckets::Index;
use crate::thread::items::own_item;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// The cells of a launch, whose values are computed.
#[derive(Clone, Copy, KernelArgs)]
pub struct Task<'a> {
    /// The positions in their order.
    pub index: crate::query::buckets::Index<'a, i32>,
    /// The height of each position.
    pub heights: Slice<'a, i32>,
    /// The cells.
    pub cells: crate::terrain::cells::Cells,
    /// The value of each cell; NaN where there is none.
    pub values: SliceMut<'a, f32>,
}

impl<'a> Task<'a> {
    /// Writes the value of the thread's cell, in steps, from the center of the cell.
    #[inline(always)]
    unsafe fn write(&self, height: impl FnOnce(&Index<'a, i32>, [i32; 2]) -> Option<f64>) {
        let cell = self.cells.in_block(thread::index_1d_u64());
        let Some(i) = self.cells.index(cell) else { return };
        let value = height(&self.index, self.cells.center_of(cell));
        self.values.store(i, value.map_or(f32::NAN, |steps| self.cells.height(steps)));
    }

    #[inline(always)]
    fn heights(&self) -> impl Fn(u32) -> i32 + Copy + 'a {
        let heights = self.heights;
        move |slot| unsafe { heights.load(slot as usize) }
    }
}

/// Writes a statistic of the points within a radius of the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_statistic(task: Task<'_>, radius2: i64, statistic: u32) {
    task.write(|index, center| {
        let mut disk = Disk::new(center, radius2, task.heights());
        search(index, None, &mut disk);
        disk.value(statistic)
    });
}

/// Writes the average of the points within a radius of the center of each cell, weighted by inverse distance; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_weighted(task: Task<'_>, radius2: i64, power: u32) {
    task.write(|index, center| weighted_disk(index, task.heights(), center, radius2, power));
}

/// Returns the average of the points within a radius of a position, weighted by inverse distance.
///
/// # Safety
/// As [`search`]; `heights` returns the height of each slot.
#[inline(always)]
pub unsafe fn weighted_disk<T: PointTree>(
    tree: &T,
    heights: impl Fn(u32) -> i32,
    position: [i32; 2],
    radius2: i64,
    power: u32,
) -> Option<f64> {
    let mut nearest = Nearest::new(position, NO_SLOT, radius2);
    search(tree, None, &mut nearest);
    if nearest.slot == NO_SLOT {
        return None;
    }
    let mut disk = WeightedDisk::new(position, radius2, nearest.distance2, power, heights);
    search(tree, Some(nearest.slot), &mut disk);
    Some(disk.value())
}

/// Writes the height of the Delaunay triangle at the center of each cell, if its edges are at most as long as the root of `max_edge2`; a
/// thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_tin(task: Task<'_>, max_edge2: i64) {
    task.write(|index, center| linear(index, task.heights(), center, max_edge2));
}

/// Returns the height of the Delaunay triangle at a position.
///
/// # Safety
/// As [`search`]; `heights` returns the height of each slot.
#[inline(always)]
pub unsafe fn linear<T: PointTree>(
    tree: &T,
    heights: impl Fn(u32) -> i32,
    position: [i32; 2],
    max_edge2: i64,
) -> Option<f64> {
    let triangle = locate(tree, position)?;
    let corners = triangle.map(|Vertex { slot, .. }| heights(slot));
    edges_are_within(triangle, max_edge2).then(|| interpolate(triangle, corners, position))
}

/// Writes the natural neighbor interpolation at the center of each cell; a thread per cell.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_natural_neighbor(task: Task<'_>) {
    task.write(|index, center| natural_neighbor(index, task.heights(), center));
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
    cells: Cells,
    heights: Slice<i32>,
    dist2: Slice<f64>,
    ids: Slice<u32>,
    k: u32,
    power: u32,
    values: SliceMut<f32>,
) {
    let (query, k) = (thread::index_1d_u64(), k as usize);
    let Some(i) = cells.index(cells.in_block(query)) else { return };
    let begin = query as usize * k;
    let row = |entry| (dist2.load(begin + entry), ids.load(begin + entry));
    let height = weighted_row(k, power, row, |slot| heights.load(slot as usize));
    values.store(i, height.map_or(f32::NAN, |steps| cells.height(steps)));
}

/// Appends the triangles of the Delaunay triangulation in any order, those of each point in theirs; a thread per point. A triangle is
/// that point, which has the least slot of its corners, and the other two, the second in the high bits.
#[kernel(family = "terrain", block = TERRAIN_THREADS, hot)]
pub unsafe fn terrain_triangles(
    index: Index<'_, i32>,
    owners: SliceMut<u32>,
    others: SliceMut<u64>,
    count: SliceMut<u32>,
) {
    let Some(slot) = own_item(index.ids.len()) else { return };
    own_triangles(&index, slot as u32, |second, third| {
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
