//! All pairs of boxes: their number, their rows, or a list of them.

use super::cells::{SidesPlan, SortedSets, launch_passes};
use super::grid::{grid_bytes, grid_of_device_sets};
use super::nested;
#[cfg(feature = "research")]
use super::phases::PhaseClock;
#[cfg(feature = "research")]
use super::published::{Published, PublishedPlan};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::boxes::grid::PackedGrid;
use crate::join::boxes::method::BoxMethod;
use crate::join::boxes::params::BoxParams;
use crate::join::rows::ITEM_BYTES;
use crate::point::with_kernel_dims;
use crate::primitives::expand::Offsets;
use crate::primitives::pairs::{Pairs, Source, empty_view};
use crate::primitives::segmented_sort::{SegmentLists, SegmentedSort};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::boxes::output::PairOutput;
use kauri_kernels::join::boxes::pairs::{join_boxes_count, join_boxes_emit};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::thread::carried::NoValue;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::SortBy;

/// Counts the pairs of two sets, given as [right, left].
pub(in crate::join::boxes) fn count<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
) -> Result<u64> {
    let mut layout = Layout::new();
    let Some(finder) = FinderPlan::new(stream, workspace, &mut layout, sets, params)? else { return Ok(0) };
    let total = layout.reserve::<u64>(1);
    let temp = workspace.carve(stream, &layout, "box join")?;
    temp.clear(total)?;
    let total = temp.view(total);
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    unsafe {
        finder.run(&temp, sets, params)?.launch(stream, counting(empty_view(), total))?;
        Ok(stream.read(total.read_only())?[0])
    }
}

/// Finds the rows of the left boxes: returns where each row begins, and the ids of the right boxes, ascending, in device memory.
pub(in crate::join::boxes) fn rows<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
) -> Result<(Buffer<u64>, Buffer<u32>)> {
    let num_rows = sets[1].len() / params.width();
    let mut offsets = Buffer::uninitialized(stream.gpu(), num_rows + 1, "offsets of rows")?;
    let mut ids = Buffer::uninitialized(stream.gpu(), 0, "ids of boxes found")?;
    find(stream, workspace, sets, params, Some(offsets.slice_mut()), |total| {
        ids = Buffer::of_result(stream.gpu(), total, ITEM_BYTES, "ids of boxes found")?;
        Ok((ids.slice_mut(), empty_view()))
    })?;
    let mut layout = Layout::new();
    let sort = RowSort::plan(&mut layout, ids.len(), num_rows);
    let temp = workspace.carve(stream, &layout, "rows in order")?;
    // SAFETY: the buffers wait for the device before they are freed, and nothing else uses the memory of the plan.
    unsafe { sort.run(&temp, offsets.slice(), ids.slice_mut()) }?;
    Ok((offsets, ids))
}

/// Writes pairs in no particular order until `found` is full, and returns the number of all pairs.
pub(in crate::join::boxes) fn pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
    found: SliceMut<'_, u64>,
) -> Result<u64> {
    find(stream, workspace, sets, params, None, |_| Ok((empty_view(), found)))
}

/// Returns all pairs of two sets in device memory, in no particular order.
pub(super) fn pair_list<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
) -> Result<Buffer<u64>> {
    let mut pairs = Buffer::uninitialized(stream.gpu(), 0, "pairs of a join")?;
    find(stream, workspace, sets, params, None, |total| {
        pairs = Buffer::of_result(stream.gpu(), total, size_of::<u64>() as u64, "pairs of a join")?;
        Ok((empty_view(), pairs.slice_mut()))
    })?;
    Ok(pairs)
}

