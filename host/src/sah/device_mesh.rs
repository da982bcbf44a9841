//! Meshes in device memory.

use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use kauri_kernels::sah::corners::summary;
use kauri_kernels::sah::node::MAX_NODES;
use kauri_kernels::thread::coord::Coord;

/// A mesh in device memory.
///
/// Vertices and triangles are validated when a tree is built over them, as [`Mesh::new`] does: a corner with an invalid
/// vertex index, or with a coordinate that is not finite or too large, is an error. Unused vertices are validated only by
/// [`Quality::Exact`](super::Quality::Exact).
#[derive(Clone, Copy, Debug)]
pub struct DeviceMesh<'a> {
    /// Three coordinates per vertex.
    pub vertices: &'a Buffer<f32>,
    /// Three vertex indices per triangle.
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

    /// Checks devices and lengths.
    pub(super) fn check(&self, stream: &Stream) -> Result<()> {
        self.vertices.check(stream, "coordinates of vertices", self.vertices.len() / 3 * 3)?;
        self.triangles.check(stream, "corners of triangles", self.len() * 3)?;
        check_count(self.len())
    }

    /// Copies the mesh to host memory and validates it.
    pub(super) fn to_host(self, stream: &Stream) -> Result<Mesh> {
        let (vertices, triangles) = (self.vertices.to_vec(stream)?, self.triangles.to_vec(stream)?);
        Mesh::new(vertices.as_chunks::<3>().0.to_vec(), triangles.as_chunks::<3>().0.to_vec())
    }

    /// Returns the error of the first invalid corner, given the [summary] that the device wrote.
    pub(super) fn check_summary(&self, stream: &Stream, words: &[u32]) -> Result<()> {
        let corner = |word: usize| Some(words[word]).filter(|&corner| corner != u32::MAX);
        let vertex_of = |corner: u32| -> Result<u32> {
            Ok(self.triangles.part_to_vec(stream, corner as usize..corner as usize + 1)?[0])
        };
        if let Some(at) = corner(summary::BAD_INDEX) {
            let (triangle, corner) = (u64::from(at / 3), at as usize % 3);
            let vertices = self.vertices.len() as u64 / 3;
            return Err(Error::NoSuchVertex { triangle, corner, index: vertex_of(at)?, vertices });
        }
        if let Some(at) = corner(summary::BAD_POSITION) {
            let vertex = vertex_of(at)?;
            let begin = 3 * vertex as usize;
            let position = self.vertices.part_to_vec(stream, begin..begin + 3)?;
            let limit = <f32 as Coord>::LIMIT;
            let is_usable = |x: &f32| x.abs() <= limit;
            let axis = position.iter().position(|x| !is_usable(x)).unwrap_or_default();
            return Err(Error::invalid_coordinate(
                "vertex",
                vertex.into(),
                axis,
                position[axis].into(),
                limit.into(),
            ));
        }
        Ok(())
    }
}

/// Checks that triangles can be numbered.
pub(super) fn check_count(num_triangles: usize) -> Result<()> {
    let count = num_triangles as u64;
    if count > MAX_NODES {
        return Err(Error::TooManyItems { what: "triangles", count, max: MAX_NODES });
    }
    Ok(())
}
