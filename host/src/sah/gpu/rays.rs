//! Rays through a tree on a GPU.

use super::super::hits::{Hit, HitRows, Hits};
use super::super::on_device::DeviceHits;
use super::super::options::RayOptions;
use super::GpuTree;
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::primitives::pairs::{Pairs, Source, empty_view};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::segmented_sort;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::order::{KEY_BITS, sah_ray_keys};
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::trace::{
    sah_any, sah_closest, sah_count_hits, sah_count_once, sah_move_hits, sah_write_hits,
};
use kauri_kernels::sah::triangle::Corners;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

/// Launches a kernel with a thread a ray and the stack of the options; with its own arguments.
macro_rules! trace {
    ($kernel:ident, $asked:expr, ($($own:expr),*)) => {{
        let Asked { tree, stream, rays, order, options } = $asked;
        let (nodes, listed, corners, extent) = tree.slices();
        let (num, args) = (rays.len() as u64, (nodes, listed, corners, extent, *rays, *order, $($own),*));
        match options.stack {
            0 => stream.launch_items::<$kernel<0>>(num, args),
            _ => stream.launch_items::<$kernel<4>>(num, args),
        }
    }};
}

/// Rays through a tree, perhaps in another order.
struct Asked<'a> {
    tree: &'a GpuTree,
    stream: &'a Stream,
    rays: Slice<'a, Ray>,
    /// Empty for the order of the rays.
    order: Slice<'a, u32>,
    options: &'a RayOptions,
}

/// Rays that have numbers.
const MAX_SORTED: u64 = 1 << 32;

impl GpuTree {
    pub(in super::super) fn closest_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        let (stream, mut workspace) = (Stream::new(self.gpu())?, Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = DeviceHits::uninitialized(stream.gpu(), rays.len())?;
        self.closest_hits_on(&stream, &mut workspace, &rays, options, &mut hits)?;
        hits.to_host(&stream)
    }

