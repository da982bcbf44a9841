//! Delaunay triangulations of the plane.

use super::cpu::CpuPoints;
use super::frame::check_extent;
use super::gpu::GpuPoints;
use crate::device::{Buffer, Device, Stream, Workspace, gpu_of};
use crate::error::{Result, check_count};
use crate::point::MAX_POINTS;
use crate::primitives::cpu::bounds::bounds;
use kauri_kernels::terrain::order::{CODE_BITS, Frame};

/// Returns the Delaunay triangles of points with integer coordinates, as ids of their corners counterclockwise.
///
/// No point is strictly inside of the circumcircle of a triangle: predicates are exact. Of points on one circle without a point inside, the
/// first one in Z-order is a corner of all of their triangles, so the result is unique. Points at one position count as the one with the least id. A
/// triangle begins with its first corner in Z-order, and triangles are sorted by it. There are no triangles if there are fewer than three positions, or
/// all of them are on a line.
///
/// The star of each point is found alone, by searches for the third corner of each triangle in a tree over the points. Coordinates of another
/// type become integers by a [`Lattice`](crate::Lattice).
///
/// Memory of the device: 36 bytes a point while points are sorted, then up to 90.
///
/// ```
/// use kauri::{Device, terrain::delaunay_2d};
/// let points = [[0, 0], [4, 0], [0, 4], [1, 1]];
/// let triangles = delaunay_2d(&Device::cpu(), &points)?;
/// assert_eq!(triangles, [[0, 1, 3], [0, 3, 2], [3, 1, 2]]);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// [`Error::TooManyItems`](crate::Error::TooManyItems) beyond [`MAX_POINTS`];
/// [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) if coordinates differ by 2^30 or more;
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
pub fn delaunay_2d(device: &Device, points: &[[i32; 2]]) -> Result<Vec<[u32; 3]>> {
    check_count("points", points.len() as u64, MAX_POINTS)?;
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let [low, high] = bounds(points);
    let mut extent = 0;
    for axis in 0..2 {
        check_extent("point", axis, low[axis], high[axis], (1 << CODE_BITS) - 1)?;
        extent = extent.max(high[axis].abs_diff(low[axis]));
    }
    let frame = Frame { low_x: low[0], low_y: low[1], steps: 1, stride: 2 };
    match gpu_of!(device) {
        None => CpuPoints::new(points, &frame)?.triangles(),
        Some(gpu) => {
            let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
            let uploaded = Buffer::from_slice(&stream, points.as_flattened(), "points to triangulate")?;
            let points = GpuPoints::new(&stream, &mut workspace, uploaded.slice(), frame, extent)?;
            drop(uploaded);
            points.triangles(&stream, &mut workspace)
        }
    }
}
