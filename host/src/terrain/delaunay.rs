//! Delaunay triangulations of the plane.

use super::cpu::CpuPoints;
use super::frame::check_extent;
use super::gpu::{GpuPoints, bounds_on};
use crate::device::{Buffer, Device, Stream, Workspace, gpu_of};
use crate::error::{Result, check_count};
use crate::point::MAX_POINTS;
use crate::primitives::cpu::bounds::bounds;
use kauri_kernels::terrain::order::Frame;

/// The greatest difference of two coordinates, for which the predicates are exact.
const MAX_DIFFERENCE: i32 = 1 << 30;

/// Returns the Delaunay triangles of points with integer coordinates, as ids of their corners counterclockwise.
///
/// No point is strictly inside of the circumcircle of a triangle: predicates are exact. Of points on one circle without a point inside, the
/// first one along the Hilbert curve is a corner of all of their triangles, so the result is unique. A triangle begins with its first corner
/// along that curve, and triangles are sorted by it. Points at one position count as the one with the least id. There are no triangles if
/// there are fewer than three positions, or all of them are on a line.
///
/// The star of each point is found alone, by searches for the third corner of each triangle in a tree over the points. The time of a point
/// grows with the number of its triangles. Coordinates of another type become integers by a [`Lattice`](crate::Lattice).
///
/// Memory of the device: up to 130 bytes a point.
///
/// ```
/// use kauri::{Device, terrain::delaunay_2d};
/// let points = [[0, 0], [4, 0], [0, 4], [1, 1]];
/// let triangles = delaunay_2d(&Device::cpu(), &points)?;
/// assert!(triangles.len() == 3 && triangles.iter().all(|corners| corners.contains(&3)));
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// [`Error::TooManyItems`](crate::Error::TooManyItems) beyond [`MAX_POINTS`];
/// [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) if coordinates differ by more than 2^30;
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
pub fn delaunay_2d(device: &Device, points: &[[i32; 2]]) -> Result<Vec<[u32; 3]>> {
    check_count("points", points.len() as u64, MAX_POINTS)?;
    if points.is_empty() {
        return Ok(Vec::new());
    }
    match gpu_of!(device) {
        None => CpuPoints::new(points, frame(bounds(points))?)?.triangles(),
        Some(gpu) => {
            let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
            let points = Buffer::from_slice(&stream, points, "points to triangulate")?;
            delaunay_2d_on(&stream, &mut workspace, &points)?.to_vec(&stream)
        }
    }
}

/// Returns the triangles of [`delaunay_2d`] for points in device memory. Waits for the device.
///
/// # Errors
/// [`Error::WrongDevice`](crate::Error::WrongDevice), and the errors of [`delaunay_2d`].
pub fn delaunay_2d_on(
    stream: &Stream,
    workspace: &mut Workspace,
    points: &Buffer<[i32; 2]>,
) -> Result<Buffer<[u32; 3]>> {
    check_count("points", points.len() as u64, MAX_POINTS)?;
    points.check_device(stream)?;
    if points.is_empty() {
        return Buffer::uninitialized(stream.gpu(), 0, "triangles");
    }
    let corners = bounds_on(stream, workspace, points)?;
    GpuPoints::new(stream, workspace, points, frame(corners)?, corners)?.triangles(stream, workspace)
}

/// Returns the frame of points between two corners.
fn frame([low, high]: [[i32; 2]; 2]) -> Result<Frame> {
    for axis in 0..2 {
        check_extent("point", axis, low[axis], high[axis], MAX_DIFFERENCE)?;
    }
    Ok(Frame { low_x: low[0], low_y: low[1], steps: 1 })
}
