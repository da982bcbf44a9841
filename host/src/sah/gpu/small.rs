//! Small roots, and what is below them: a warp a root, or level by level.

use super::super::host::check_size;
use super::Triangles;
use super::room::Room;
use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, Source, empty_view};
use crate::primitives::radix_sort::SortBy;
use crate::primitives::segmented_sort;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::levels::{SmallRoot, sah_keep};
use kauri_kernels::sah::node::MAX_NODES;
use kauri_kernels::sah::small::NUM_CANDIDATES;
use kauri_kernels::sah::subtrees::{
    APART, Size, Small, TOGETHER, sah_candidates, sah_long_leaves, sah_move_boxes, sah_small_nodes,
    sah_small_offsets, sah_small_sizes, sah_small_splits, sah_small_write,
};
use kauri_kernels::sah::warps::{DECISIONS, sah_root_sizes, sah_root_write};
use kauri_kernels::thread::words::Bits128;
use std::ops::Range;

/// Bytes of a candidate: its plane, and two masks.
const CANDIDATE_BYTES: usize = 20;

/// The memory of small nodes, and those that there are.
pub(super) struct SmallNodes {
    roots: Room<SmallRoot>,
    num_roots: u32,
    /// The triangles of all roots, and the boxes of their parts if they are clipped; then the same in the order of numbers.
    kept: [Room<u32>; 2],
    boxes: [Room<Aabb>; 2],
    num_kept: u32,
    nodes: Room<Small>,
    splits: Room<u64>,
    sizes: Room<Size>,
    places: Room<Size>,
    /// Nodes of one level of one batch, in the order in which they were split.
    levels: Vec<Range<u32>>,
    /// What was decided about the first nodes of each root, where they are not split by levels.
    decisions: Room<u16>,
    /// Whether there are roots with more triangles than have bits.
    any_long: bool,
    /// Which of the lists has the triangles in order.
    sorted: usize,
    from: Room<u32>,
    sorted_from: Room<u32>,
    offsets: Room<u64>,
}

/// Candidates of a batch of roots.
struct Candidates {
    planes: Region<f32>,
    sides: Region<Bits128>,
    records: Region<u32>,
    num_nodes: Region<u32>,
}

impl SmallNodes {
    pub(super) fn new() -> Self {
        Self {
            roots: Room::new("small nodes"),
            num_roots: 0,
            kept: [Room::new("triangles of small nodes"), Room::new("triangles of small nodes")],
            boxes: [Room::new("boxes of parts of triangles"), Room::new("boxes of parts of triangles")],
            num_kept: 0,
            nodes: Room::new("small nodes"),
            splits: Room::new("small nodes"),
            sizes: Room::new("sizes of subtrees"),
            places: Room::new("sizes of subtrees"),
            levels: Vec::new(),
            decisions: Room::new("small nodes"),
            any_long: false,
            sorted: 0,
            from: Room::new("triangles of small nodes"),
            sorted_from: Room::new("triangles of small nodes"),
            offsets: Room::new("small nodes"),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let lists = self.kept.iter().map(Room::bytes).chain(self.boxes.iter().map(Room::bytes));
        lists.sum::<u64>()
            + self.roots.bytes()
            + self.nodes.bytes()
            + self.splits.bytes()
            + self.sizes.bytes()
            + self.places.bytes()
            + self.decisions.bytes()
            + self.from.bytes()
            + self.sorted_from.bytes()
            + self.offsets.bytes()
    }

    /// There are none.
    pub(super) fn clear(&mut self) {
        (self.num_roots, self.num_kept, self.any_long, self.sorted) = (0, 0, false, 0);
        self.levels.clear();
    }

    /// Triangles of all roots so far.
    pub(super) fn num_kept(&self) -> u64 {
        self.num_kept.into()
    }

    /// Room for more roots; the number of the first.
    pub(super) fn reserve_roots(&mut self, stream: &Stream, num: u32) -> Result<u32> {
        self.roots.reserve(stream, (self.num_roots + num) as usize, self.num_roots as usize)?;
        Ok(self.num_roots)
    }

    /// Room for so many more triangles of roots.
    pub(super) fn reserve_kept(&mut self, stream: &Stream, num: u32, clip: bool) -> Result<()> {
        let kept = self.num_kept as usize;
        self.kept[0].reserve(stream, kept + num as usize, kept)?;
        if clip {
            self.boxes[0].reserve(stream, kept + num as usize, kept)?;
        }
        Ok(())
    }

    /// The roots, with room for what was reserved.
    pub(super) fn roots_mut(&mut self) -> SliceMut<'_, SmallRoot> {
        self.roots.all_mut()
    }

