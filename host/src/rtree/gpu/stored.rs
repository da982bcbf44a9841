//! Copies trees between device memory and the arrays of files, which have the points in the same order.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::memory;
use crate::point::check_each_coordinate;
use crate::query::gpu::node_slots;
use crate::rtree::backend::{FilePoints, Sections};
use crate::rtree::gpu::GpuTree;
use crate::stats::Stats;
use cuda_std::mem::SliceMut;
use kauri_kernels::thread::coord::Coord;

/// Most words of bits in one upload.
const UPLOAD_WORDS: usize = 1 << 18;

impl<C: Coord> GpuTree<C> {
    /// Copies the arrays of the tree to host memory, and calls `write` with them.
    pub(crate) fn copy_sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        let (index, dims) = (&self.points.index, self.points.index.dims);
        let stream = index.stream()?;
        let ids = index.ids.to_vec(&stream)?;
        let coords = index.padded_coords.front_to_vec(&stream, ids.len() * dims)?;
        check_each_coordinate(&coords, dims, "point", |slot| ids[slot].into())?;
        let mut corners = Vec::new();
        if !ids.is_empty() {
            corners = self.points.grid().corners.to_vec(&stream)?;
            // The grid keeps the place of points that have been removed.
            check_each_coordinate(&corners, dims, "corner of the grid", |corner| corner as u64)?;
        }
        write(Sections { coords: &coords, ids: &ids, corners: &corners, num_ids: self.num_ids })
    }

    /// Uploads the points of a file, and makes the tree of them.
    pub(crate) fn of_file(gpu: &Gpu, file: &FilePoints<C>, stats: &mut Stats) -> Result<Self> {
        let (num_points, num_ids, dims) = (file.ids.len(), file.num_ids, file.dims);
        let mut tree = Self { num_ids, ..Self::uninitialized(gpu, num_points, dims)? };
        let stream = Stream::new(gpu)?;
        // SAFETY: nobody else has the tree yet, and the stream is synchronized.
        unsafe {
            stats.phase("upload", || {
                let index = &mut tree.points.index;
                if num_points < num_ids {
                    let num_words = num_ids.div_ceil(32);
                    index.has_point = Buffer::uninitialized(gpu, num_words, "points of an R-tree")?;
                    upload_has_point(&stream, index.has_point.slice_mut(), &file.own_ids, num_ids)?;
                }
                if num_points > 0 {
                    let (coords, ids) = (index.padded_coords.slice_mut(), index.ids.slice_mut());
                    let slots = node_slots(&stream, dims, coords, ids)?;
                    stream.upload(slots.coords, &file.coords)?;
                    stream.upload(slots.ids, &file.ids)?;
                }
                stream.upload(tree.points.grid_mut().corners.slice_mut(), &file.corners)
            })?;
            stats.phase("boxes", || {
                if num_points > 0 {
                    tree.points.finish(&stream)?;
                }
                stream.synchronize()
            })?;
        }
        Ok(tree)
    }
}

/// Writes a bit for each of `num_ids` ids, of which `own_ids`, in ascending order, have points. Host memory has no more words than there are
/// points.
///
/// # Safety
/// There is a bit for each id. Nothing else uses the memory until the stream has done the work.
unsafe fn upload_has_point(
    stream: &Stream,
    to: SliceMut<'_, u32>,
    own_ids: &[u32],
    num_ids: usize,
) -> Result<()> {
    let piece_len = own_ids.len().min(UPLOAD_WORDS);
    let mut piece = memory::filled(piece_len, 0, "ids with points")?;
    // SAFETY: passed on to the caller.
    unsafe {
        stream.fill_bytes(to, 0)?;
        let piece_of = |id: u32| id as usize / 32 / piece_len;
        for ids in own_ids.chunk_by(|&a, &b| piece_of(a) == piece_of(b)) {
            let first_word = piece_of(ids[0]) * piece_len;
            piece.fill(0);
            for &id in ids {
                piece[id as usize / 32 - first_word] |= 1 << (id % 32);
            }
            let len = piece_len.min(to.len() - first_word);
            stream.upload(to.part(first_word, len), &piece[..len])?;
        }
        if !num_ids.is_multiple_of(32) {
            // The bits of the ids that come next are set, as after a removal: an insert copies the words.
            let last = num_ids / 32;
            let begin = own_ids.partition_point(|&id| (id as usize) < 32 * last);
            let set = |bits: u32, id: &u32| bits | 1 << (id % 32);
            let bits = own_ids[begin..].iter().fold(u32::MAX << (num_ids % 32), set);
            stream.upload(to.part(last, 1), &[bits])?;
        }
    }
    Ok(())
}
