//! Splines on a GPU.

use crate::device::{Buffer, Layout, Region, Stream, Workspace};
use crate::error::Result;
use crate::primitives::planned::carve;
use crate::primitives::{expand, generate, select};
use crate::quadtree::{DeviceTree, GpuTree};
use crate::terrain::spline::{Cloud, SplineRaster};
use kauri_kernels::policy::{PER_ITEM_THREADS, SPLINE_MIN_BLOCKS};
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::spline::areas::{terrain_spline_areas, terrain_spline_counts};
use kauri_kernels::terrain::spline::evaluate::{Splines, terrain_spline_evaluate};
use kauri_kernels::terrain::spline::solve::{LeafRows, PointTree, Scratch, SplinesMut, terrain_spline_solve};
use kauri_kernels::terrain::spline::{PANEL, capacity, matrix_len};

/// The bytes of temporary memory for systems and splines, at most, if they suffice for one leaf.
pub(super) const SCRATCH_BYTES: u64 = 1 << 30;

/// The blocks for each multiprocessor that evaluate splines. Untuned.
const EVALUATE_BLOCKS_PER_SM: u64 = 8;

/// Writes the height of each cell. The splines of a batch of leaves, and the systems that are solved at a time, take at most
/// `scratch_bytes`.
pub(super) fn raster_on(
    stream: &Stream,
    workspace: &mut Workspace,
    (positions, heights): (&Buffer<i32>, &Buffer<i32>),
    SplineRaster { cells, options, cloud }: &SplineRaster,
    values: &mut Buffer<f32>,
    scratch_bytes: u64,
) -> Result<()> {
    let (frame, shape) = (cloud.frame(options)?, cloud.shape(options));
    let tree = GpuTree::build_in_on::<2>(stream, workspace, positions, &frame, &options.tree())?;
    let leaves = LeavesWithCells::find(stream, workspace, &tree, cells, cloud)?;
    let adjacent = tree.all_adjacent_leaves_on(stream, workspace, &leaves.numbers)?;
    let num_sms = u64::from(stream.gpu().info().num_sms);
    let max_blocks = SPLINE_MIN_BLOCKS as u64 * num_sms;
    let plan = |layout: &mut _| {
        Batch::plan(layout, capacity(options.leaf_points), leaves.numbers.len(), max_blocks, scratch_bytes)
    };
    let (batch, temp) = carve(stream, workspace, "splines", plan)?;
    let scratch = Scratch { matrices: temp.view(batch.matrices), scaled: temp.view(batch.scaled) };
    let splines = SplinesMut {
        positions: temp.view(batch.positions),
        weights: temp.view(batch.weights),
        lens: temp.view(batch.lens),
        bases: temp.view(batch.bases),
        shifts: temp.view(batch.shifts),
        capacity: batch.capacity,
    };
    let solved = Splines {
        positions: splines.positions.read_only(),
        weights: splines.weights.read_only(),
        lens: splines.lens.read_only(),
        bases: splines.bases.read_only(),
        shifts: splines.shifts.read_only(),
        capacity: batch.capacity,
    };
    let arrays = tree.arrays();
    let points = PointTree {
        frame: arrays.frame,
        nodes: arrays.nodes,
        first_units: arrays.cells,
        known: leaves.known.slice(),
        positions: arrays.coords,
        ids: arrays.ids,
        heights: heights.slice(),
    };
    let evaluate_blocks =
        (cells.len() as u64).div_ceil(PER_ITEM_THREADS as u64).min(EVALUATE_BLOCKS_PER_SM * num_sms);
    for first in (0..leaves.numbers.len()).step_by(batch.num_leaves) {
        let len = batch.num_leaves.min(leaves.numbers.len() - first);
        // SAFETY: the ranges are in the buffers; the borrows keep input and output apart; all buffers wait for the device before they
        // are freed, and launches of a stream follow each other.
        unsafe {
            let rows = LeafRows {
                leaves: leaves.numbers.slice().part(first, len),
                offsets: adjacent.offsets.slice().part(first, len + 1),
                adjacent: adjacent.leaves.slice(),
            };
            stream.launch::<terrain_spline_solve>(
                batch.num_blocks.min(len) as u64,
                (points, rows, shape, scratch, splines),
            )?;
            let args = (
                solved,
                leaves.areas.slice(),
                rows.leaves,
                leaves.offsets.slice().part(first, len + 1),
                *cells,
                shape,
                values.slice_mut(),
            );
            stream.launch::<terrain_spline_evaluate>(evaluate_blocks, args)?;
        }
    }
    Ok(())
}

