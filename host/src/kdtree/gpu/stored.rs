//! Copies trees between device memory and the arrays of files. Files store nodes in level order, a GPU in in-order sequence.

use kauri_kernels::query::left_balanced::{full_tree, in_order_rank, num_levels};
use kauri_kernels::thread::coord::Coord;

use crate::device::{Gpu, Stream};
use crate::error::Result;
use crate::kdtree::backend::{FileNodes, Sections};
use crate::kdtree::gpu::axes::write_varying_axes;
use crate::kdtree::gpu::{GpuTree, level_order};
use crate::kdtree::options::SplitRule;
use crate::memory;
use crate::parallel;
use crate::point::{check_each_coordinate, with_dims};
use crate::query::gpu::node_slots;
use crate::stats::Stats;
use bytemuck::NoUninit;
use cuda_std::mem::SliceMut;

/// Nodes of one upload. Uploads in pieces need no second copy of a file in host memory.
const UPLOAD_NODES: usize = 1 << 18;
/// Nodes that one task permutes.
const TASK_NODES: usize = 1 << 13;

impl<C: Coord> GpuTree<C> {
    /// Copies the arrays of the tree to host memory, in level order, and calls `write` with them.
    pub(crate) fn copy_sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        let stream = self.index.stream()?;
        let ids = level_order(&self.index.ids.to_vec(&stream)?, "ids of the nodes")?;
        let in_order =
            self.index.padded_coords.front_to_vec(&stream, self.index.num_points() * self.index.dims)?;
        let coords = with_dims!(self.index.dims, D => {
            level_order(in_order.as_chunks::<D>().0, "coordinates of the nodes")?.into_flattened()
        });
        check_each_coordinate(&coords, self.index.dims, "point", |node| ids[node].into())?;
        let axes = self.index.axes.to_vec(&stream)?;
        write(Sections { coords: &coords, ids: &ids, axes: &axes })
    }

    /// Uploads the tree of a file.
    pub(crate) fn from_nodes(gpu: &Gpu, nodes: &FileNodes<C>, stats: &mut Stats) -> Result<Self> {
        let dims = nodes.dims;
        let rule = if nodes.axes.is_empty() { SplitRule::RoundRobin } else { SplitRule::Widest };
        let mut tree = Self::uninitialized(gpu, nodes.ids.len(), dims, rule)?;
        if nodes.ids.is_empty() {
            return Ok(tree);
        }
        let stream = Stream::new(gpu)?;
        // SAFETY: nobody else has the tree yet, and the stream is synchronized.
        unsafe {
            stats.phase("upload", || {
                let (padded_coords, ids) = (tree.index.padded_coords.slice_mut(), tree.index.ids.slice_mut());
                let to = node_slots(&stream, dims, padded_coords, ids)?;
                with_dims!(dims, D => {
                    let points = nodes.coords.as_chunks().0;
                    upload_in_order::<C, [C; D]>(&stream, to.coords, points, <[_]>::as_flattened)
                })?;
                upload_in_order::<u32, u32>(&stream, to.ids, &nodes.ids, |ids| ids)?;
                stream.upload(tree.index.axes.slice_mut(), &nodes.axes)
            })?;
            stats.phase("boxes", || {
                let coords = tree.index.padded_coords.slice().part(0, nodes.coords.len());
                write_varying_axes(&stream, coords, dims, tree.index.varying_axes.slice_mut())?;
                tree.index.build_boxes(&stream)?;
                stream.synchronize()
            })?;
        }
        Ok(tree)
    }
}

/// Uploads items of the nodes, given in level order, to the device in in-order sequence.
///
/// # Safety
/// As [`Stream::upload`].
unsafe fn upload_in_order<W: NoUninit, T: Copy + Send + Sync>(
    stream: &Stream,
    to: SliceMut<'_, W>,
    by_level: &[T],
    words: impl Fn(&[T]) -> &[W],
) -> Result<()> {
    let Some(&first) = by_level.first() else { return Ok(()) };
    let mut piece = memory::vec_with_capacity(by_level.len().min(UPLOAD_NODES), "nodes of a file in order")?;
    for begin in (0..by_level.len()).step_by(UPLOAD_NODES) {
        piece.clear();
        piece.resize(UPLOAD_NODES.min(by_level.len() - begin), first);
        parallel::for_chunks(&mut piece, TASK_NODES, |i, part| {
            gather_in_order(by_level, begin + i * TASK_NODES, part);
        });
        let items = words(&piece);
        let at = begin * (items.len() / piece.len());
        // SAFETY: within the view; the rest is passed on to the caller.
        unsafe { stream.upload(to.part(at, items.len()), items)? };
    }
    Ok(())
}

/// Fills `to` with the items of the nodes of in-order ranks `begin..begin + to.len()`.
fn gather_in_order<T: Copy>(by_level: &[T], begin: usize, to: &mut [T]) {
    let n = by_level.len() as u32;
    let (begin, end) = (begin as u32, (begin + to.len()) as u32);
    for level in 0..num_levels(n) {
        // Within a level, in-order ranks rise with the node number.
        let (mut s, mut last) = (full_tree(level), full_tree(level + 1).min(n));
        while s < last {
            let middle = s + (last - s) / 2;
            (s, last) = if in_order_rank(middle, n) < begin { (middle + 1, last) } else { (s, middle) };
        }
        for s in s..full_tree(level + 1).min(n) {
            let rank = in_order_rank(s, n);
            if rank >= end {
                break;
            }
            to[(rank - begin) as usize] = by_level[s as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_order_of_the_whole() {
        for n in (0..70).chain([TASK_NODES - 1, TASK_NODES, 3 * TASK_NODES + 17]) {
            let in_order: Vec<u64> = (0..n as u64).collect();
            let by_level = level_order(&in_order, "test").unwrap();
            for part in [1, 2, 7, TASK_NODES] {
                let mut to = vec![u64::MAX; n];
                // One node at a time would take long for a large tree.
                if n < 100 || part == TASK_NODES {
                    let parts = to.chunks_mut(part).enumerate();
                    parts.for_each(|(i, to)| gather_in_order(&by_level, i * part, to));
                    assert_eq!(to, in_order, "{n} nodes, {part} at a time");
                }
            }
        }
    }
}