/// Writes the offsets of the rows, which are in scratch memory if the caller gives no array, and the ids or pairs to the views that
/// `output` returns for the number of all pairs. Returns this number.
fn find<'o, C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
    offsets: Option<SliceMut<'_, u64>>,
    output: impl FnOnce(u64) -> Result<(SliceMut<'o, u32>, SliceMut<'o, u64>)>,
) -> Result<u64> {
    let mut layout = Layout::new();
    let Some(finder) = FinderPlan::new(stream, workspace, &mut layout, sets, params)? else {
        // SAFETY: the caller owns the offsets.
        offsets.map_or(Ok(()), |offsets| unsafe { stream.fill_bytes(offsets, 0) })?;
        return Ok(0);
    };
    let num_rows = sets[1].len() / params.width();
    let rows = RowsPlan::plan(&mut layout, num_rows);
    let scratch_offsets = layout.reserve(if offsets.is_none() { num_rows + 1 } else { 0 });
    let temp = workspace.carve(stream, &layout, "box join")?;
    let offsets = offsets.unwrap_or_else(|| temp.view(scratch_offsets));
    // SAFETY: the sets are borrowed, nothing else uses the memory of the plan, and buffers wait for the device before they are freed.
    unsafe {
        let finder = finder.run(&temp, sets, params)?;
        rows.count(&temp, &finder, offsets)?;
        let total = stream.read(offsets.read_only().part(num_rows, 1))?[0];
        let (ids, pairs) = output(total)?;
        rows.emit(&temp, &finder, offsets.read_only(), ids, pairs)?;
        Ok(total)
    }
}

/// Returns the output of a join that counts the pairs of each row, unless `counts` is empty, or else all.
pub(super) fn counting<'a>(counts: SliceMut<'a, u32>, total: SliceMut<'a, u64>) -> PairOutput<'a> {
    PairOutput { counts, total, offsets: empty_view().read_only(), ids: empty_view(), pairs: empty_view() }
}

/// Scratch memory of a method.
enum FinderPlan<C: Float> {
    Nested,
    Cells(SidesPlan<C>, PackedGrid),
    #[cfg(feature = "research")]
    Published(PublishedPlan<C>),
}

impl<C: Float> FinderPlan<C> {
    /// Plans the method for two sets, or returns `None` if no pair is possible. May wait for the bounding boxes.
    fn new(
        stream: &Stream,
        workspace: &mut Workspace,
        layout: &mut Layout,
        sets: [Slice<'_, C>; 2],
        params: &BoxParams<C>,
    ) -> Result<Option<Self>> {
        let lens = sets.map(|set| set.len() / params.width());
        if lens.contains(&0) {
            return Ok(None);
        }
        if params.method.choose(lens) == BoxMethod::NestedLoop {
            return Ok(Some(Self::Nested));
        }
        #[cfg(feature = "research")]
        if params.method.is_published() {
            let plan = PublishedPlan::new(stream, workspace, layout, sets, params)?;
            return Ok(plan.map(Self::Published));
        }
        let grid = grid_of_device_sets(stream, workspace, sets, params)?;
        Ok(grid.map(|grid| Self::Cells(SidesPlan::plan(layout, &grid, lens, params), grid)))
    }

    /// Sorts the sets, if the method does.
    ///
    /// # Safety
    /// The sets are as planned. Nothing else uses them and the memory of the plan until the stream has done the work.
    unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        sets: [Slice<'a, C>; 2],
        params: &BoxParams<C>,
    ) -> Result<Finder<'a, C>> {
        Ok(match self {
            Self::Nested => Finder::Nested(sets, *params),
            // SAFETY: passed on to the caller.
            Self::Cells(plan, grid) => Finder::Cells(unsafe { plan.run(temp, grid, params, sets) }?),
            #[cfg(feature = "research")]
            Self::Published(plan) => {
                // SAFETY: passed on to the caller.
                Finder::Published(unsafe { plan.run(temp, sets, params, &mut PhaseClock::off()) }?)
            }
        })
    }
}

/// Two sets, ready to find their pairs.
pub(super) enum Finder<'a, C> {
    /// The sets, as [right, left].
    Nested([Slice<'a, C>; 2], BoxParams<C>),
    Cells(SortedSets<'a, C>),
    #[cfg(feature = "research")]
    Published(Published<'a, C>),
}

impl<C: Float> Finder<'_, C> {
    /// Counts the pairs, or writes them if the output has the offsets of the rows. Counts and total are 0 before.
    ///
    /// # Safety
    /// There is a count for each left box, or none; otherwise there is one total. Nothing else uses the sets and the output until the
    /// stream has done the work.
    unsafe fn launch(&self, stream: &Stream, output: PairOutput<'_>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::Nested(sets, params) => nested::launch(stream, *sets, params, output),
                Self::Cells(sets) if output.offsets.is_empty() => {
                    launch_passes!(stream, sets, C, join_boxes_count(output))
                }
                Self::Cells(sets) => launch_passes!(stream, sets, C, join_boxes_emit(output)),
                #[cfg(feature = "research")]
                Self::Published(sets) => sets.launch(stream, output),
            }
        }
    }
}

