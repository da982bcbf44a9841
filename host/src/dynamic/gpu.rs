//! A tree whose points change, on a GPU: a left-balanced tree with gaps ([`GAPS`](kauri_kernels::query::buckets::GAPS)).
//!
//! An insert takes these steps:
//!
//! 1. `slots` sorts the new points by the bucket of their position, and finds a free slot for each. The host reads how many find none.
//! 2. If some find none, they go to a second tree, the *overflow* of the first: to its free slots, or it is built again with them. If it
//!    became too large, one tree of all points is built instead.
//! 3. The coordinates are written to the free slots, and the boxes are fitted to the points.
//! 4. The points get their ids in their slots. Until then no query finds them, so an error in an earlier step changes no result.
//!
//! A removal checks the ids, frees the slots of the points, and fits the boxes. If few points remain, one tree of them is built.

mod moves;
mod removal;
mod slots;

use crate::device::{Buffer, Gpu, Stream, Workspace};
use crate::dynamic::backend::{Backend, GpuBackend};
use crate::error::Result;
use crate::kdtree::SplitRule;
use crate::kdtree::gpu::index_of;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::primitives::planned::carve;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::{BucketIndex, GivenIds};
use cuda_std::mem::Slice;
use kauri_kernels::dynamic::slots::Given;
use kauri_kernels::thread::coord::Coord;
use moves::{append_points, with_gaps};
use removal::{MarkPlan, has_point};
use slots::{Found, SlotsPlan, give_ids, none_given};

/// Greatest share of the overflow's slots among all points: one of this many.
const MAX_OVERFLOW: usize = 8;
/// Greatest number of slots for a point.
const MAX_SLOTS: usize = 2;
/// The label of memory for points that a tree is built of.
const BUILT: &str = "points to build a tree of";

/// A tree whose points change, in device memory.
pub(crate) struct GpuPoints<C> {
    /// The tree, its overflow, and the ids.
    index: BucketIndex<C>,
    split: SplitRule,
    num_points: usize,
}

/// New points that the buckets have no room for.
struct Overflowing<C> {
    coords: Buffer<C>,
    /// The numbers of the points among the new ones.
    items: Buffer<u32>,
}

impl<C: Coord> GpuPoints<C> {
    pub(crate) fn new(gpu: &Gpu, dims: usize, split: SplitRule) -> Result<Self> {
        let (stream, none) = (Stream::new(gpu)?, (empty_view().read_only(), empty_view().read_only()));
        // SAFETY: there are no points.
        let index = unsafe { index_of(&stream, &mut Workspace::new(gpu), none, dims, split)? };
        let removed = Buffer::uninitialized(gpu, 0, "removed points")?;
        let given = Some(GivenIds::new(0, removed));
        Ok(Self { index: BucketIndex { given, ..index }, split, num_points: 0 })
    }

