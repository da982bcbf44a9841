//! The grid of a join on a GPU.

use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::grid::{GridOf, grid_of};
use crate::join::params::{JoinParams, Lookup};
use crate::primitives::bounds::Bounds;
use crate::primitives::cpu;
use crate::primitives::planned::{bytes_of, carve};
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::Shape;
use kauri_kernels::thread::coord::Float;

/// A grid in the form that kernels load, independent of the number of dimensions.
pub(super) struct PackedGrid {
    pub(super) dims: usize,
    words: Vec<f64>,
    bits: u32,
    /// Bits of the codes of cells.
    pub(super) cell_bits: u32,
    /// Bits of all codes, including the code of points outside the grid.
    pub(super) code_bits: u32,
    pub(super) lookup: Lookup,
}

impl PackedGrid {
    fn new<const D: usize>(of: &GridOf<D>, lookup: Lookup) -> Self {
        let grid = &of.grid;
        // One more bit for points outside the grid.
        let (bits, cell_bits) = (grid.bits, grid.code_bits());
        let code_bits = (cell_bits + u32::from(!of.has_all)).min(u64::BITS);
        Self { dims: D, words: grid.to_words().collect(), bits, cell_bits, code_bits, lookup }
    }

    /// Returns a grid that takes at least as much memory as any grid of points of `dims` dimensions.
    pub(super) fn largest(dims: usize, lookup: Lookup) -> Self {
        let bits = u64::BITS;
        Self { dims, words: vec![0.0; 1 + 2 * dims], bits, cell_bits: bits, code_bits: bits, lookup }
    }

    /// Returns the number of cells, many of which may be empty.
    pub(super) fn num_cells(&self) -> f64 {
        self.extents().map(|extent| extent.floor() + 1.0).product()
    }

    /// Returns the average number of points in the neighbor cells of a point, for `len` uniform points.
    pub(super) fn density(&self, len: usize) -> f64 {
        self.extents().map(|extent| 3.0 / extent.max(3.0)).product::<f64>() * len as f64
    }

    /// Plans the memory of the grid on the device.
    pub(super) fn plan(&self, layout: &mut Layout) -> Region<f64> {
        layout.reserve(self.words.len())
    }

    /// Uploads the grid to the planned memory.
    pub(super) fn upload<'a, C>(
        &self,
        temp: &Temp<'a>,
        words: Region<f64>,
        params: &JoinParams<C>,
    ) -> Result<GridView<'a>> {
        let words = temp.view(words);
        temp.upload(words, &self.words)?;
        let &JoinParams { norm, curve, pairing, .. } = params;
        let shape = Shape { bits: self.bits, curve, norm, pairing }.to_word();
        let &Self { dims, cell_bits, code_bits, .. } = self;
        Ok(GridView { dims, words: words.read_only(), shape, cell_bits, code_bits })
    }

    /// Returns the extent of the grid along each axis, in cells.
    fn extents(&self) -> impl Iterator<Item = f64> {
        let (cells_per_unit, corners) = (self.words[0], &self.words[1..]);
        let (low, high) = corners.split_at(self.dims);
        low.iter().zip(high).map(move |(low, high)| (high - low) * cells_per_unit)
    }
}

/// Computes the grid of two sets in device memory, or returns `None` if no pair is possible. Waits for the bounding boxes.
pub(super) fn grid_of_device_sets<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: [Slice<'_, C>; 2],
    params: &JoinParams<C>,
) -> Result<Option<PackedGrid>> {
    if coords.iter().any(|coords| coords.is_empty()) {
        return Ok(None);
    }
    with_exact_dims!(params.dims, D => grid_of_dims::<C, D>(stream, workspace, coords, params))
}

/// Computes the grid of two sets in host memory, or returns `None` if no pair is possible.
pub(super) fn grid_of_host_sets<C: Float>(coords: [&[C]; 2], params: &JoinParams<C>) -> Option<PackedGrid> {
    if coords.iter().any(|coords| coords.is_empty()) {
        return None;
    }
    with_exact_dims!(params.dims, D => {
        let boxes = coords.map(|coords| cpu::bounds::bounds(coords.as_chunks::<D>().0));
        grid_of(boxes, params).map(|of| PackedGrid::new(&of, params.lookup))
    })
}

fn grid_of_dims<C: Float, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: [Slice<'_, C>; 2],
    params: &JoinParams<C>,
) -> Result<Option<PackedGrid>> {
    let plan = |layout: &mut _| plan_bounds::<C>(layout, D);
    let ((bounds, corners), temp) = carve(stream, workspace, "boxes of points", plan)?;
    let corners = temp.view(corners);
    // SAFETY: each box has two corners, the coordinates are those of whole points, and nothing else uses the memory of the plan.
    let corners = unsafe {
        bounds.run(&temp, coords[0], D, corners.part(0, 2 * D))?;
        bounds.run(&temp, coords[1], D, corners.part(2 * D, 2 * D))?;
        stream.read(corners.read_only())?
    };
    let corners = corners.as_chunks::<D>().0;
    let grid = grid_of([[corners[0], corners[1]], [corners[2], corners[3]]], params);
    Ok(grid.map(|of| PackedGrid::new(&of, params.lookup)))
}

/// Plans the scratch memory of the bounding boxes of two sets.
fn plan_bounds<C: Float>(layout: &mut Layout, dims: usize) -> (Bounds<C>, Region<C>) {
    (Bounds::plan(layout, dims), layout.reserve(4 * dims))
}

/// Returns the scratch bytes of [`grid_of_device_sets`].
pub(super) fn bounds_bytes<C: Float>(dims: usize) -> u64 {
    bytes_of(|layout| plan_bounds::<C>(layout, dims))
}

/// The grid on the device.
#[derive(Clone, Copy)]
pub(super) struct GridView<'a> {
    pub(super) dims: usize,
    pub(super) words: Slice<'a, f64>,
    pub(super) shape: u32,
    pub(super) cell_bits: u32,
    pub(super) code_bits: u32,
}
