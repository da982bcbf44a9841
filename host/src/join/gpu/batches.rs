//! Pairs in batches: the points that are looked in stay on the device, those with rows come and go.

use super::cells::{Cells, CellsOn, GridOn, GridPlan, GridView, Joined, Role};
use super::pairs::{Counting, count_all};
use super::{grid_of_host, with_kernel_dims};
use crate::batches::{Delivery, Made, Place, Rows, Work, items};
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::Near;
use crate::join::distance::ShowRows;
use crate::join::estimate::{self, Sample};
use crate::memory;
use cuda_std::mem::SliceMut;
use kauri_kernels::join::pairs::join_emit;
use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};

/// Bytes of a pair.
const ITEM_BYTES: u64 = size_of::<u32>() as u64;

/// Delivers the points of the first set near each of the second, which has the rows; both are in host memory.
pub(in crate::join) fn deliver<C: Coord>(
    gpu: &Gpu,
    dims: usize,
    [set, rows_of]: [&[C]; 2],
    near: &Near<C>,
    delivery: &mut Delivery<'_, '_>,
    show: &mut ShowRows<'_>,
) -> Result<ControlFlow<()>> {
    let rows = Rows::new(rows_of.len() / dims, ITEM_BYTES, delivery.limits());
    let sample = Sample::new(dims, rows_of, estimate::ROWS, near)?;
    let Some(grid) = grid_of_host(dims, [set, rows_of], near) else { return nothing(rows, delivery, show) };
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let set = Buffer::from_slice(&stream, set, "points of a join")?;
    let mut layout = Layout::new();
    let grid_plan = GridPlan::plan(&mut layout, &grid);
    let role = |is_left| Role { is_left, lies: false, has_scores: false };
    let cells = Cells::<C>::plan(&mut layout, set.len() / dims, dims, &grid, role(true));
    let sampled = Cells::<C>::plan(&mut layout, sample.coords.len() / dims, dims, &grid, role(false));
    let total = layout.reserve::<u64>(1);
    let temp = workspace.carve(&stream, &layout, "distance join")?;
    let (bound, sample_coords) =
        (near.bound.to_f64(), Buffer::from_slice(&stream, &sample.coords, "a sample")?);
    let view = |near: &Near<C>| grid_plan.run(&stream, &temp, &grid, near);
    // SAFETY: buffers wait for the device before they are freed, and the memory is the plan's own.
    let (left, count) = unsafe {
        let grid = view(&sample.near(near))?;
        let left = cells.run(&stream, &temp, dims, grid, set.slice(), None)?;
        let right = sampled.run(&stream, &temp, dims, grid, sample_coords.slice(), None)?;
        let total = count_all(&stream, &temp, &Joined { dims, grid, left, right, bound }, total)?;
        (left, total)
    };
    let (rows, view) = (rows.expecting(sample.rows_with_items(count)), view(near)?);
    let mut finding = Finding { dims, grid: &grid, view, left, rows_of, bound, rows, drafted: (0..0, 0) };
    delivery.pipelined(&stream, &mut finding, |delivery, rows, [offsets, ids, _]| {
        let (offsets, ids) = (&*items::<u64>(offsets), &*items::<u32>(ids));
        delivery.hand_over(rows.len(), ids.len(), ITEM_BYTES, || show(rows.start, offsets, ids))
    })
}

/// Rows without a pair.
fn nothing(
    mut rows: Rows,
    delivery: &mut Delivery<'_, '_>,
    show: &mut ShowRows<'_>,
) -> Result<ControlFlow<()>> {
    while let Some(part) = rows.next_part() {
        let mut offsets = memory::vec_with_capacity(part.len() + 1, "offsets of rows")?;
        offsets.resize(part.len() + 1, 0);
        rows.took(part.len(), 0);
        let flow = delivery.hand_over(part.len(), 0, ITEM_BYTES, || show(part.start, &offsets, &[]));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Counts the pairs of some rows, and finds those of as many as fit.
struct Finding<'a, C: Coord> {
    dims: usize,
    grid: &'a GridOn,
    view: GridView<'a>,
    left: CellsOn<'a, C>,
    rows_of: &'a [C],
    bound: f64,
    rows: Rows,
    /// The rows of the batch that is being made, and how many of their pairs have room.
    drafted: (Range<usize>, u64),
}

impl<C: Coord> Finding<'_, C> {
    /// Counts the pairs of some rows, tells their number if it is not known, and finds as many as are to have room.
    fn draft(&mut self, place: Place<'_>, part: Range<usize>, room: u64, is_known: bool) -> Result<()> {
        let Self { dims, grid, view, left, bound, .. } = *self;
        let len = usize::try_from(room).unwrap_or(usize::MAX);
        let most = usize::try_from(self.rows.most_items()).unwrap_or(usize::MAX);
        let [offsets, ids, _] = place.parts;
        let offsets: SliceMut<'_, u64> = offsets.of(part.len() + 1, usize::MAX, "offsets of rows")?;
        let ids: SliceMut<'_, u32> = ids.of(len, most, "ids of points found")?;
        let coords =
            place.input.upload(&self.rows_of[part.start * dims..part.end * dims], "points of a join")?;
        let mut layout = Layout::new();
        let cells = Cells::<C>::plan(
            &mut layout,
            part.len(),
            dims,
            grid,
            Role { is_left: false, lies: false, has_scores: false },
        );
        let counting = Counting::plan(&mut layout, part.len());
        let (stream, num_before) = (place.stream, part.start as u32);
        let temp = place.workspace.carve(stream, &layout, "distance join")?;
        // SAFETY: there is an offset more than rows, and pairs for which there is no room are left out; the pipeline keeps arrays until
        // they have been copied, and what is read until the next batch.
        unsafe {
            let right = cells.run(stream, &temp, dims, view, coords, None)?;
            let joined = Joined { dims, grid: view, left, right, bound };
            counting.start(stream, &temp, &joined, num_before, offsets)?;
            if !is_known {
                place.telling.tell(stream, offsets.read_only().part(part.len(), 1))?;
            }
            let args = (joined.sets(), num_before, offsets.read_only(), ids);
            with_kernel_dims!(dims, D => stream.launch_items::<join_emit<C, D>>(part.len() as u64, args))?;
        }
        self.drafted = (part, room);
        Ok(())
    }
}

impl<C: Coord> Work for Finding<'_, C> {
    /// The rows; the arrays are their offsets and ids.
    type Batch = Range<usize>;

    fn make(&mut self, place: Place<'_>) -> Result<bool> {
        let Some(part) = self.rows.next_part() else { return Ok(false) };
        let room = self.rows.likely_items(part.len());
        self.draft(place, part, room, false)?;
        Ok(true)
    }

    fn settle(&mut self, total: u64, mut place: Place<'_>) -> Result<Made<Self::Batch>> {
        let (part, room) = self.drafted.clone();
        let (num_rows, num_items) = self.rows.fit(part.len(), total, || {
            let offsets = place.parts[0].reborrow().of(part.len() + 1, usize::MAX, "offsets of rows")?;
            // SAFETY: the draft has written an offset a row and one more.
            unsafe { place.stream.read(offsets.read_only()) }
        })?;
        if num_items > room {
            // Once more, when what is read is not in use any more.
            place.stream.synchronize()?;
            self.draft(place, part.clone(), num_items, true)?;
        }
        self.rows.took(num_rows, num_items);
        let bytes = [(num_rows + 1) * size_of::<u64>(), num_items as usize * size_of::<u32>(), 0];
        Ok(Made { bytes, batch: part.start..part.start + num_rows })
    }
}