/// Scratch memory to count and write rows.
pub(super) struct RowsPlan {
    counts: Region<u32>,
    offsets: Offsets,
}

impl RowsPlan {
    pub(super) fn plan(layout: &mut Layout, num_rows: usize) -> Self {
        Self { counts: layout.reserve(num_rows), offsets: Offsets::plan(layout, num_rows) }
    }

    /// Writes the offsets of all rows.
    ///
    /// # Safety
    /// There is one more offset than left boxes. Nothing else uses the offsets and the sets until the stream has done the work.
    pub(super) unsafe fn count<C: Float>(
        &self,
        temp: &Temp<'_>,
        finder: &Finder<'_, C>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<()> {
        let counts = temp.view(self.counts);
        temp.clear(self.counts)?;
        // SAFETY: passed on to the caller; the counts are those of the plan.
        unsafe {
            finder.launch(&temp.stream, counting(counts, empty_view()))?;
            self.offsets.run(temp, counts.read_only(), offsets)
        }
    }

    /// Writes the ids or the pairs of all rows, up to the capacity of their array; the items of a row are in no particular order.
    ///
    /// # Safety
    /// The requirements of [`count`](Self::count), which has written the offsets.
    pub(super) unsafe fn emit<C: Float>(
        &self,
        temp: &Temp<'_>,
        finder: &Finder<'_, C>,
        offsets: Slice<'_, u64>,
        ids: SliceMut<'_, u32>,
        pairs: SliceMut<'_, u64>,
    ) -> Result<()> {
        temp.clear(self.counts)?;
        let output = PairOutput { counts: temp.view(self.counts), total: empty_view(), offsets, ids, pairs };
        // SAFETY: passed on to the caller.
        unsafe { finder.launch(&temp.stream, output) }
    }
}

/// Scratch memory of a sort of the ids of each row.
pub(super) struct RowSort(SegmentLists<u32, NoValue>);

impl RowSort {
    pub(super) fn plan(layout: &mut Layout, len: usize, num_rows: usize) -> Self {
        Self(SegmentLists::plan_all(layout, len, num_rows))
    }

    /// Sorts the ids of each row in place.
    ///
    /// # Safety
    /// The number of ids is as planned. Nothing else uses them and the offsets until the stream has done the work.
    pub(super) unsafe fn run(
        &self,
        temp: &Temp<'_>,
        offsets: Slice<'_, u64>,
        ids: SliceMut<'_, u32>,
    ) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        // In place: all 32 bits take an even number of passes, the first of which writes to the scratch memory.
        let sort = SegmentedSort {
            source: Source::of_keys(ids.read_only()),
            offsets,
            target: Pairs::of_keys(ids),
            by: SortBy::low_bits(u32::BITS),
        };
        // SAFETY: passed on to the caller.
        unsafe { self.0.sort(temp, sort, ids.len()) }
    }
}

/// Returns an upper bound of the scratch bytes of [`rows`] for sets of `lens` boxes, given as [right, left], without the bytes per pair.
pub(in crate::join::boxes) fn scratch_bytes<C: Float>(lens: [usize; 2], params: &BoxParams<C>) -> u64 {
    let mut layout = Layout::new();
    match params.method.choose(lens) {
        BoxMethod::NestedLoop => {}
        #[cfg(feature = "research")]
        method if method.is_published() => PublishedPlan::plan_largest(&mut layout, lens, params),
        _ => {
            SidesPlan::plan(&mut layout, &PackedGrid::largest(params.test.dims), lens, params);
        }
    }
    RowsPlan::plan(&mut layout, lens[1]);
    layout.reserve::<u64>(lens[1] + 1);
    layout.bytes().max(grid_bytes::<C>(params.test.dims))
}
