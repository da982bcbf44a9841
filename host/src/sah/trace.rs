//! Ray queries of [`SahTree`].

use super::cpu;
use super::hits::{DeviceHits, Hit, Hits};
use super::options::RayOptions;
use super::tree::{SahTree, Tree};
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::rows::Rows;
use kauri_kernels::sah::ray::Ray;

/// Rays whose hits are in memory at a time while they are visited.
const EACH_HIT_RAYS: usize = 1 << 16;

impl SahTree {
    /// Returns the first hit of each ray: the nearest to its origin, of equally near ones that of the smallest triangle id.
    ///
    /// `t` is accurate to a few rounding errors of the distance between the ray's origin and the mesh. Rays hit both sides
    /// of triangles, also at the ends of their interval. A ray with a non-finite origin or direction, or with a zero
    /// direction, hits nothing. A hit with a non-finite `t` does not count.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn closest_hits(&self, rays: &[Ray]) -> Result<Hits> {
        self.closest_hits_with(rays, &RayOptions::default())
    }

    /// Returns the first hit of each ray, as [`closest_hits`](Self::closest_hits), with these options.
    ///
    /// # Errors
    /// The errors of [`closest_hits`](Self::closest_hits); [`Error::TooManyItems`](crate::Error::TooManyItems) beyond 2^32
    /// sorted rays.
    pub fn closest_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        match &self.tree {
            Tree::Cpu(tree) => cpu::closest_hits(tree, rays, options),
            Tree::Gpu(tree) => tree.closest_hits(rays, options),
        }
    }

    /// Writes the first hit of each ray to device memory, in the order of the stream. Does not wait for the work.
    ///
    /// # Errors
    /// The errors of [`closest_hits_with`](Self::closest_hits_with); [`Error::Shape`](crate::Error::Shape) unless `hits` has
    /// one element per ray; [`Error::NotOnGpu`](crate::Error::NotOnGpu); [`Error::WrongDevice`](crate::Error::WrongDevice).
    pub fn closest_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut DeviceHits,
    ) -> Result<()> {
        let tree = self.gpu_tree(stream)?;
        rays.check_device(stream)?;
        hits.check(stream, rays.len())?;
        tree.read_by(stream, || tree.closest_hits_on(stream, workspace, rays, options, hits))
    }

    /// Returns whether each ray has a hit, for example for shadows. This is faster than finding the first hit.
    ///
    /// # Errors
    /// The errors of [`closest_hits`](Self::closest_hits).
    pub fn any_hits(&self, rays: &[Ray]) -> Result<Vec<bool>> {
        self.any_hits_with(rays, &RayOptions::default())
    }

    /// Returns whether each ray has a hit, with these options.
    ///
    /// # Errors
    /// The errors of [`closest_hits_with`](Self::closest_hits_with).
    pub fn any_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        match &self.tree {
            Tree::Cpu(tree) => cpu::any_hits(tree, rays, options),
            Tree::Gpu(tree) => tree.any_hits(rays, options),
        }
    }

    /// Writes 1 for each ray that has a hit and 0 for the others to device memory, in the order of the stream. Does not wait for the
    /// work.
    ///
    /// # Errors
    /// The errors of [`closest_hits_on`](Self::closest_hits_on).
    pub fn any_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut Buffer<u8>,
    ) -> Result<()> {
        let tree = self.gpu_tree(stream)?;
        rays.check_device(stream)?;
        hits.check(stream, "hits of rays", rays.len())?;
        tree.read_by(stream, || tree.any_hits_on(stream, workspace, rays, options, hits))
    }

    /// Returns all hits of each ray, sorted by `t` and triangle id.
    ///
    /// # Errors
    /// The errors of [`closest_hits`](Self::closest_hits); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) if the
    /// hits do not fit in memory.
    pub fn all_hits(&self, rays: &[Ray]) -> Result<Rows<Hit>> {
        self.all_hits_with(rays, &RayOptions::default())
    }

    /// Returns all hits of each ray, with these options.
    ///
    /// # Errors
    /// The errors of [`all_hits`](Self::all_hits) and [`closest_hits_with`](Self::closest_hits_with).
    pub fn all_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
        match &self.tree {
            Tree::Cpu(tree) => cpu::all_hits(tree, rays, options),
            Tree::Gpu(tree) => tree.all_hits(rays, options),
        }
    }

    /// Calls `visit` with the index of the ray and the hit, for each hit of each ray: ray after ray, hits sorted by `t` and triangle id.
    ///
    /// # Errors
    /// The errors of [`all_hits`](Self::all_hits).
    pub fn each_hit(&self, rays: &[Ray], mut visit: impl FnMut(usize, Hit)) -> Result<()> {
        for (batch, rays) in rays.chunks(EACH_HIT_RAYS).enumerate() {
            let rows = self.all_hits(rays)?;
            for (ray, hits) in &rows {
                hits.iter().for_each(|hit| visit(batch * EACH_HIT_RAYS + ray, hit));
            }
        }
        Ok(())
    }
}
