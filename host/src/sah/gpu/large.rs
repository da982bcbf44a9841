//! Large nodes, level by level.

use super::Triangles;
use super::room::Room;
use super::small::SmallNodes;
use crate::device::{Layout, PinnedBuffer, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::primitives::scan::ScanKind;
use crate::primitives::segmented::{SegmentFormat, Segmented};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::chunks::{
    BOX_WORDS, sah_boxes, sah_chunk_boxes, sah_chunk_nodes, sah_count, sah_node_counts, sah_scatter,
    sah_sort, sah_stay,
};
use kauri_kernels::sah::large::{CHUNK_TRIANGLES, Large, SMALL_TRIANGLES, most_listed};
use kauri_kernels::sah::levels::{SmallRoot, Upper, left, sah_level};
use kauri_kernels::thread::operator::{Min, Sum};
use std::mem::swap;
use std::ops::Range;

/// What large nodes became.
#[derive(Default)]
pub(super) struct Uppers {
    /// Those of each level, by their numbers.
    pub(super) levels: Vec<Range<u32>>,
}

impl Uppers {
    /// How many there are.
    pub(super) fn num(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end as usize)
    }
}

/// The memory of large nodes.
pub(super) struct LargeNodes {
    /// Nodes and triangles of a level, and of the next.
    nodes: [Room<Large>; 2],
    lists: [Room<u32>; 2],
    boxes: [Room<Aabb>; 2],
    uppers: Room<Upper>,
    /// What the host is told of a level.
    told: Option<PinnedBuffer<u64>>,
}

/// Temporary memory of a level.
struct Plans {
    of_chunks: Region<u32>,
    heads: Region<u8>,
    offsets: Region<u64>,
    keys: Region<u32>,
    chunk_keys: Region<u32>,
    counts: Region<u32>,
    chunk_counts: Region<u32>,
    before_chunks: Region<u32>,
    least: Segmented,
    sums: Segmented,
    stays: Region<u8>,
    left: Region<u64>,
}

impl Plans {
    fn new(layout: &mut Layout, num_nodes: usize, num_chunks: usize) -> Self {
        Self {
            of_chunks: layout.reserve(num_chunks),
            heads: layout.reserve(num_chunks),
            offsets: layout.reserve(num_nodes + 1),
            keys: layout.reserve(BOX_WORDS * num_nodes),
            chunk_keys: layout.reserve(BOX_WORDS * num_chunks),
            counts: layout.reserve(2 * num_nodes),
            chunk_counts: layout.reserve(2 * num_chunks),
            before_chunks: layout.reserve(2 * num_chunks),
            least: Segmented::plan::<u32, Min>(layout, num_chunks, SegmentFormat::Heads),
            sums: Segmented::plan::<u32, Sum>(layout, num_chunks, SegmentFormat::Heads),
            stays: layout.reserve(num_nodes),
            left: layout.reserve(left::WORDS),
        }
    }
}

/// What a level leaves.
struct Left {
    large: u32,
    small: u32,
    chunks: u32,
    of_small: u32,
    told: u64,
}

impl Left {
    /// Places for their triangles.
    fn num_listed(&self) -> u64 {
        u64::from(self.chunks) * u64::from(CHUNK_TRIANGLES) + u64::from(self.of_small)
    }
}

/// A level.
struct Level<'a> {
    stream: &'a Stream,
    temp: &'a Temp<'a>,
    plans: &'a Plans,
    input: &'a Triangles<'a>,
    nodes: Slice<'a, Large>,
    listed: Slice<'a, u32>,
    boxes: Slice<'a, Aabb>,
}

impl LargeNodes {
    pub(super) fn new() -> Self {
        Self {
            nodes: [Room::new("large nodes"), Room::new("large nodes")],
            lists: [Room::new("triangles of large nodes"), Room::new("triangles of large nodes")],
            boxes: [Room::new("boxes of parts of triangles"), Room::new("boxes of parts of triangles")],
            uppers: Room::new("large nodes"),
            told: None,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let of = |[a, b]: [u64; 2]| a + b;
        of(self.nodes.each_ref().map(Room::bytes))
            + of(self.lists.each_ref().map(Room::bytes))
            + of(self.boxes.each_ref().map(Room::bytes))
            + self.uppers.bytes()
    }

    /// What large nodes became.
    pub(super) fn uppers(&self, uppers: &Uppers) -> Slice<'_, Upper> {
        self.uppers.first(uppers.num())
    }

