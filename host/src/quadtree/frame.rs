//! The frame of a tree: the cell of the root and the units that cells are measured in.

use crate::error::{Error, Result};
use crate::quadtree::options::{QuadtreeOptions, RootCell};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::thread::coord::{Coord, Float};

/// Returns the frame of points with these bounds; the bounds of an empty set are ignored. Refuses bounds beyond the largest coordinate,
/// which points in device memory can have.
pub(crate) fn frame_of_bounds<C: Coord, const D: usize>(
    bounds: [[C; D]; 2],
    is_empty: bool,
    options: &QuadtreeOptions,
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
    let max_levels = options.max_depth.max(1);
    Ok(match options.root {
        RootCell::Square => Frame::new(low, high, max_levels),
        RootCell::BoundingBox => Frame::of_box(low, high, max_levels),
    })
}

/// Returns the words of a frame in a file. A word of 0 in place of the units per length stands for a root that is the bounding box; the other
/// words have its low corner then.
#[cfg(feature = "io")]
pub(crate) fn file_words<const D: usize>(frame: &Frame<D>, root: RootCell) -> Vec<u64> {
    let words: Vec<u64> = frame.to_words().collect();
    let of_axes = |word: usize| (0..D).map(move |axis| 1 + 3 * axis + word);
    let (units, corner) = match root {
        RootCell::Square => (words[2], of_axes(2)),
        RootCell::BoundingBox => (0, of_axes(0)),
    };
    [units, words[0]].into_iter().chain(corner.map(|word| words[word])).collect()
}

/// Returns the kind of root of a frame in a file.
#[cfg(feature = "io")]
pub(crate) fn root_of_file_words(words: &[u64]) -> RootCell {
    if words.first() == Some(&0) { RootCell::BoundingBox } else { RootCell::Square }
}
