//! The part of the points on one device.

use bytemuck::AnyBitPattern;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::multi_gpu::cut::{
    CLASSES, CUT_DIGITS, CUT_ITEMS, balanced_candidates, balanced_count_digits, balanced_cut,
};
use kauri_kernels::balanced::multi_gpu::{balanced_first_coordinates, balanced_lay_out_points};
use kauri_kernels::policy::{BALANCED_WARPS, CUT_MAX_BLOCKS};
use kauri_kernels::primitives::merge_sort::primitives_super_keys;
use kauri_kernels::thread::coord::Float;
use std::ops::Range;

use crate::balanced::gpu::coordinate_sort::CoordinateSort;
use crate::balanced::gpu::distinct::Distinct;
use crate::balanced::gpu::plan::BuildContext;
use crate::balanced::gpu::{GpuTree, memory_plan as tree_memory_plan, plan};
use crate::balanced::multi_gpu::points::Points;
use crate::balanced::multi_gpu::representatives::KeptPoints;
use crate::balanced::options::BalancedOptions;
use crate::device::{Buffer, Gpu, Layout, MAX_DEVICES, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::host_coords::HostCoords;
use crate::memory::MemoryPlan;
use crate::primitives::generate::iota_on;
use crate::primitives::merge::MergePoints;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::primitives::planned::{bytes_of, carve};
use crate::stats::Stats;
use crate::threads::both;

/// Maximum number of parts of a tree.
pub(crate) const MAX_PARTS: usize = MAX_DEVICES;

/// The points of one device. Its stream is idle between two steps.
pub(crate) struct Part<C> {
    pub(super) stream: Stream,
    workspace: Workspace,
    pub(super) dims: usize,
    pub(super) points: Points<C>,
    /// The points as they were uploaded, while a step may have to begin with them again.
    input: Option<Points<C>>,
    keeps_input: bool,
    /// Memory for the points of the next steps.
    spares: Vec<Points<C>>,
    /// Memory for the points of the subtree, which the tree will own.
    subtree: Option<Points<C>>,
    /// The ids of kept points, if the last step removed points.
    kept: Option<KeptPoints>,
    /// Peak bytes in addition to the memory of the tree.
    pub(super) temp_bytes: u64,
}

/// A result that the device may still be working on.
pub(crate) struct Pending<'a, T> {
    temp: Temp<'a>,
    result: Slice<'a, T>,
}

impl<T: AnyBitPattern> Pending<'_, T> {
    /// Waits for the result, and copies it to the host.
    pub(crate) fn read(self) -> Result<Vec<T>> {
        // SAFETY: earlier work of the stream writes the result, which lives as long as the scratch memory.
        unsafe { self.temp.stream.read(self.result) }
    }
}

/// The output of a permutation: memory for the points, and the column that becomes the first one.
struct Output<C> {
    points: Points<C>,
    rotation: u32,
}

/// Scratch memory of a sort of a part.
struct Sort<C: Float> {
    sort: CoordinateSort<C>,
    buffers: [Region<u32>; 2],
    /// For the sort that also removes equal points.
    distinct: Option<Distinct>,
}

/// Scratch memory of the merge of the pieces that a part has received.
struct DistinctMerge<C> {
    merge: MergePoints,
    buffers: [(Region<C>, Region<u32>); 2],
    distinct: Distinct,
}

impl<C: Float> Sort<C> {
    fn plan(layout: &mut Layout, len: usize, removes_equal: bool) -> Self {
        let sort = CoordinateSort::plan(layout, len);
        let buffers = [layout.reserve(len), layout.reserve(len)];
        let distinct = removes_equal.then(|| Distinct::plan(layout, len, warps(len)));
        Self { sort, buffers, distinct }
    }
}

impl<C: Float> DistinctMerge<C> {
    fn plan(layout: &mut Layout, len: usize) -> Self {
        let merge = MergePoints::plan::<C>(layout, len);
        let buffers = [0, 1].map(|_| (layout.reserve(len), layout.reserve(len)));
        Self { merge, buffers, distinct: Distinct::plan(layout, len, warps(len)) }
    }
}

/// The most points that the first exchange adds to a part: one per other part that equals the last point, and one by rounding.
const MAX_ADDED: usize = MAX_PARTS;

