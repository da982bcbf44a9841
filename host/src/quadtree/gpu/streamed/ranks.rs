//! The sort of points by the batch or root that their cell belongs to.

use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::quadtree::gpu::streamed::StreamedBuild;
use crate::quadtree::gpu::streamed::top::TopNodes;
use kauri_kernels::quadtree::streamed::quadtree_ranks;
use kauri_kernels::thread::coord::Coord;

/// Ranks of counted cells, in device memory.
pub(super) struct CellRanks {
    /// The rank of each cell from `first_cell` on.
    pub(super) ranks: Buffer<u32>,
    pub(super) first_cell: u32,
    /// All ranks are below this number.
    pub(super) num_ranks: usize,
    /// The frame's words.
    pub(super) frame: Buffer<u64>,
}

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Sorts points by the rank of their cell. Returns the ranks and the indices of the points, in input order within a rank.
    ///
    /// # Safety
    /// Nothing writes the buffers until the stream has done the work.
    pub(super) unsafe fn sort_by_rank<'a>(
        &self,
        stream: &Stream,
        workspace: &'a mut Workspace,
        coords: &Buffer<C>,
        top: &TopNodes<D>,
        cells: &CellRanks,
    ) -> Result<Source<'a, u32, u32>> {
        let n = coords.len() / D;
        let mut layout = Layout::new();
        let pairs = [0, 1].map(|_| (layout.reserve::<u32>(n), layout.reserve::<u32>(n)));
        let [sort] = RadixSort::plan(&mut layout, n, [Shape::of::<u32, u32>(n)]);
        let temp = workspace.carve(stream, &layout, "points of batches")?;
        let pairs = pairs.map(|(keys, values)| Pairs { keys: temp.view(keys), values: temp.view(values) });
        // SAFETY: the arrays are as long as planned; the rest is the caller's promise.
        unsafe {
            let (level, num_levels) = (top.level, top.num_levels);
            let args = (
                coords.slice(),
                cells.frame.slice(),
                level,
                num_levels,
                cells.ranks.slice(),
                cells.first_cell,
                pairs[1].keys,
                pairs[1].values,
            );
            stream.launch_items::<quadtree_ranks<C, D>>(n as u64, args)?;
            let by = SortBy::numbers_below(cells.num_ranks);
            let [sorted, _] = sort.run(stream, &temp, by, pairs[1].read_only(), pairs)?;
            Ok(sorted.read_only())
        }
    }
}
