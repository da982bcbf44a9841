//! The mesh of a build or refit, in host or in device memory.

use super::device_mesh::DeviceMesh;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::parallel::{self, TASK_ITEMS};
use kauri_kernels::rays::triangle::Corners;

/// A mesh in host memory, or in device memory with the stream that uses it.
#[derive(Clone, Copy)]
pub(crate) enum MeshInput<'a> {
    Host(&'a Mesh),
    Device(&'a Stream, DeviceMesh<'a>),
}

impl MeshInput<'_> {
    /// Returns the number of triangles.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Host(mesh) => mesh.len(),
            Self::Device(_, mesh) => mesh.len(),
        }
    }

    /// Returns the corners of all triangles in host memory. A mesh in device memory is copied and validated.
    pub(crate) fn corners(&self) -> Result<Vec<Corners>> {
        match self {
            Self::Host(mesh) => corners(mesh),
            Self::Device(stream, mesh) => corners(&mesh.to_host(stream)?),
        }
    }

    /// Calls `work` with the mesh in device memory and its stream. A host mesh is copied.
    pub(crate) fn on_gpu<R>(
        &self,
        gpu: &Gpu,
        work: impl FnOnce(&Stream, DeviceMesh<'_>) -> Result<R>,
    ) -> Result<R> {
        match self {
            Self::Host(mesh) => {
                let stream = Stream::new(gpu)?;
                let vertices = Buffer::from_slice(&stream, mesh.vertices().as_flattened(), "vertices")?;
                let triangles = Buffer::from_slice(&stream, mesh.triangles().as_flattened(), "triangles")?;
                work(&stream, DeviceMesh { vertices: &vertices, triangles: &triangles })
            }
            Self::Device(stream, mesh) => work(stream, *mesh),
        }
    }
}

/// Returns the corners of all triangles.
fn corners(mesh: &Mesh) -> Result<Vec<Corners>> {
    parallel::collect(mesh.len(), TASK_ITEMS, "corners of triangles", |i| Corners::new(mesh.corners(i)))
}