    fn given(&self) -> &GivenIds<C> {
        self.index.given.as_ref().expect("an index whose points change has given ids")
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
        let num_new = coords.len() / self.index.dims;
        if num_new == 0 {
            return Ok(());
        }
        self.index.wait(stream)?;
        let removed = self.grown_removed(stream, num_new)?;
        let num_free = self.index.ids.len().saturating_sub(self.num_points);
        if num_new > num_free || self.index.levels() == 0 {
            // SAFETY: passed on to the caller.
            return unsafe { self.rebuild_with(stream, workspace, coords, removed) };
        }
        let plan = |layout: &mut _| SlotsPlan::plan(layout, &self.index, coords);
        let (plan, temp) = carve(stream, workspace, "slots for points", plan)?;
        // SAFETY: passed on to the caller.
        let found = unsafe { plan.run(&temp, &self.index, coords)? };
        let num_overflow_slots = self.index.overflow.as_ref().map_or(0, |overflow| overflow.ids.len());
        if (num_overflow_slots + found.overflow.len()) * MAX_OVERFLOW > self.num_points + num_new {
            // SAFETY: passed on to the caller.
            return unsafe { self.rebuild_with(stream, workspace, coords, removed) };
        }
        let mut more = Workspace::new(&self.index.gpu);
        let (mut overflowing, mut overflow_found, mut overflow_built) = (None, None, None);
        if !found.overflow.is_empty() {
            // SAFETY: passed on to the caller.
            overflowing = Some(unsafe { self.gather(stream, coords, found.overflow)? });
        }
        if let Some(points) = &overflowing {
            let coords = points.coords.slice();
            // SAFETY: passed on to the caller; the buffers wait for the device before they are freed.
            unsafe {
                if let Some(overflow) = self.index.overflow.as_deref().filter(|tree| tree.levels() > 0) {
                    let plan = |layout: &mut _| SlotsPlan::plan(layout, overflow, coords);
                    let (plan, temp) = carve(stream, &mut more, "slots for points", plan)?;
                    let found = plan.run(&temp, overflow, coords)?;
                    overflow_found = found.overflow.is_empty().then_some(found);
                }
                if overflow_found.is_none() {
                    overflow_built = Some(self.build_overflow(stream, points, num_new)?);
                }
            }
        }
        let first_id = self.given().num as u32;
        let mut overflow = self.index.overflow.take();
        let mut placed =
            vec![Placed { tree: &mut self.index, coords, items: empty_view().read_only(), found }];
        if let (Some(tree), Some(points), Some(found)) = (&mut overflow, &overflowing, overflow_found) {
            placed.push(Placed { tree, coords: points.coords.slice(), items: points.items.slice(), found });
        }
        // SAFETY: passed on to the caller; the slots belong to these trees.
        let written = unsafe { write(stream, &mut placed, first_id) };
        self.index.overflow = overflow;
        written?;
        if let Some(built) = overflow_built {
            self.index.overflow = Some(Box::new(built));
        }
        self.changed(stream, removed, num_new, self.num_points + num_new);
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
        if ids.is_empty() {
            return Ok(());
        }
        self.index.wait(stream)?;
        let plan = |layout: &mut _| MarkPlan::plan(layout, self.given());
        let (plan, temp) = carve(stream, workspace, "points to remove", plan)?;
        // SAFETY: passed on to the caller.
        let marked = unsafe { plan.run(&temp, self.given(), ids)? };
        let remaining = self.num_points - ids.len();
        if self.slot_ids().iter().map(|ids| ids.len()).sum::<usize>() > MAX_SLOTS * remaining {
            let mut removed = copy_of(stream, self.given().removed.slice(), "removed points")?;
            let [main, overflow] = self.slot_ids().map(|ids| copy_of(stream, ids, BUILT));
            let (mut main, mut overflow) = (main?, overflow?);
            let no_coords = empty_view().read_only();
            // SAFETY: passed on to the caller; the copies wait for the device before they are freed.
            let built = unsafe {
                removal::remove(stream, marked, &mut removed, [main.slice_mut(), overflow.slice_mut()])?;
                self.build_all(stream, workspace, [main.slice(), overflow.slice()], no_coords, remaining)?
            };
            self.replace(built);
            self.changed(stream, Some(removed), 0, remaining);
            return Ok(());
        }
        let BucketIndex { ids: slot_ids, overflow, given, .. } = &mut self.index;
        let given = given.as_mut().expect("an index whose points change has given ids");
        let overflow_ids = overflow.as_mut().map_or(empty_view(), |overflow| overflow.ids.slice_mut());
        // SAFETY: passed on to the caller.
        unsafe {
            removal::remove(stream, marked, &mut given.removed, [slot_ids.slice_mut(), overflow_ids])?;
            self.changed(stream, None, 0, remaining);
            // The points are removed. Boxes that are too large only cost time, so an error is none of this call.
            let fitted = self.index.fit_boxes(stream, None);
            let overflow_fitted =
                self.index.overflow.as_mut().map(|overflow| overflow.fit_boxes(stream, None));
            drop((fitted, overflow_fitted));
        }
        Ok(())
    }