    /// Splits nodes until all are small, from the [first](Self::first) on, which has been written; what large ones became.
    pub(super) fn split(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &Triangles<'_>,
        bounds: Aabb,
        small: &mut SmallNodes,
    ) -> Result<Uppers> {
        let num = input.boxes.len();
        small.clear();
        if input.options.clip {
            self.boxes[0].reserve(stream, num, 0)?;
            // SAFETY: of one length, and they wait for the device before they are freed.
            unsafe { stream.copy(self.boxes[0].all_mut().part(0, num), input.boxes)? };
        }
        let mut uppers = Uppers::default();
        if num as u32 <= SMALL_TRIANGLES {
            let root = SmallRoot { bounds, depth: 0, begin: 0, len: num as u32, from: 0, is_old: 1 };
            small.only(stream, root, input, self.lists[0].first(num))?;
            return Ok(uppers);
        }
        let mut next = (1, (num as u32).div_ceil(CHUNK_TRIANGLES));
        while next.0 > 0 {
            next = self.level(stream, workspace, input, small, &mut uppers, next)?;
        }
        Ok(uppers)
    }

    /// Room for the list of the first level, and for its node.
    pub(super) fn first(
        &mut self,
        stream: &Stream,
        num: usize,
    ) -> Result<(SliceMut<'_, u32>, SliceMut<'_, Large>)> {
        self.lists[0].reserve(stream, num, 0)?;
        self.nodes[0].reserve(stream, 1, 0)?;
        Ok((self.lists[0].all_mut(), self.nodes[0].all_mut()))
    }

    /// Splits the nodes of a level; how many nodes the next has, and how many chunks these.
    fn level(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        input: &Triangles<'_>,
        small: &mut SmallNodes,
        uppers: &mut Uppers,
        (num_nodes, num_chunks): (u32, u32),
    ) -> Result<(u32, u32)> {
        let clip = input.options.clip;
        let begin = uppers.levels.last().map_or(0, |level| level.end);
        let numbers = begin..begin + num_nodes;
        let room = 2 * num_chunks as usize * CHUNK_TRIANGLES as usize;
        let [from_nodes, to_nodes] = &mut self.nodes;
        let [from_list, to_list] = &mut self.lists;
        let [from_boxes, to_boxes] = &mut self.boxes;
        to_list.reserve(stream, room, 0)?;
        if clip {
            to_boxes.reserve(stream, room, 0)?;
        }
        self.uppers.reserve(stream, numbers.end as usize, begin as usize)?;
        let mut layout = Layout::new();
        let plans = Plans::new(&mut layout, num_nodes as usize, num_chunks as usize);
        let temp = workspace.carve(stream, &layout, "large nodes")?;
        let level = Level {
            stream,
            temp: &temp,
            plans: &plans,
            input,
            nodes: from_nodes.first(num_nodes as usize),
            listed: from_list.all_mut().read_only(),
            boxes: if clip { from_boxes.all_mut().read_only() } else { input.boxes },
        };
        let next_boxes = if clip { to_boxes.all_mut() } else { empty_view() };
        // Each node leaves two at most.
        to_nodes.reserve(stream, 2 * num_nodes as usize, 0)?;
        let first_small = small.reserve_roots(stream, 2 * num_nodes)?;
        let (num_kept, most) = (small.num_kept(), most_listed(input.corners.len() as u64));
        // SAFETY: memory as planned and reserved, which waits for the device before it is freed.
        unsafe {
            level.find_chunks()?;
            level.find_boxes()?;
            level.sort(to_list.all_mut(), next_boxes)?;
            let to = Next {
                first: numbers.end,
                first_small,
                first_of_small: num_kept as u32,
                nodes: to_nodes.all_mut(),
                small: small.roots_mut(),
                uppers: self.uppers.all_mut().part(begin as usize, num_nodes as usize),
            };
            let mut left = level.finish(&to, false, &mut self.told)?;
            if num_kept + left.num_listed() > most {
                temp.clear(stream, plans.left)?;
                left = level.finish(&to, true, &mut self.told)?;
            }
            small.reserve_kept(stream, left.of_small, clip)?;
            let lists = [level.listed, to_list.all_mut().read_only()];
            let boxes =
                if clip { [level.boxes, next_boxes.read_only()] } else { [empty_view().read_only(); 2] };
            small.keep(stream, input, lists, boxes, left.small, left.of_small)?;
            if left.told & left::LONG != 0 {
                small.has_long();
            }
            if left.told & left::STAYS != 0 {
                level.stay(to_list.all_mut(), next_boxes)?;
            }
            uppers.levels.push(numbers);
            swap(from_nodes, to_nodes);
            swap(from_list, to_list);
            swap(from_boxes, to_boxes);
            Ok((left.large, left.chunks))
        }
    }
}

