//! All pairs of a join: their number and their rows.

use super::cells::{Sets, Side, SidesPlan, SortedSides};
use super::deal::{COORDS, upload_to_all};
use super::grid::grid_of_device_sets;
use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::host_coords::HostCoords;
use crate::join::params::JoinParams;
use crate::join::rows::ITEM_BYTES;
use crate::point::with_kernel_dims;
use crate::primitives::expand::Offsets;
use crate::primitives::pairs::empty_view;
use crate::threads::{each, even};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::pairs::{join_count, join_emit};
use kauri_kernels::thread::coord::Float;

/// Counts the pairs.
pub(in crate::join) fn count<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &JoinParams<C>,
) -> Result<u64> {
    let Some(grid) = grid_of_device_sets(stream, workspace, sets, params)? else { return Ok(0) };
    let mut layout = Layout::new();
    let lens = sets.map(|set| set.len() / params.dims);
    let plan = SidesPlan::plan(&mut layout, &grid, lens, Sets::of(params), Side::Probe);
    let total = layout.reserve::<u64>(1);
    let temp = workspace.carve(stream, &layout, "distance join")?;
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    unsafe {
        let sides = plan.run(&temp, &grid, params, sets, None)?;
        count_all(&temp, &sides, total)
    }
}

/// Counts the pairs of two sets in host memory on several devices. Each device joins a part of the probe side with the whole build side. Sets
/// are given as [build, probe].
pub(in crate::join) fn count_over<C: Float>(
    gpus: &[Gpu],
    [build, probe]: [HostCoords<'_, C>; 2],
    params: &JoinParams<C>,
) -> Result<u64> {
    let dims = params.dims;
    // SAFETY: nothing else uses the view.
    let upload =
        |stream: &Stream, to: SliceMut<'_, C>, share| unsafe { build.part(share).upload(stream, to) };
    let builds = upload_to_all(gpus, (build.num_points(), dims), COORDS, upload)?;
    let parts = even(probe.num_points(), gpus.len());
    let counts = each(gpus.iter().zip(builds).zip(parts), |((gpu, build), part)| {
        let stream = Stream::new(gpu)?;
        let probe = probe.part(part).to_buffer(&stream, COORDS)?;
        count(&stream, &mut Workspace::new(gpu), [build.slice(), probe.slice()], params)
    })?;
    Ok(counts.into_iter().sum())
}

/// Finds the pairs: returns where the row of each probe point begins, and the ids of the build points near it, in device memory.
pub(in crate::join) fn rows<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &JoinParams<C>,
) -> Result<(Buffer<u64>, Buffer<u32>)> {
    let num_rows = sets[1].len() / params.dims;
    let mut offsets = Buffer::uninitialized(stream.gpu(), num_rows + 1, "offsets of rows")?;
    let Some(grid) = grid_of_device_sets(stream, workspace, sets, params)? else {
        offsets.fill_bytes(stream, 0)?;
        return Ok((offsets, Buffer::uninitialized(stream.gpu(), 0, "ids of points found")?));
    };
    let mut layout = Layout::new();
    let lens = sets.map(|set| set.len() / params.dims);
    let plan = SidesPlan::plan(&mut layout, &grid, lens, Sets::of(params), Side::Probe);
    let counting = CountingPlan::plan(&mut layout, num_rows);
    let temp = workspace.carve(stream, &layout, "distance join")?;
    // SAFETY: the sets are borrowed, nothing else uses the memory of the plan, and the buffers wait for the device before they are freed.
    unsafe {
        let sides = plan.run(&temp, &grid, params, sets, None)?;
        let total = counting.run(&temp, &sides, offsets.slice_mut())?;
        let mut found = Buffer::of_result(stream.gpu(), total, ITEM_BYTES, "ids of points found")?;
        launch_emit(stream, &sides, 0, offsets.slice(), found.slice_mut())?;
        Ok((offsets, found))
    }
}