/// Returns the number of arrays of points that a part has in addition to those of its tree: one for the input, and one or two for the steps.
/// With more than two parts, points move between devices more than once.
fn num_copies(num_parts: usize) -> usize {
    if num_parts > 2 { 3 } else { 2 }
}

/// Returns the bytes of one of some parts, of at most `len` points. Its tree also stores the ids of the points. Temporary are copies of the
/// points, and the scratch memory.
pub(crate) fn memory_plan<C: Float>(
    len: usize,
    num_parts: usize,
    dims: usize,
    options: &BalancedOptions,
) -> MemoryPlan {
    let tree_bytes = tree_memory_plan::<C>(len, dims, options).tree_bytes + (len * size_of::<u32>()) as u64;
    let len = len + MAX_ADDED;
    let sort = bytes_of(|layout| Sort::<C>::plan(layout, len, true));
    let merge = bytes_of(|layout| DistinctMerge::<C>::plan(layout, len));
    let scratch = sort.max(merge).max(tree_memory_plan::<C>(len, dims, options).temp_bytes);
    let copies = num_copies(num_parts) * len * (dims * size_of::<C>() + size_of::<u32>());
    let temp_bytes = scratch + copies as u64;
    MemoryPlan { tree_bytes, temp_bytes }
}

impl<C: Float> Part<C> {
    /// Uploads consecutive points to one of some parts; the first one has id `first`. Allocates the memory of all steps. `subtree_len` is
    /// the maximum length of the subtree of the part.
    pub(crate) fn upload(
        gpu: &Gpu,
        num_parts: usize,
        coords: HostCoords<'_, C>,
        first: u32,
        subtree_len: usize,
        options: &BalancedOptions,
    ) -> Result<Self> {
        let (n, dims, stream) = (coords.num_points(), coords.dims(), Stream::new(gpu)?);
        let new = |len| Points::uninitialized(gpu, len, dims);
        let mut points = new(n + MAX_ADDED)?.truncate(n);
        let (to, ids) = points.write();
        let copy = || {
            // SAFETY: nothing else uses the new memory.
            unsafe { iota_on(&stream, first, ids)? };
            // SAFETY: as above.
            unsafe { coords.upload(&stream, to) }
        };
        // Allocates ahead of the timed steps, because an allocation takes longer than some of them.
        let allocate = || {
            let spares =
                (1..num_copies(num_parts)).map(|_| new(n + MAX_ADDED)).collect::<Result<Vec<_>>>()?;
            let subtree = Some(new(subtree_len)?);
            let mut workspace = Workspace::new(gpu);
            let [mut build, mut sort, mut merge] = Default::default();
            plan::<C>(&mut build, subtree_len, dims, options);
            Sort::<C>::plan(&mut sort, n, true);
            DistinctMerge::<C>::plan(&mut merge, n + MAX_ADDED);
            let largest = [build, sort, merge].into_iter().max_by_key(Layout::bytes).unwrap_or_default();
            workspace.carve(&stream, &largest, "the work of a part")?;
            Ok((spares, subtree, workspace))
        };
        let ((), (spares, subtree, workspace)) = both(copy, allocate)?;
        stream.synchronize()?;
        Ok(Self {
            stream,
            workspace,
            dims,
            points,
            input: None,
            keeps_input: true,
            spares,
            subtree,
            kept: None,
            temp_bytes: 0,
        })
    }

    /// Takes back the points that were uploaded, and no longer keeps them.
    pub(crate) fn restart(&mut self) {
        if let Some(input) = self.input.take() {
            self.spares.push(std::mem::replace(&mut self.points, input));
        }
        self.keeps_input = false;
    }

    /// Returns memory for the points of the next step.
    pub(crate) fn next_points(&mut self, len: usize) -> Result<Points<C>> {
        match self.spares.pop().and_then(|spare| spare.reuse(len)) {
            Some(spare) => Ok(spare),
            None => Points::uninitialized(self.stream.gpu(), len, self.dims),
        }
    }