/// Where what a level leaves goes.
struct Next<'a> {
    first: u32,
    first_small: u32,
    first_of_small: u32,
    nodes: SliceMut<'a, Large>,
    small: SliceMut<'a, SmallRoot>,
    uppers: SliceMut<'a, Upper>,
}

impl Level<'_> {
    fn view<T>(&self, region: Region<T>) -> SliceMut<'_, T> {
        self.temp.view(region)
    }

    fn num_chunks(&self) -> u64 {
        self.view(self.plans.of_chunks).len() as u64
    }

    fn num_nodes(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// # Safety
    /// Nothing else uses the plan's memory until the stream has done the work; lists are as long as nodes say.
    unsafe fn find_chunks(&self) -> Result<()> {
        let args = (
            self.nodes,
            self.view(self.plans.of_chunks),
            self.view(self.plans.heads),
            self.view(self.plans.offsets),
            self.view(self.plans.keys),
            self.view(self.plans.counts),
            self.view(self.plans.left),
        );
        // SAFETY: passed on to the caller.
        unsafe { self.stream.launch_items::<sah_chunk_nodes>(self.num_chunks(), args) }
    }

    /// The box of each node's triangles.
    ///
    /// # Safety
    /// As [`find_chunks`](Self::find_chunks).
    unsafe fn find_boxes(&self) -> Result<()> {
        let (options, keys) = (self.input.options, self.view(self.plans.keys));
        let by_reductions = options.stages.boxes_by_reductions;
        let of_chunks = self.view(self.plans.of_chunks).read_only();
        let to = if by_reductions { self.view(self.plans.chunk_keys) } else { keys };
        let args = (self.nodes, of_chunks, self.listed, self.boxes, options.clip.into(), to);
        let (stream, num_chunks) = (self.stream, self.num_chunks());
        // SAFETY: passed on to the caller.
        unsafe {
            match (by_reductions, options.stages.by_shared_memory) {
                (false, false) => stream.launch::<sah_boxes<32>>(num_chunks, args),
                (false, true) => stream.launch::<sah_boxes<1>>(num_chunks, args),
                (true, false) => stream.launch::<sah_chunk_boxes<32>>(num_chunks, args),
                (true, true) => stream.launch::<sah_chunk_boxes<1>>(num_chunks, args),
            }?;
            if by_reductions {
                self.reduce_boxes()?;
            }
            Ok(())
        }
    }

    /// The box of each node, of those of its chunks: six reductions.
    ///
    /// # Safety
    /// As [`find_chunks`](Self::find_chunks).
    unsafe fn reduce_boxes(&self) -> Result<()> {
        let (num_nodes, num_chunks) = (self.nodes.len(), self.num_chunks() as usize);
        let (from, to) = (self.view(self.plans.chunk_keys), self.view(self.plans.keys));
        let heads = self.view(self.plans.heads).read_only();
        // SAFETY: rows of keys, and an offset a node.
        unsafe {
            let offsets = self.view(self.plans.offsets).part(0, num_nodes).read_only();
            (0..BOX_WORDS).try_for_each(|i| {
                let from = from.part(i * num_chunks, num_chunks).read_only();
                let to = to.part(i * num_nodes, num_nodes);
                let least = &self.plans.least;
                least.reduce_by_heads::<u32, Min>(self.stream, self.temp, from, heads, offsets, to)
            })
        }
    }

    /// Moves triangles to the sides of their nodes' planes, and counts them.
    ///
    /// # Safety
    /// As [`find_chunks`](Self::find_chunks); there is room for twice as many chunks on the next lists.
    unsafe fn sort(&self, next: SliceMut<'_, u32>, next_boxes: SliceMut<'_, Aabb>) -> Result<()> {
        let (stream, options, num_chunks) = (self.stream, self.input.options, self.num_chunks());
        let of_chunks = self.view(self.plans.of_chunks).read_only();
        let (keys, empty_space) = (self.view(self.plans.keys).read_only(), options.empty_space);
        let (nodes, listed, boxes, corners) = (self.nodes, self.listed, self.boxes, self.input.corners);
        let (clip, shared) = (options.clip.into(), options.stages.by_shared_memory);
        let counts = self.view(self.plans.counts);
        // What cuts nodes, and the kernel's own arguments.
        macro_rules! with_cut {
            ($($own:expr),*) => {
                (nodes, of_chunks, listed, boxes, clip, keys, empty_space, corners, $($own),*)
            };
        }
        // SAFETY: passed on to the caller.
        unsafe {
            if !options.stages.sort_by_scans {
                let args = with_cut!(counts, next, next_boxes);
                return if shared {
                    stream.launch::<sah_sort<1>>(num_chunks, args)
                } else {
                    stream.launch::<sah_sort<32>>(num_chunks, args)
                };
            }
            let of_each = self.view(self.plans.chunk_counts);
            if shared {
                stream.launch::<sah_count<1>>(num_chunks, with_cut!(of_each))?;
            } else {
                stream.launch::<sah_count<32>>(num_chunks, with_cut!(of_each))?;
            }
            let (of_each, before) = (of_each.read_only(), self.view(self.plans.before_chunks));
            let (row, heads) = (num_chunks as usize, self.view(self.plans.heads).read_only());
            for side in 0..2 {
                let (from, to) = (of_each.part(side * row, row), before.part(side * row, row));
                let sums = &self.plans.sums;
                sums.scan::<u32, Sum>(stream, self.temp, from, heads, to, ScanKind::Exclusive)?;
            }
            let before = before.read_only();
            if shared {
                stream.launch::<sah_scatter<1>>(num_chunks, with_cut!(before, next, next_boxes))?;
            } else {
                stream.launch::<sah_scatter<32>>(num_chunks, with_cut!(before, next, next_boxes))?;
            }
            stream.launch_items::<sah_node_counts>(
                self.num_nodes(),
                (nodes, of_chunks, of_each, before, counts),
            )
        }
    }

    /// What becomes of the nodes, and what that adds up to. Waits for it.
    ///
    /// # Safety
    /// As [`find_chunks`](Self::find_chunks); there is room for two nodes for each, of either kind.
    unsafe fn finish(
        &self,
        next: &Next<'_>,
        is_full: bool,
        told: &mut Option<PinnedBuffer<u64>>,
    ) -> Result<Left> {
        let (stream, left) = (self.stream, self.view(self.plans.left));
        let told = match told {
            Some(told) => told,
            None => told.insert(PinnedBuffer::zeroed(stream.gpu(), left::WORDS, "large nodes")?),
        };
        let args = (
            self.nodes,
            self.view(self.plans.keys).read_only(),
            self.view(self.plans.counts).read_only(),
            self.input.options.empty_space,
            self.input.options.step_cost,
            is_full.into(),
            next.first,
            next.first_small,
            next.first_of_small,
            left,
            next.nodes,
            next.small,
            self.view(self.plans.stays),
            next.uppers,
        );
        // SAFETY: passed on to the caller.
        unsafe {
            stream.launch_items::<sah_level>(self.num_nodes(), args)?;
            stream.start_reading(left.read_only(), told)?;
        }
        stream.synchronize()?;
        let (large, chunks) = left::parts(told[left::LARGE]);
        let (small, of_small) = left::parts(told[left::SMALL]);
        Ok(Left { large, small, chunks, of_small, told: told[left::TOLD] })
    }

    /// Moves triangles of nodes that stay as they are.
    ///
    /// # Safety
    /// As [`sort`](Self::sort).
    unsafe fn stay(&self, next: SliceMut<'_, u32>, next_boxes: SliceMut<'_, Aabb>) -> Result<()> {
        let of_chunks = self.view(self.plans.of_chunks).read_only();
        let stays = self.view(self.plans.stays).read_only();
        let clip = self.input.options.clip.into();
        let args = (self.nodes, of_chunks, self.listed, self.boxes, clip, stays, next, next_boxes);
        // SAFETY: passed on to the caller.
        unsafe { self.stream.launch::<sah_stay>(self.num_chunks(), args) }
    }
}
