//! Out-of-core builds whose upper levels the CPU splits (Gluck 2014).

use crate::device::Gpu;
use crate::error::Result;
use crate::memory::Parts;
use crate::progress::Progress;
use crate::quadtree::cpu;
use crate::quadtree::gpu::streamed::columns::OutputColumn;
use crate::quadtree::gpu::streamed::lanes::Lanes;
use crate::quadtree::gpu::streamed::top::{Root, TopNodes};
use crate::quadtree::gpu::streamed::{StreamedBuild, TreePoints};
use crate::quadtree::host::Levels;
use crate::quadtree::node::{OrderedPoints, Part};
use crate::stats::Stats;
use kauri_kernels::thread::coord::Coord;
use std::mem::MaybeUninit;

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Splits the upper levels on the CPU, then builds the subtrees of the last of these levels one after another.
    pub(super) fn with_cpu_top(
        &self,
        gpus: &[Gpu],
        points: &[[C; D]],
        progress: &mut dyn Progress,
        stats: &mut Stats,
    ) -> Result<(Levels<D>, OrderedPoints<C>)> {
        let (leaf_points, max_points) = (self.options.leaf_points, self.max_points(1));
        let max_points = max_points.try_into().unwrap_or(u32::MAX);
        let (part, OrderedPoints { mut coords, mut ids }) = stats.phase("levels by the CPU", || {
            cpu::levels::build(points, &self.frame, self.depth, leaf_points, max_points)
        })?;
        let top = self.top_of_levels(part);
        let batches = top.batches(0);
        // SAFETY: batches write initialized points.
        let (coords_out, ids_out) = unsafe { (as_uninit(&mut coords), as_uninit(&mut ids)) };
        let output = TreePoints {
            coords: OutputColumn::Memory(Parts::new(coords_out)),
            ids: OutputColumn::Memory(Parts::new(ids_out)),
        };
        let point_bytes = (D * size_of::<C>() + size_of::<u32>()) as u64;
        let mut lanes = Lanes::new(gpus, 1, point_bytes, progress);
        let levels = stats.phase("parts", || self.build_batches(&mut lanes, top, &batches, &output))?;
        Ok((levels, OrderedPoints { coords, ids }))
    }

    /// Takes the upper levels of a tree whose points are already in the order of the nodes.
    fn top_of_levels(&self, mut part: Part<D>) -> TopNodes<D> {
        let mut roots = Vec::new();
        for (node, &corner) in part.nodes.iter_mut().zip(&part.corners) {
            // Nodes without children that split are on the last level.
            if node.is_leaf() && self.splits(node) {
                roots.push(Root { node: *node, corner, splits: true, cells: 0..1 });
                // Marks a node that splits; `Levels::into_part` numbers the children.
                node.first_child = 1;
            }
        }
        TopNodes { part, below: Levels::default(), roots, level: 0, num_levels: 0 }
    }
}

/// Returns items as memory to overwrite.
///
/// # Safety
/// Only initialized items are written there, since they count as initialized when the borrow ends.
unsafe fn as_uninit<T: Copy>(items: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: the layouts are equal; the rest is the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), items.len()) }
}