    /// Takes the only root, with all triangles.
    pub(super) fn only(
        &mut self,
        stream: &Stream,
        root: SmallRoot,
        input: &Triangles<'_>,
        listed: Slice<'_, u32>,
    ) -> Result<()> {
        self.reserve_roots(stream, 1)?;
        self.reserve_kept(stream, root.len, input.options.clip)?;
        // SAFETY: there is room for one.
        unsafe { stream.upload(self.roots.all_mut().part(0, 1), &[root])? };
        let lists = [listed, empty_view().read_only()];
        self.keep(stream, input, lists, [input.boxes, empty_view().read_only()], 1, root.len)
    }

    /// Takes the triangles of roots that have been written behind the others, and of their boxes if these are clipped.
    pub(super) fn keep(
        &mut self,
        stream: &Stream,
        input: &Triangles<'_>,
        [listed, next_listed]: [Slice<'_, u32>; 2],
        [boxes, next_boxes]: [Slice<'_, Aabb>; 2],
        num: u32,
        of_them: u32,
    ) -> Result<()> {
        let clip = input.options.clip;
        if num > 0 {
            // SAFETY: roots say where their triangles are, and there is room for them.
            unsafe {
                let kept_boxes = if clip { self.boxes[0].all_mut() } else { empty_view() };
                let end = self.num_roots + num;
                let roots = self.roots.first(end as usize).part(self.num_roots as usize, num as usize);
                let args = (
                    roots,
                    listed,
                    boxes,
                    next_listed,
                    next_boxes,
                    clip.into(),
                    self.kept[0].all_mut(),
                    kept_boxes,
                );
                stream.launch_items::<sah_keep>(32 * u64::from(num), args)?;
            }
        }
        self.num_roots += num;
        self.num_kept += of_them;
        Ok(())
    }

    /// There are roots with more triangles than have bits.
    pub(super) fn has_long(&mut self) {
        self.any_long = true;
    }

    /// Splits all roots, until it costs no less, and finds the sizes of their subtrees.
    pub(super) fn split(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &Triangles<'_>,
    ) -> Result<()> {
        let by_levels = input.options.stages.small_by_levels;
        if by_levels || self.any_long {
            self.sort(stream, workspace, input)?;
        }
        if by_levels {
            self.split_by_levels(stream, workspace, input)?;
            return self.find_sizes(stream);
        }
        let (num_roots, num_kept) = (self.num_roots as usize, self.num_kept as usize);
        self.sizes.reserve(stream, num_roots, 0)?;
        self.places.reserve(stream, num_roots, 0)?;
        self.decisions.reserve(stream, num_roots * DECISIONS, 0)?;
        let (clip, sorted) = (input.options.clip, self.sorted);
        // SAFETY: memory as reserved, which waits for the device before it is freed.
        unsafe {
            let boxes = if clip { self.boxes[sorted].first(num_kept) } else { input.boxes };
            let args = (
                self.roots.first(num_roots),
                self.kept[sorted].first(num_kept),
                boxes,
                clip.into(),
                input.options.step_cost,
                self.decisions.all_mut(),
                self.sizes.all_mut(),
            );
            stream.launch_items::<sah_root_sizes>(32 * num_roots as u64, args)
        }
    }

    /// Splits all roots, and what becomes of them, level by level.
    fn split_by_levels(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &Triangles<'_>,
    ) -> Result<()> {
        let stages = &input.options.stages;
        let bytes = NUM_CANDIDATES as usize * CANDIDATE_BYTES;
        let batch = (stages.candidate_bytes / bytes).clamp(1, self.num_roots as usize) as u32;
        let num_roots = self.num_roots as usize;
        self.reserve_nodes(stream, num_roots, 0, 0)?;
        let mut layout = Layout::new();
        let num = batch as usize * NUM_CANDIDATES as usize;
        let (apart, together) = if stages.records { (0, num) } else { (num, 0) };
        let candidates = Candidates {
            planes: layout.reserve(apart),
            sides: layout.reserve(apart),
            records: layout.reserve(5 * together),
            num_nodes: layout.reserve(1),
        };
        let temp = workspace.carve(stream, &layout, "candidates of small nodes")?;
        temp.upload(stream, temp.view(candidates.num_nodes), &[self.num_roots])?;
        // SAFETY: there are so many roots.
        unsafe {
            let args = (self.roots.first(num_roots), self.nodes.all_mut());
            stream.launch_items::<sah_small_nodes>(num_roots as u64, args)?;
            // Those of later batches move with the ones before whenever there is more room.
            stream.fill_bytes(self.splits.all_mut().part(0, num_roots), 0)?;
        }
        for first in (0..self.num_roots).step_by(batch as usize) {
            let roots = first..self.num_roots.min(first + batch);
            self.split_batch(stream, &temp, &candidates, input, roots)?;
        }
        Ok(())
    }

    /// Puts the triangles of each root in the order of their numbers, so that the tree does not depend on timing.
    fn sort(&mut self, stream: &Stream, workspace: &mut Workspace, input: &Triangles<'_>) -> Result<()> {
        let (num_roots, num) = (self.num_roots as usize, self.num_kept as usize);
        let clip = input.options.clip;
        self.sorted = 1;
        self.kept[1].reserve(stream, num, 0)?;
        self.offsets.reserve(stream, num_roots + 1, 0)?;
        let by = SortBy::numbers_below(input.corners.len());
        let [kept, sorted] = &mut self.kept;
        // SAFETY: of these lengths, and they wait for the device before they are freed.
        unsafe {
            let offsets = self.offsets.all_mut().part(0, num_roots + 1);
            let args = (self.roots.first(num_roots), self.num_kept, offsets);
            stream.launch_items::<sah_small_offsets>(num_roots as u64 + 1, args)?;
            let (keys, to) = (kept.first(num), sorted.all_mut().part(0, num));
            if !clip {
                let (from, to) = (Source::of_keys(keys), Pairs::of_keys(to));
                return segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by);
            }
            self.from.reserve(stream, num, 0)?;
            self.sorted_from.reserve(stream, num, 0)?;
            let (from, sorted_from) =
                (self.from.all_mut().part(0, num), self.sorted_from.all_mut().part(0, num));
            iota_on(stream, 0, from)?;
            let from = Source { keys, values: from.read_only() };
            let to = Pairs { keys: to, values: sorted_from };
            segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by)?;
            self.boxes[1].reserve(stream, num, 0)?;
            let [boxes, sorted] = &mut self.boxes;
            let args = (sorted_from.read_only(), boxes.first(num), sorted.all_mut().part(0, num));
            stream.launch_items::<sah_move_boxes>(num as u64, args)
        }
    }

