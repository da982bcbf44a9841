//! The permutation of the coordinates at the end of a build in place.

use crate::device::Stream;
use crate::error::Result;
use cuda_std::mem::SliceMut;
use kauri_kernels::kdtree::selection::PointsMut;
use kauri_kernels::kdtree::selection::in_place::{kdtree_gather_word, kdtree_write_word};
use kauri_kernels::thread::coord::Coord;

/// Permutes the coordinates of the nodes from the order of ids to the order of `nodes.ids`, one word of every point at a time.
///
/// # Safety
/// `nodes.ids` is a permutation of the ids. `words` has one word per point and does not overlap the nodes. Nothing else uses either until
/// the stream has done the work.
pub(super) unsafe fn permute_coordinates<C: Coord>(
    stream: &Stream,
    nodes: PointsMut<'_, C>,
    dims: usize,
    words: SliceMut<'_, u32>,
) -> Result<()> {
    let words_per_coord = size_of::<C>() / size_of::<u32>();
    let words_per_point = (dims * words_per_coord) as u32;
    let num_points = nodes.ids.len() as u64;
    // SAFETY: coordinates are whole words, so the view covers the same memory; the rest is passed on to the caller.
    unsafe {
        let points =
            SliceMut::from_raw_parts(nodes.coords.as_ptr().cast(), nodes.coords.len() * words_per_coord);
        for word in 0..words_per_point {
            let args = (points.read_only(), nodes.ids.read_only(), words_per_point, word, words);
            stream.launch_items::<kdtree_gather_word>(num_points, args)?;
            let args = (words.read_only(), words_per_point, word, points);
            stream.launch_items::<kdtree_write_word>(num_points, args)?;
        }
    }
    Ok(())
}
