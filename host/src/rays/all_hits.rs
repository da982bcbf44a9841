//! All hits of rays on a GPU: counted with duplicates, written, sorted for each ray, and made distinct.

use super::gpu::{GpuScene, RayTask};
use super::hits::DeviceHits;
use super::options::RayOptions;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::memory;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::planned::carve;
use crate::primitives::radix_sort::SortBy;
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::segmented_sort;
use crate::rows::Rows;
use cuda_std::mem::SliceMut;
use kauri_kernels::rays::all_hits::{PackedHits, rays_count_once, rays_move_hits};
use kauri_kernels::rays::ray::Ray;
use kauri_kernels::rays::triangle::Hit;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

impl dyn GpuScene + '_ {
    pub(super) fn all_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
        let stream = Stream::new(self.gpu())?;
        let (num_rays, mut workspace) = (rays.len(), Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        // Once for both launches.
        let mut order_workspace = Workspace::new(self.gpu());
        let ordered = self.ordered(&stream, &mut order_workspace, rays.slice(), options)?;
        // One more element than rays: after the scan it is the total.
        let zeros = || Buffer::of_bytes(&stream, num_rays + 1, 0, "hits of rays");
        let (mut offsets, mut distinct_offsets) = (zeros()?, zeros()?);
        // SAFETY: the buffers have the lengths that the kernels take, by the counts before, and wait for the device before they are freed.
        unsafe {
            let task = RayTask::Count(offsets.slice_mut());
            self.trace_ordered(&stream, ordered, options, task)?;
            // A triangle counts once for each leaf in which a ray meets it.
            let num_hits = scan_counts(&stream, &mut workspace, offsets.slice_mut())?;
            let allocate =
                || hits_error(num_hits, Buffer::<u64>::uninitialized(stream.gpu(), num_hits, "hits of rays"));
            let (mut sorted_keys, mut sorted_weights) = (allocate()?, allocate()?);
            {
                let (mut keys, mut weights) = (allocate()?, allocate()?);
                let unsorted = PackedHits { keys: keys.slice_mut(), weights: weights.slice_mut() };
                let task = RayTask::Write(offsets.slice(), unsorted);
                self.trace_ordered(&stream, ordered, options, task)?;
                let unsorted = Source { keys: keys.slice(), values: weights.slice() };
                let sorted = Pairs { keys: sorted_keys.slice_mut(), values: sorted_weights.slice_mut() };
                let by = SortBy::low_bits(u64::BITS);
                segmented_sort::sort(&stream, &mut workspace, unsorted, offsets.slice(), sorted, by)?;
            }
            let (keys, weights) = (sorted_keys.slice(), sorted_weights.slice());
            let args = (offsets.slice(), keys, distinct_offsets.slice_mut());
            stream.launch_items::<rays_count_once>(num_rays as u64, args)?;
            let num_distinct = scan_counts(&stream, &mut workspace, distinct_offsets.slice_mut())?;
            let mut hits = hits_error(num_distinct, DeviceHits::uninitialized(stream.gpu(), num_distinct))?;
            let args = (offsets.slice(), distinct_offsets.slice(), keys, weights, hits.view_mut());
            stream.launch_items::<rays_move_hits>(num_rays as u64, args)?;
            let mut offsets = memory::vec_with_capacity(num_rays + 1, "hits of rays")?;
            distinct_offsets.append_to(&stream, &mut offsets)?;
            Ok(Rows::new(offsets, hits.to_host(&stream)?))
        }
    }
}

/// Turns an allocation error for hits into one that names their number.
fn hits_error<R>(num_hits: usize, allocated: Result<R>) -> Result<R> {
    allocated.map_err(|error| error.of_result(num_hits as u64, size_of::<Hit>() as u64))
}

/// Turns counts into offsets in place, and returns the total. The last count must be zero; its offset is the total.
///
/// # Safety
/// Nothing else uses the counts until the stream has done the work.
pub(crate) unsafe fn scan_counts(
    stream: &Stream,
    workspace: &mut Workspace,
    counts: SliceMut<'_, u64>,
) -> Result<usize> {
    let plan = |layout: &mut _| Scan::plan::<u64, Decoupled>(layout, counts.len());
    let (scan, temp) = carve(stream, workspace, "hits of rays", plan)?;
    // SAFETY: input and output have one length, and wait for the device before they are freed.
    unsafe {
        scan.run::<u64, Sum, Decoupled>(&temp, counts.read_only(), counts, ScanKind::Exclusive)?;
        Ok(stream.read(counts.part(counts.len() - 1, 1).read_only())?[0] as usize)
    }
}
