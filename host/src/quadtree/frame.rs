//! The frame of a tree: the cell of the root and the units that cells are measured in.

use crate::error::{Error, Result};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::thread::coord::{Coord, Float};

/// Returns the frame of points with these bounds; the bounds of an empty set are ignored. Refuses bounds beyond the largest coordinate,
/// which points in device memory can have.
pub(crate) fn frame_of_bounds<C: Coord, const D: usize>(
    bounds: [[C; D]; 2],
    is_empty: bool,
    max_depth: u32,
) -> Result<Frame<D>> {
    let [low, high] = if is_empty { [[0.0; D]; 2] } else { bounds.map(|corner| corner.map(|x| x.to_f64())) };
    let limit = C::Distance::LIMIT.to_f64();
    for (axis, (low, high)) in low.into_iter().zip(high).enumerate() {
        for value in [low, high] {
            if value.is_nan() || value.abs() > limit {
                return Err(Error::CoordinateTooLarge {
                    what: "least or greatest coordinate",
                    index: 0,
                    axis,
                    value,
                    limit,
                });
            }
        }
    }
    Ok(Frame::new(low, high, max_depth.max(1)))
}
