//! R-trees on a GPU.
//!
//! A change writes the changed points to a second tree, and then takes it in place of the first, so an error leaves the first as it was. The
//! first is kept as the memory of the next change.

mod insert;
mod remove;
#[cfg(feature = "io")]
mod stored;

use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::host_coords::HostCoords;
use crate::once::Once;
use crate::primitives::bounds::Bounds;
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::planned::carve;
use crate::primitives::radix_sort::PairSort;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::grid::Grid;
use crate::query::gpu::{BucketIndex, Locator, index_bytes, node_slots};
#[cfg(feature = "io")]
use crate::rtree::backend::Sections;
use crate::rtree::backend::{Backend, GpuBackend};
use crate::stats::Stats;
use cuda_std::mem::{Slice, SliceMut};
use insert::InsertPlan;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::query::grid::code_bits;
use kauri_kernels::rtree::insert::rtree_new_ids;
use kauri_kernels::thread::coord::Coord;
use remove::RemovePlan;

/// New memory for a changed tree has room for one more point in this many.
const ROOM: usize = 32;

/// An R-tree in device memory.
pub(crate) struct GpuTree<C> {
    points: Points<C>,
    /// Memory for the next change.
    spare: Option<Points<C>>,
    num_ids: usize,
}

/// The points of a tree. Ids beyond the bits of `has_point` have points, and bits of ids that have not been given yet are set.
struct Points<C> {
    index: BucketIndex<C>,
}

impl<C: Coord> Points<C> {
    /// Allocates points with undefined contents.
    fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize) -> Result<Self> {
        let levels = levels(num_points as u32);
        let locator = Locator::Grid(Grid::uninitialized(gpu, dims, levels)?);
        Ok(Self { index: BucketIndex::with_slots(gpu, num_points, dims, levels, locator)? })
    }

    /// Returns the memory with another number of points; `None` if it has no room for them.
    fn with_num_points(mut self, num_points: usize) -> Option<Self> {
        let has_room = num_points <= self.index.ids.capacity();
        has_room.then(|| {
            self.index.set_num_slots(num_points);
            self
        })
    }

    fn grid(&self) -> &Grid<C> {
        let Locator::Grid(grid) = &self.index.locator else { unreachable!("an R-tree has a grid") };
        grid
    }

    fn grid_mut(&mut self) -> &mut Grid<C> {
        let Locator::Grid(grid) = &mut self.index.locator else { unreachable!("an R-tree has a grid") };
        grid
    }

    /// Orders points in device memory, with `first_id` and the following as ids. There are points.
    ///
    /// # Safety
    /// There is a slot for each point. Nothing else uses the memory until the stream has done the work.
    unsafe fn order(
        &mut self,
        plan: &BuildPlan<C>,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        first_id: u32,
    ) -> Result<()> {
        let (stream, dims) = (&temp.stream, self.index.dims);
        // SAFETY: passed on to the caller.
        unsafe {
            plan.bounds.run(temp, coords, dims, self.grid_mut().corners.slice_mut())?;
            let write = |codes, numbers| self.grid().codes(stream, coords, codes, numbers);
            let (_, sorted) = plan.sort.run(temp, code_bits(dims), write)?;
            let index = &mut self.index;
            let slots = node_slots(stream, dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
            permute_parts(stream, Direction::Gather, dims, coords, sorted, slots.coords)?;
            stream.launch_items::<rtree_new_ids>(sorted.len() as u64, (sorted, first_id, slots.ids))
        }
    }

    /// Computes what follows from the points: boxes, and codes of buckets.
    ///
    /// # Safety
    /// As [`order`](Self::order).
    unsafe fn finish(&mut self, stream: &Stream) -> Result<()> {
        // SAFETY: passed on to the caller; the grid's memory is apart from that of the points.
        unsafe {
            let coords = self.index.coords();
            let coords = Slice::from_raw_parts(coords.as_ptr(), coords.len());
            self.grid_mut().compute_first_codes(stream, coords)?;
            self.index.build_boxes(stream)
        }
    }

    /// Writes a bit for each id that has a point.
    ///
    /// # Safety
    /// There is a bit for each id. Nothing else uses the memory until the stream has done the work.
    unsafe fn write_has_point(&self, stream: &Stream, to: SliceMut<'_, u32>) -> Result<()> {
        let known = self.index.has_point.len();
        // SAFETY: passed on to the caller.
        unsafe {
            stream.copy(to.part(0, known), self.index.has_point.slice())?;
            stream.fill_bytes(to.part(known, to.len() - known), 0xFF)
        }
    }

    /// True if one of `num_ids` ids has a point.
    fn contains(&self, stream: &Stream, id: u32, num_ids: usize) -> Result<bool> {
        let word = id as usize / 32;
        if id as usize >= num_ids || word >= self.index.has_point.len() {
            return Ok((id as usize) < num_ids);
        }
        Ok(self.index.has_point.part_to_vec(stream, word..word + 1)?[0] >> (id % 32) & 1 != 0)
    }
}

