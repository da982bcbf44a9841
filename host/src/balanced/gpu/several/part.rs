//! A part of the points, on its device.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::several::{balanced_first_coordinates, balanced_lay_out_points};
use kauri_kernels::policy::BALANCED_WARPS;
use kauri_kernels::primitives::merge_sort::primitives_super_keys;
use kauri_kernels::thread::coord::Coord;

use crate::balanced::gpu::coordinate_sort::CoordinateSort;
use crate::balanced::gpu::distinct::Distinct;
use crate::balanced::gpu::several::points::Points;
use crate::balanced::gpu::{Build, GpuTree, plan, temp_bytes as tree_temp_bytes};
use crate::balanced::{BalancedOptions, MAX_PARTS};
use crate::device::{Buffer, Gpu, Layout, Region, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::primitives::generate::iota_on;
use crate::primitives::merge::MergePoints;
use crate::primitives::order::Lookup;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::permute::{Direction, permute_parts};
use crate::stats::Stats;

/// A point that was removed, and the one that stays for it, by their ids.
pub(crate) struct Renamed {
    pub(crate) id: u32,
    pub(crate) stays: u32,
}

/// A part of the points. Between two steps its stream has nothing to do.
pub(crate) struct Part<C> {
    stream: Stream,
    workspace: Workspace,
    dims: usize,
    points: Points<C>,
    /// What the points were in before, for those of a next step.
    spare: Option<Points<C>>,
    /// Room for those of the tree.
    own: Option<Points<C>>,
    renamed: Vec<Renamed>,
    temp_bytes: u64,
}

/// Where points are laid out, in columns that begin with number `rotation`; there is room for as many as there are.
struct Target<C> {
    points: Points<C>,
    rotation: u32,
}

/// Temporary memory of the first sort of a part.
struct DistinctSort<C: Coord> {
    sort: CoordinateSort<C>,
    rooms: [Region<u32>; 2],
    distinct: Distinct,
}

/// Temporary memory of a merge of what a part has been sent.
struct DistinctMerge<C> {
    merge: MergePoints,
    rooms: [(Region<C>, Region<u32>); 2],
    distinct: Distinct,
}

impl<C: Coord> DistinctSort<C> {
    fn plan(layout: &mut Layout, len: usize) -> Self {
        let sort = CoordinateSort::plan(layout, len);
        let rooms = [layout.reserve(len), layout.reserve(len)];
        Self { sort, rooms, distinct: Distinct::plan(layout, len, warps(len)) }
    }
}

impl<C: Coord> DistinctMerge<C> {
    fn plan(layout: &mut Layout, len: usize) -> Self {
        let merge = MergePoints::plan::<C>(layout, len);
        let rooms = [0, 1].map(|_| (layout.reserve(len), layout.reserve(len)));
        Self { merge, rooms, distinct: Distinct::plan(layout, len, warps(len)) }
    }
}

/// More points than it had at first a part may have after the first exchange: of each other part at most one that is equal to the last,
/// and one by rounding.
const MORE: usize = MAX_PARTS;

/// Temporary bytes of a part that has at most so many points at a time: points twice, beside those of the tree, and the work.
pub(crate) fn temp_bytes<C: Coord>(len: usize, dims: usize, options: &BalancedOptions) -> u64 {
    let (len, mut sort, mut merge) = (len + MORE, Layout::new(), Layout::new());
    DistinctSort::<C>::plan(&mut sort, len);
    DistinctMerge::<C>::plan(&mut merge, len);
    let work = sort.bytes().max(merge.bytes()).max(tree_temp_bytes::<C>(len, dims, options));
    work + 2 * (len * (dims * size_of::<C>() + size_of::<u32>())) as u64
}

impl<C: Coord> Part<C> {
    /// Consecutive points, of which the first has that id.
    ///
    /// At last it will have so many points of a subtree, or fewer.
    pub(crate) fn upload(
        gpu: &Gpu,
        coords: &[C],
        first: u32,
        dims: usize,
        in_subtree: usize,
        options: &BalancedOptions,
    ) -> Result<Self> {
        let (n, stream) = (coords.len() / dims, Stream::new(gpu)?);
        // What the next steps take is here before they begin: allocations take longer than some of them.
        let rooms = [n + MORE, n + MORE, in_subtree].map(|len| Points::uninitialized(gpu, len, dims));
        let [points, spare, own] = rooms;
        let mut points = points?.with_len(n);
        let mut workspace = Workspace::new(gpu);
        let (mut sort, mut merge) = (Layout::new(), Layout::new());
        DistinctSort::<C>::plan(&mut sort, n);
        DistinctMerge::<C>::plan(&mut merge, n + MORE);
        let mut build = Layout::new();
        plan::<C>(&mut build, in_subtree, dims, options);
        let largest = [sort, merge, build].into_iter().max_by_key(Layout::bytes).unwrap_or_default();
        workspace.carve(&stream, &largest, "the work of a part")?;
        let (to, names) = points.write();
        // SAFETY: the memory is new, and nobody else uses it.
        unsafe {
            stream.upload(to, coords)?;
            iota_on(&stream, first, names)?;
        }
        stream.synchronize()?;
        let (spare, own) = (Some(spare?), Some(own?));
        Ok(Self { stream, workspace, dims, points, spare, own, renamed: Vec::new(), temp_bytes: 0 })
    }

    /// Room for the points of the next step.
    pub(crate) fn room(&mut self, len: usize) -> Result<Points<C>> {
        match self.spare.take().and_then(|spare| spare.reused(len)) {
            Some(spare) => Ok(spare),
            None => Points::uninitialized(self.stream.gpu(), len, self.dims),
        }
    }

    /// Room for so many points of a tree and no more.
    pub(crate) fn own_room(&mut self, len: usize) -> Result<Points<C>> {
        match self.own.take().filter(|own| own.len() == len) {
            Some(own) => Ok(own),
            None => Points::uninitialized(self.stream.gpu(), len, self.dims),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn points(&self) -> &Points<C> {
        &self.points
    }

    /// Most bytes held at one time beside what becomes the tree.
    pub(crate) fn temp_bytes(&self) -> u64 {
        self.temp_bytes
    }

    /// Other points in place of those there are.
    pub(crate) fn replace(&mut self, points: Points<C>) {
        let rooms = [Some(&self.points), self.spare.as_ref(), self.own.as_ref().and(Some(&points))];
        let beside: u64 = rooms.into_iter().flatten().map(Points::bytes).sum();
        self.temp_bytes = self.temp_bytes.max(self.workspace.bytes() + beside);
        self.spare = Some(std::mem::replace(&mut self.points, points));
    }

    /// The points that the last step has removed.
    pub(crate) fn take_renamed(&mut self) -> Vec<Renamed> {
        std::mem::take(&mut self.renamed)
    }

    /// The id of the point at a place.
    pub(crate) fn name(&self, place: usize) -> Result<u32> {
        // SAFETY: the names are there since the last step, and the place is one of theirs.
        let names = unsafe { self.stream.read(self.points.names().part(place, 1))? };
        names.first().copied().ok_or(Error::Shape { what: "ids of a part", expected: 1, got: 0 })
    }

    /// The coordinates of the points at some places.
    pub(crate) fn look(&mut self, places: &[u32]) -> Result<Vec<C>> {
        let (mut layout, stream, dims) = (Layout::new(), &self.stream, self.dims);
        let regions = (layout.reserve(places.len()), layout.reserve(places.len() * dims));
        let temp = self.workspace.carve(stream, &layout, "points of a part")?;
        let (at, found) = (temp.view::<u32>(regions.0), temp.view::<C>(regions.1));
        temp.upload(stream, at, places)?;
        // SAFETY: places are less than the number of points, and arrays of a plan are apart.
        unsafe {
            permute_parts(stream, Direction::Gather, dims, self.points.coords(), at.read_only(), found)?;
            stream.read(found.read_only())
        }
    }

    /// Sorts the points by the super key of the first column, and lays them out in that order, in the columns of the next level.
    pub(crate) fn sort(&mut self) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(());
        }
        let to = Target { points: self.room(n)?, rotation: 1 };
        let (dims, stream) = (self.dims, &self.stream);
        let mut layout = Layout::new();
        let sort = CoordinateSort::<C>::plan(&mut layout, n);
        let rooms = [layout.reserve(n), layout.reserve(n)];
        let temp = self.workspace.carve(stream, &layout, "a sort of a part")?;
        let build = Build { stream, temp: &temp, coords: self.points.coords(), dims };
        let rooms = rooms.map(|room| temp.view::<u32>(room));
        sort.by_super_key(build, rooms)?;
        let points = build.lay_out(self.points.names(), rooms[0].read_only(), to)?;
        self.replace(points);
        Ok(())
    }

    /// Sorts the points by the super key of the first axis, removes equal ones, and lays out the others in that order.
    pub(crate) fn sort_distinct(&mut self) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(());
        }
        let to = Target { points: self.room(n)?, rotation: 0 };
        let (dims, stream) = (self.dims, &self.stream);
        let mut layout = Layout::new();
        let DistinctSort { sort, rooms, distinct } = DistinctSort::<C>::plan(&mut layout, n);
        let temp = self.workspace.carve(stream, &layout, "a sort of a part")?;
        let build = Build { stream, temp: &temp, coords: self.points.coords(), dims };
        let [ids, room] = rooms.map(|room| temp.view::<u32>(room));
        let (_, may_be_equal) = sort.by_super_key(build, [ids, room])?;
        if !may_be_equal {
            let points = build.lay_out(self.points.names(), ids.read_only(), to)?;
            self.replace(points);
            return Ok(());
        }
        let keys = temp.view(sort.keys[1].of_type::<C>());
        let args = (build.coords, dims as u32, ids.read_only(), keys);
        // SAFETY: arrays of a plan are apart, and there are as many keys as ids; the sort's are not needed any more.
        unsafe { stream.launch_items::<balanced_first_coordinates<C>>(n as u64, args)? };
        let sorted = Pairs { keys, values: ids }.read_only();
        let (points, renamed) = build.keep(&distinct, sorted, room, self.points.names(), to)?;
        self.replace(points);
        self.renamed = renamed;
        Ok(())
    }

    /// Merges runs of points that are sorted by the super key of the first axis, and lie one behind the other, and removes equal points.
    /// Lays out the others in that order, in the columns of the next level.
    pub(crate) fn merge_distinct(&mut self, lens: impl Iterator<Item = usize>) -> Result<()> {
        let n = self.len();
        if n == 0 {
            return Ok(());
        }
        let to = Target { points: self.room(n)?, rotation: 1 };
        let (dims, stream) = (self.dims, &self.stream);
        let mut layout = Layout::new();
        let DistinctMerge { merge, rooms, distinct } = DistinctMerge::<C>::plan(&mut layout, n);
        let temp = self.workspace.carve(stream, &layout, "a merge of a part")?;
        let build = Build { stream, temp: &temp, coords: self.points.coords(), dims };
        let [mut sorted, mut room] =
            rooms.map(|(keys, ids)| Pairs { keys: temp.view(keys), values: temp.view(ids) });
        let args = (build.coords, dims as u32, 0, sorted.keys, sorted.values);
        // SAFETY: arrays of a plan are apart.
        unsafe { stream.launch_items::<primitives_super_keys<C>>(n as u64, args)? };
        let lookup = Lookup { coords: build.coords, dims: dims as u32, axis: 0 };
        let mut ends: Vec<_> = lens
            .scan(0, |sum, len| {
                *sum += len;
                Some(*sum)
            })
            .collect();
        while ends.len() > 1 {
            let mut begin = 0;
            for pair in ends.chunks(2) {
                let (middle, end) = (pair[0], pair[pair.len() - 1]);
                // SAFETY: runs are within the arrays, which are apart.
                unsafe {
                    let run = |begin: usize, end: usize| part(sorted, begin, end).read_only();
                    let runs = [run(begin, middle), run(middle, end)];
                    merge.run(stream, &temp, runs, part(room, begin, end), lookup)?;
                }
                begin = end;
            }
            ends = ends.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
            std::mem::swap(&mut sorted, &mut room);
        }
        let names = self.points.names();
        let (points, renamed) = build.keep(&distinct, sorted.read_only(), room.values, names, to)?;
        self.replace(points);
        self.renamed = renamed;
        Ok(())
    }

    /// Builds the tree over the points, by the super key of the first column on its first level, and gives it away with their ids.
    pub(crate) fn build(
        &mut self,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<(GpuTree<C>, Buffer<u32>)> {
        self.spare = None;
        let none = Points::uninitialized(self.stream.gpu(), 0, self.dims)?;
        let (coords, names) = std::mem::replace(&mut self.points, none).into_buffers();
        let tree = GpuTree::over(&self.stream, &mut self.workspace, coords, self.dims, options, stats)?;
        self.temp_bytes = self.temp_bytes.max(self.workspace.bytes());
        Ok((tree, names))
    }
}

