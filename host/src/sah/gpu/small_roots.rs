//! Small roots: their memory and references, and the builders of their subtrees.

use super::build_input::{BuildInput, SmallRootViews};
use super::growable_buffer::GrowableBuffer;
use super::small_levels::SmallLevels;
use super::small_warps::SmallWarps;
use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, Source, empty_view};
use crate::primitives::radix_sort::SortBy;
use crate::primitives::segmented_sort;
use crate::sah::options::SahOptions;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::preorder::SubtreeSize;
use kauri_kernels::sah::small_roots::{
    SmallRoot, sah_keep, sah_long_leaves, sah_move_boxes, sah_small_offsets,
};

/// The lists from which the references of new small roots are copied: of the current level, and of the next.
pub(super) struct SourceReferences<'a> {
    pub(super) references: [Slice<'a, u32>; 2],
    /// Boxes by reference; unused unless triangles are clipped.
    pub(super) boxes: [Slice<'a, Aabb>; 2],
}

/// References of all small roots, and their boxes if triangles are clipped.
struct ReferenceList {
    triangles: GrowableBuffer<u32>,
    boxes: GrowableBuffer<Aabb>,
}

impl ReferenceList {
    fn new() -> Self {
        Self {
            triangles: GrowableBuffer::new("triangles of small nodes"),
            boxes: GrowableBuffer::new("boxes of parts of triangles"),
        }
    }

    fn bytes(&self) -> u64 {
        self.triangles.bytes() + self.boxes.bytes()
    }
}

/// The memory of small roots, and those that exist.
pub(super) struct SmallRoots {
    roots: GrowableBuffer<SmallRoot>,
    num_roots: u32,
    /// In nondeterministic order within each root.
    references: ReferenceList,
    num_references: u32,
    /// In the order of triangle ids within each root; used if `is_sorted`.
    sorted: ReferenceList,
    is_sorted: bool,
    /// Whether some roots are overflow leaves, which have more references than a mask has bits.
    has_overflow_leaves: bool,
    sizes: GrowableBuffer<SubtreeSize>,
    /// Positions of subtrees in the tree.
    positions: GrowableBuffer<SubtreeSize>,
    warps: SmallWarps,
    levels: SmallLevels,
    permutation: GrowableBuffer<u32>,
    sorted_permutation: GrowableBuffer<u32>,
    offsets: GrowableBuffer<u64>,
}

impl SmallRoots {
    pub(super) fn new() -> Self {
        Self {
            roots: GrowableBuffer::new("small nodes"),
            num_roots: 0,
            references: ReferenceList::new(),
            num_references: 0,
            sorted: ReferenceList::new(),
            is_sorted: false,
            has_overflow_leaves: false,
            sizes: GrowableBuffer::new("sizes of subtrees"),
            positions: GrowableBuffer::new("sizes of subtrees"),
            warps: SmallWarps::new(),
            levels: SmallLevels::new(),
            permutation: GrowableBuffer::new("triangles of small nodes"),
            sorted_permutation: GrowableBuffer::new("triangles of small nodes"),
            offsets: GrowableBuffer::new("small nodes"),
        }
    }

    /// Returns the bytes that one reference to each triangle takes.
    pub(super) fn min_bytes(num_triangles: usize, options: &SahOptions) -> u64 {
        let boxed = if options.clip { size_of::<Aabb>() } else { 0 };
        (num_triangles * (size_of::<u32>() + boxed)) as u64
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.roots.bytes()
            + self.references.bytes()
            + self.sorted.bytes()
            + self.sizes.bytes()
            + self.positions.bytes()
            + self.warps.bytes()
            + self.levels.bytes()
            + self.permutation.bytes()
            + self.sorted_permutation.bytes()
            + self.offsets.bytes()
    }

    /// Removes all roots, and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.num_roots, self.num_references) = (0, 0);
        (self.is_sorted, self.has_overflow_leaves) = (false, false);
        self.levels.clear();
    }

    /// Returns the number of references of all roots so far.
    pub(super) fn num_references(&self) -> u64 {
        self.num_references.into()
    }

    /// Reserves memory for `num` more roots. Returns the index of the first.
    pub(super) fn reserve_roots(&mut self, stream: &Stream, num: u32) -> Result<u32> {
        self.roots.reserve(stream, (self.num_roots + num) as usize, self.num_roots as usize)?;
        Ok(self.num_roots)
    }

    /// Returns all roots, with the memory that was reserved.
    pub(super) fn roots_mut(&mut self) -> SliceMut<'_, SmallRoot> {
        self.roots.all_mut()
    }

    /// Records that some roots are overflow leaves.
    pub(super) fn set_overflow_leaves(&mut self) {
        self.has_overflow_leaves = true;
    }

    /// Adds the only root, with all references.
    pub(super) fn push_root(
        &mut self,
        stream: &Stream,
        input: &BuildInput<'_>,
        root: SmallRoot,
        source: &SourceReferences<'_>,
    ) -> Result<()> {
        self.reserve_roots(stream, 1)?;
        // SAFETY: the memory is reserved.
        unsafe { stream.upload(self.roots.all_mut().part(0, 1), &[root])? };
        self.append(stream, input, source, 1, root.len)
    }

    /// Adds roots that have been written behind the others, and copies their references.
    pub(super) fn append(
        &mut self,
        stream: &Stream,
        input: &BuildInput<'_>,
        source: &SourceReferences<'_>,
        num_roots: u32,
        num_references: u32,
    ) -> Result<()> {
        let clip = input.options.clip;
        let (old_len, len) = (self.num_references as usize, (self.num_references + num_references) as usize);
        self.references.triangles.reserve(stream, len, old_len)?;
        if clip {
            self.references.boxes.reserve(stream, len, old_len)?;
        }
        if num_roots > 0 {
            // SAFETY: the roots say where their references are, and memory for them is reserved.
            unsafe {
                let end = (self.num_roots + num_roots) as usize;
                let args = (
                    self.roots.first(end).part(self.num_roots as usize, num_roots as usize),
                    source.references[0],
                    source.boxes[0],
                    source.references[1],
                    source.boxes[1],
                    clip.into(),
                    self.references.triangles.all_mut(),
                    if clip { self.references.boxes.all_mut() } else { empty_view() },
                );
                stream.launch_items::<sah_keep>(32 * u64::from(num_roots), args)?;
            }
        }
        self.num_roots += num_roots;
        self.num_references += num_references;
        Ok(())
    }

    /// Builds the subtrees of all roots, as far as their sizes.
    pub(super) fn split(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
    ) -> Result<()> {
        let by_levels = input.options.stages.small_by_levels;
        if by_levels || self.has_overflow_leaves {
            self.sort_references(stream, workspace, input)?;
        }
        let Self { roots, references, sorted, sizes, positions, warps, levels, .. } = self;
        let list = if self.is_sorted { sorted } else { references };
        let small = views(roots, self.num_roots, list, self.num_references, input);
        if by_levels {
            levels.split(stream, workspace, input, small)?;
        }
        let num_nodes = levels.num_nodes(self.num_roots);
        sizes.reserve(stream, num_nodes, 0)?;
        positions.reserve(stream, num_nodes, 0)?;
        // SAFETY: the memory is reserved, and waits for the device before it is freed.
        unsafe {
            if by_levels {
                levels.compute_sizes(stream, small.roots, sizes.all_mut())
            } else {
                warps.split(stream, input.options, small, sizes.all_mut())
            }
        }
    }

    /// Sorts the references of each root by triangle id, so that the tree does not depend on timing.
    fn sort_references(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &BuildInput<'_>,
    ) -> Result<()> {
        let (num_roots, len) = (self.num_roots as usize, self.num_references as usize);
        self.is_sorted = true;
        self.sorted.triangles.reserve(stream, len, 0)?;
        self.offsets.reserve(stream, num_roots + 1, 0)?;
        let by = SortBy::numbers_below(input.corners.len());
        // SAFETY: the buffers have these lengths, and wait for the device before they are freed.
        unsafe {
            let offsets = self.offsets.all_mut().part(0, num_roots + 1);
            let args = (self.roots.first(num_roots), self.num_references, offsets);
            stream.launch_items::<sah_small_offsets>(num_roots as u64 + 1, args)?;
            let keys = self.references.triangles.first(len);
            let sorted_keys = self.sorted.triangles.all_mut().part(0, len);
            if !input.options.clip {
                let (from, to) = (Source::of_keys(keys), Pairs::of_keys(sorted_keys));
                return segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by);
            }
            // Boxes follow their references by a sorted permutation.
            self.permutation.reserve(stream, len, 0)?;
            self.sorted_permutation.reserve(stream, len, 0)?;
            let permutation = self.permutation.all_mut().part(0, len);
            let sorted_permutation = self.sorted_permutation.all_mut().part(0, len);
            iota_on(stream, 0, permutation)?;
            let from = Source { keys, values: permutation.read_only() };
            let to = Pairs { keys: sorted_keys, values: sorted_permutation };
            segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by)?;
            self.sorted.boxes.reserve(stream, len, 0)?;
            let boxes = self.references.boxes.first(len);
            let args = (sorted_permutation.read_only(), boxes, self.sorted.boxes.all_mut().part(0, len));
            stream.launch_items::<sah_move_boxes>(len as u64, args)
        }
    }

    /// Returns the number of nodes with a size: the roots, and the nodes that were split level by level.
    fn num_nodes(&self) -> usize {
        self.levels.num_nodes(self.num_roots)
    }

    /// Returns the sizes of subtrees, those of roots first.
    pub(super) fn sizes(&self) -> Slice<'_, SubtreeSize> {
        self.sizes.first(self.num_nodes())
    }

    /// Returns the sizes of subtrees and their positions in the tree, those of roots first.
    pub(super) fn sizes_and_positions(&mut self) -> (Slice<'_, SubtreeSize>, SliceMut<'_, SubtreeSize>) {
        let num_nodes = self.num_nodes();
        (self.sizes.first(num_nodes), self.positions.all_mut())
    }

    /// Writes nodes and references to the tree.
    ///
    /// # Safety
    /// The positions of the roots are known, and the tree has as much memory as the sizes say.
    pub(super) unsafe fn write(
        &mut self,
        stream: &Stream,
        input: &BuildInput<'_>,
        nodes: SliceMut<'_, u64>,
        references: SliceMut<'_, u32>,
    ) -> Result<()> {
        let (num_roots, num_nodes) = (self.num_roots as usize, self.num_nodes());
        let list = if self.is_sorted { &self.sorted } else { &self.references };
        let small = views(&self.roots, self.num_roots, list, self.num_references, input);
        let (sizes, positions) = (self.sizes.first(num_nodes), self.positions.all_mut());
        // SAFETY: passed on to the caller.
        unsafe {
            let root_positions = positions.read_only().part(0, num_roots);
            let output = (nodes, references);
            if input.options.stages.small_by_levels {
                self.levels.write(stream, small, (sizes, positions), output)?;
            } else {
                self.warps.write(stream, input.options, small, (sizes, root_positions), output)?;
            }
            if !self.has_overflow_leaves {
                return Ok(());
            }
            let args = (small.roots, small.references, root_positions, references);
            stream.launch::<sah_long_leaves>(num_roots as u64, args)
        }
    }
}

/// Returns views of the roots and their references.
fn views<'a>(
    roots: &'a GrowableBuffer<SmallRoot>,
    num_roots: u32,
    list: &'a ReferenceList,
    num_references: u32,
    input: &BuildInput<'a>,
) -> SmallRootViews<'a> {
    let len = num_references as usize;
    SmallRootViews {
        roots: roots.first(num_roots as usize),
        references: list.triangles.first(len),
        boxes: if input.options.clip { list.boxes.first(len) } else { input.boxes },
    }
}