/// Scratch memory of a build.
struct BuildPlan<C: Coord> {
    bounds: Bounds<C>,
    sort: PairSort<u64, u32>,
}

impl<C: Coord> BuildPlan<C> {
    fn plan(layout: &mut Layout, num_points: usize, dims: usize) -> Self {
        Self { bounds: Bounds::plan(layout, dims), sort: PairSort::plan(layout, num_points) }
    }

    /// Plans a build over points in host memory, and reserves memory to upload them.
    fn with_upload(layout: &mut Layout, num_points: usize, dims: usize) -> (Self, Region<C>) {
        (Self::plan(layout, num_points, dims), layout.reserve(num_points * dims))
    }
}

/// Returns the temporary device bytes of a build over points in device memory.
pub(crate) fn build_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let mut layout = Layout::new();
    BuildPlan::<C>::plan(&mut layout, num_points, dims);
    layout.bytes()
}

/// Returns the temporary device bytes of a build over points in host memory.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let mut layout = Layout::new();
    BuildPlan::<C>::with_upload(&mut layout, num_points, dims);
    layout.bytes()
}

/// Returns the bytes of a tree.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let levels = levels(num_points as u32);
    index_bytes::<C>(num_points, dims, levels) + Grid::<C>::bytes(dims, levels)
}