/// Warps that look for equal points: more than one for 32 points have nothing to do.
fn warps(len: usize) -> u32 {
    len.div_ceil(32).clamp(1, BALANCED_WARPS as usize) as u32
}

/// A range of places.
///
/// # Safety
/// There are so many.
unsafe fn part<'a, C>(all: Pairs<'a, C, u32>, begin: usize, end: usize) -> Pairs<'a, C, u32> {
    // SAFETY: passed on to the caller.
    unsafe { Pairs { keys: all.keys.part(begin, end - begin), values: all.values.part(begin, end - begin) } }
}

impl<C: Coord> Build<'_, C> {
    /// Of points in order the first of equal ones, laid out in that order, and the ones that go. `room` is for as many ids.
    fn keep(
        self,
        distinct: &Distinct,
        sorted: Source<'_, C, u32>,
        room: SliceMut<'_, u32>,
        names: Slice<'_, u32>,
        to: Target<C>,
    ) -> Result<(Points<C>, Vec<Renamed>)> {
        let (stream, n) = (self.stream, sorted.values.len());
        let mut words = Buffer::uninitialized(stream.gpu(), 2, "numbers of distinct points")?;
        let num_kept = distinct.run(self, 0, sorted, room, &mut words)?;
        // SAFETY: no more points are kept than there are.
        let kept = unsafe { room.part(0, num_kept) }.read_only();
        let mut renamed = memory::vec_with_capacity(n - num_kept, "points removed")?;
        if num_kept < n {
            let stays = self.stays(sorted.values, kept)?.to_vec(stream)?;
            // SAFETY: names of a part are there since its last step.
            let names = unsafe { stream.read(names)? };
            let removed = stays.iter().enumerate().filter(|&(id, &stays)| id != stays as usize);
            renamed
                .extend(removed.map(|(id, &stays)| Renamed { id: names[id], stays: names[stays as usize] }));
        }
        Ok((self.lay_out(names, kept, to)?, renamed))
    }

    /// The points in an order. Waits until they are there.
    fn lay_out(self, names: Slice<'_, u32>, order: Slice<'_, u32>, to: Target<C>) -> Result<Points<C>> {
        let Build { stream, coords, dims, .. } = self;
        let Target { points, rotation } = to;
        let (mut points, rotation) = (points.with_len(order.len()), rotation % dims as u32);
        let (new_coords, new_names) = points.write();
        let args = (coords, dims as u32, names, order, rotation, new_coords, new_names);
        // SAFETY: the order has ids of points, and buffers wait for the device before they are freed.
        unsafe { stream.launch_items::<balanced_lay_out_points<C>>((order.len() * dims) as u64, args)? };
        stream.synchronize()?;
        Ok(points)
    }
}