    /// Returns memory for exactly the points of the subtree.
    pub(crate) fn subtree_points(&mut self, len: usize) -> Result<Points<C>> {
        match self.subtree.take().filter(|points| points.len() == len) {
            Some(points) => Ok(points),
            None => Points::uninitialized(self.stream.gpu(), len, self.dims),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Replaces the points, and keeps their memory for the next step.
    pub(crate) fn replace(&mut self, points: Points<C>) {
        // Once `subtree` is taken, the new points are the memory of the tree.
        let temporary = [Some(&self.points), self.input.as_ref(), self.subtree.as_ref().and(Some(&points))];
        let bytes: u64 = temporary.into_iter().flatten().chain(&self.spares).map(Points::bytes).sum();
        self.temp_bytes = self.temp_bytes.max(self.workspace.bytes() + bytes);
        let before = std::mem::replace(&mut self.points, points);
        if self.keeps_input && self.input.is_none() {
            self.input = Some(before);
        } else {
            self.spares.push(before);
        }
    }

    /// Returns which points the last step kept, if it removed some.
    pub(crate) fn take_kept(&mut self) -> Option<KeptPoints> {
        self.kept.take()
    }

    /// Copies the id of the point at a position to the host.
    pub(crate) fn read_id(&self, position: usize) -> Result<u32> {
        // SAFETY: the last step is complete, and the position is less than the number of points.
        let ids = unsafe { self.stream.read(self.points.ids().part(position, 1))? };
        ids.first().copied().ok_or(Error::Shape { what: "ids of a part", expected: 1, got: 0 })
    }

    /// Copies the coordinates of the points at some positions to the host.
    pub(crate) fn read_points(&mut self, positions: &[u32]) -> Result<Vec<C>> {
        let (stream, dims) = (&self.stream, self.dims);
        let plan = |layout: &mut Layout| {
            (layout.reserve::<u32>(positions.len()), layout.reserve::<C>(positions.len() * dims))
        };
        let (regions, temp) = carve(stream, &mut self.workspace, "points of a part", plan)?;
        let (at, coords) = (temp.view(regions.0), temp.view(regions.1));
        temp.upload(at, positions)?;
        // SAFETY: positions are less than the number of points, and the arrays of a plan do not overlap.
        unsafe {
            permute_parts(stream, Direction::Gather, dims, self.points.coords(), at.read_only(), coords)?;
            stream.read(coords.read_only())
        }
    }

    /// Starts counting the points by some bits of the key of their first column. Only points whose higher bits equal `prefix` are counted.
    pub(crate) fn count_digits(&mut self, prefix: u64, bits: Range<u32>) -> Result<Pending<'_, u32>> {
        let plan = |layout: &mut Layout| layout.reserve::<u32>(CUT_DIGITS);
        let (counts, temp) = carve(&self.stream, &mut self.workspace, "digits of a part", plan)?;
        temp.clear(counts)?;
        let counts = temp.view(counts);
        let num_blocks = self.points.len().div_ceil(CUT_ITEMS).min(CUT_MAX_BLOCKS) as u64;
        let args = (self.points.coords(), self.dims as u32, prefix, bits.start, bits.end, counts);
        // SAFETY: the arrays of a plan do not overlap, and the points live as long as the part.
        unsafe { temp.stream.launch::<balanced_count_digits<C>>(num_blocks, args)? };
        Ok(Pending { temp, result: counts.read_only() })
    }

    /// Begins to copy the coordinates of the points, `len` of them, whose key of the first column has the bits of `prefix` from bit `bit` on.
    pub(crate) fn candidates(&mut self, prefix: u64, bit: u32, len: usize) -> Result<Pending<'_, C>> {
        let plan = |layout: &mut Layout| (layout.reserve::<C>(len * self.dims), layout.reserve::<u32>(1));
        let (regions, temp) = carve(&self.stream, &mut self.workspace, "candidates of a part", plan)?;
        temp.clear(regions.1)?;
        let (found, num_found) = (temp.view(regions.0), temp.view(regions.1));
        let args = (self.points.coords(), self.dims as u32, prefix, bit, found, num_found);
        // SAFETY: as in `count_digits`.
        unsafe { temp.stream.launch_items::<balanced_candidates<C>>(self.points.len() as u64, args)? };
        Ok(Pending { temp, result: found.read_only() })
    }