    pub(in super::super) fn closest_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut DeviceHits,
    ) -> Result<()> {
        let asked = self.ask(stream, workspace, rays, options)?;
        let DeviceHits { triangles, t, u, v } = hits;
        // SAFETY: of the lengths that the kernel takes, and they wait for the device before they are freed.
        unsafe {
            trace!(sah_closest, &asked, (triangles.slice_mut(), t.slice_mut(), u.slice_mut(), v.slice_mut()))
        }
    }

    pub(in super::super) fn any_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        let (stream, mut workspace) = (Stream::new(self.gpu())?, Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = Buffer::<u8>::uninitialized(stream.gpu(), rays.len(), "hits of rays")?;
        self.any_hits_on(&stream, &mut workspace, &rays, options, &mut hits)?;
        Ok(hits.to_vec(&stream)?.into_iter().map(|hit| hit != 0).collect())
    }

    pub(in super::super) fn any_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut Buffer<u8>,
    ) -> Result<()> {
        let asked = self.ask(stream, workspace, rays, options)?;
        // SAFETY: as above.
        unsafe { trace!(sah_any, &asked, (hits.slice_mut())) }
    }

    pub(in super::super) fn all_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<HitRows> {
        let stream = Stream::new(self.gpu())?;
        let (num, mut workspace) = (rays.len(), Workspace::new(self.gpu()));
        let (rays, mut for_order) = (Buffer::from_slice(&stream, rays, "rays")?, Workspace::new(self.gpu()));
        let asked = self.ask(&stream, &mut for_order, &rays, options)?;
        // With one more, so that the last sum is that of all.
        let zeros = || -> Result<_> {
            let mut counts = Buffer::<u64>::uninitialized(stream.gpu(), num + 1, "hits of rays")?;
            counts.fill_bytes(&stream, 0)?;
            Ok(counts)
        };
        let (mut from, mut to) = (zeros()?, zeros()?);
        // SAFETY: as above; there is room for as many hits as were counted.
        unsafe {
            trace!(sah_count_hits, &asked, (from.slice_mut()))?;
            // As often as leaves have them.
            let found = sums(&stream, &mut workspace, from.slice_mut())?;
            let room = || of_result(found, Buffer::<u64>::uninitialized(stream.gpu(), found, "hits of rays"));
            let (mut sorted_keys, mut sorted_weights) = (room()?, room()?);
            {
                let (mut keys, mut weights) = (room()?, room()?);
                trace!(sah_write_hits, &asked, (from.slice(), keys.slice_mut(), weights.slice_mut()))?;
                let unsorted = Source { keys: keys.slice(), values: weights.slice() };
                let sorted = Pairs { keys: sorted_keys.slice_mut(), values: sorted_weights.slice_mut() };
                let by = SortBy::low_bits(u64::BITS);
                segmented_sort::sort(&stream, &mut workspace, unsorted, from.slice(), sorted, by)?;
            }
            let (keys, weights) = (sorted_keys.slice(), sorted_weights.slice());
            stream.launch_items::<sah_count_once>(num as u64, (from.slice(), keys, to.slice_mut()))?;
            let once = sums(&stream, &mut workspace, to.slice_mut())?;
            let mut hits = of_result(once, DeviceHits::uninitialized(stream.gpu(), once))?;
            let DeviceHits { triangles, t, u, v } = &mut hits;
            let parts = (triangles.slice_mut(), t.slice_mut(), u.slice_mut(), v.slice_mut());
            let args = (from.slice(), to.slice(), keys, weights, parts.0, parts.1, parts.2, parts.3);
            stream.launch_items::<sah_move_hits>(num as u64, args)?;
            let mut offsets = memory::vec_with_capacity(num + 1, "hits of rays")?;
            to.append_to(&stream, &mut offsets)?;
            Ok(HitRows { offsets, hits: hits.to_host(&stream)? })
        }
    }

    /// Rays, in an order of their own if the options say so.
    fn ask<'a>(
        &'a self,
        stream: &'a Stream,
        workspace: &'a mut Workspace,
        rays: &'a Buffer<Ray>,
        options: &'a RayOptions,
    ) -> Result<Asked<'a>> {
        let (num, rays) = (rays.len(), rays.slice());
        let asked = Asked { tree: self, stream, rays, order: empty_view().read_only(), options };
        if !options.sorted || num == 0 {
            return Ok(asked);
        }
        if num as u64 > MAX_SORTED {
            return Err(Error::TooManyItems {
                what: "rays in another order",
                count: num as u64,
                max: MAX_SORTED,
            });
        }
        let mut layout = Layout::new();
        let [sort] = RadixSort::plan(&mut layout, num, [Shape::of::<u32, u32>(num)]);
        let pairs = [(); 2].map(|()| (layout.reserve::<u32>(num), layout.reserve::<u32>(num)));
        let temp = workspace.carve(stream, &layout, "order of rays")?;
        let pairs = pairs.map(|(keys, values)| Pairs { keys: temp.view(keys), values: temp.view(values) });
        let [unsorted, sorted] = pairs;
        // SAFETY: of one length, and the workspace waits for the device before it frees them.
        unsafe {
            stream.launch_items::<sah_ray_keys>(
                num as u64,
                (rays, self.extent.first(1), unsorted.keys, unsorted.values),
            )?;
            let from = Source { keys: unsorted.keys.read_only(), values: unsorted.values.read_only() };
            let by = SortBy::low_bits(KEY_BITS);
            let [to, _] = sort.run(stream, &temp, by, from, [sorted, unsorted])?;
            Ok(Asked { order: to.values.read_only(), ..asked })
        }
    }

    /// As kernels take it.
    fn slices(&self) -> (Slice<'_, u64>, Slice<'_, u32>, Slice<'_, Corners>, Slice<'_, Extent>) {
        (
            self.nodes.first(self.num_nodes),
            self.listed.first(self.num_listed),
            self.corners.first(self.num_triangles),
            self.extent.first(1),
        )
    }
}

/// Room for so many hits of rays, which have any number of them.
fn of_result<R>(num: usize, room: Result<R>) -> Result<R> {
    room.map_err(|error| error.of_result(num as u64, num as u64 * size_of::<Hit>() as u64))
}

/// Makes offsets of counts, the last of which is that of all; how many these are.
///
/// # Safety
/// Nothing else uses the counts until the stream has done the work.
pub(super) unsafe fn sums(
    stream: &Stream,
    workspace: &mut Workspace,
    counts: SliceMut<'_, u64>,
) -> Result<usize> {
    let mut layout = Layout::new();
    let scan = Scan::plan::<u64, Decoupled>(&mut layout, counts.len());
    let temp = workspace.carve(stream, &layout, "hits of rays")?;
    // SAFETY: of one length, and they wait for the device before they are freed.
    unsafe {
        scan.run::<u64, Sum, Decoupled>(stream, &temp, counts.read_only(), counts, ScanKind::Exclusive)?;
        Ok(stream.read(counts.part(counts.len() - 1, 1).read_only())?[0] as usize)
    }
}
