//! All pairs: how many, which, and the best of them.

use super::best::Best;
use super::cells::{GridOn, Joined, TwoSets};
use super::{Asked, ScoredOn, grid_on, with_kernel_dims};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::Near;
use crate::primitives::merge::OrderArgs;
use crate::primitives::merge_sort::MergeSort;
use crate::primitives::operator::Sum;
use crate::primitives::order::{Ascending, NoValue};
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::scan::{Scan, ScanKind};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::filter::join_filter;
use kauri_kernels::join::pairs::{join_count, join_emit};
use kauri_kernels::policy::JOIN;
use kauri_kernels::primitives::expand::primitives_expand_counts;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::ranked::Ranked;
use kauri_kernels::thread::words::Bits128;
use kauri_kernels::warp::look_back::Decoupled;

/// How many pairs there are.
pub(in crate::join) fn count<C: Coord>(
    stream: &Stream,
    workspace: &mut Workspace,
    dims: usize,
    sets: [Slice<'_, C>; 2],
    near: &Near<C>,
) -> Result<u64> {
    let Some(grid) = grid_on(stream, workspace, dims, sets, near)? else { return Ok(0) };
    let mut layout = Layout::new();
    let plan = TwoSets::plan(
        &mut layout,
        dims,
        &grid,
        sets.map(|set| set.len() / dims),
        near.is_one(),
        false,
        false,
    );
    let total = layout.reserve::<u64>(1);
    let temp = workspace.carve(stream, &layout, "distance join")?;
    // SAFETY: the sets are borrowed, and the memory is the plan's own.
    unsafe {
        let joined = plan.run(stream, &temp, dims, &grid, near, sets, None)?;
        count_all(stream, &temp, &joined, total)
    }
}

/// Of each right point where its row begins, and the ids of the left points near it, in device memory.
pub(in crate::join) fn rows<C: Coord>(
    stream: &Stream,
    workspace: &mut Workspace,
    dims: usize,
    sets: [Slice<'_, C>; 2],
    near: &Near<C>,
) -> Result<(Buffer<u64>, Buffer<u32>)> {
    let num_rows = sets[1].len() / dims;
    let mut offsets = Buffer::uninitialized(stream.gpu(), num_rows + 1, "offsets of rows")?;
    let Some(grid) = grid_on(stream, workspace, dims, sets, near)? else {
        offsets.fill_bytes(stream, 0)?;
        return Ok((offsets, Buffer::uninitialized(stream.gpu(), 0, "ids of points found")?));
    };
    let mut layout = Layout::new();
    let plan = TwoSets::plan(
        &mut layout,
        dims,
        &grid,
        sets.map(|set| set.len() / dims),
        near.is_one(),
        false,
        false,
    );
    let counting = Counting::plan(&mut layout, num_rows);
    let temp = workspace.carve(stream, &layout, "distance join")?;
    // SAFETY: the sets are borrowed, the memory is the plan's own, and the buffers wait for the device before they are freed.
    unsafe {
        let joined = plan.run(stream, &temp, dims, &grid, near, sets, None)?;
        let total = counting.run(stream, &temp, &joined, offsets.slice_mut())?;
        let bytes = total.saturating_mul(size_of::<u32>() as u64);
        let len = usize::try_from(total).unwrap_or(usize::MAX);
        let mut found = Buffer::uninitialized(stream.gpu(), len, "ids of points found")
            .map_err(|error| error.of_result(total, bytes))?;
        let args = (joined.sets(), 0, offsets.slice(), found.slice_mut());
        let n = num_rows as u64;
        with_kernel_dims!(dims, D => stream.launch_items::<join_emit<C, D>>(n, args))?;
        Ok((offsets, found))
    }
}

/// The best of all pairs.
pub(super) fn filtered<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
    grid: GridOn,
) -> Result<Vec<Bits128>> {
    let &Asked { stream, dims, near, scoring, k, .. } = asked;
    let num_rows = sets[1].len;
    let mut layout = Layout::new();
    let plan = TwoSets::plan(&mut layout, dims, &grid, sets.map(|set| set.len), false, true, false);
    let counting = Counting::plan(&mut layout, num_rows);
    let offsets = layout.reserve::<u64>(num_rows + 1);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    let coords = sets.map(|set| set.coords);
    // SAFETY: the sets are borrowed, the memory is the plan's own, and buffers wait for the device before they are freed.
    let mut all = unsafe {
        let joined = plan.run(stream, &temp, dims, &grid, near, coords, Some(sets))?;
        let offsets = temp.view(offsets);
        let total = counting.run(stream, &temp, &joined, offsets)?;
        let bytes = total.saturating_mul(size_of::<Bits128>() as u64);
        let len = usize::try_from(total).unwrap_or(usize::MAX);
        let mut all = Buffer::<Bits128>::uninitialized(stream.gpu(), len, "pairs of a join")
            .map_err(|error| error.of_result(total, bytes))?;
        let args = (joined.sets(), joined.ranks(scoring), offsets.read_only(), all.slice_mut());
        let n = num_rows as u64;
        with_kernel_dims!(dims, D => stream.launch_items::<join_filter<C, D>>(n, args))?;
        all
    };
    best_of(stream, workspace, &mut all, k)
}

/// The best of pairs in device memory.
fn best_of(
    stream: &Stream,
    workspace: &mut Workspace,
    all: &mut Buffer<Bits128>,
    k: usize,
) -> Result<Vec<Bits128>> {
    let mut layout = Layout::new();
    if JOIN.room(k) >= all.len() {
        let sort = MergeSort::<Bits128, NoValue>::plan(&mut layout, all.len());
        let temp = workspace.carve(stream, &layout, "pairs in order")?;
        let pairs = Pairs::of_keys(all.slice_mut());
        // SAFETY: as many as planned, which are borrowed.
        unsafe {
            sort.run::<Ascending>(
                stream,
                &temp,
                pairs.read_only(),
                pairs,
                empty_view().read_only(),
                OrderArgs::by_key(Fold::NONE),
            )
        }?;
        return all.front_to_vec(stream, k.min(all.len()));
    }
    let best = Best::plan(&mut layout, k);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    // SAFETY: as above.
    best.of(stream, &temp, Bits128::LAST, |keeping| unsafe { keeping.offer(all.slice()) })
}

/// Temporary memory of counts and the offsets that they make.
pub(super) struct Counting {
    counts: Region<u32>,
    scan: Scan,
}

impl Counting {
    pub(super) fn plan(layout: &mut Layout, num_rows: usize) -> Self {
        Self { counts: layout.reserve(num_rows), scan: Scan::plan::<u64, Decoupled>(layout, num_rows + 1) }
    }

    /// Sets the offsets of rows by the ids of right points, of a set in which some come before them; how many pairs there are, for which
    /// it waits.
    ///
    /// # Safety
    /// As of [`start`](Self::start).
    unsafe fn run<C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        joined: &Joined<'_, C>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<u64> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.start(stream, temp, joined, 0, offsets)?;
            Ok(stream.read(offsets.read_only().part(offsets.len() - 1, 1))?[0])
        }
    }

    /// Sets the offsets of rows by the ids of right points, of a set in which some come before them.
    ///
    /// # Safety
    /// One more offset than right points; nothing else uses them and the sets until the stream has done the work.
    pub(super) unsafe fn start<C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        joined: &Joined<'_, C>,
        num_before: u32,
        offsets: SliceMut<'_, u64>,
    ) -> Result<()> {
        let counts = temp.view(self.counts);
        // SAFETY: passed on to the caller; the counts are the plan's own.
        unsafe {
            launch_count(stream, joined, num_before, counts, empty_view())?;
            let args = (counts.read_only(), offsets);
            stream.launch_items::<primitives_expand_counts>(offsets.len() as u64, args)?;
            let from = offsets.read_only();
            self.scan.run::<u64, Sum, Decoupled>(stream, temp, from, offsets, ScanKind::Exclusive)
        }
    }
}

/// How many pairs there are, for which it waits.
///
/// # Safety
/// The total is of the memory; nothing else uses that and the sets until the stream has done the work.
pub(super) unsafe fn count_all<C: Coord>(
    stream: &Stream,
    temp: &Temp<'_>,
    joined: &Joined<'_, C>,
    total: Region<u64>,
) -> Result<u64> {
    temp.clear(stream, total)?;
    // SAFETY: passed on to the caller.
    unsafe {
        launch_count(stream, joined, 0, empty_view(), temp.view(total))?;
        Ok(stream.read(temp.view(total).read_only())?[0])
    }
}

/// # Safety
/// As many counts as right points, or none, and a total or none; as [`Counting::run`].
unsafe fn launch_count<C: Coord>(
    stream: &Stream,
    joined: &Joined<'_, C>,
    num_before: u32,
    counts: SliceMut<'_, u32>,
    total: SliceMut<'_, u64>,
) -> Result<()> {
    let args = (joined.sets(), num_before, counts, total);
    let n = joined.right.ids.len() as u64;
    // SAFETY: passed on to the caller.
    unsafe { with_kernel_dims!(joined.dims, D => stream.launch_items::<join_count<C, D>>(n, args)) }
}