/// Views coordinates as words.
fn as_words<C>(coords: Slice<'_, C>) -> Slice<'_, u32> {
    // SAFETY: the same memory.
    unsafe { Slice::from_raw_parts(coords.as_ptr().cast(), coords.len() * size_of::<C>() / size_of::<u32>()) }
}

/// Views coordinates as words.
fn as_words_mut<C>(coords: SliceMut<'_, C>) -> SliceMut<'_, u32> {
    // SAFETY: the same memory.
    unsafe {
        SliceMut::from_raw_parts(coords.as_ptr().cast(), coords.len() * size_of::<C>() / size_of::<u32>())
    }
}

impl<C: Coord> GpuTree<C> {
    /// Allocates a tree with undefined contents.
    pub(crate) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize) -> Result<Self> {
        let points = Points::uninitialized(gpu, num_points, dims)?;
        Ok(Self { points, spare: None, num_ids: num_points })
    }

    /// Builds the tree over points in host memory.
    pub(crate) fn build(gpu: &Gpu, coords: HostCoords<'_, C>, stats: &mut Stats) -> Result<Self> {
        let (num_points, dims) = (coords.num_points(), coords.dims());
        let mut tree = Self::uninitialized(gpu, num_points, dims)?;
        if num_points == 0 {
            return Ok(tree);
        }
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let plan = |layout: &mut _| BuildPlan::with_upload(layout, num_points, dims);
        let ((plan, uploaded), temp) = carve(&stream, &mut workspace, "R-tree build", plan)?;
        let points = temp.view(uploaded);
        // SAFETY: nothing else uses the scratch memory.
        stats.phase("upload", || unsafe { coords.upload(&stream, points) })?;
        stats.phase("build", || {
            // SAFETY: the stream is synchronized before any of the memory is freed.
            unsafe {
                tree.points.order(&plan, &temp, points.read_only(), 0)?;
                tree.points.finish(&stream)?;
            }
            stream.synchronize()
        })?;
        Ok(tree)
    }

    /// Returns memory for a changed tree of `num_points` points with the grid of this one.
    fn changed(&mut self, stream: &Stream, num_points: usize) -> Result<Points<C>> {
        let dims = self.points.index.dims;
        let spare = self.spare.take().and_then(|spare| spare.with_num_points(num_points));
        let mut changed = match spare {
            Some(spare) => {
                spare.index.wait(stream)?;
                spare
            }
            None => {
                let capacity = num_points + num_points / ROOM;
                let new = Points::uninitialized(stream.gpu(), capacity, dims)?;
                new.with_num_points(num_points).expect("there is room")
            }
        };
        changed.grid_mut().corners.copy_from(stream, &self.points.grid().corners)?;
        Ok(changed)
    }

    /// Completes changed points, and takes them in place of the points of the tree.
    ///
    /// # Safety
    /// Nothing else uses the memory until the stream has done the work.
    unsafe fn take(&mut self, stream: &Stream, mut changed: Points<C>) -> Result<()> {
        if !changed.index.ids.is_empty() {
            // SAFETY: passed on to the caller.
            unsafe { changed.finish(stream)? };
        }
        changed.index.rows = Once::new();
        changed.index.built_on = Some(stream.clone());
        self.spare = Some(std::mem::replace(&mut self.points, changed));
        Ok(())
    }

    /// Inserts points in device memory.
    ///
    /// # Safety
    /// Nothing else writes the points until the stream has done the work.
    unsafe fn insert_points(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: Slice<'_, C>,
    ) -> Result<()> {
        let (num_old, dims) = (self.points.index.ids.len(), self.points.index.dims);
        let (num_new, first_id) = (coords.len() / dims, self.num_ids as u32);
        if num_new == 0 {
            return Ok(());
        }
        self.points.index.wait(stream)?;
        let mut changed = self.changed(stream, num_old + num_new)?;
        let num_words =
            if self.points.index.has_point.is_empty() { 0 } else { (self.num_ids + num_new).div_ceil(32) };
        changed.index.has_point = resized(changed.index.has_point, num_words, stream.gpu())?;
        // SAFETY: passed on to the caller; there is a slot for each point.
        unsafe {
            if num_words > 0 {
                self.points.write_has_point(stream, changed.index.has_point.slice_mut())?;
            }
            if num_old == 0 {
                let plan = |layout: &mut _| BuildPlan::plan(layout, num_new, dims);
                let (plan, temp) = carve(stream, workspace, "R-tree insert", plan)?;
                changed.order(&plan, &temp, coords, first_id)?;
            } else {
                let plan = |layout: &mut _| InsertPlan::plan(layout, num_new, num_old + num_new);
                let (plan, temp) = carve(stream, workspace, "R-tree insert", plan)?;
                plan.run(&temp, &self.points, coords, first_id, &mut changed)?;
            }
            self.take(stream, changed)?;
        }
        self.num_ids += num_new;
        Ok(())
    }

    /// Removes the points with these ids.
    ///
    /// # Safety
    /// Nothing else writes the ids until the stream has done the work.
    unsafe fn remove_points(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        ids: Slice<'_, u32>,
    ) -> Result<()> {
        let (num_old, num_ids) = (self.points.index.ids.len(), self.num_ids);
        if ids.is_empty() {
            return Ok(());
        }
        self.points.index.wait(stream)?;
        let mut changed = self.changed(stream, num_old.saturating_sub(ids.len()))?;
        changed.index.has_point = resized(changed.index.has_point, num_ids.div_ceil(32), stream.gpu())?;
        let plan = |layout: &mut _| RemovePlan::plan(layout, num_old, num_ids);
        let (plan, temp) = carve(stream, workspace, "R-tree removal", plan)?;
        // SAFETY: passed on to the caller.
        unsafe {
            let marked = plan.mark(&temp, &self.points, ids, num_ids, changed.index.has_point.slice_mut());
            if let Err(error) = marked {
                self.spare = Some(changed);
                return Err(error);
            }
            plan.run(&temp, &self.points, &mut changed)?;
            self.take(stream, changed)
        }
    }
}

/// Changes the length of a buffer; it is another one if there is no room. Contents are undefined.
fn resized(mut buffer: Buffer<u32>, len: usize, gpu: &Gpu) -> Result<Buffer<u32>> {
    if len > buffer.capacity() {
        buffer = Buffer::uninitialized(gpu, len + len / ROOM, "points of an R-tree")?;
    }
    buffer.set_len(len);
    Ok(buffer)
}

impl<C: Coord> Backend<C> for GpuTree<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        &self.points.index
    }

    fn num_points(&self) -> usize {
        self.points.index.ids.len()
    }

    fn num_ids(&self) -> usize {
        self.num_ids
    }

    fn contains(&self, id: u32) -> Result<bool> {
        self.points.contains(&self.points.index.stream()?, id, self.num_ids)
    }

    fn ids(&self) -> Result<Vec<u32>> {
        let mut ids = self.points.index.ids.to_vec(&self.points.index.stream()?)?;
        ids.sort_unstable();
        Ok(ids)
    }

    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        self.copy_sections(write)
    }

    fn insert(&mut self, coords: &[C]) -> Result<()> {
        let stream = Stream::new(&self.points.index.gpu)?;
        let coords = Buffer::from_slice(&stream, coords, "points to insert")?;
        // SAFETY: the buffer waits for the device before it is freed.
        unsafe { self.insert_points(&stream, &mut Workspace::new(stream.gpu()), coords.slice()) }
    }

    fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let stream = Stream::new(&self.points.index.gpu)?;
        let ids = Buffer::from_slice(&stream, ids, "points to remove")?;
        // SAFETY: as above.
        unsafe { self.remove_points(&stream, &mut Workspace::new(stream.gpu()), ids.slice()) }
    }
}

