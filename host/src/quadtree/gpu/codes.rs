//! The builder by codes.

use crate::device::{Buffer, Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::primitives::reduce::Reduce;
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::segmented_sort::{SEGMENT_TILE_ITEMS, SegmentLists};
use crate::quadtree::check_num_nodes;
use crate::quadtree::gpu::Asked;
use crate::quadtree::gpu::nodes::Nodes;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{QUADTREE_COUNTED_POINTS, QUADTREE_WARP_POINTS, SEGMENT_SHORT_ITEMS};
use kauri_kernels::quadtree::codes::{quadtree_codes, quadtree_deep_codes, quadtree_place};
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::quadtree::order::quadtree_order;
use kauri_kernels::quadtree::splits::{quadtree_children, quadtree_count, quadtree_rows, quadtree_splits};
use kauri_kernels::thread::carried::NoValue;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::{Max, Sum};
use kauri_kernels::thread::radix_key::{RADIX_BITS, RadixKey};
use kauri_kernels::warp::look_back::Decoupled;

/// Bits of the codes of a round where all are sorted: no more, so that the number of a root fits in front of them.
const MAX_CODE_BITS: u32 = 32;
/// Most levels of a round: a warp has a lane for each, and for those above and below.
const LATER_LEVELS: u32 = 30;

/// Builds the tree; how many nodes split on each level.
///
/// # Safety
/// Nothing else uses the buffers until the stream has done the work.
pub(crate) unsafe fn build<C: Coord, const D: usize>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    ids: &mut Buffer<u32>,
    nodes: &mut Nodes<D>,
) -> Result<Vec<u32>> {
    let num_levels = first_levels(ids.len(), D, asked.most).min(asked.depth);
    let mut rounds = Rounds { asked, ids, nodes, splits: Vec::new(), ends: 0 };
    // SAFETY: passed on to the caller.
    unsafe {
        let roots = rounds.first(workspace, num_levels, num_levels < asked.depth)?;
        rounds.go_on(workspace, num_levels, roots)?;
    }
    Ok(rounds.splits)
}

/// Builds what is below nodes of level `level`, all that there are, which have too many points; how many split on each level from that one on. The ids
/// are in the order of the nodes.
///
/// # Safety
/// As [`build`].
pub(crate) unsafe fn build_below<C: Coord, const D: usize>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    ids: &mut Buffer<u32>,
    nodes: &mut Nodes<D>,
    level: u32,
    roots: &[Node],
) -> Result<Vec<u32>> {
    let stream = asked.stream;
    let numbers: Vec<u32> = (0..roots.len() as u32).collect();
    let starts: Vec<u32> = roots.iter().map(|root| root.start).collect();
    let lens: Vec<u64> = roots.iter().map(|root| root.len().into()).chain([0]).collect();
    let deep = Deep {
        nodes: Buffer::from_slice(stream, &numbers, "nodes of a quadtree")?,
        starts: Buffer::from_slice(stream, &starts, "nodes of a quadtree")?,
        lens: Buffer::from_slice(stream, &lens, "nodes of a quadtree")?,
    };
    let mut rounds = Rounds { asked, ids, nodes, splits: Vec::new(), ends: 0 };
    // SAFETY: passed on to the caller.
    unsafe { rounds.go_on(workspace, level, Some(deep))? };
    Ok(rounds.splits)
}

/// Levels of the first round: as many as points in even cells need, one more, and those that take no further pass of the sort.
fn first_levels(num_points: usize, dims: usize, most: u32) -> u32 {
    let full = (num_points / most as usize).max(1).ilog2().div_ceil(dims as u32) + 1;
    let bits = (full * dims as u32).next_multiple_of(RADIX_BITS).min(MAX_CODE_BITS);
    bits / dims as u32
}

/// Levels of a later one: as many as points on a line need, where these are even, two more, and those that take no further pass of the sort.
fn later_levels(points_of_root: usize, root_bits: u32, dims: usize, most: u32) -> u32 {
    let full = (points_of_root / most as usize).max(1).ilog2() + 3;
    let bits = root_bits + (full * dims as u32).min(MAX_CODE_BITS);
    (bits.next_multiple_of(RADIX_BITS) - root_bits).min(MAX_CODE_BITS) / dims as u32
}

/// Nodes that have too many points at the end of a round.
struct Deep {
    /// Which nodes they are.
    nodes: Buffer<u32>,
    /// Where the points of each begin, and how many these are, with one 0 more.
    starts: Buffer<u32>,
    lens: Buffer<u64>,
}

/// A tree that is being built.
struct Rounds<'a, C, const D: usize> {
    asked: &'a Asked<'a, C>,
    ids: &'a mut Buffer<u32>,
    nodes: &'a mut Nodes<D>,
    /// How many nodes split on each level so far.
    splits: Vec<u32>,
    /// The levels that rounds ended with, a bit each.
    ends: u64,
}

