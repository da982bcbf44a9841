//! Subtrees of small roots, level by level with masks in device memory.

use super::build_input::BuildInput;
use crate::device::GrowableBuffer;
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use crate::sah::host_tree::check_size;
use crate::sah::variants::CandidateLayout;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::candidates::NUM_CANDIDATES;
use kauri_kernels::sah::preorder::{SubtreeSize, TreeMut};
use kauri_kernels::sah::small_levels::{
    Candidates, READ_ONLY_MASKS, RECORDS, SEPARATE_ARRAYS, SmallNode, SmallNodesMut, sah_candidates,
    sah_small_nodes, sah_small_sizes, sah_small_splits, sah_small_write,
};
use kauri_kernels::sah::small_roots::{SmallRoot, SmallRoots};
use std::ops::Range;

/// Words of a candidate: its plane, and two masks.
const CANDIDATE_WORDS: usize = 5;

/// The memory of small nodes, and those that exist.
#[derive(Default)]
pub(super) struct SmallLevels {
    nodes: GrowableBuffer<SmallNode>,
    splits: GrowableBuffer<u64>,
    /// The nodes of each level of each batch of roots, in the order in which they were split.
    levels: Vec<Range<u32>>,
}

/// The candidates of a batch of roots, and the counter of all small nodes.
#[derive(Clone, Copy)]
struct Batch<'a> {
    candidates: Candidates<'a>,
    num_nodes: SliceMut<'a, u32>,
}

impl SmallLevels {
    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.nodes.bytes() + self.splits.bytes()
    }

    /// Returns the number of small nodes so far, roots included.
    fn num_nodes(&self, num_roots: usize) -> usize {
        self.levels.iter().map(|level| level.end as usize).fold(num_roots, usize::max)
    }

    /// Splits roots and the nodes below them, batch by batch and level by level. Returns the number of nodes, roots included.
    pub(super) fn split(
        &mut self,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
        small: SmallRoots<'_>,
    ) -> Result<usize> {
        let (stream, stages, num_roots) = (input.stream, input.options.stages, small.roots.len());
        self.levels.clear();
        let root_bytes = NUM_CANDIDATES as usize * CANDIDATE_WORDS * size_of::<u32>();
        let batch = (stages.candidate_bytes / root_bytes).clamp(1, num_roots);
        self.reserve(stream, num_roots, 0, 0)?;
        let (num_candidates, mut layout) = (batch * NUM_CANDIDATES as usize, Layout::new());
        let (separate, records) = if stages.candidates == CandidateLayout::Records {
            (0, num_candidates)
        } else {
            (num_candidates, 0)
        };
        let (planes, sides) = (layout.reserve(separate), layout.reserve(separate));
        let (records, num_nodes) = (layout.reserve(CANDIDATE_WORDS * records), layout.reserve(1));
        let temp = workspace.carve(stream, &layout, "candidates of small nodes")?;
        let candidates =
            Candidates { planes: temp.view(planes), sides: temp.view(sides), records: temp.view(records) };
        let memory = Batch { candidates, num_nodes: temp.view(num_nodes) };
        temp.upload(memory.num_nodes, &[num_roots as u32])?;
        // SAFETY: the memory is reserved, and waits for the device before it is freed.
        unsafe {
            stream.launch_items::<sah_small_nodes>(num_roots as u64, (small.roots, self.nodes.view_mut()))?;
            // The splits of later batches are copied whenever the buffer grows, so they must be defined.
            stream.fill_bytes(self.splits.view_mut(), 0)?;
        }
        for first in (0..num_roots as u32).step_by(batch) {
            let roots = first..(num_roots as u32).min(first + batch as u32);
            self.split_batch(input, memory, small, roots)?;
        }
        Ok(self.num_nodes(num_roots))
    }

    /// Splits the roots of a batch and the nodes below them.
    fn split_batch(
        &mut self,
        input: &BuildInput<'_>,
        Batch { candidates, num_nodes }: Batch<'_>,
        small: SmallRoots<'_>,
        roots: Range<u32>,
    ) -> Result<()> {
        let (stream, first_root, layout) = (input.stream, roots.start, input.options.stages.candidates);
        // SAFETY: the memory is planned and reserved, and waits for the device before it is freed.
        unsafe {
            let (num_blocks, args) = (roots.len() as u64, (small, first_root, candidates));
            match layout {
                CandidateLayout::Records => stream.launch::<sah_candidates<RECORDS>>(num_blocks, args)?,
                _ => stream.launch::<sah_candidates<SEPARATE_ARRAYS>>(num_blocks, args)?,
            }
            let (mut level, mut end) = (roots, stream.read(num_nodes.read_only())?[0]);
            while !level.is_empty() {
                let num_split = self.num_nodes(small.roots.len());
                self.reserve(stream, end as usize + 2 * level.len(), end as usize, num_split)?;
                let all =
                    SmallNodesMut { nodes: self.nodes.view_mut(), splits: self.splits.view_mut(), num_nodes };
                let step_cost = input.options.step_cost;
                let args = (level.start, level.end, first_root, step_cost, candidates, all);
                let num_threads = 32 * level.len() as u64;
                match layout {
                    CandidateLayout::Arrays => {
                        stream.launch_items::<sah_small_splits<SEPARATE_ARRAYS>>(num_threads, args)?;
                    }
                    CandidateLayout::ReadOnlyMasks => {
                        stream.launch_items::<sah_small_splits<READ_ONLY_MASKS>>(num_threads, args)?;
                    }
                    CandidateLayout::Records => {
                        stream.launch_items::<sah_small_splits<RECORDS>>(num_threads, args)?;
                    }
                }
                self.levels.push(level);
                level = end..stream.read(num_nodes.read_only())?[0];
                end = level.end;
            }
            Ok(())
        }
    }

    /// Reserves memory for `num` nodes. The first `num_kept` nodes and the first `num_split` splits stay.
    fn reserve(&mut self, stream: &Stream, num: usize, num_kept: usize, num_split: usize) -> Result<()> {
        check_size(num as u64, 0)?;
        self.nodes.grow(stream, num, num_kept, "small nodes")?;
        self.splits.grow(stream, num, num_split, "small nodes")
    }

    /// Computes the sizes of all subtrees, from the last level up.
    ///
    /// # Safety
    /// `sizes` has an element for each node; nothing else uses the memory until the stream has done the work.
    pub(super) unsafe fn compute_sizes(
        &self,
        stream: &Stream,
        roots: Slice<'_, SmallRoot>,
        sizes: SliceMut<'_, SubtreeSize>,
    ) -> Result<()> {
        self.levels.iter().rev().try_for_each(|level| {
            let args = (level.start, level.end, roots, self.splits.view(), sizes);
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<sah_small_sizes>(level.len() as u64, args) }
        })
    }

    /// Writes all subtrees to the tree, from the roots down.
    ///
    /// # Safety
    /// As [`compute_sizes`](Self::compute_sizes); the tree has as much memory as the sizes say.
    pub(super) unsafe fn write(
        &self,
        stream: &Stream,
        small: SmallRoots<'_>,
        sizes: Slice<'_, SubtreeSize>,
        positions: SliceMut<'_, SubtreeSize>,
        tree: TreeMut<'_>,
    ) -> Result<()> {
        self.levels.iter().try_for_each(|level| {
            let (nodes, splits) = (self.nodes.view(), self.splits.view());
            let args = (level.start, level.end, small, nodes, splits, sizes, positions, tree);
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<sah_small_write>(level.len() as u64, args) }
        })
    }
}
