//! Meshes and hits in device memory.

use super::hits::Hits;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use kauri_kernels::sah::corners::found;
use kauri_kernels::sah::node::MAX_NODES;
use kauri_kernels::thread::coord::Coord;

/// A mesh in device memory.
///
/// Vertices and triangles are looked at where a tree is made of them: a corner that is no vertex, or at a place that is not finite or too far
/// away, is refused there, as [`Mesh::new`] does it. Vertices in no triangle may be anywhere, but for
/// [`Quality::Exact`](super::Quality::Exact).
#[derive(Clone, Copy, Debug)]
pub struct DeviceMesh<'a> {
    /// Three coordinates a vertex.
    pub vertices: &'a Buffer<f32>,
    /// Three vertices a triangle, by their numbers.
    pub triangles: &'a Buffer<u32>,
}

impl DeviceMesh<'_> {
    /// Number of triangles.
    pub fn len(&self) -> usize {
        self.triangles.len() / 3
    }

    /// True if there are no triangles.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks what needs no look at the items.
    pub(super) fn check(&self, stream: &Stream) -> Result<()> {
        self.vertices.check(stream, "coordinates of vertices", self.vertices.len() / 3 * 3)?;
        self.triangles.check(stream, "corners of triangles", self.len() * 3)?;
        check_count(self.len())
    }

    /// A copy in host memory, checked.
    pub(super) fn to_host(self, stream: &Stream) -> Result<Mesh> {
        let (vertices, triangles) = (self.vertices.to_vec(stream)?, self.triangles.to_vec(stream)?);
        let triples = |of: &[u32]| of.as_chunks::<3>().0.to_vec();
        Mesh::new(vertices.as_chunks::<3>().0.to_vec(), triples(&triangles))
    }

    /// What the device found wrong.
    pub(super) fn check_found(&self, stream: &Stream, words: &[u32]) -> Result<()> {
        let corner = |what: usize| Some(words[what]).filter(|&corner| corner != u32::MAX);
        let vertex = |corner: u32| -> Result<u32> {
            Ok(self.triangles.part_to_vec(stream, corner as usize..corner as usize + 1)?[0])
        };
        if let Some(at) = corner(found::NO_VERTEX) {
            let (triangle, corner) = (u64::from(at / 3), at as usize % 3);
            let vertices = self.vertices.len() as u64 / 3;
            return Err(Error::NoSuchVertex { triangle, corner, index: vertex(at)?, vertices });
        }
        if let Some(at) = corner(found::NO_PLACE) {
            let vertex = vertex(at)?;
            let begin = 3 * vertex as usize;
            let place = self.vertices.part_to_vec(stream, begin..begin + 3)?;
            let limit = <f32 as Coord>::LIMIT;
            let is_usable = |x: &f32| x.abs() <= limit;
            let axis = place.iter().position(|x| !is_usable(x)).unwrap_or_default();
            return Err(Error::invalid_coordinate(
                "vertex",
                vertex.into(),
                axis,
                place[axis].into(),
                limit.into(),
            ));
        }
        Ok(())
    }
}

/// [`Error::TooManyItems`] unless so many triangles can be numbered.
pub(super) fn check_count(num_triangles: usize) -> Result<()> {
    let count = num_triangles as u64;
    if count > MAX_NODES {
        return Err(Error::TooManyItems { what: "triangles", count, max: MAX_NODES });
    }
    Ok(())
}

/// Hits in device memory, an array for each of their parts, as in [`Hits`].
#[derive(Debug)]
pub struct DeviceHits {
    /// The triangles; [`Hit::NO_TRIANGLE`](super::Hit::NO_TRIANGLE) where there is none.
    pub triangles: Buffer<u32>,
    /// How far the rays go, in their directions; infinite where they hit nothing.
    pub t: Buffer<f32>,
    /// How much of the second corner is in the place.
    pub u: Buffer<f32>,
    /// How much of the third.
    pub v: Buffer<f32>,
}

impl DeviceHits {
    /// Room for the hits of so many rays, with undefined contents; 16 bytes each.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn uninitialized(gpu: &Gpu, len: usize) -> Result<Self> {
        let part = || Buffer::uninitialized(gpu, len, "hits of rays");
        let triangles = Buffer::uninitialized(gpu, len, "hits of rays")?;
        Ok(Self { triangles, t: part()?, u: part()?, v: part()? })
    }

    /// A copy in host memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn to_host(&self, stream: &Stream) -> Result<Hits> {
        Ok(Hits {
            triangles: self.triangles.to_vec(stream)?,
            t: self.t.to_vec(stream)?,
            u: self.u.to_vec(stream)?,
            v: self.v.to_vec(stream)?,
        })
    }

    /// Checks that there is room for the hits of so many rays.
    pub(super) fn check(&self, stream: &Stream, num_rays: usize) -> Result<()> {
        self.triangles.check(stream, "hits of rays", num_rays)?;
        [&self.t, &self.u, &self.v]
            .into_iter()
            .try_for_each(|part| part.check(stream, "hits of rays", num_rays))
    }
}