/// The leaves that contain centers of cells.
struct LeavesWithCells {
    /// The cells of each leaf of the tree, four numbers for each node.
    areas: Buffer<u32>,
    /// 1 for each leaf of the tree whose points are all known.
    known: Buffer<u8>,
    /// The numbers of the leaves.
    numbers: Buffer<u32>,
    /// The number of cells of the leaves before each one, and of all.
    offsets: Buffer<u64>,
}

impl LeavesWithCells {
    /// Finds the leaves. Waits for their number.
    fn find(
        stream: &Stream,
        workspace: &mut Workspace,
        tree: &GpuTree<i32>,
        cells: &Cells,
        cloud: &Cloud,
    ) -> Result<Self> {
        let (gpu, arrays) = (stream.gpu(), tree.arrays());
        let num_nodes = arrays.nodes.len();
        let mut areas = Buffer::uninitialized(gpu, 4 * num_nodes, "cells of leaves")?;
        let mut flags = Buffer::uninitialized(gpu, num_nodes, "flags of leaves")?;
        let mut known = Buffer::uninitialized(gpu, num_nodes, "flags of leaves")?;
        let mut all = Buffer::uninitialized(gpu, num_nodes, "nodes of a quadtree")?;
        let mut selected = Buffer::uninitialized(gpu, num_nodes, "leaves with cells")?;
        let mut count = Buffer::<u64>::uninitialized(gpu, 1, "number of leaves")?;
        let args = (
            arrays.frame,
            arrays.nodes,
            arrays.cells,
            *cells,
            cloud.extent(),
            areas.slice_mut(),
            flags.slice_mut(),
            known.slice_mut(),
        );
        // SAFETY: the buffers have items for each node, and wait for the device before they are freed.
        unsafe { stream.launch_items::<terrain_spline_areas>(num_nodes as u64, args)? };
        generate::iota(stream, 0_u32, 1, &mut all)?;
        select::flagged(stream, workspace, &all, &flags, &mut selected, &mut count)?;
        let num_leaves = count.to_vec(stream)?[0] as usize;
        let mut numbers = Buffer::uninitialized(gpu, num_leaves, "leaves with cells")?;
        let mut counts = Buffer::uninitialized(gpu, num_leaves, "cells of leaves")?;
        let mut offsets = Buffer::uninitialized(gpu, num_leaves + 1, "cells of leaves")?;
        // SAFETY: there are at least as many nodes as leaves; as above.
        unsafe {
            stream.copy(numbers.slice_mut(), selected.slice().part(0, num_leaves))?;
            let args = (areas.slice(), numbers.slice(), counts.slice_mut());
            stream.launch_items::<terrain_spline_counts>(num_leaves as u64, args)?;
        }
        expand::offsets(stream, workspace, &counts, &mut offsets)?;
        Ok(Self { areas, known, numbers, offsets })
    }
}

/// The temporary memory of a batch of leaves, and its size.
struct Batch {
    capacity: u32,
    num_blocks: usize,
    num_leaves: usize,
    matrices: Region<f64>,
    scaled: Region<f64>,
    positions: Region<i32>,
    weights: Region<f64>,
    lens: Region<u32>,
    bases: Region<i32>,
    shifts: Region<f64>,
}

impl Batch {
    /// Plans batches: half of the memory for systems, half for splines.
    fn plan(
        layout: &mut Layout,
        capacity: u32,
        num_leaves: usize,
        max_blocks: u64,
        scratch_bytes: u64,
    ) -> Self {
        let points = capacity as usize;
        let system_bytes = ((matrix_len(points) + PANEL * points) * size_of::<f64>()) as u64;
        let spline_bytes = (points * (2 * size_of::<i32>() + size_of::<f64>())
            + 2 * size_of::<u32>()
            + size_of::<f64>()) as u64;
        let within = |bytes: u64, max: u64| (scratch_bytes / 2 / bytes).clamp(1, max.max(1)) as usize;
        let num_leaves = within(spline_bytes, num_leaves as u64);
        let num_blocks = within(system_bytes, max_blocks.min(num_leaves as u64));
        Self {
            capacity,
            num_blocks,
            num_leaves,
            matrices: layout.reserve(num_blocks * matrix_len(points)),
            scaled: layout.reserve(num_blocks * PANEL * points),
            positions: layout.reserve(2 * num_leaves * points),
            weights: layout.reserve(num_leaves * points),
            lens: layout.reserve(num_leaves),
            bases: layout.reserve(num_leaves),
            shifts: layout.reserve(num_leaves),
        }
    }
}