/// The roots of a round, on the device.
#[derive(Clone, Copy)]
struct RootsOn<'a> {
    nodes: Slice<'a, u32>,
    starts: Slice<'a, u32>,
    offsets: Slice<'a, u64>,
}

/// Temporary memory of a round: keys and ids, and where the sort moves them to; what is counted.
struct Round<K> {
    keys: [Region<K>; 2],
    ids: [Region<u32>; 2],
    counts: Region<u32>,
    scan: Scan,
    rows: Region<u32>,
}

/// How the points of a later round are sorted: those of each root by themselves, or all.
enum Sort {
    Segments(SegmentLists<u64, u32>),
    All(RadixSort),
}

impl<K: RadixKey> Round<K> {
    fn plan(layout: &mut Layout, len: usize, num_ids: [usize; 2], num_levels: u32) -> Self {
        let num_rows = num_levels as usize + 1;
        let num_counts = num_rows * len.div_ceil(QUADTREE_WARP_POINTS) + 1;
        Self {
            keys: [layout.reserve(len), layout.reserve(len)],
            ids: num_ids.map(|len| layout.reserve(len)),
            counts: layout.reserve(num_counts),
            scan: Scan::plan::<u32, Decoupled>(layout, num_counts),
            rows: layout.reserve(num_rows + 1),
        }
    }
}

