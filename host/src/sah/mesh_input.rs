//! The mesh of a build or refit, in host or in device memory.

use super::device_mesh::DeviceMesh;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::memory;
use crate::mesh::Mesh;
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;

/// A mesh in host memory, or in device memory with the stream that uses it.
#[derive(Clone, Copy)]
pub(super) enum MeshInput<'a> {
    Host(&'a Mesh),
    Device(&'a Stream, DeviceMesh<'a>),
}

/// A copy of a host mesh in device memory, and the stream that uses it.
pub(super) struct UploadedMesh {
    stream: Stream,
    vertices: Buffer<f32>,
    triangles: Buffer<u32>,
}

impl MeshInput<'_> {
    /// Returns the number of triangles.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Host(mesh) => mesh.len(),
            Self::Device(_, mesh) => mesh.len(),
        }
    }

    /// Returns the corners of all triangles in host memory. A mesh in device memory is copied and validated.
    pub(super) fn corners(&self) -> Result<Vec<Corners>> {
        match self {
            Self::Host(mesh) => corners(mesh),
            Self::Device(stream, mesh) => corners(&mesh.to_host(stream)?),
        }
    }

    /// Returns the mesh in device memory with its stream. `uploaded` holds the copy of a host mesh.
    pub(super) fn on_gpu<'b>(
        &'b self,
        gpu: &Gpu,
        uploaded: &'b mut Option<UploadedMesh>,
    ) -> Result<(&'b Stream, DeviceMesh<'b>)> {
        match self {
            Self::Host(mesh) => {
                let stream = Stream::new(gpu)?;
                let vertices = Buffer::from_slice(&stream, mesh.vertices().as_flattened(), "vertices")?;
                let triangles = Buffer::from_slice(&stream, mesh.triangles().as_flattened(), "triangles")?;
                let UploadedMesh { stream, vertices, triangles } =
                    uploaded.insert(UploadedMesh { stream, vertices, triangles });
                Ok((stream, DeviceMesh { vertices, triangles }))
            }
            Self::Device(stream, mesh) => Ok((stream, *mesh)),
        }
    }
}

/// Returns the corners of all triangles.
fn corners(mesh: &Mesh) -> Result<Vec<Corners>> {
    let mut corners = memory::vec_with_capacity(mesh.len(), "corners of triangles")?;
    (0..mesh.len()).into_par_iter().map(|i| Corners::new(mesh.corners(i))).collect_into_vec(&mut corners);
    Ok(corners)
}