    /// Returns the ids of the slots of the tree and of its overflow.
    fn slot_ids(&self) -> [Slice<'_, u32>; 2] {
        let overflow = self.index.overflow.as_ref();
        [self.index.ids.slice(), overflow.map_or(empty_view().read_only(), |overflow| overflow.ids.slice())]
    }

    /// Builds the bits of removed points for more ids, if they do not fit in the memory of the bits.
    fn grown_removed(&self, stream: &Stream, num_new: usize) -> Result<Option<Buffer<u32>>> {
        let (given, len) = (self.given(), self.given().removed.len());
        let num_words = (given.num + num_new).div_ceil(32);
        if num_words <= len {
            return Ok(None);
        }
        let mut grown = Buffer::of_bytes(stream, num_words.max(len + len / 2), 0, "removed points")?;
        // SAFETY: within the buffer, which waits for the device before it is freed.
        unsafe { stream.copy(grown.slice_mut().part(0, len), given.removed.slice())? };
        Ok(Some(grown))
    }

    /// Copies the points that overflow.
    ///
    /// # Safety
    /// As [`insert_points`](Self::insert_points).
    unsafe fn gather(
        &self,
        stream: &Stream,
        coords: Slice<'_, C>,
        items: Slice<'_, u32>,
    ) -> Result<Overflowing<C>> {
        let dims = self.index.dims;
        let mut gathered = Buffer::uninitialized(&self.index.gpu, items.len() * dims, BUILT)?;
        // SAFETY: there are coordinates of each point; the rest is passed on to the caller.
        unsafe { permute_parts(stream, Direction::Gather, dims, coords, items, gathered.slice_mut())? };
        Ok(Overflowing { coords: gathered, items: copy_of(stream, items, BUILT)? })
    }

    /// Builds the overflow with further points, some of `num_new` new ones.
    ///
    /// # Safety
    /// As [`insert_points`](Self::insert_points).
    unsafe fn build_overflow(
        &self,
        stream: &Stream,
        points: &Overflowing<C>,
        num_new: usize,
    ) -> Result<BucketIndex<C>> {
        let (gpu, num_overflow) = (&self.index.gpu, points.items.len());
        let mut new_ids = Buffer::uninitialized(gpu, num_new, BUILT)?;
        let capacity = num_overflow + self.slot_ids()[1].len();
        let mut built = Built::new(stream, capacity, self.index.dims)?;
        // SAFETY: passed on to the caller; there is room for all points.
        unsafe {
            iota_on(stream, self.given().num as u32, new_ids.slice_mut())?;
            let to = built.ids.slice_mut().part(0, num_overflow);
            gather_on(stream, new_ids.slice(), points.items.slice(), to)?;
            built.begin(stream, points.coords.slice(), num_overflow)?;
            if let Some(overflow) = &self.index.overflow {
                built.append(stream, overflow, overflow.ids.slice())?;
            }
            let num_points = built.num_moved.to_vec(stream)?[0] as usize;
            built.build(stream, &mut Workspace::new(gpu), num_points, self.split)
        }
    }