impl<C: Coord, const D: usize> Rounds<'_, C, D> {
    /// The levels from level `level` on, of nodes that have too many points there; at last the order of points in leaves.
    ///
    /// # Safety
    /// As [`first`](Self::first).
    unsafe fn go_on(
        &mut self,
        workspace: &mut Workspace,
        mut level: u32,
        mut roots: Option<Deep>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            while let Some(of) = roots {
                (level, roots) = self.later(workspace, of, level)?;
            }
            self.order(workspace)
        }
    }

    /// The levels from the root on.
    ///
    /// # Safety
    /// Nothing else uses the buffers until the stream has done the work.
    unsafe fn first(
        &mut self,
        workspace: &mut Workspace,
        num_levels: u32,
        goes_on: bool,
    ) -> Result<Option<Deep>> {
        let (stream, n) = (self.asked.stream, self.ids.len());
        let mut layout = Layout::new();
        let round = Round::<u32>::plan(&mut layout, n, [0, n], num_levels);
        let [sort] = RadixSort::plan(&mut layout, n, [Shape::of::<u32, u32>(n)]);
        let zeros: Region<u64> = layout.reserve(1);
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        temp.clear(stream, zeros)?;
        let zero = temp.view(zeros.of_type::<u32>()).read_only();
        let roots = RootsOn { nodes: zero, starts: zero, offsets: temp.view(zeros).read_only() };
        let by = SortBy::low_bits(num_levels * D as u32);
        let [keys, room] = round.keys.map(|keys| temp.view(keys));
        // The last pass is to write to the tree's ids, and what a sort reads may be the second of what it writes.
        // SAFETY: the whole buffer, which stays where it is.
        let ids = unsafe { SliceMut::from_raw_parts(self.ids.as_raw() as *mut u32, n) };
        let own = Pairs { keys, values: ids };
        let room = Pairs { keys: room, values: temp.view(round.ids[1]) };
        let to = if by.num_passes() % 2 == 1 { [own, room] } else { [room, own] };
        // SAFETY: arrays of the plan, of which none overlaps another; the rest is passed on to the caller.
        unsafe {
            let args = (self.asked.coords, self.asked.frame.slice(), num_levels, to[1].keys, to[1].values);
            stream.launch_items::<quadtree_codes<C, D>>(n as u64, args)?;
            let [sorted, room] = sort.run(stream, &temp, by, to[1].read_only(), to)?;
            self.cut(&temp, &round, sorted.keys.read_only(), room.keys, roots, 0, num_levels, goes_on)
        }
    }

    /// Levels from level `level` on, of nodes that have too many points there; the level below them, and nodes that have too many there.
    ///
    /// # Safety
    /// As [`first`](Self::first).
    unsafe fn later(
        &mut self,
        workspace: &mut Workspace,
        of: Deep,
        level: u32,
    ) -> Result<(u32, Option<Deep>)> {
        let stream = self.asked.stream;
        let num_roots = of.nodes.len();
        let (offsets, [len, largest]) = self.offsets(workspace, &of.lens)?;
        let by_segment = largest as usize <= SEGMENT_SHORT_ITEMS;
        let (len, root_bits) = (len as usize, num_roots.next_power_of_two().ilog2());
        let num_levels = if by_segment {
            LATER_LEVELS.min((u64::BITS - root_bits) / D as u32)
        } else {
            later_levels(len / num_roots, root_bits, D, self.asked.most)
        };
        let num_levels = num_levels.min(self.asked.depth - level);
        let mut layout = Layout::new();
        let round = Round::<u64>::plan(&mut layout, len, [len, len], num_levels);
        let sort = if by_segment {
            Sort::Segments(SegmentLists::<u64, u32>::plan(&mut layout, [len / 33, 0], 0))
        } else {
            let [sort] = RadixSort::plan(&mut layout, len, [Shape::of::<u64, u32>(len)]);
            Sort::All(sort)
        };
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        // SAFETY: the buffer has one more.
        let of_roots = unsafe { offsets.slice().part(0, num_roots) };
        let roots = RootsOn { nodes: of.nodes.slice(), starts: of.starts.slice(), offsets: of_roots };
        let code_bits = num_levels * D as u32;
        let pairs = [0, 1].map(|i| Pairs { keys: temp.view(round.keys[i]), values: temp.view(round.ids[i]) });
        // SAFETY: arrays of the plan, of which none overlaps another; the rest is passed on to the caller.
        unsafe {
            let args = (
                self.asked.coords,
                self.asked.frame.slice(),
                level,
                num_levels,
                roots.starts,
                roots.offsets,
                self.ids.slice(),
                pairs[1].keys,
                pairs[1].values,
            );
            stream.launch_items::<quadtree_deep_codes<C, D>>(len as u64, args)?;
            let from = pairs[1].read_only();
            let [sorted, room] = match sort {
                Sort::Segments(listed) => {
                    let (by, to) = (SortBy::low_bits(code_bits), pairs[0]);
                    listed.sort(stream, &temp, from, offsets.slice(), to, by, largest as usize)?;
                    pairs
                }
                Sort::All(sort) => {
                    sort.run(stream, &temp, SortBy::low_bits(code_bits + root_bits), from, pairs)?
                }
            };
            let sorted = sorted.read_only();
            let args =
                (sorted.keys, sorted.values, code_bits, roots.starts, roots.offsets, self.ids.slice_mut());
            stream.launch_items::<quadtree_place>(len as u64, args)?;
            let below = level + num_levels;
            let goes_on = below < self.asked.depth;
            let deep = self.cut(&temp, &round, sorted.keys, room.keys, roots, level, num_levels, goes_on)?;
            Ok((below, deep))
        }
    }

    /// Where the points of roots begin, given how many these are and a 0; the number of all, and of those of the largest.
    fn offsets(&self, workspace: &mut Workspace, lens: &Buffer<u64>) -> Result<(Buffer<u64>, [u64; 2])> {
        let (stream, num) = (self.asked.stream, lens.len());
        let mut layout = Layout::new();
        let scan = Scan::plan::<u64, Decoupled>(&mut layout, num);
        let (reduce, told) = (Reduce::<u64>::plan(&mut layout, num), layout.reserve::<u64>(1));
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        let mut offsets = Buffer::uninitialized(stream.gpu(), num, "points of a quadtree")?;
        // SAFETY: of one length, and they wait for the device before they are freed.
        unsafe {
            let (from, to) = (lens.slice(), offsets.slice_mut());
            scan.run::<u64, Sum, Decoupled>(stream, &temp, from, to, ScanKind::Exclusive)?;
            reduce.run::<Max>(stream, &temp, from, temp.view(told))?;
            let all = stream.read(to.part(num - 1, 1).read_only())?[0];
            let largest = stream.read(temp.view(told).read_only())?[0];
            Ok((offsets, [all, largest]))
        }
    }

    /// Cuts the nodes of a round from its sorted keys; what has too many points at its end, if that goes on. `room` is as long as the
    /// keys.
    ///
    /// # Safety
    /// As [`first`](Self::first).
    #[allow(clippy::too_many_arguments)]
    unsafe fn cut<K: RadixKey>(
        &mut self,
        temp: &Temp<'_>,
        round: &Round<K>,
        keys: Slice<'_, K>,
        room: SliceMut<'_, K>,
        roots: RootsOn<'_>,
        level: u32,
        num_levels: u32,
        goes_on: bool,
    ) -> Result<Option<Deep>> {
        let &Asked { stream, most, .. } = self.asked;
        let gpu = stream.gpu();
        let (counts, rows) = (temp.view(round.counts), temp.view(round.rows));
        self.ends |= 1 << (level + num_levels);
        let num_threads = 32 * keys.len().div_ceil(QUADTREE_WARP_POINTS) as u64;
        // SAFETY: passed on to the caller; as many rows and counts as planned, and nodes as are counted.
        unsafe {
            stream.launch_items::<quadtree_count<K, D>>(num_threads, (keys, num_levels, most, counts))?;
            let from = counts.read_only();
            round.scan.run::<u32, Sum, Decoupled>(stream, temp, from, counts, ScanKind::Exclusive)?;
            stream.launch::<quadtree_rows>(1, (counts.read_only(), rows))?;
            let begins = stream.read(rows.read_only())?;
            let (inner, all) = (begins[num_levels as usize], begins[num_levels as usize + 1]);
            // A level never has more than 32 bits count, but all of them might.
            let of_levels: Vec<_> = begins.windows(2).map(|row| row[1].wrapping_sub(row[0])).collect();
            let num = |of: &[u32]| of.iter().map(|&num| u64::from(num)).sum();
            check_num_nodes(0, num(&of_levels), 0)?;
            let of_levels = &of_levels[..num_levels as usize];
            check_num_nodes(self.nodes.nodes.len(), num(of_levels), D)?;
            self.splits.extend(of_levels);
            // As words there is room for most lists of them.
            let words = size_of::<K>() / size_of::<u32>() * room.len();
            let own;
            let splits = if all as usize <= words {
                SliceMut::from_raw_parts(room.as_ptr().cast::<u32>(), all as usize)
            } else {
                own = Buffer::<u32>::uninitialized(gpu, all as usize, "nodes of a quadtree that split")?;
                SliceMut::from_raw_parts(own.slice().as_ptr().cast_mut(), all as usize)
            };
            let args = (keys, num_levels, most, counts.read_only(), splits);
            stream.launch_items::<quadtree_splits<K, D>>(num_threads, args)?;
            let first_node = self.nodes.grow(stream, (inner as usize) << D)?;
            let num_deep = if goes_on { (all - inner) as usize } else { 0 };
            let mut deep = Deep {
                nodes: Buffer::uninitialized(gpu, num_deep, "nodes of a quadtree")?,
                starts: Buffer::uninitialized(gpu, num_deep, "nodes of a quadtree")?,
                lens: Buffer::uninitialized(gpu, num_deep + 1, "nodes of a quadtree")?,
            };
            deep.lens.fill_bytes(stream, 0)?;
            let args = (
                keys,
                num_levels,
                most,
                self.asked.frame.slice(),
                level,
                counts.read_only(),
                splits.read_only(),
                rows.read_only(),
                roots.nodes,
                roots.starts,
                roots.offsets,
                first_node,
                self.nodes.nodes.slice_mut(),
                self.nodes.cells.slice_mut(),
                deep.nodes.slice_mut(),
                deep.starts.slice_mut(),
                deep.lens.slice_mut(),
            );
            stream.launch_items::<quadtree_children<K, D>>(u64::from(all).next_multiple_of(32), args)?;
            Ok((num_deep > 0).then_some(deep))
        }
    }

    /// Puts the points of each leaf in the order of the input.
    ///
    /// # Safety
    /// As [`first`](Self::first).
    unsafe fn order(&mut self, workspace: &mut Workspace) -> Result<()> {
        let &Asked { stream, most, .. } = self.asked;
        let (num, mut layout) = (self.ids.len(), Layout::new());
        // Leaves that are sorted, of few and of many points.
        let nums = [QUADTREE_COUNTED_POINTS as usize, SEGMENT_SHORT_ITEMS]
            .map(|from| if most as usize > from { num / (from + 1) } else { 0 });
        let ids = layout.reserve::<u32>(num);
        let offsets = layout.reserve::<u64>(2 * (nums[0] + nums[1]).max(1));
        let room = if most as usize > SEGMENT_TILE_ITEMS { num } else { 0 };
        let listed = SegmentLists::<u32, NoValue>::plan(&mut layout, nums, room);
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        let (ids, offsets) = (temp.view(ids), temp.view(offsets));
        let ([short, long], num_listed) = listed.clear(stream, &temp)?;
        // SAFETY: arrays of the plan, of which none overlaps another; the rest is passed on to the caller.
        unsafe {
            stream.copy(ids, self.ids.slice())?;
            let (from, to) = (ids.read_only(), self.ids.slice_mut());
            let nodes = self.nodes.nodes.slice();
            let args = (nodes, most, self.ends, from, to, offsets, short, long, num_listed);
            stream.launch_items::<quadtree_order>(nodes.len().next_multiple_of(32) as u64, args)?;
            if nums[0] > 0 {
                let by = SortBy::numbers_below(num);
                let (from, to) = (Source::of_keys(from), Pairs::of_keys(to));
                listed.sort_listed(stream, &temp, from, offsets.read_only(), to, by, most as usize)?;
            }
            Ok(())
        }
    }
}
