//! Delivers the pairs of a distance join in batches: the build side stays on the device, the probe side is uploaded batch by batch.

use super::cells::{PointOrder, Scores, Side, SortedPoints, SortedPointsPlan, SortedSides};
use super::grid::{GridPlan, GridView, PackedGrid, grid_of_host_sets};
use super::pairs::{CountingPlan, count_all};
use crate::batches::{Delivery, RowBatches, RowLaunch, RowSplitter, items};
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::estimate::{self, Sample};
use crate::join::params::JoinParams;
use crate::join::rows::VisitRows;
use crate::memory;
use kauri_kernels::join::pairs::join_emit;
use kauri_kernels::thread::coord::Coord;
use std::ops::ControlFlow;

/// Bytes of a pair.
const ITEM_BYTES: u64 = size_of::<u32>() as u64;

/// Delivers the build points near each probe point; both sets, [build, probe], are in host memory.
pub(in crate::join) fn deliver<C: Coord>(
    gpu: &Gpu,
    dims: usize,
    [build, probe]: [&[C]; 2],
    params: &JoinParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    let splitter = RowSplitter::new(probe.len() / dims, ITEM_BYTES, delivery.limits());
    let sample = Sample::new(dims, probe, estimate::ROWS, params)?;
    let Some(grid) = grid_of_host_sets(dims, [build, probe], params) else {
        return deliver_empty_rows(splitter, delivery, visit);
    };
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let build = Buffer::from_slice(&stream, build, "points of a join")?;
    let mut layout = Layout::new();
    let grid_plan = GridPlan::plan(&mut layout, &grid);
    let build_plan = plan_side(&mut layout, build.len() / dims, dims, &grid, Side::Build);
    let sample_plan = plan_side(&mut layout, sample.coords.len() / dims, dims, &grid, Side::Probe);
    let total = layout.reserve::<u64>(1);
    let temp = workspace.carve(&stream, &layout, "distance join")?;
    let (bound, sample_coords) =
        (params.bound.to_f64(), Buffer::from_slice(&stream, &sample.coords, "a sample")?);
    let upload_grid = |params: &JoinParams<C>| grid_plan.run(&stream, &temp, &grid, params);
    // SAFETY: buffers wait for the device before they are freed, and nothing else uses the memory of the plan.
    let (sorted_build, count) = unsafe {
        let grid = upload_grid(&sample.params(params))?;
        let build = build_plan.run(&stream, &temp, dims, grid, build.slice(), None)?;
        let probe = sample_plan.run(&stream, &temp, dims, grid, sample_coords.slice(), None)?;
        let total = count_all(&stream, &temp, &SortedSides { dims, grid, build, probe, bound }, total)?;
        (build, total)
    };
    let splitter = splitter.with_sample(sample.rows_with_items(count));
    let view = upload_grid(params)?;
    let join = BatchJoin { dims, grid: &grid, view, build: sorted_build, probe, bound };
    let mut batches = RowBatches::new(splitter, 0, |launch| join.launch(launch));
    delivery.run_pipeline(&stream, &mut batches, |delivery, rows, [offsets, ids, _]| {
        let (offsets, ids) = (&*items::<u64>(offsets), &*items::<u32>(ids));
        delivery.deliver(rows.len(), ids.len(), ITEM_BYTES, || visit(rows.start, offsets, ids))
    })
}

fn plan_side<C: Coord>(
    layout: &mut Layout,
    len: usize,
    dims: usize,
    grid: &PackedGrid,
    side: Side,
) -> SortedPointsPlan<C> {
    SortedPointsPlan::plan(layout, len, dims, grid, side, PointOrder::ByCell, Scores::None)
}

/// Delivers rows without pairs.
fn deliver_empty_rows(
    mut splitter: RowSplitter,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    while let Some(range) = splitter.next_range() {
        let mut offsets = memory::vec_with_capacity(range.len() + 1, "offsets of rows")?;
        offsets.resize(range.len() + 1, 0);
        splitter.advance(range.len(), 0);
        let flow = delivery.deliver(range.len(), 0, ITEM_BYTES, || visit(range.start, &offsets, &[]));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A join whose build side is on the device and whose probe side is in host memory.
struct BatchJoin<'a, C: Coord> {
    dims: usize,
    grid: &'a PackedGrid,
    view: GridView<'a>,
    build: SortedPoints<'a, C>,
    probe: &'a [C],
    bound: f64,
}

impl<C: Coord> BatchJoin<'_, C> {
    /// Counts the pairs of a range of rows, and writes as many ids as the array holds.
    fn launch(&self, launch: RowLaunch<'_>) -> Result<()> {
        let &Self { dims, grid, view, build, probe, bound } = self;
        let RowLaunch { stream, workspace, input, rows, offsets, ids, total, .. } = launch;
        let coords = input.upload(&probe[rows.start * dims..rows.end * dims], "points of a join")?;
        let mut layout = Layout::new();
        let probe_plan = plan_side(&mut layout, rows.len(), dims, grid, Side::Probe);
        let counting = CountingPlan::plan(&mut layout, rows.len());
        let num_before = rows.start as u32;
        let temp = workspace.carve(stream, &layout, "distance join")?;
        // SAFETY: there is one more offset than rows, and ids beyond the capacity of the array are not written; the pipeline keeps arrays
        // until they have been copied, and the input until the next batch.
        unsafe {
            let probe = probe_plan.run(stream, &temp, dims, view, coords, None)?;
            let sides = SortedSides { dims, grid: view, build, probe, bound };
            counting.start(stream, &temp, &sides, num_before, offsets)?;
            total.send(stream, offsets)?;
            let args = (sides.args(), num_before, offsets.read_only(), ids);
            with_kernel_dims!(dims, D => stream.launch_items::<join_emit<C, D>>(rows.len() as u64, args))
        }
    }
}
