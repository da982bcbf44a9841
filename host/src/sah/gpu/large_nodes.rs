//! Large nodes: their memory, and the loop over their levels.

use super::build_input::BuildInput;
use super::corners::RootOutput;
use super::growable_buffer::GrowableBuffer;
use super::large_levels::{Level, LevelLayout, NextLevel};
use super::small_roots::{SmallRoots, SourceReferences};
use crate::device::{Layout, PinnedBuffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::sah::options::SahOptions;
use cuda_std::mem::Slice;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::large_levels::totals;
use kauri_kernels::sah::large_nodes::{
    CHUNK_TRIANGLES, LargeNode, ReferenceLimit, SMALL_TRIANGLES, max_references,
};
use kauri_kernels::sah::small_roots::SmallRoot;
use kauri_kernels::sah::top_nodes::TopNode;
use std::mem::swap;
use std::ops::Range;

/// The levels of the top tree.
#[derive(Default)]
pub(super) struct TopLevels {
    /// The top nodes of each level, by index.
    pub(super) levels: Vec<Range<u32>>,
}

impl TopLevels {
    /// Returns the number of top nodes.
    pub(super) fn num_nodes(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end as usize)
    }
}

/// The memory of large nodes.
pub(super) struct LargeNodes {
    /// Nodes of the current level and of the next.
    nodes: [GrowableBuffer<LargeNode>; 2],
    /// References of the current level and of the next.
    references: [GrowableBuffer<u32>; 2],
    /// Boxes of the references, if triangles are clipped.
    boxes: [GrowableBuffer<Aabb>; 2],
    top_nodes: GrowableBuffer<TopNode>,
    /// The totals of a level on the host.
    totals: Option<PinnedBuffer<u64>>,
}

