//! Delivers the pairs of a join of boxes in batches: the right set stays on the device, the left set is uploaded batch by batch.

use super::cells::{GridView, SortedBoxesPlan, SortedSets, upload_grid};
use super::grid::grid_of_coordinates;
use super::pairs::{Finder, RowSort, RowsPlan, count};
use crate::batches::{Delivery, RowBatches, RowLaunch, RowSplitter, items};
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::all_pairs::AllPairs;
use crate::join::boxes::grid::PackedGrid;
use crate::join::boxes::params::BoxParams;
use crate::join::estimate::{self, Sample};
use crate::join::rows::{ITEM_BYTES, VisitRows, deliver_rows, empty_rows};
use crate::primitives::pairs::empty_view;
use cuda_std::mem::Slice;
use kauri_kernels::join::boxes::search::SortedBoxes;
use kauri_kernels::thread::coord::Float;
use std::ops::ControlFlow;

/// Delivers the rows of the left boxes; both sets, [right, left], are in host memory.
pub(in crate::join::boxes) fn deliver<C: Float>(
    gpu: &Gpu,
    [right, left]: [&[C]; 2],
    params: &BoxParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    let splitter = RowSplitter::new(left.len() / params.width(), ITEM_BYTES, delivery.limits());
    let Some(grid) = grid_of_coordinates([right, left], params) else {
        return deliver_rows(splitter, delivery, visit, |rows, _| empty_rows(rows.len()));
    };
    let sample = Sample::new(left, params.width(), estimate::ROWS, params.pairing)?;
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let upload = |coords: &[C]| Buffer::from_slice(&stream, coords, "boxes of a join");
    let (right, sample_boxes) = (upload(right)?, upload(&sample.coords)?);
    let sample_params = params.of_sample();
    let num_pairs = count(&stream, &mut workspace, [right.slice(), sample_boxes.slice()], &sample_params)?;
    let splitter = splitter.with_sample(sample.rows_with_items(num_pairs));
    let mut layout = Layout::new();
    let words = layout.reserve(grid.words.len());
    let plan = SortedBoxesPlan::plan(&mut layout, &grid, right.len() / params.width(), params.width());
    let temp = workspace.carve(&stream, &layout, "box join")?;
    let view = upload_grid(&temp, words, &grid, params)?;
    // SAFETY: buffers wait for the device before they are freed, and nothing else uses the memory of the plan.
    let right = unsafe { plan.run(&temp, view, params, right.slice()) }?;
    let join = BatchJoin { grid: &grid, view, params, right, left };
    let mut batches = RowBatches::new(splitter, 0, |launch| join.launch(launch));
    delivery.run_pipeline(&stream, &mut batches, |delivery, rows, [offsets, ids, _]| {
        let (offsets, ids) = (&*items::<u64>(offsets), &*items::<u32>(ids));
        delivery.deliver(rows.len(), ids.len(), ITEM_BYTES, || visit(rows.start, offsets, ids))
    })
}

/// A join whose right set is on the device and whose left set is in host memory.
struct BatchJoin<'a, C: Float> {
    grid: &'a PackedGrid,
    view: GridView<'a>,
    params: &'a BoxParams<C>,
    right: SortedBoxes<'a, C>,
    left: &'a [C],
}

impl<C: Float> BatchJoin<'_, C> {
    /// Counts the pairs of a range of rows, and writes their ids up to the capacity of the array.
    fn launch(&self, launch: RowLaunch<'_>) -> Result<()> {
        let &Self { grid, view, params, right, left } = self;
        let RowLaunch { stream, workspace, input, rows, offsets, ids, total, .. } = launch;
        let width = params.width();
        let corners: Slice<'_, C> =
            input.upload(&left[rows.start * width..rows.end * width], "boxes of a join")?;
        let mut layout = Layout::new();
        let left_plan = SortedBoxesPlan::plan(&mut layout, grid, rows.len(), width);
        let rows_plan = RowsPlan::plan(&mut layout, rows.len());
        let sort = RowSort::plan(&mut layout, ids.len(), rows.len());
        let temp = workspace.carve(stream, &layout, "box join")?;
        // SAFETY: there is one more offset than rows, and ids beyond the capacity of the array are not written; the pipeline keeps arrays
        // until they have been copied, and the input until the next batch.
        unsafe {
            let left = left_plan.run(&temp, view, params, corners)?;
            let (dims, bound) = (params.test.dims, params.test.bound.to_f64());
            let num_before = rows.start as u32;
            let finder = Finder::Cells(SortedSets { grid: view, right, left, dims, bound, num_before });
            rows_plan.count(&temp, &finder, offsets)?;
            total.send(stream, offsets)?;
            rows_plan.emit(&temp, &finder, offsets.read_only(), ids, empty_view())?;
            sort.run(&temp, offsets.read_only(), ids)
        }
    }
}
