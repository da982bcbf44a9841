//! Meshes in device memory.

use crate::device::{Buffer, Stream};
use crate::error::{self, Error, Result};
use crate::mesh::Mesh;
use kauri_kernels::rays::mesh::{MAX_TRIANGLES, MeshView};

/// A mesh in device memory, the input of [`Bvh::build_on`](crate::Bvh::build_on) and [`SahTree::build_on`](crate::SahTree::build_on).
///
/// A build validates the corners of all triangles: a vertex index out of range, or a coordinate that is not finite or too
/// large, is an error of [`Mesh::new`].
///
/// ```no_run
/// use kauri::device::{Buffer, Device, Stream};
/// use kauri::mesh::{DeviceMesh, shapes};
/// use kauri::rays::RayIndex;
/// use kauri::{SahOptions, SahTree};
/// let device = Device::from_name("cuda")?;
/// let stream = Stream::new(device.gpu().expect("it is one"))?;
/// let knot = shapes::torus_knot([2, 3], 1000, 100)?;
/// let vertices = Buffer::from_slice(&stream, knot.vertices().as_flattened(), "vertices")?;
/// let triangles = Buffer::from_slice(&stream, knot.triangles().as_flattened(), "triangles")?;
/// let mesh = DeviceMesh { vertices: &vertices, triangles: &triangles };
/// let tree = SahTree::build_on(&stream, mesh, &SahOptions::default())?;
/// assert_eq!(tree.len(), mesh.len());
/// # Ok::<(), kauri::Error>(())
/// ```
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
    pub(crate) fn check(&self, stream: &Stream) -> Result<()> {
        self.vertices.check(stream, "coordinates of vertices", self.vertices.len() / 3 * 3)?;
        self.triangles.check(stream, "corners of triangles", self.len() * 3)?;
        check_count(self.len())
    }

    /// Returns the mesh as kernels take it.
    pub(crate) fn view(&self) -> MeshView<'_> {
        MeshView { vertices: self.vertices.slice(), triangles: self.triangles.slice() }
    }

    /// Copies the mesh to host memory and validates it.
    pub(crate) fn to_host(self, stream: &Stream) -> Result<Mesh> {
        let (vertices, triangles) = (self.vertices.to_vec(stream)?, self.triangles.to_vec(stream)?);
        Mesh::new(vertices.as_chunks::<3>().0.to_vec(), triangles.as_chunks::<3>().0.to_vec())
    }

    /// Returns the error of a mesh that the device found invalid.
    pub(crate) fn error(self, stream: &Stream) -> Error {
        match self.to_host(stream) {
            Err(error) => error,
            // Another stream has written the mesh since.
            Ok(_) => Error::corrupt(0, "the mesh has changed during the build"),
        }
    }
}

/// Checks that triangles can be numbered.
pub(crate) fn check_count(num_triangles: usize) -> Result<()> {
    error::check_count("triangles", num_triangles as u64, MAX_TRIANGLES)
}
