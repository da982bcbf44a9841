//! Small roots: their memory and references, and the subtrees below them.

use super::build_input::{BOXES, BuildInput, ReferenceBuffers, TRIANGLES};
#[cfg(feature = "research")]
use super::small_levels::SmallLevels;
use super::small_warps;
use super::subtrees::Subtrees;
use crate::device::GrowableBuffer;
use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::radix_sort::SortBy;
use crate::primitives::segmented_sort;
use crate::sah::options::SahOptions;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::sah::chunks::ReferenceList;
use kauri_kernels::sah::preorder::TreeMut;
use kauri_kernels::sah::small_roots::{
    self as kernels, SmallRoot, sah_keep, sah_long_leaves, sah_small_offsets,
};
use kauri_kernels::sah::small_warps::DECISIONS;

/// The memory of small roots, and those that exist.
#[derive(Default)]
pub(super) struct SmallRoots {
    pub(super) roots: GrowableBuffer<SmallRoot>,
    num_roots: u32,
    /// In nondeterministic order within each root.
    references: ReferenceBuffers,
    pub(super) num_references: u32,
    /// In the order of triangle ids within each root; used if `is_sorted`.
    sorted: ReferenceBuffers,
    is_sorted: bool,
    /// Whether some roots are overflow leaves, which have more references than a mask has bits.
    pub(super) has_overflow_leaves: bool,
    offsets: GrowableBuffer<u64>,
    /// Unsorted, and sorted.
    permutations: [GrowableBuffer<u32>; 2],
    #[cfg(feature = "research")]
    levels: SmallLevels,
}

impl SmallRoots {
    /// Returns the bytes that one reference to each triangle takes.
    pub(super) fn min_bytes(num_triangles: usize, options: &SahOptions) -> u64 {
        let boxed = if options.clip { size_of::<Aabb>() } else { 0 };
        (num_triangles * (size_of::<u32>() + boxed)) as u64
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = self.roots.bytes()
            + self.references.bytes()
            + self.sorted.bytes()
            + self.offsets.bytes()
            + self.permutations.iter().map(GrowableBuffer::bytes).sum::<u64>();
        #[cfg(feature = "research")]
        let bytes = bytes + self.levels.bytes();
        bytes
    }