impl LargeNodes {
    pub(super) fn new() -> Self {
        let pair = || [(); 2].map(|()| GrowableBuffer::new("triangles of large nodes"));
        Self {
            nodes: [(); 2].map(|()| GrowableBuffer::new("large nodes")),
            references: pair(),
            boxes: [(); 2].map(|()| GrowableBuffer::new("boxes of parts of triangles")),
            top_nodes: GrowableBuffer::new("large nodes"),
            totals: None,
        }
    }

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
        let mut layout = Layout::new();
        LevelLayout::new(&mut layout, 1, num_chunks);
        (root + num_triangles * boxed + next) as u64 + layout.bytes()
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.nodes.iter().map(GrowableBuffer::bytes).sum::<u64>()
            + self.references.iter().map(GrowableBuffer::bytes).sum::<u64>()
            + self.boxes.iter().map(GrowableBuffer::bytes).sum::<u64>()
            + self.top_nodes.bytes()
    }

    /// Returns the top nodes.
    pub(super) fn top_nodes(&self, top: &TopLevels) -> Slice<'_, TopNode> {
        self.top_nodes.first(top.num_nodes())
    }

    /// Reserves memory for the root and its references.
    pub(super) fn reserve_root(&mut self, stream: &Stream, num_triangles: usize) -> Result<RootOutput<'_>> {
        self.references[0].reserve(stream, num_triangles, 0)?;
        self.nodes[0].reserve(stream, 1, 0)?;
        Ok(RootOutput { references: self.references[0].all_mut(), node: self.nodes[0].all_mut() })
    }

    /// Makes the root of a small mesh a small root. There are no top nodes.
    pub(super) fn take_small_root(
        &self,
        stream: &Stream,
        input: &BuildInput<'_>,
        bounds: Aabb,
        small: &mut SmallRoots,
    ) -> Result<TopLevels> {
        let num_triangles = input.corners.len();
        let len = num_triangles as u32;
        let root = SmallRoot { bounds, depth: 0, begin: 0, len, source_chunk: 0, from_current_level: 1 };
        let source = SourceReferences {
            references: [self.references[0].first(num_triangles), empty_view().read_only()],
            boxes: [input.boxes, empty_view().read_only()],
        };
        small.push_root(stream, input, root, &source)?;
        Ok(TopLevels::default())
    }

    /// Splits large nodes level by level until all are small or leaves. The [root](Self::reserve_root) has been written.
    pub(super) fn split(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
        small: &mut SmallRoots,
    ) -> Result<TopLevels> {
        let num_triangles = input.corners.len();
        if input.options.clip {
            self.boxes[0].reserve(stream, num_triangles, 0)?;
            // SAFETY: both have this length, and wait for the device before they are freed.
            unsafe { stream.copy(self.boxes[0].all_mut().part(0, num_triangles), input.boxes)? };
        }
        let mut top = TopLevels::default();
        let (mut num_nodes, mut num_chunks) = (1, (num_triangles as u32).div_ceil(CHUNK_TRIANGLES));
        while num_nodes > 0 {
            (num_nodes, num_chunks) =
                self.split_level(stream, workspace, input, small, &mut top, [num_nodes, num_chunks])?;
        }
        Ok(top)
    }

    /// Processes the nodes of a level. Returns the number of nodes of the next level, and of their chunks.
    fn split_level(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
        small: &mut SmallRoots,
        top: &mut TopLevels,
        [num_nodes, num_chunks]: [u32; 2],
    ) -> Result<(u32, u32)> {
        let clip = input.options.clip;
        let begin = top.num_nodes() as u32;
        let top_range = begin..begin + num_nodes;
        let next_slots = 2 * num_chunks as usize * CHUNK_TRIANGLES as usize;
        let [nodes, next_nodes] = &mut self.nodes;
        let [references, next_references] = &mut self.references;
        let [boxes, next_boxes] = &mut self.boxes;
        next_references.reserve(stream, next_slots, 0)?;
        if clip {
            next_boxes.reserve(stream, next_slots, 0)?;
        }
        self.top_nodes.reserve(stream, top_range.end as usize, begin as usize)?;
        let mut layout = Layout::new();
        let regions = LevelLayout::new(&mut layout, num_nodes as usize, num_chunks as usize);
        let temp = workspace.carve(stream, &layout, "large nodes")?;
        let level = Level {
            stream,
            temp: &temp,
            layout: &regions,
            input,
            nodes: nodes.first(num_nodes as usize),
            references: references.all_mut().read_only(),
            boxes: if clip { boxes.all_mut().read_only() } else { input.boxes },
            next_references: next_references.all_mut(),
            next_boxes: if clip { next_boxes.all_mut() } else { empty_view() },
        };
        // Each node has at most two children.
        next_nodes.reserve(stream, 2 * num_nodes as usize, 0)?;
        let first_small = small.reserve_roots(stream, 2 * num_nodes)?;
        let num_finished = small.num_references();
        // SAFETY: the memory is as planned and reserved, and waits for the device before it is freed.
        unsafe {
            level.map_chunks()?;
            level.compute_boxes()?;
            level.partition()?;
            let next = NextLevel {
                first_top_node: top_range.end,
                first_small_root: first_small,
                first_small_reference: num_finished as u32,
                nodes: next_nodes.all_mut(),
                small_roots: small.roots_mut(),
                top_nodes: self.top_nodes.all_mut().part(begin as usize, num_nodes as usize),
            };
            let mut totals = level.process_nodes(&next, ReferenceLimit::Open, &mut self.totals)?;
            if num_finished + totals.reference_slots() > max_references(input.corners.len() as u64) {
                temp.clear(stream, regions.totals)?;
                totals = level.process_nodes(&next, ReferenceLimit::Reached, &mut self.totals)?;
            }
            small.append(
                stream,
                input,
                &level.source_references(),
                totals.small_roots,
                totals.small_references,
            )?;
            if totals.flags & totals::OVERFLOW != 0 {
                small.set_overflow_leaves();
            }
            if totals.flags & totals::RETRIES != 0 {
                level.copy_retried()?;
            }
            top.levels.push(top_range);
            swap(nodes, next_nodes);
            swap(references, next_references);
            swap(boxes, next_boxes);
            Ok((totals.nodes, totals.chunks))
        }
    }
}