    /// Begins to order the points: `num_less` points before a point by the super key of the first column, `num_equal` points that equal it,
    /// then those after it. The columns are those of the next level. [`finish`](Self::finish) takes the result.
    pub(crate) fn cut(&mut self, at: &[C], num_less: usize, num_equal: usize) -> Result<Points<C>> {
        let n = self.len();
        let to = Output { points: self.next_points(n)?, rotation: 1 };
        let dims = self.dims;
        let plan = |layout: &mut Layout| {
            (layout.reserve::<C>(dims), layout.reserve::<u32>(CLASSES), layout.reserve::<u32>(n))
        };
        let (regions, temp) = carve(&self.stream, &mut self.workspace, "the cut of a part", plan)?;
        let (point, nexts, order) = (temp.view(regions.0), temp.view(regions.1), temp.view(regions.2));
        temp.upload(point, at)?;
        temp.upload(nexts, &[0, num_less as u32, (num_less + num_equal) as u32])?;
        let context = BuildContext { temp: &temp, coords: self.points.coords(), dims };
        let args = (context.coords, dims as u32, point.read_only(), nexts, order);
        // SAFETY: as in `count_digits`.
        unsafe { temp.stream.launch::<balanced_cut<C>>(n.div_ceil(CUT_ITEMS) as u64, args)? };
        context.lay_out(self.points.ids(), order.read_only(), to)
    }

    /// Waits for the points of a step, and replaces the points by them.
    pub(crate) fn finish(&mut self, points: Points<C>) -> Result<()> {
        self.stream.synchronize()?;
        self.replace(points);
        Ok(())
    }

    /// Sorts the points by the super key of the first column, and rotates the columns to those of the next level.
    pub(crate) fn sort(&mut self) -> Result<()> {
        self.sort_by_first_column(1, false)
    }

    /// Sorts the points by the super key of the first axis, and removes equal ones.
    pub(crate) fn sort_distinct(&mut self) -> Result<()> {
        self.sort_by_first_column(0, true)
    }

    fn sort_by_first_column(&mut self, rotation: u32, removes_equal: bool) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(());
        }
        let to = Output { points: self.next_points(n)?, rotation };
        let (dims, stream) = (self.dims, &self.stream);
        let plan = |layout: &mut _| Sort::<C>::plan(layout, n, removes_equal);
        let (Sort { sort, buffers, distinct }, temp) =
            carve(stream, &mut self.workspace, "a sort of a part", plan)?;
        let context = BuildContext { temp: &temp, coords: self.points.coords(), dims };
        let [order, other] = buffers.map(|buffer| temp.view::<u32>(buffer));
        let (_, may_be_equal) = sort.by_super_key(context, [order, other])?;
        let (points, kept) = match distinct.filter(|_| may_be_equal) {
            None => (context.permute(self.points.ids(), order.read_only(), to)?, None),
            Some(distinct) => {
                let keys = temp.view(sort.keys[1].of_type::<C>());
                let args = (context.coords, dims as u32, order.read_only(), keys);
                // SAFETY: the arrays of a plan do not overlap, there is one key per id, and the sort has finished with its keys.
                unsafe { stream.launch_items::<balanced_first_coordinates<C>>(n as u64, args)? };
                let sorted = Pairs { keys, values: order }.read_only();
                context.keep_distinct(&distinct, sorted, other, self.points.ids(), to)?
            }
        };
        self.replace(points);
        self.kept = kept;
        Ok(())
    }

    /// Merges consecutive runs of points, each sorted by the super key of the first axis, and removes equal points. Rotates the columns to
    /// those of the next level. `lens` are the lengths of the runs.
    pub(crate) fn merge_distinct(&mut self, lens: impl Iterator<Item = usize>) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(());
        }
        let to = Output { points: self.next_points(n)?, rotation: 1 };
        let (dims, stream) = (self.dims, &self.stream);
        let plan = |layout: &mut _| DistinctMerge::<C>::plan(layout, n);
        let (DistinctMerge { merge, buffers, distinct }, temp) =
            carve(stream, &mut self.workspace, "a merge of a part", plan)?;
        let context = BuildContext { temp: &temp, coords: self.points.coords(), dims };
        let [mut sorted, mut other] =
            buffers.map(|(keys, ids)| Pairs { keys: temp.view(keys), values: temp.view(ids) });
        // SAFETY: the arrays of a plan do not overlap.
        unsafe { stream.launch_items::<primitives_super_keys<C>>(n as u64, (context.points(0), sorted))? };
        let mut sum = 0;
        let add = |len| {
            sum += len;
            sum
        };
        let mut ends: Vec<_> = lens.map(add).collect();
        while ends.len() > 1 {
            let mut begin = 0;
            for pair in ends.chunks(2) {
                let (middle, end) = (pair[0], pair[pair.len() - 1]);
                // SAFETY: runs are within the arrays, which do not overlap.
                unsafe {
                    let run = |begin: usize, end: usize| sorted.part(begin, end - begin).read_only();
                    let (runs, to) = ([run(begin, middle), run(middle, end)], other.part(begin, end - begin));
                    merge.run(&temp, runs, to, context.points(0))?;
                }
                begin = end;
            }
            ends = ends.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
            std::mem::swap(&mut sorted, &mut other);
        }
        let ids = self.points.ids();
        let (points, kept) = context.keep_distinct(&distinct, sorted.read_only(), other.values, ids, to)?;
        self.replace(points);
        self.kept = kept;
        Ok(())
    }

    /// Builds the subtree over the points; its first level splits on the first column. Returns it with the ids of its points; `None` if
    /// points are equal.
    pub(crate) fn build_subtree(
        &mut self,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Option<(GpuTree<C>, Buffer<u32>)>> {
        self.spares.clear();
        let none = Points::uninitialized(self.stream.gpu(), 0, self.dims)?;
        let (coords, ids) = std::mem::replace(&mut self.points, none).into_buffers();
        let (stream, workspace) = (&self.stream, &mut self.workspace);
        let tree = GpuTree::build_over_distinct(stream, workspace, coords, self.dims, options, stats)?;
        let input_bytes = self.input.as_ref().map_or(0, Points::bytes);
        self.temp_bytes = self.temp_bytes.max(self.workspace.bytes() + input_bytes);
        Ok(tree.map(|tree| (tree, ids)))
    }
}