    /// Builds one tree of the points with these ids in the slots, `num_kept` points, and of new points.
    ///
    /// # Safety
    /// As [`insert_points`](Self::insert_points).
    unsafe fn build_all(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        [ids, overflow_ids]: [Slice<'_, u32>; 2],
        coords: Slice<'_, C>,
        num_kept: usize,
    ) -> Result<BucketIndex<C>> {
        let num_new = coords.len() / self.index.dims;
        let mut built = Built::new(stream, num_new + num_kept, self.index.dims)?;
        // SAFETY: passed on to the caller; there is room for all points.
        unsafe {
            iota_on(stream, self.given().num as u32, built.ids.slice_mut().part(0, num_new))?;
            built.begin(stream, coords, num_new)?;
            built.append(stream, &self.index, ids)?;
            if let Some(overflow) = &self.index.overflow {
                built.append(stream, overflow, overflow_ids)?;
            }
            built.build(stream, workspace, num_new + num_kept, self.split)
        }
    }

    /// Builds one tree of all points and of new ones.
    ///
    /// # Safety
    /// As [`insert_points`](Self::insert_points).
    unsafe fn rebuild_with(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: Slice<'_, C>,
        removed: Option<Buffer<u32>>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        let built = unsafe { self.build_all(stream, workspace, self.slot_ids(), coords, self.num_points)? };
        let num_new = coords.len() / self.index.dims;
        self.replace(built);
        self.changed(stream, removed, num_new, self.num_points + num_new);
        Ok(())
    }

    /// Replaces the tree and its overflow.
    fn replace(&mut self, built: BucketIndex<C>) {
        let given = self.index.given.take();
        self.index = BucketIndex { given, ..built };
    }

    /// Notes a change of the points, on a stream.
    fn changed(&mut self, stream: &Stream, removed: Option<Buffer<u32>>, num_new: usize, num_points: usize) {
        let given = self.index.given.take().expect("an index whose points change has given ids");
        let removed = removed.unwrap_or(given.removed);
        self.index.given = Some(GivenIds::new(given.num + num_new, removed));
        self.index.built_on = Some(stream.clone());
        self.num_points = num_points;
    }
}

/// New points that have found slots in a tree.
struct Placed<'a, C> {
    tree: &'a mut BucketIndex<C>,
    coords: Slice<'a, C>,
    /// The numbers of the points; empty if point `i` has number `i`.
    items: Slice<'a, u32>,
    found: Found<'a>,
}

impl<C> Placed<'_, C> {
    /// Returns the points to give ids to: in the slots of the tree, or in the copy of its ids.
    fn given(&mut self, in_tree: bool) -> Given<'_> {
        let ids = if in_tree { self.tree.ids.slice_mut() } else { self.found.new_ids };
        Given { slots: self.found.slots, items: self.items, ids }
    }
}

/// Writes new points to their slots in one or two trees. Queries find them after the last launch.
///
/// # Safety
/// Nothing else uses the trees and the points until the stream has done the work.
unsafe fn write<C: Coord>(stream: &Stream, placed: &mut [Placed<'_, C>], first_id: u32) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        for Placed { tree, coords, found, .. } in placed.iter_mut() {
            let to = tree.padded_coords.slice_mut();
            permute_parts(stream, Direction::Scatter, tree.dims, *coords, found.slots, to)?;
            stream.copy(found.new_ids, tree.ids.slice())?;
        }
        give(stream, placed, false, first_id)?;
        for Placed { tree, found, .. } in placed.iter_mut() {
            tree.fit_boxes(stream, Some(found.new_ids.read_only()))?;
        }
        give(stream, placed, true, first_id)
    }
}