/// Scratch memory of the counts of rows, from which a scan makes their offsets.
pub(super) struct CountingPlan {
    counts: Region<u32>,
    offsets: Offsets,
}

impl CountingPlan {
    pub(super) fn plan(layout: &mut Layout, num_rows: usize) -> Self {
        Self { counts: layout.reserve(num_rows), offsets: Offsets::plan(layout, num_rows) }
    }

    /// Writes the offsets of all rows, waits, and returns the number of pairs.
    ///
    /// # Safety
    /// The requirements of [`start`](Self::start).
    pub(super) unsafe fn run<C: Float>(
        &self,
        temp: &Temp<'_>,
        sides: &SortedSides<'_, C>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<u64> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.start(temp, sides, 0, offsets)?;
            Ok(temp.stream.read(offsets.read_only().part(offsets.len() - 1, 1))?[0])
        }
    }

    /// Writes the offsets of the rows of probe points, by their ids. `num_before` points of the whole set come before them.
    ///
    /// # Safety
    /// There is one more offset than probe points. Nothing else uses the offsets and the sets until the stream has done the work.
    pub(super) unsafe fn start<C: Float>(
        &self,
        temp: &Temp<'_>,
        sides: &SortedSides<'_, C>,
        num_before: u32,
        offsets: SliceMut<'_, u64>,
    ) -> Result<()> {
        let counts = temp.view(self.counts);
        // SAFETY: passed on to the caller; the counts are those of the plan.
        unsafe {
            launch_count(&temp.stream, sides, num_before, counts, empty_view())?;
            self.offsets.run(temp, counts.read_only(), offsets)
        }
    }
}

/// Counts all pairs, and waits for the number.
///
/// # Safety
/// `total` is a region of `temp`. Nothing else uses it and the sets until the stream has done the work.
pub(super) unsafe fn count_all<C: Float>(
    temp: &Temp<'_>,
    sides: &SortedSides<'_, C>,
    total: Region<u64>,
) -> Result<u64> {
    temp.clear(total)?;
    // SAFETY: passed on to the caller.
    unsafe {
        launch_count(&temp.stream, sides, 0, empty_view(), temp.view(total))?;
        Ok(temp.stream.read(temp.view(total).read_only())?[0])
    }
}

/// Counts the pairs of each probe point, their total, or both.
///
/// # Safety
/// There is a count for each probe point, or none; there is one total, or none. Otherwise the requirements of [`CountingPlan::start`].
unsafe fn launch_count<C: Float>(
    stream: &Stream,
    sides: &SortedSides<'_, C>,
    num_before: u32,
    counts: SliceMut<'_, u32>,
    total: SliceMut<'_, u64>,
) -> Result<()> {
    let args = (sides.args(), num_before, counts, total);
    let n = sides.probe.points.ids.len() as u64;
    // SAFETY: passed on to the caller.
    unsafe {
        with_kernel_dims!(sides.grid.dims, D in [2, 3] or MAX_DIMS => stream.launch_items::<join_count<C, D>>(n, args))
    }
}

/// Writes the ids of the rows, up to the capacity of `found`.
///
/// # Safety
/// The requirements of [`CountingPlan::start`], which has written the offsets. Nothing else uses `found` until the stream has done the
/// work.
pub(super) unsafe fn launch_emit<C: Float>(
    stream: &Stream,
    sides: &SortedSides<'_, C>,
    num_before: u32,
    offsets: Slice<'_, u64>,
    found: SliceMut<'_, u32>,
) -> Result<()> {
    let args = (sides.args(), num_before, offsets, found);
    let n = sides.probe.points.ids.len() as u64;
    // SAFETY: passed on to the caller.
    unsafe {
        with_kernel_dims!(sides.grid.dims, D in [2, 3] or MAX_DIMS => stream.launch_items::<join_emit<C, D>>(n, args))
    }
}
