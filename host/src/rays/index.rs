//! The ray queries of every index of triangles.

use super::cpu::CpuRays;
use super::gpu::GpuScene;
use super::hits::{DeviceHits, Hit, Hits};
use super::options::RayOptions;
use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::{Error, Result};
use crate::rows::Rows;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::ray::Ray;

pub(crate) mod sealed {
    pub trait Sealed {
        /// Returns the index as ray queries take it.
        fn traced(&self) -> super::Traced<'_>;
    }
}

/// An index in the memory of its device.
pub enum Traced<'a> {
    Cpu(&'a dyn CpuRays),
    Gpu(&'a dyn GpuScene),
}

/// Rays whose hits are in memory at a time while they are visited.
const EACH_HIT_RAYS: usize = 1 << 16;

/// Returns the index in the memory of the stream's device.
fn on_gpu<'a>(index: Traced<'a>, stream: &Stream) -> Result<&'a dyn GpuScene> {
    let Traced::Gpu(index) = index else { return Err(Error::NotOnGpu) };
    index.gpu().check_same(stream.gpu())?;
    Ok(index)
}

/// An index of triangles that answers ray queries: [`Bvh`](crate::Bvh), [`SahTree`](crate::SahTree).
///
/// ```
/// use kauri::mesh::shapes;
/// use kauri::rays::{Ray, RayIndex};
/// use kauri::{Bvh, Device, Result, SahOptions, SahTree};
///
/// /// The height of a mesh above a place.
/// fn height(index: &impl RayIndex, x: f32, y: f32) -> Result<f32> {
///     Ok(10.0 - index.closest_hits(&[Ray::new([x, y, 10.0], [0.0, 0.0, -1.0])])?.t[0])
/// }
///
/// let (device, mesh) = (Device::best()?, shapes::grid(2, [4, 4])?);
/// assert_eq!(height(&Bvh::build(&device, &mesh)?, 0.3, 0.2)?, 0.0);
/// assert_eq!(height(&SahTree::build(&device, &mesh, &SahOptions::default())?, 0.3, 0.2)?, 0.0);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// Hits do not depend on the index, to the last bit. Import the trait to call its methods. Only kauri implements it.
pub trait RayIndex: sealed::Sealed + Send + Sync {
    /// The device that the index lives on.
    fn device(&self) -> &Device;

    /// Number of triangles.
    fn len(&self) -> usize;

    /// True if there are no triangles.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bounding box of all triangles; the origin if there are none.
    fn bounds(&self) -> Aabb;

    /// Returns the first hit of each ray: the nearest to its origin, of equally near ones that of the smallest triangle id.
    ///
    /// `t` is accurate to a few rounding errors of the distance between the ray's origin and the mesh. Rays hit both sides
    /// of triangles, also at the ends of their interval. A ray with a non-finite origin or direction, or with a zero
    /// direction, hits nothing. A hit with a non-finite `t` does not count.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    fn closest_hits(&self, rays: &[Ray]) -> Result<Hits> {
        self.closest_hits_with(rays, &RayOptions::default())
    }

    /// Returns the first hit of each ray, as [`closest_hits`](Self::closest_hits), with these options.
    ///
    /// # Errors
    /// The errors of [`closest_hits`](Self::closest_hits); [`Error::TooManyItems`](crate::Error::TooManyItems) beyond 2^32
    /// sorted rays, and beyond 2^31 rays on a GPU.
    fn closest_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        match self.traced() {
            Traced::Cpu(index) => index.closest_hits(rays, options),
            Traced::Gpu(index) => index.closest_hits(rays, options),
        }
    }

    /// Writes the first hit of each ray to device memory, in the order of the stream. Does not wait for the work. The workspace has the order
    /// of sorted rays, 16 bytes each, and stacks of the rays on the device at a time: for a
    /// [`Bvh`](crate::Bvh) at most some megabytes for each level of its nodes, for a [`SahTree`](crate::SahTree) some 30 MB.
    ///
    /// # Errors
    /// The errors of [`closest_hits_with`](Self::closest_hits_with); [`Error::Shape`](crate::Error::Shape) unless `hits` has
    /// one element per ray; [`Error::NotOnGpu`](crate::Error::NotOnGpu); [`Error::WrongDevice`](crate::Error::WrongDevice).
    fn closest_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut DeviceHits,
    ) -> Result<()> {
        let index = on_gpu(self.traced(), stream)?;
        rays.check_device(stream)?;
        hits.check(stream, rays.len())?;
        index.closest_hits_on(stream, workspace, rays, options, hits)
    }

    /// Returns whether each ray has a hit, for example for shadows. This is faster than finding the first hit.
    ///
    /// # Errors
    /// The errors of [`closest_hits`](Self::closest_hits).
    fn any_hits(&self, rays: &[Ray]) -> Result<Vec<bool>> {
        self.any_hits_with(rays, &RayOptions::default())
    }

    /// Returns whether each ray has a hit, with these options.
    ///
    /// # Errors
    /// The errors of [`closest_hits_with`](Self::closest_hits_with).
    fn any_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        match self.traced() {
            Traced::Cpu(index) => index.any_hits(rays, options),
            Traced::Gpu(index) => index.any_hits(rays, options),
        }
    }

    /// Writes 1 for each ray that has a hit and 0 for the others to device memory, in the order of the stream. Does not wait for the
    /// work.
    ///
    /// # Errors
    /// The errors of [`closest_hits_on`](Self::closest_hits_on).
    fn any_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut Buffer<u8>,
    ) -> Result<()> {
        let index = on_gpu(self.traced(), stream)?;
        rays.check_device(stream)?;
        hits.check(stream, "hits of rays", rays.len())?;
        index.any_hits_on(stream, workspace, rays, options, hits)
    }

    /// Returns all hits of each ray, sorted by `t` and triangle id.
    ///
    /// # Errors
    /// The errors of [`closest_hits`](Self::closest_hits); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) if the
    /// hits do not fit in memory.
    fn all_hits(&self, rays: &[Ray]) -> Result<Rows<Hit>> {
        self.all_hits_with(rays, &RayOptions::default())
    }

    /// Returns all hits of each ray, with these options.
    ///
    /// # Errors
    /// The errors of [`all_hits`](Self::all_hits) and [`closest_hits_with`](Self::closest_hits_with).
    fn all_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
        match self.traced() {
            Traced::Cpu(index) => index.all_hits(rays, options),
            Traced::Gpu(index) => index.all_hits(rays, options),
        }
    }

    /// Calls `visit` with the index of the ray and the hit, for each hit of each ray: ray after ray, hits sorted by `t` and triangle id.
    ///
    /// # Errors
    /// The errors of [`all_hits`](Self::all_hits).
    fn each_hit(&self, rays: &[Ray], mut visit: impl FnMut(usize, Hit)) -> Result<()>
    where
        Self: Sized,
    {
        for (batch, rays) in rays.chunks(EACH_HIT_RAYS).enumerate() {
            let rows = self.all_hits(rays)?;
            for (ray, hits) in &rows {
                hits.iter().for_each(|hit| visit(batch * EACH_HIT_RAYS + ray, hit));
            }
        }
        Ok(())
    }
}