/// Gives points their ids, in the slots of the trees or in the copies of their ids.
///
/// # Safety
/// As [`write`].
unsafe fn give<C>(stream: &Stream, placed: &mut [Placed<'_, C>], in_tree: bool, first_id: u32) -> Result<()> {
    let mut given = placed.iter_mut().map(|placed| placed.given(in_tree));
    let (main, overflow) = (given.next().unwrap_or(none_given()), given.next().unwrap_or(none_given()));
    // SAFETY: passed on to the caller.
    unsafe { give_ids(stream, main, overflow, first_id) }
}

/// Points that a tree is built of.
struct Built<C> {
    dims: usize,
    coords: Buffer<C>,
    ids: Buffer<u32>,
    num_moved: Buffer<u32>,
}

impl<C: Coord> Built<C> {
    /// Allocates the memory of up to `capacity` points.
    fn new(stream: &Stream, capacity: usize, dims: usize) -> Result<Self> {
        let gpu = stream.gpu();
        let coords = Buffer::uninitialized(gpu, capacity * dims, BUILT)?;
        let ids = Buffer::uninitialized(gpu, capacity, BUILT)?;
        Ok(Self { dims, coords, ids, num_moved: Buffer::uninitialized(gpu, 1, BUILT)? })
    }

    /// Takes the coordinates of the first points.
    ///
    /// # Safety
    /// Nothing else writes the points until the stream has done the work.
    unsafe fn begin(&mut self, stream: &Stream, coords: Slice<'_, C>, num_points: usize) -> Result<()> {
        self.num_moved.copy_from_slice(stream, &[num_points as u32])?;
        // SAFETY: there is room for the points; the rest is passed on to the caller.
        unsafe { stream.copy(self.coords.slice_mut().part(0, coords.len()), coords) }
    }

    /// Appends the points of a tree that have these ids in its slots.
    ///
    /// # Safety
    /// As [`append_points`].
    unsafe fn append(&mut self, stream: &Stream, tree: &BucketIndex<C>, ids: Slice<'_, u32>) -> Result<()> {
        let Self { coords, ids: to_ids, num_moved, .. } = self;
        // SAFETY: passed on to the caller.
        unsafe { append_points(stream, tree, ids, (coords, to_ids), num_moved) }
    }

    /// Builds a tree with gaps of the first points.
    ///
    /// # Safety
    /// There are as many points.
    unsafe fn build(
        self,
        stream: &Stream,
        workspace: &mut Workspace,
        num_points: usize,
        split: SplitRule,
    ) -> Result<BucketIndex<C>> {
        // SAFETY: passed on to the caller; the buffers wait for the device before they are freed.
        unsafe {
            let coords = self.coords.slice().part(0, num_points * self.dims);
            let points = (coords, self.ids.slice().part(0, num_points));
            let tree = index_of(stream, workspace, points, self.dims, split)?;
            drop(self);
            with_gaps(stream, tree)
        }
    }
}

/// Copies a view.
fn copy_of(stream: &Stream, from: Slice<'_, u32>, label: &'static str) -> Result<Buffer<u32>> {
    let mut copy = Buffer::uninitialized(stream.gpu(), from.len(), label)?;
    // SAFETY: the copy is as long, and waits for the device before it is freed.
    unsafe { stream.copy(copy.slice_mut(), from)? };
    Ok(copy)
}

impl<C: Coord> Backend<C> for GpuPoints<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        &self.index
    }

    fn num_ids(&self) -> usize {
        self.given().num
    }

    fn num_points(&self) -> usize {
        self.num_points
    }

    fn contains(&self, id: u32) -> Result<bool> {
        has_point(self.given(), &self.index.stream()?, id)
    }

    fn insert(&mut self, coords: &[C]) -> Result<()> {
        let stream = Stream::new(&self.index.gpu)?;
        let coords = Buffer::from_slice(&stream, coords, "points to insert")?;
        // SAFETY: the buffer waits for the device before it is freed.
        unsafe { self.insert_points(&stream, &mut Workspace::new(stream.gpu()), coords.slice()) }
    }

    fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let stream = Stream::new(&self.index.gpu)?;
        let ids = Buffer::from_slice(&stream, ids, "points to remove")?;
        // SAFETY: as above.
        unsafe { self.remove_points(&stream, &mut Workspace::new(stream.gpu()), ids.slice()) }
    }
}

impl<C: Coord> GpuBackend<C> for GpuPoints<C> {
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C> {
        &self.index
    }

    fn insert_on(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()> {
        coords.check_device(stream)?;
        self.index.ids.check_device(stream)?;
        // SAFETY: the borrow keeps the points, and buffers wait for the device before they are freed.
        unsafe { self.insert_points(stream, workspace, coords.slice()) }
    }

    fn remove_on(&mut self, stream: &Stream, workspace: &mut Workspace, ids: &Buffer<u32>) -> Result<()> {
        ids.check_device(stream)?;
        self.index.ids.check_device(stream)?;
        // SAFETY: the borrow keeps the ids, and buffers wait for the device before they are freed.
        unsafe { self.remove_points(stream, workspace, ids.slice()) }
    }
}
