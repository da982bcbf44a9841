//! Delivers the pairs of a distance join in batches: the build side stays on the device, the probe side is uploaded batch by batch.

use super::cells::{Side, SortedPoints, SortedPointsPlan, SortedSides};
use super::grid::{GridView, PackedGrid, grid_of_host_sets};
use super::pairs::{CountingPlan, count_all, launch_emit};
use crate::batches::{Delivery, RowBatches, RowLaunch, RowSplitter, items};
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::all_pairs::AllPairs;
use crate::join::estimate::{self, Sample};
use crate::join::params::JoinParams;
use crate::join::rows::{ITEM_BYTES, VisitRows, deliver_rows, empty_rows};
use kauri_kernels::thread::coord::Float;
use std::ops::ControlFlow;

/// Delivers the build points near each probe point; both sets, [build, probe], are in host memory.
pub(in crate::join) fn deliver<C: Float>(
    gpu: &Gpu,
    [build, probe]: [&[C]; 2],
    params: &JoinParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    let splitter = RowSplitter::new(probe.len() / params.dims, ITEM_BYTES, delivery.limits());
    let Some(grid) = grid_of_host_sets([build, probe], params) else {
        return deliver_rows(splitter, delivery, visit, |rows, _| empty_rows(rows.len()));
    };
    let sample = Sample::new(probe, params.dims, estimate::ROWS, params.pairing)?;
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let build = Buffer::from_slice(&stream, build, "points of a join")?;
    let sample_coords = Buffer::from_slice(&stream, &sample.coords, "a sample")?;
    let mut layout = Layout::new();
    let words = grid.plan(&mut layout);
    let mut plan_side = |coords: &Buffer<C>, side| {
        SortedPointsPlan::plan(&mut layout, &grid, coords.len() / grid.dims, side, false)
    };
    let (build_plan, sample_plan) = (plan_side(&build, Side::Build), plan_side(&sample_coords, Side::Probe));
    let total = layout.reserve::<u64>(1);
    let temp = workspace.carve(&stream, &layout, "distance join")?;
    let bound = params.bound.to_f64();
    let upload_grid = |params: &JoinParams<C>| grid.upload(&temp, words, params);
    // SAFETY: buffers wait for the device before they are freed, and nothing else uses the memory of the plan.
    let (sorted_build, count) = unsafe {
        let grid = upload_grid(&params.of_sample())?;
        let build = build_plan.run(&temp, grid, build.slice(), None)?;
        let probe = sample_plan.run(&temp, grid, sample_coords.slice(), None)?;
        (build, count_all(&temp, &SortedSides { grid, build, probe, bound }, total)?)
    };
    let splitter = splitter.with_sample(sample.rows_with_items(count));
    let join = BatchJoin { grid: &grid, view: upload_grid(params)?, build: sorted_build, probe, bound };
    let mut batches = RowBatches::new(splitter, 0, |launch| join.launch(launch));
    delivery.run_pipeline(&stream, &mut batches, |delivery, rows, [offsets, ids, _]| {
        let (offsets, ids) = (&*items::<u64>(offsets), &*items::<u32>(ids));
        delivery.deliver(rows.len(), ids.len(), ITEM_BYTES, || visit(rows.start, offsets, ids))
    })
}

/// A join whose build side is on the device and whose probe side is in host memory.
struct BatchJoin<'a, C: Float> {
    grid: &'a PackedGrid,
    view: GridView<'a>,
    build: SortedPoints<'a, C>,
    probe: &'a [C],
    bound: f64,
}

impl<C: Float> BatchJoin<'_, C> {
    /// Counts the pairs of a range of rows, and writes their ids up to the capacity of the array.
    fn launch(&self, launch: RowLaunch<'_>) -> Result<()> {
        let &Self { grid, view, build, probe, bound } = self;
        let RowLaunch { stream, workspace, input, rows, offsets, ids, total, .. } = launch;
        let coords =
            input.upload(&probe[rows.start * grid.dims..rows.end * grid.dims], "points of a join")?;
        let mut layout = Layout::new();
        let probe_plan = SortedPointsPlan::plan(&mut layout, grid, rows.len(), Side::Probe, false);
        let counting = CountingPlan::plan(&mut layout, rows.len());
        let num_before = rows.start as u32;
        let temp = workspace.carve(stream, &layout, "distance join")?;
        // SAFETY: there is one more offset than rows, and ids beyond the capacity of the array are not written; the pipeline keeps arrays
        // until they have been copied, and the input until the next batch.
        unsafe {
            let probe = probe_plan.run(&temp, view, coords, None)?;
            let sides = SortedSides { grid: view, build, probe, bound };
            counting.start(&temp, &sides, num_before, offsets)?;
            total.send(stream, offsets)?;
            launch_emit(stream, &sides, num_before, offsets.read_only(), ids)
        }
    }
}