    /// Room for so many nodes. The first `kept` stay, and how the first `split` are split.
    fn reserve_nodes(&mut self, stream: &Stream, num: usize, kept: usize, split: usize) -> Result<()> {
        check_size(num as u64, 0)?;
        self.nodes.reserve(stream, num, kept)?;
        self.splits.reserve(stream, num, split)
    }

    /// Splits some roots.
    fn split_batch(
        &mut self,
        stream: &Stream,
        temp: &Temp<'_>,
        candidates: &Candidates,
        input: &Triangles<'_>,
        roots: Range<u32>,
    ) -> Result<()> {
        let options = input.options;
        let (planes, sides) = (temp.view(candidates.planes), temp.view(candidates.sides));
        let (records, num_nodes) = (temp.view(candidates.records), temp.view(candidates.num_nodes));
        let (all_roots, num_kept) = (self.num_roots as usize, self.num_kept as usize);
        let first_root = roots.start;
        // SAFETY: memory as planned and reserved, which waits for the device before it is freed.
        unsafe {
            let boxes = if options.clip { self.boxes[1].first(num_kept) } else { input.boxes };
            let args = (
                self.roots.first(all_roots),
                first_root,
                self.kept[1].first(num_kept),
                boxes,
                options.clip.into(),
                planes,
                sides,
                records,
            );
            let num_roots = u64::from(roots.end - roots.start);
            if options.stages.records {
                stream.launch::<sah_candidates<TOGETHER>>(num_roots, args)?;
            } else {
                stream.launch::<sah_candidates<APART>>(num_roots, args)?;
            }
            let (mut level, mut end) = (roots, stream.read(num_nodes.read_only())?[0]);
            while !level.is_empty() {
                let num = level.end - level.start;
                let split = self.num_nodes();
                self.reserve_nodes(stream, end as usize + 2 * num as usize, end as usize, split)?;
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
                if options.stages.records {
                    stream.launch_items::<sah_small_splits<TOGETHER>>(32 * u64::from(num), args)?;
                } else {
                    stream.launch_items::<sah_small_splits<APART>>(32 * u64::from(num), args)?;
                }
                self.levels.push(level);
                level = end..stream.read(num_nodes.read_only())?[0];
                end = level.end;
            }
            Ok(())
        }
    }