/// Returns the number of warps that remove equal points; a warp takes at least 32 points.
fn warps(len: usize) -> u32 {
    len.div_ceil(32).clamp(1, BALANCED_WARPS as usize) as u32
}

impl<C: Float> BuildContext<'_, C> {
    /// Removes equal points of a sorted list, and permutes the kept points into that order. Returns the kept points, and their ids for all points if some were removed. `scratch`
    /// has the length of the list.
    fn keep_distinct(
        self,
        distinct: &Distinct,
        sorted: Source<'_, C, u32>,
        scratch: SliceMut<'_, u32>,
        ids: Slice<'_, u32>,
        to: Output<C>,
    ) -> Result<(Points<C>, Option<KeptPoints>)> {
        let (stream, n) = (&self.temp.stream, sorted.values.len());
        let num_kept = distinct.run(self, 0, sorted, scratch)?;
        // SAFETY: the number of kept points is at most `n`.
        let kept = unsafe { scratch.part(0, num_kept) }.read_only();
        let mut kept_points = None;
        if num_kept < n {
            let new = || Buffer::uninitialized(stream.gpu(), n, "representatives of the points");
            let (mut first, mut points) = (new()?, KeptPoints { ids: new()?, kept: new()? });
            self.write_representatives(sorted.values, kept, &mut first)?;
            // SAFETY: the arrays have one entry for each point, and wait for the device before they are freed.
            unsafe {
                stream.copy(points.ids.slice_mut(), ids)?;
                gather_on(stream, ids, first.slice(), points.kept.slice_mut())?;
            }
            kept_points = Some(points);
        }
        Ok((self.permute(ids, kept, to)?, kept_points))
    }

    /// Permutes the points into an order and rotates their columns. Waits for the result.
    fn permute(self, ids: Slice<'_, u32>, order: Slice<'_, u32>, to: Output<C>) -> Result<Points<C>> {
        let points = self.lay_out(ids, order, to)?;
        self.temp.stream.synchronize()?;
        Ok(points)
    }

    /// Begins to permute the points into an order, and to rotate their columns.
    fn lay_out(self, ids: Slice<'_, u32>, order: Slice<'_, u32>, to: Output<C>) -> Result<Points<C>> {
        let BuildContext { temp, coords, dims, .. } = self;
        let Output { points, rotation } = to;
        let (mut points, rotation) = (points.truncate(order.len()), rotation % dims as u32);
        let (new_coords, new_ids) = points.write();
        let args = (coords, dims as u32, ids, order, rotation, new_coords, new_ids);
        // SAFETY: the order has positions of points, and buffers wait for the device before they are freed.
        unsafe { temp.stream.launch_items::<balanced_lay_out_points<C>>((order.len() * dims) as u64, args)? };
        Ok(points)
    }
}