    /// Removes all roots, and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.num_roots, self.num_references) = (0, 0);
        (self.is_sorted, self.has_overflow_leaves) = (false, false);
    }

    /// Reserves memory for `num` more roots. Returns the index of the first.
    pub(super) fn reserve_roots(&mut self, stream: &Stream, num: u32) -> Result<u32> {
        let len = (self.num_roots + num) as usize;
        self.roots.grow(stream, len, self.num_roots as usize, "small nodes")?;
        Ok(self.num_roots)
    }

    /// Adds the only root, with all references.
    pub(super) fn push_root(
        &mut self,
        input: &BuildInput<'_>,
        root: SmallRoot,
        list: ReferenceList<'_>,
    ) -> Result<()> {
        self.reserve_roots(input.stream, 1)?;
        // SAFETY: the memory is reserved.
        unsafe { input.stream.upload(self.roots.view_mut().part(0, 1), &[root])? };
        self.append(input, [list; 2], 1, root.len)
    }

    /// Adds roots that have been written behind the others, and copies their references from the lists of the current level
    /// and of the next.
    pub(super) fn append(
        &mut self,
        input: &BuildInput<'_>,
        [current, next]: [ReferenceList<'_>; 2],
        num_roots: u32,
        num_references: u32,
    ) -> Result<()> {
        let len = (self.num_references + num_references) as usize;
        self.references.grow(input, len, self.num_references as usize)?;
        if num_roots > 0 {
            let end = (self.num_roots + num_roots) as usize;
            // SAFETY: the roots say where their references are, and memory for them is reserved.
            unsafe {
                let new = self.roots.first(end).part(self.num_roots as usize, num_roots as usize);
                let args = (new, current, next, self.references.list_mut(input));
                input.stream.launch_items::<sah_keep>(32 * u64::from(num_roots), args)?;
            }
        }
        self.num_roots += num_roots;
        self.num_references += num_references;
        Ok(())
    }

    /// Prepares the roots for [`split`](Self::split). Returns the number of nodes that need a size and a position, and the number
    /// of decisions that are recorded.
    pub(super) fn prepare(
        &mut self,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
    ) -> Result<[usize; 2]> {
        #[cfg(feature = "research")]
        if input.options.stages.small_by_levels {
            self.sort_references(workspace, input)?;
            let mut levels = std::mem::take(&mut self.levels);
            let num_nodes = levels.split(workspace, input, self.views(input));
            self.levels = levels;
            return Ok([num_nodes?, 0]);
        }
        if self.has_overflow_leaves {
            self.sort_references(workspace, input)?;
        }
        let num_roots = self.num_roots as usize;
        Ok([num_roots, num_roots * DECISIONS])
    }

    /// Computes the sizes of the roots' subtrees.
    ///
    /// # Safety
    /// The views have the [prepared](Self::prepare) lengths; nothing else uses them until the stream has done the work.
    pub(super) unsafe fn split(&self, input: &BuildInput<'_>, subtrees: &Subtrees<'_>) -> Result<()> {
        let small = self.views(input);
        // SAFETY: passed on to the caller.
        unsafe {
            #[cfg(feature = "research")]
            if input.options.stages.small_by_levels {
                return self.levels.compute_sizes(input.stream, small.roots, subtrees.small_sizes);
            }
            small_warps::compute_sizes(input, small, subtrees)
        }
    }

    /// Sorts the references of each root by triangle id, so that the tree does not depend on timing.
    fn sort_references(&mut self, workspace: &mut Workspace, input: &BuildInput<'_>) -> Result<()> {
        let (num_roots, len) = (self.num_roots as usize, self.num_references as usize);
        let stream = input.stream;
        self.is_sorted = true;
        self.sorted.triangles.reserve(stream, len, TRIANGLES)?;
        self.offsets.reserve(stream, num_roots + 1, "small nodes")?;
        let by = SortBy::numbers_below(input.corners.len());
        // SAFETY: the buffers have these lengths, and wait for the device before they are freed.
        unsafe {
            let offsets = self.offsets.view_mut();
            let args = (self.roots.first(num_roots), self.num_references, offsets);
            stream.launch_items::<sah_small_offsets>(num_roots as u64 + 1, args)?;
            let keys = self.references.triangles.view();
            let sorted_keys = self.sorted.triangles.view_mut();
            if !input.options.clip {
                let (from, to) = (Source::of_keys(keys), Pairs::of_keys(sorted_keys));
                return segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by);
            }
            // Boxes follow their references by a sorted permutation.
            for permutation in &mut self.permutations {
                permutation.reserve(stream, len, TRIANGLES)?;
            }
            let [unsorted, sorted] = self.permutations.each_mut().map(GrowableBuffer::view_mut);
            iota_on(stream, 0, unsorted)?;
            let from = Source { keys, values: unsorted.read_only() };
            let to = Pairs { keys: sorted_keys, values: sorted };
            segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by)?;
            self.sorted.boxes.reserve(stream, len, BOXES)?;
            let (boxes, to) = (self.references.boxes.view(), self.sorted.boxes.view_mut());
            permute_parts(stream, Direction::Gather, 1, boxes, sorted.read_only(), to)
        }
    }

    /// Writes the roots' subtrees to the tree.
    ///
    /// # Safety
    /// The positions of the roots are known, and the tree has as much memory as the sizes say.
    pub(super) unsafe fn write(
        &self,
        input: &BuildInput<'_>,
        subtrees: &Subtrees<'_>,
        tree: TreeMut<'_>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.write_subtrees(input, subtrees, tree)?;
            if !self.has_overflow_leaves {
                return Ok(());
            }
            let (small, positions) = (self.views(input), subtrees.small_positions.read_only());
            let args = (small.roots, small.list.triangles, positions, tree.references);
            input.stream.launch::<sah_long_leaves>(self.num_roots.into(), args)
        }
    }

    /// Writes the roots' subtrees without the references of overflow leaves.
    ///
    /// # Safety
    /// As [`write`](Self::write).
    unsafe fn write_subtrees(
        &self,
        input: &BuildInput<'_>,
        subtrees: &Subtrees<'_>,
        tree: TreeMut<'_>,
    ) -> Result<()> {
        let small = self.views(input);
        // SAFETY: passed on to the caller.
        unsafe {
            #[cfg(feature = "research")]
            if input.options.stages.small_by_levels {
                let (sizes, positions) = (subtrees.small_sizes.read_only(), subtrees.small_positions);
                return self.levels.write(input.stream, small, sizes, positions, tree);
            }
            small_warps::write(input, small, subtrees, tree)
        }
    }

    /// Returns views of the roots and their references.
    fn views<'a>(&'a self, input: &BuildInput<'a>) -> kernels::SmallRoots<'a> {
        let list = if self.is_sorted { &self.sorted } else { &self.references };
        kernels::SmallRoots { roots: self.roots.first(self.num_roots as usize), list: list.list(input) }
    }
}