impl<C: Coord> GpuBackend<C> for GpuTree<C> {
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C> {
        &self.points.index
    }

    fn rebuild(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()> {
        let index = &mut self.points.index;
        let (num_points, dims) = (index.ids.len(), index.dims);
        coords.check(stream, "coordinates of the points", num_points * dims)?;
        index.ids.check_device(stream)?;
        index.wait(stream)?;
        if num_points > 0 {
            let plan = |layout: &mut _| BuildPlan::plan(layout, num_points, dims);
            let (plan, temp) = carve(stream, workspace, "R-tree build", plan)?;
            index.built_on = Some(stream.clone());
            index.has_point.set_len(0);
            index.rows = Once::new();
            // SAFETY: the borrows keep points and tree apart, and buffers wait for the device before they are freed.
            unsafe {
                self.points.order(&plan, &temp, coords.slice(), 0)?;
                self.points.finish(stream)?;
            }
        }
        self.num_ids = num_points;
        Ok(())
    }

    fn insert_on(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()> {
        coords.check_device(stream)?;
        self.points.index.ids.check_device(stream)?;
        // SAFETY: the borrow keeps the points, and buffers wait for the device before they are freed.
        unsafe { self.insert_points(stream, workspace, coords.slice()) }
    }

    fn remove_on(&mut self, stream: &Stream, workspace: &mut Workspace, ids: &Buffer<u32>) -> Result<()> {
        ids.check_device(stream)?;
        self.points.index.ids.check_device(stream)?;
        // SAFETY: the borrow keeps the ids, and buffers wait for the device before they are freed.
        unsafe { self.remove_points(stream, workspace, ids.slice()) }
    }
}
