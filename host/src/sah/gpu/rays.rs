//! Rays through a tree on a GPU.

use super::super::hits::HitRows;
use super::{GpuTree, Hits};
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::Result;
use crate::memory;
use crate::primitives::pairs::nothing;
use crate::primitives::scan::{Ends, Scan};
use cuda_std::mem::Slice;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::trace::{sah_any, sah_closest, sah_count_hits, sah_move_hits, sah_write_hits};
use kauri_kernels::sah::triangle::Corners;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

/// Hits in device memory.
struct GpuHits {
    triangles: Buffer<u32>,
    t: Buffer<f32>,
    u: Buffer<f32>,
    v: Buffer<f32>,
}

impl GpuHits {
    fn new(stream: &Stream, len: usize) -> Result<Self> {
        let part = || Buffer::uninitialized(stream.gpu(), len, "hits of rays");
        let triangles = Buffer::uninitialized(stream.gpu(), len, "hits of rays")?;
        Ok(Self { triangles, t: part()?, u: part()?, v: part()? })
    }

    fn to_host(&self, stream: &Stream) -> Result<Hits> {
        Ok(Hits {
            triangles: self.triangles.to_vec(stream)?,
            t: self.t.to_vec(stream)?,
            u: self.u.to_vec(stream)?,
            v: self.v.to_vec(stream)?,
        })
    }
}

/// Places of the stack of a ray.
const PLACES: usize = 8;

impl GpuTree {
    pub(in super::super) fn closest_hits(&self, rays: &[Ray]) -> Result<Hits> {
        let stream = Stream::new(self.gpu())?;
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = GpuHits::new(&stream, rays.len())?;
        let (nodes, listed, corners, bounds) = self.slices();
        let GpuHits { triangles, t, u, v } = &mut hits;
        // SAFETY: of the lengths that the kernel takes, and they wait for the device before they are freed.
        unsafe {
            let to = (triangles.slice_mut(), t.slice_mut(), u.slice_mut(), v.slice_mut());
            let args =
                (nodes, listed, corners, bounds, rays.slice(), nothing().read_only(), to.0, to.1, to.2, to.3);
            stream.launch_items::<sah_closest<PLACES>>(rays.len() as u64, args)?;
        }
        hits.to_host(&stream)
    }

    pub(in super::super) fn any_hits(&self, rays: &[Ray]) -> Result<Vec<bool>> {
        let stream = Stream::new(self.gpu())?;
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = Buffer::<u8>::uninitialized(stream.gpu(), rays.len(), "hits of rays")?;
        let (nodes, listed, corners, bounds) = self.slices();
        // SAFETY: as above.
        unsafe {
            let args =
                (nodes, listed, corners, bounds, rays.slice(), nothing().read_only(), hits.slice_mut());
            stream.launch_items::<sah_any<PLACES>>(rays.len() as u64, args)?;
        }
        Ok(hits.to_vec(&stream)?.into_iter().map(|hit| hit != 0).collect())
    }

    pub(in super::super) fn all_hits(&self, rays: &[Ray]) -> Result<HitRows> {
        let stream = Stream::new(self.gpu())?;
        let (num, mut workspace) = (rays.len(), Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        // With one more, so that the last sum is that of all.
        let zeros = || -> Result<_> {
            let mut counts = Buffer::<u64>::uninitialized(stream.gpu(), num + 1, "hits of rays")?;
            counts.fill_bytes(&stream, 0)?;
            Ok(counts)
        };
        let (mut from, mut to) = (zeros()?, zeros()?);
        let (nodes, listed, corners, bounds) = self.slices();
        // SAFETY: as above; there is room for as many hits as were counted.
        unsafe {
            let args =
                (nodes, listed, corners, bounds, rays.slice(), nothing().read_only(), from.slice_mut());
            stream.launch_items::<sah_count_hits<PLACES>>(num as u64, args)?;
            let mut all = GpuHits::new(&stream, sums(&stream, &mut workspace, &mut from)?)?;
            let GpuHits { triangles, t, u, v } = &mut all;
            let parts = (triangles.slice_mut(), t.slice_mut(), u.slice_mut(), v.slice_mut());
            let args = (
                nodes,
                listed,
                corners,
                bounds,
                rays.slice(),
                nothing().read_only(),
                from.slice(),
                parts.0,
                parts.1,
                parts.2,
                parts.3,
                to.slice_mut(),
            );
            stream.launch_items::<sah_write_hits<PLACES>>(num as u64, args)?;
            let mut once = GpuHits::new(&stream, sums(&stream, &mut workspace, &mut to)?)?;
            let GpuHits { triangles, t, u, v } = &mut once;
            let args = (
                from.slice(),
                to.slice(),
                all.triangles.slice(),
                all.t.slice(),
                all.u.slice(),
                all.v.slice(),
                triangles.slice_mut(),
                t.slice_mut(),
                u.slice_mut(),
                v.slice_mut(),
            );
            stream.launch_items::<sah_move_hits>(num as u64, args)?;
            let mut offsets = memory::vec_with_capacity(num + 1, "hits of rays")?;
            to.append_to(&stream, &mut offsets)?;
            Ok(HitRows { offsets, hits: once.to_host(&stream)? })
        }
    }

    /// As kernels take it.
    fn slices(&self) -> (Slice<'_, u64>, Slice<'_, u32>, Slice<'_, Corners>, Slice<'_, Aabb>) {
        (self.nodes.slice(), self.listed.slice(), self.corners.slice(), self.bounds.slice())
    }
}

/// Makes offsets of counts, the last of which is that of all; how many these are.
pub(super) fn sums(stream: &Stream, workspace: &mut Workspace, counts: &mut Buffer<u64>) -> Result<usize> {
    let mut layout = Layout::new();
    let scan = Scan::plan::<u64, Decoupled>(&mut layout, counts.len());
    let temp = workspace.carve(stream, &layout, "hits of rays")?;
    // SAFETY: of one length, and they wait for the device before they are freed.
    unsafe {
        let counts = counts.slice_mut();
        scan.run::<u64, Sum, Decoupled>(stream, &temp, counts.read_only(), counts, Ends::Exclusive)?;
    }
    Ok(counts.part_to_vec(stream, counts.len() - 1..counts.len())?[0] as usize)
}
