//! The cells of a raster whose centers are in a leaf.

use super::Extent;
use crate::policy::PER_ITEM_THREADS;
use crate::quadtree::frame::Frame;
use crate::quadtree::node::Node;
use crate::terrain::cells::Cells;
use crate::thread::items::own_item;
use crate::thread::search::partition_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// A rectangle of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The first column.
    pub first_column: u32,
    /// One after the last column.
    pub end_column: u32,
    /// The first row.
    pub first_row: u32,
    /// One after the last row.
    pub end_row: u32,
}

impl Area {
    /// Returns the cells whose centers are in a leaf. The leaves at the border of the root have the cells outside of the root as well, so
    /// that each cell belongs to one leaf.
    #[inline(always)]
    pub fn of_leaf(frame: &Frame<2>, cells: &Cells, first_unit: [u32; 2], level: u32) -> Self {
        let last_of_root = (1_i64 << frame.levels) - 1;
        let x = |column: usize| {
            let [x, _] = cells.center_of([column as u32, 0]);
            frame.unit_of_any([x; 2])[0].clamp(0, last_of_root)
        };
        let y = |row: usize| {
            let [_, y] = cells.center_of([0, row as u32]);
            frame.unit_of_any([y; 2])[1].clamp(0, last_of_root)
        };
        let side = 1 << (frame.levels - level);
        let (west, south) = (i64::from(first_unit[0]), i64::from(first_unit[1]));
        let (columns, rows) = (cells.columns as usize, cells.rows as usize);
        // Rows go from north to south.
        Self {
            first_column: partition_point(0, columns, |column| x(column) < west) as u32,
            end_column: partition_point(0, columns, |column| x(column) < west + side) as u32,
            first_row: partition_point(0, rows, |row| y(row) >= south + side) as u32,
            end_row: partition_point(0, rows, |row| y(row) >= south) as u32,
        }
    }

    /// Returns the number of cells.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        (self.end_column - self.first_column) * (self.end_row - self.first_row)
    }

    /// Returns true if there are no cells.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns column and row of cell `i` of the area, row after row.
    #[inline(always)]
    pub fn cell(&self, i: u32) -> [u32; 2] {
        let width = self.end_column - self.first_column;
        [self.first_column + i % width, self.first_row + i / width]
    }

    /// Loads the area of a node.
    ///
    /// # Safety
    /// There is an area for this node.
    #[inline(always)]
    pub(super) unsafe fn load(areas: Slice<'_, u32>, node: usize) -> Self {
        let [first_column, end_column, first_row, end_row] = areas.load_16::<4>(node);
        Self { first_column, end_column, first_row, end_row }
    }
}

/// Writes the area of each leaf, four numbers for each node, and flags the leaves whose area has cells, and those whose points are all
/// known. One thread per node.
#[kernel(family = "terrain-spline", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_spline_areas(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    first_units: Slice<u32>,
    cells: Cells,
    extent: Extent,
    areas: SliceMut<u32>,
    flags: SliceMut<u8>,
    known: SliceMut<u8>,
) {
    let Some(i) = own_item(nodes.len()) else { return };
    let node = Node::from_bits(nodes.load(i));
    let mut flag = 0;
    if node.is_leaf() {
        let first_unit = [first_units.load(2 * i), first_units.load(2 * i + 1)];
        let frame = Frame::<2>::load(frame);
        known.store(i, u8::from(extent.has_points_of(&frame, first_unit, node.level)));
        let area = Area::of_leaf(&frame, &cells, first_unit, node.level);
        areas.store_16(i, [area.first_column, area.end_column, area.first_row, area.end_row]);
        flag = u8::from(!area.is_empty());
    }
    flags.store(i, flag);
}

/// Writes the number of cells of each of the `leaves`. One thread per leaf.
#[kernel(family = "terrain-spline", block = PER_ITEM_THREADS)]
pub unsafe fn terrain_spline_counts(areas: Slice<u32>, leaves: Slice<u32>, counts: SliceMut<u32>) {
    let Some(i) = own_item(counts.len()) else { return };
    counts.store(i, Area::load(areas, leaves.load(i) as usize).len());
}