    /// Roots and the nodes that were split: in the end, all there are.
    fn num_nodes(&self) -> usize {
        self.levels.iter().map(|level| level.end as usize).fold(self.num_roots as usize, usize::max)
    }

    /// Finds the sizes of subtrees that were split by levels.
    fn find_sizes(&mut self, stream: &Stream) -> Result<()> {
        let (num_roots, num_nodes) = (self.num_roots as usize, self.num_nodes());
        debug_assert!((num_nodes as u64) <= MAX_NODES);
        self.sizes.reserve(stream, num_nodes, 0)?;
        self.places.reserve(stream, num_nodes, 0)?;
        for level in self.levels.iter().rev() {
            let (roots, splits) = (self.roots.first(num_roots), self.splits.first(num_nodes));
            let args = (level.start, level.end, roots, splits, self.sizes.all_mut());
            // SAFETY: levels are parts of the lists, and these wait for the device before they are freed.
            unsafe { stream.launch_items::<sah_small_sizes>((level.end - level.start).into(), args)? };
        }
        Ok(())
    }

    /// The sizes of subtrees, those of roots first.
    pub(super) fn sizes(&self) -> Slice<'_, Size> {
        self.sizes.first(self.num_nodes())
    }

    /// The same, and where nodes are in the tree, roots first.
    pub(super) fn sizes_and_places(&mut self) -> (Slice<'_, Size>, SliceMut<'_, Size>) {
        let num = self.num_nodes();
        (self.sizes.first(num), self.places.all_mut())
    }

    /// Writes nodes and leaves' triangles to the tree, where the places of the roots say.
    ///
    /// # Safety
    /// The places of roots are known, and there is room for what the sizes say.
    pub(super) unsafe fn write(
        &mut self,
        stream: &Stream,
        input: &Triangles<'_>,
        nodes: SliceMut<'_, u64>,
        listed: SliceMut<'_, u32>,
    ) -> Result<()> {
        let (num_roots, num_kept, options) = (self.num_roots as usize, self.num_kept as usize, input.options);
        // SAFETY: passed on to the caller.
        unsafe {
            if options.stages.small_by_levels {
                self.write_levels(stream, nodes, listed)?;
            } else {
                let boxes = if options.clip { self.boxes[self.sorted].first(num_kept) } else { input.boxes };
                let args = (
                    self.roots.first(num_roots),
                    self.kept[self.sorted].first(num_kept),
                    boxes,
                    options.clip.into(),
                    options.step_cost,
                    self.decisions.first(num_roots * DECISIONS),
                    self.sizes.first(num_roots),
                    self.places.first(num_roots),
                    nodes,
                    listed,
                );
                stream.launch_items::<sah_root_write>(32 * num_roots as u64, args)?;
            }
            if !self.any_long {
                return Ok(());
            }
            let kept = self.kept[self.sorted].first(num_kept);
            let args = (self.roots.first(num_roots), kept, self.places.first(num_roots), listed);
            stream.launch::<sah_long_leaves>(num_roots as u64, args)
        }
    }

    /// # Safety
    /// As [`write`](Self::write).
    unsafe fn write_levels(
        &mut self,
        stream: &Stream,
        nodes: SliceMut<'_, u64>,
        listed: SliceMut<'_, u32>,
    ) -> Result<()> {
        let (num_roots, num_nodes) = (self.num_roots as usize, self.num_nodes());
        let kept = self.kept[self.sorted].first(self.num_kept as usize);
        for level in &self.levels {
            let args = (
                level.start,
                level.end,
                self.roots.first(num_roots),
                kept,
                self.nodes.first(num_nodes),
                self.splits.first(num_nodes),
                self.sizes.first(num_nodes),
                self.places.all_mut(),
                nodes,
                listed,
            );
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<sah_small_write>((level.end - level.start).into(), args)? };
        }
        Ok(())
    }
}
