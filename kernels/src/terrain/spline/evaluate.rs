//! The heights of cells by the splines of their leaves.

use super::Shape;
use super::areas::Area;
use super::solve::UNKNOWN;
use crate::policy::PER_ITEM_THREADS;
use crate::terrain::cells::Cells;
use crate::terrain::tree::Missing;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// The splines of some leaves.
#[derive(Clone, Copy, KernelArgs)]
pub struct Splines<'a> {
    /// The positions of the points, `capacity` for each spline.
    pub positions: Slice<'a, i32>,
    /// The weights of the points.
    pub weights: Slice<'a, f64>,
    /// The number of points of each spline; [`UNKNOWN`] if not all are known.
    pub lens: Slice<'a, u32>,
    /// The height of the anchor of each spline.
    pub bases: Slice<'a, i32>,
    /// The number that is added to the height of the anchor.
    pub shifts: Slice<'a, f64>,
    /// The largest number of points of a spline.
    pub capacity: u32,
}

/// Writes the heights of the cells of some leaves, in steps of many cells. `offsets` are the numbers of cells of the leaves before each
/// one; the first may be greater than 0. Any number of threads.
#[kernel(family = "terrain-spline", block = PER_ITEM_THREADS, hot)]
pub unsafe fn terrain_spline_evaluate(
    splines: Splines<'_>,
    areas: Slice<u32>,
    leaves: Slice<u32>,
    offsets: Slice<u64>,
    cells: Cells,
    shape: Shape,
    values: SliceMut<f32>,
) {
    let step = u64::from(thread::grid_dim_x()) * PER_ITEM_THREADS as u64;
    let (begin, end) = (offsets.load(0), offsets.load(leaves.len()));
    let mut number = begin + thread::index_1d_u64();
    while number < end {
        let leaf = partition_point(1, leaves.len(), |leaf| offsets.load(leaf) <= number) - 1;
        let area = Area::load(areas, leaves.load(leaf) as usize);
        let cell = area.cell((number - offsets.load(leaf)) as u32);
        if let Some(i) = cells.index(cell) {
            values.store(i, cells.value(splines.height(leaf, cells.center_of(cell), &shape)));
        }
        number += step;
    }
}

impl Splines<'_> {
    /// Returns the height at a position.
    #[inline(always)]
    unsafe fn height(&self, spline: usize, center: [i32; 2], shape: &Shape) -> Result<f64, Missing> {
        let (len, begin) = (self.lens.load(spline), spline * self.capacity as usize);
        match len {
            0 => return Err(Missing::NoValue),
            UNKNOWN => return Err(Missing::Unresolved),
            _ => {}
        }
        let (mut sum, mut i) = (0.0, begin);
        while i < begin + len as usize {
            let position = [self.positions.load(2 * i), self.positions.load(2 * i + 1)];
            sum += self.weights.load(i) * shape.radial(center, position);
            i += 1;
        }
        Ok(self.bases.load(spline) as f64 + (self.shifts.load(spline) - sum))
    }
}
