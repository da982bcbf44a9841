//! Subtrees of small roots, level by level with masks in device memory.

use super::build_input::{BuildInput, SmallRootViews};
use super::growable_buffer::GrowableBuffer;
use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::sah::host_tree::check_size;
use crate::sah::options::SahOptions;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::candidates::NUM_CANDIDATES;
use kauri_kernels::sah::node::MAX_NODES;
use kauri_kernels::sah::preorder::SubtreeSize;
use kauri_kernels::sah::small_levels::{
    RECORDS, SEPARATE_ARRAYS, SmallNode, sah_candidates, sah_small_nodes, sah_small_sizes, sah_small_splits,
    sah_small_write,
};
use kauri_kernels::sah::small_roots::SmallRoot;
use kauri_kernels::thread::words::Bits128;
use std::ops::Range;

/// Bytes of a candidate: its plane, and two masks.
const CANDIDATE_BYTES: usize = 20;

/// The memory of small nodes, and those that exist.
pub(super) struct SmallLevels {
    nodes: GrowableBuffer<SmallNode>,
    splits: GrowableBuffer<u64>,
    /// The nodes of each level of each batch of roots, in the order in which they were split.
    levels: Vec<Range<u32>>,
}

/// The candidates of a batch of roots, in separate arrays or as records.
struct Candidates {
    planes: Region<f32>,
    sides: Region<Bits128>,
    records: Region<u32>,
    /// Counter of all small nodes.
    num_nodes: Region<u32>,
}

impl Candidates {
    fn plan(layout: &mut Layout, num_roots: usize, options: &SahOptions) -> Self {
        let num = num_roots * NUM_CANDIDATES as usize;
        let (separate, records) = if options.stages.records { (0, num) } else { (num, 0) };
        Self {
            planes: layout.reserve(separate),
            sides: layout.reserve(separate),
            records: layout.reserve(5 * records),
            num_nodes: layout.reserve(1),
        }
    }
}

impl SmallLevels {
    pub(super) fn new() -> Self {
        Self {
            nodes: GrowableBuffer::new("small nodes"),
            splits: GrowableBuffer::new("small nodes"),
            levels: Vec::new(),
        }
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.nodes.bytes() + self.splits.bytes()
    }

    /// Removes all nodes, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.levels.clear();
    }

    /// Returns the number of small nodes so far, roots included.
    pub(super) fn num_nodes(&self, num_roots: u32) -> usize {
        self.levels.iter().map(|level| level.end as usize).fold(num_roots as usize, usize::max)
    }

    /// Splits roots and the nodes below them, batch by batch and level by level.
    pub(super) fn split(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
        small: SmallRootViews<'_>,
    ) -> Result<()> {
        let num_roots = small.roots.len();
        let root_bytes = NUM_CANDIDATES as usize * CANDIDATE_BYTES;
        let batch = (input.options.stages.candidate_bytes / root_bytes).clamp(1, num_roots);
        self.reserve(stream, num_roots, 0, 0)?;
        let mut layout = Layout::new();
        let candidates = Candidates::plan(&mut layout, batch, input.options);
        let temp = workspace.carve(stream, &layout, "candidates of small nodes")?;
        temp.upload(stream, temp.view(candidates.num_nodes), &[num_roots as u32])?;
        // SAFETY: the memory is reserved, and waits for the device before it is freed.
        unsafe {
            stream.launch_items::<sah_small_nodes>(num_roots as u64, (small.roots, self.nodes.all_mut()))?;
            // The splits of later batches are copied whenever the buffer grows, so they must be defined.
            stream.fill_bytes(self.splits.all_mut().part(0, num_roots), 0)?;
        }
        for first in (0..num_roots as u32).step_by(batch) {
            let roots = first..(num_roots as u32).min(first + batch as u32);
            self.split_batch(stream, &temp, &candidates, input.options, small, roots)?;
        }
        Ok(())
    }

    /// Splits the roots of a batch and the nodes below them.
    fn split_batch(
        &mut self,
        stream: &Stream,
        temp: &Temp<'_>,
        candidates: &Candidates,
        options: &SahOptions,
        small: SmallRootViews<'_>,
        roots: Range<u32>,
    ) -> Result<()> {
        let (planes, sides) = (temp.view(candidates.planes), temp.view(candidates.sides));
        let (records, num_nodes) = (temp.view(candidates.records), temp.view(candidates.num_nodes));
        let first_root = roots.start;
        // SAFETY: the memory is planned and reserved, and waits for the device before it is freed.
        unsafe {
            let SmallRootViews { roots: all_roots, references, boxes } = small;
            let clip = options.clip.into();
            let args = (all_roots, first_root, references, boxes, clip, planes, sides, records);
            let num_blocks = u64::from(roots.end - roots.start);
            if options.stages.records {
                stream.launch::<sah_candidates<RECORDS>>(num_blocks, args)?;
            } else {
                stream.launch::<sah_candidates<SEPARATE_ARRAYS>>(num_blocks, args)?;
            }
            let (mut level, mut end) = (roots, stream.read(num_nodes.read_only())?[0]);
            while !level.is_empty() {
                let num = level.end - level.start;
                let num_split = self.num_nodes(all_roots.len() as u32);
                self.reserve(stream, end as usize + 2 * num as usize, end as usize, num_split)?;
                let args = (
                    level.start,
                    level.end,
                    first_root,
                    options.step_cost,
                    planes,
                    sides,
                    records,
                    self.nodes.all_mut(),
                    self.splits.all_mut(),
                    num_nodes,
                );
                let num_threads = 32 * u64::from(num);
                if options.stages.records {
                    stream.launch_items::<sah_small_splits<RECORDS>>(num_threads, args)?;
                } else {
                    stream.launch_items::<sah_small_splits<SEPARATE_ARRAYS>>(num_threads, args)?;
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
        self.nodes.reserve(stream, num, num_kept)?;
        self.splits.reserve(stream, num, num_split)
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
        let num_nodes = self.num_nodes(roots.len() as u32);
        debug_assert!((num_nodes as u64) <= MAX_NODES);
        for level in self.levels.iter().rev() {
            let args = (level.start, level.end, roots, self.splits.first(num_nodes), sizes);
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<sah_small_sizes>(level.len() as u64, args)? };
        }
        Ok(())
    }

    /// Writes all subtrees to the tree, from the roots down.
    ///
    /// # Safety
    /// As [`compute_sizes`](Self::compute_sizes); the tree has as much memory as the sizes say.
    pub(super) unsafe fn write(
        &self,
        stream: &Stream,
        small: SmallRootViews<'_>,
        (sizes, positions): (Slice<'_, SubtreeSize>, SliceMut<'_, SubtreeSize>),
        (nodes, references): (SliceMut<'_, u64>, SliceMut<'_, u32>),
    ) -> Result<()> {
        let num_nodes = self.num_nodes(small.roots.len() as u32);
        for level in &self.levels {
            let args = (
                level.start,
                level.end,
                small.roots,
                small.references,
                self.nodes.first(num_nodes),
                self.splits.first(num_nodes),
                sizes,
                positions,
                nodes,
                references,
            );
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<sah_small_write>(level.len() as u64, args)? };
        }
        Ok(())
    }
}
