//! Large nodes: their memory, and the loop over their levels.

use super::build_input::{BOXES, BuildInput, ReferenceBuffers, TRIANGLES};
use super::large_levels::{Level, LevelLayout};
use super::planes_layout::PlanesLayout;
use super::small_roots::SmallRoots;
#[cfg(feature = "research")]
use super::variant_layout::VariantLayout;
use crate::device::GrowableBuffer;
use crate::device::{Layout, PinnedBuffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::planned::bytes_of;
use crate::sah::options::SahOptions;
use cuda_std::mem::SliceMut;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::sah::large_levels::{NextLevel, totals};
use kauri_kernels::sah::large_nodes::{CHUNK_TRIANGLES, LargeNode, SMALL_TRIANGLES, max_references};
use kauri_kernels::sah::small_roots::SmallRoot;
use kauri_kernels::sah::top_nodes::TopNode;
use std::mem::swap;
use std::ops::Range;

/// The memory of large nodes, and the top tree.
#[derive(Default)]
pub(super) struct LargeNodes {
    /// Nodes of the current level and of the next.
    nodes: [GrowableBuffer<LargeNode>; 2],
    /// References of the current level and of the next.
    lists: [ReferenceBuffers; 2],
    pub(super) top_nodes: GrowableBuffer<TopNode>,
    /// The top nodes of each level, by index.
    pub(super) levels: Vec<Range<u32>>,
    /// The totals of a level on the host.
    totals: Option<PinnedBuffer<u64>>,
}

impl LargeNodes {
    /// Returns the bytes, scratch memory included, that the root and its level take.
    pub(super) fn min_bytes(num_triangles: usize, options: &SahOptions) -> u64 {
        if num_triangles == 0 {
            return 0;
        }
        let (reference, boxed) = (size_of::<u32>(), if options.clip { size_of::<Aabb>() } else { 0 });
        let root = num_triangles * reference + size_of::<LargeNode>();
        if num_triangles as u32 <= SMALL_TRIANGLES {
            return root as u64;
        }
        let num_chunks = num_triangles.div_ceil(CHUNK_TRIANGLES as usize);
        let next = 2 * num_chunks * CHUNK_TRIANGLES as usize * (reference + boxed);
        let level = bytes_of(|layout| {
            let planes = PlanesLayout::plan(layout, [1, num_chunks], options.quality);
            (LevelLayout::plan(layout, [1, num_chunks]), planes)
        });
        (root + num_triangles * boxed + next) as u64 + level
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.nodes.iter().map(GrowableBuffer::bytes).sum::<u64>()
            + self.lists.iter().map(ReferenceBuffers::bytes).sum::<u64>()
            + self.top_nodes.bytes()
    }

    /// Returns the number of top nodes.
    pub(super) fn num_top_nodes(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end as usize)
    }

    /// Reserves memory for the root and its references.
    pub(super) fn reserve_root(
        &mut self,
        stream: &Stream,
        num_triangles: usize,
    ) -> Result<(SliceMut<'_, LargeNode>, SliceMut<'_, u32>)> {
        self.lists[0].triangles.reserve(stream, num_triangles, TRIANGLES)?;
        self.nodes[0].reserve(stream, 1, "large nodes")?;
        Ok((self.nodes[0].view_mut(), self.lists[0].triangles.view_mut()))
    }

    /// Splits large nodes level by level until all are small or leaves. The [root](Self::reserve_root) has been written.
    pub(super) fn split(
        &mut self,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
        small: &mut SmallRoots,
    ) -> Result<()> {
        let num_triangles = input.corners.len();
        self.levels.clear();
        if input.options.clip {
            let boxes = &mut self.lists[0].boxes;
            boxes.reserve(input.stream, num_triangles, BOXES)?;
            // SAFETY: both have this length, and wait for the device before they are freed.
            unsafe { input.stream.copy(boxes.view_mut(), input.boxes)? };
        }
        let len = num_triangles as u32;
        if len <= SMALL_TRIANGLES {
            let bounds = input.bounds;
            let root = SmallRoot { bounds, depth: 0, begin: 0, len, source_chunk: 0, from_current_level: 1 };
            return small.push_root(input, root, self.lists[0].list(input));
        }
        let (mut num_nodes, mut num_chunks) = (1, len.div_ceil(CHUNK_TRIANGLES));
        while num_nodes > 0 {
            (num_nodes, num_chunks) = self.split_level(workspace, input, small, [num_nodes, num_chunks])?;
        }
        Ok(())
    }

    /// Processes the nodes of a level. Returns the number of nodes of the next level, and of their chunks.
    fn split_level(
        &mut self,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
        small: &mut SmallRoots,
        [num_nodes, num_chunks]: [u32; 2],
    ) -> Result<(u32, u32)> {
        let stream = input.stream;
        let begin = self.num_top_nodes() as u32;
        let top_range = begin..begin + num_nodes;
        let [nodes, next_nodes] = &mut self.nodes;
        let [list, next_list] = &mut self.lists;
        next_list.grow(input, 2 * num_chunks as usize * CHUNK_TRIANGLES as usize, 0)?;
        self.top_nodes.grow(stream, top_range.end as usize, begin as usize, "large nodes")?;
        let mut layout = Layout::new();
        let lens = [num_nodes, num_chunks].map(|len| len as usize);
        let regions = LevelLayout::plan(&mut layout, lens);
        let planes = PlanesLayout::plan(&mut layout, lens, input.options.quality);
        #[cfg(feature = "research")]
        let variant =
            VariantLayout::plan(&mut layout, lens, input.options.stages).filter(|_| planes.is_none());
        let temp = workspace.carve(stream, &layout, "large nodes")?;
        let level = Level {
            input,
            temp: &temp,
            layout: &regions,
            nodes: nodes.first(num_nodes as usize),
            list: list.list(input),
            next: next_list.list_mut(input),
            planes,
            #[cfg(feature = "research")]
            variant,
        };
        // Each node has at most two children.
        next_nodes.reserve(stream, 2 * num_nodes as usize, "large nodes")?;
        let first_small_root = small.reserve_roots(stream, 2 * num_nodes)?;
        let num_finished = small.num_references;
        // SAFETY: the memory is as planned and reserved, and waits for the device before it is freed.
        unsafe {
            level.map_chunks()?;
            level.find_planes()?;
            level.partition()?;
            let next = NextLevel {
                first_top_node: top_range.end,
                first_small_root,
                first_small_reference: num_finished,
                nodes: next_nodes.view_mut(),
                small_roots: small.roots.view_mut(),
                top_nodes: self.top_nodes.view_mut().part(begin as usize, num_nodes as usize),
                retries: temp.view(regions.retries),
                totals: temp.view(regions.totals),
            };
            let mut totals = level.process_nodes(next, false, &mut self.totals)?;
            if u64::from(num_finished) + totals.reference_slots() > max_references(input.corners.len() as u64)
            {
                temp.clear(regions.totals)?;
                totals = level.process_nodes(next, true, &mut self.totals)?;
            }
            small.append(input, level.source_lists(), totals.small_roots, totals.small_references)?;
            small.has_overflow_leaves |= totals.flags & totals::OVERFLOW != 0;
            if totals.flags & totals::RETRIES != 0 {
                level.copy_retried()?;
            }
            self.levels.push(top_range);
            swap(nodes, next_nodes);
            swap(list, next_list);
            Ok((totals.nodes, totals.chunks))
        }
    }
}
