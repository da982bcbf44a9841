//! Ray queries on a GPU.

use super::hits::{DeviceHits, Hits};
use super::options::RayOptions;
use super::order::Order;
use crate::device::{Buffer, Gpu, Layout, Readers, Stream, Workspace};
use crate::error::{Result, check_count};
use crate::primitives::pairs::empty_view;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::rays::all_hits::PackedHits;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::hits::HitsMut;
use kauri_kernels::rays::ray::Ray;
use kauri_kernels::rays::tracing::RayQueue;

/// A use of the hits of rays, by a launch.
#[derive(Clone, Copy)]
pub enum RayTask<'a> {
    /// Writes the first hit of each ray.
    Closest(HitsMut<'a>),
    /// Writes whether each ray has a hit.
    Any(SliceMut<'a, u8>),
    /// Counts the hits of each ray.
    Count(SliceMut<'a, u64>),
    /// Writes the hits of each ray from its offset on.
    Write(Slice<'a, u64>, PackedHits<'a>),
}

/// Rays in device memory, as launches take them.
#[derive(Clone, Copy)]
pub(super) struct OrderedRays<'a> {
    /// The rays.
    pub rays: Slice<'a, Ray>,
    /// The order in which they are traced; empty for the input order.
    pub order: Slice<'a, u32>,
    /// Memory of the launch, with undefined contents: a word for the queue, then that of the index.
    scratch: SliceMut<'a, u64>,
}

/// The most rays of a launch: warps take numbers beyond the last one, which have 32 bits too.
const MAX_RAYS: u64 = 1 << 31;

/// An index in device memory.
pub trait GpuScene {
    /// The device.
    fn gpu(&self) -> &Gpu;
    /// The extent of all triangles: one element.
    fn extent(&self) -> Slice<'_, Extent>;
    /// The streams that read the index.
    fn readers(&self) -> &Readers;
    /// Returns the number of words of the scratch memory of a launch.
    fn scratch_words(&self, num_rays: usize) -> usize;
    /// Launches the kernel of a task, with scratch memory whose contents are undefined.
    ///
    /// # Safety
    /// The views have the lengths that the kernels take, and nothing else uses them until the stream has done the work.
    unsafe fn launch(
        &self,
        stream: &Stream,
        rays: RayQueue<'_>,
        scratch: SliceMut<'_, u64>,
        options: &RayOptions,
        task: RayTask<'_>,
    ) -> Result<()>;
}

impl dyn GpuScene + '_ {
    /// Returns rays in the order that the options say. Order and scratch memory are in the workspace.
    pub(super) fn ordered<'a>(
        &self,
        stream: &Stream,
        workspace: &'a mut Workspace,
        rays: Slice<'a, Ray>,
        options: &RayOptions,
    ) -> Result<OrderedRays<'a>> {
        let (mut layout, num_rays) = (Layout::new(), rays.len());
        let sorts = options.sorted && num_rays > 0;
        let order = if sorts { Some(Order::plan(&mut layout, num_rays)?) } else { None };
        let scratch = layout.reserve(1 + self.scratch_words(num_rays));
        let temp = workspace.carve(stream, &layout, "order and stacks of rays")?;
        let order = match order {
            // SAFETY: the temporary memory is as planned, and waits for the device before it is freed.
            Some(order) => unsafe { order.run(&temp, rays, self.extent())? },
            None => empty_view().read_only(),
        };
        Ok(OrderedRays { rays, order, scratch: temp.view(scratch) })
    }

    /// Does a task for rays.
    ///
    /// # Safety
    /// As for [`GpuScene::launch`].
    pub(super) unsafe fn trace_ordered(
        &self,
        stream: &Stream,
        rays: OrderedRays<'_>,
        options: &RayOptions,
        task: RayTask<'_>,
    ) -> Result<()> {
        let OrderedRays { rays, order, scratch } = rays;
        if rays.is_empty() {
            return Ok(());
        }
        check_count("rays", rays.len() as u64, MAX_RAYS)?;
        // SAFETY: the queue has the first word, and the index the others; the rest is passed on to the caller.
        unsafe {
            let taken = SliceMut::<u32>::from_raw_parts(scratch.as_ptr().cast(), 1);
            stream.fill_bytes(taken, 0)?;
            let queue = RayQueue { rays, order, taken };
            self.launch(stream, queue, scratch.part(1, scratch.len() - 1), options, task)
        }
    }

    /// Does a task for rays, in the order that the options say.
    ///
    /// # Safety
    /// As for [`GpuScene::launch`].
    unsafe fn trace(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        task: RayTask<'_>,
    ) -> Result<()> {
        self.readers().read_by(stream, || {
            let rays = self.ordered(stream, workspace, rays.slice(), options)?;
            // SAFETY: passed on to the caller.
            unsafe { self.trace_ordered(stream, rays, options, task) }
        })
    }

    pub(super) fn closest_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut DeviceHits,
    ) -> Result<()> {
        let task = RayTask::Closest(hits.view_mut());
        // SAFETY: the buffers have an element for each ray, and wait for the device before they are freed.
        unsafe { self.trace(stream, workspace, rays, options, task) }
    }

    pub(super) fn any_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut Buffer<u8>,
    ) -> Result<()> {
        let task = RayTask::Any(hits.slice_mut());
        // SAFETY: as in `closest_hits_on`.
        unsafe { self.trace(stream, workspace, rays, options, task) }
    }

    pub(super) fn closest_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        let (stream, mut workspace) = (Stream::new(self.gpu())?, Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = DeviceHits::uninitialized(stream.gpu(), rays.len())?;
        self.closest_hits_on(&stream, &mut workspace, &rays, options, &mut hits)?;
        hits.to_host(&stream)
    }

    pub(super) fn any_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        let (stream, mut workspace) = (Stream::new(self.gpu())?, Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = Buffer::<u8>::uninitialized(stream.gpu(), rays.len(), "hits of rays")?;
        self.any_hits_on(&stream, &mut workspace, &rays, options, &mut hits)?;
        Ok(hits.to_vec(&stream)?.into_iter().map(|hit| hit != 0).collect())
    }
}
