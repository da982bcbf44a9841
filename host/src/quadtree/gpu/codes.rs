//! The builder by codes.

use super::Asked;
use super::nodes::Nodes;
use crate::device::{Buffer, Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::kdtree::Coordinate;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::primitives::scan::{Ends, Scan};
use crate::primitives::segmented_sort::{Listed, SEGMENT_TILE_ITEMS};
use crate::quadtree::check_num_nodes;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{QUADTREE_COUNTED_POINTS, QUADTREE_WARP_POINTS, SEGMENT_SHORT_ITEMS};
use kauri_kernels::quadtree::codes::{quadtree_codes, quadtree_deep_codes, quadtree_place};
use kauri_kernels::quadtree::order::quadtree_order;
use kauri_kernels::quadtree::splits::{quadtree_children, quadtree_count, quadtree_rows, quadtree_splits};
use kauri_kernels::thread::carried::NoValue;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::thread::radix_key::{RADIX_BITS, RadixKey};
use kauri_kernels::warp::look_back::Decoupled;

/// Bits of the codes of a round: no more, so that the number of a root fits in front of them.
const MAX_CODE_BITS: u32 = 32;

/// Builds the tree; how many nodes split on each level.
///
/// # Safety
/// Nothing else uses the buffers until the stream has done the work.
pub(super) unsafe fn build<C: Coordinate, const D: usize>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    ids: &mut Buffer<u32>,
    nodes: &mut Nodes<D>,
) -> Result<Vec<u32>> {
    let &Asked { depth, most, .. } = asked;
    let mut level = first_levels(ids.len(), D, most).min(depth);
    let mut rounds = Rounds { asked, ids, nodes, splits: Vec::new(), ends: 0 };
    // SAFETY: passed on to the caller.
    unsafe {
        let mut roots = rounds.first(workspace, level, level < depth)?;
        while let Some(of) = roots {
            let num_levels = later_levels(D).min(depth - level);
            let goes_on = level + num_levels < depth;
            roots = rounds.later(workspace, of, level, num_levels, goes_on)?;
            level += num_levels;
        }
        rounds.order(workspace)?;
        Ok(rounds.splits)
    }
}

/// Levels of the first round: as many as points in even cells need, one more, and those that take no further pass of the sort.
fn first_levels(num_points: usize, dims: usize, most: u32) -> u32 {
    let full = (num_points / most as usize).max(1).ilog2().div_ceil(dims as u32) + 1;
    let bits = (full * dims as u32).next_multiple_of(RADIX_BITS).min(MAX_CODE_BITS);
    bits / dims as u32
}

/// Most levels of a later one.
fn later_levels(dims: usize) -> u32 {
    MAX_CODE_BITS / dims as u32
}

/// Nodes that have too many points at the end of a round.
struct Deep {
    /// Which nodes they are.
    nodes: Buffer<u32>,
    /// Where the points of each begin, and how many these are, with one 0 more.
    starts: Buffer<u32>,
    lens: Buffer<u32>,
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
    offsets: Slice<'a, u32>,
}

/// Temporary memory of a round: keys and ids, and where the sort moves them to; what is counted.
struct Round<K> {
    keys: [Region<K>; 2],
    ids: [Region<u32>; 2],
    sort: RadixSort,
    counts: Region<u32>,
    scan: Scan,
    rows: Region<u32>,
}

impl<K: RadixKey> Round<K> {
    fn plan(layout: &mut Layout, len: usize, num_ids: [usize; 2], num_levels: u32) -> Self {
        let [sort] = RadixSort::plan(layout, len, [Shape::of::<K, u32>(len)]);
        let num_rows = num_levels as usize + 1;
        let num_counts = num_rows * len.div_ceil(QUADTREE_WARP_POINTS) + 1;
        Self {
            keys: [layout.reserve(len), layout.reserve(len)],
            ids: num_ids.map(|len| layout.reserve(len)),
            sort,
            counts: layout.reserve(num_counts),
            scan: Scan::plan::<u32, Decoupled>(layout, num_counts),
            rows: layout.reserve(num_rows + 1),
        }
    }
}

impl<C: Coordinate, const D: usize> Rounds<'_, C, D> {
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
        let zeros: Region<u32> = layout.reserve(1);
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        temp.clear(stream, zeros)?;
        let zero = temp.view(zeros).read_only();
        let roots = RootsOn { nodes: zero, starts: zero, offsets: zero };
        let by = SortBy::low_bits(num_levels * D as u32);
        let [keys, room] = round.keys.map(|keys| temp.view(keys));
        // The last pass is to write to the tree's ids, and what a sort reads may be the second of what it writes.
        // SAFETY: the whole buffer, which stays where it is.
        let ids = unsafe { SliceMut::from_raw_parts(self.ids.as_raw() as *mut u32, n) };
        let own = Pairs { keys, values: ids };
        let room = Pairs { keys: room, values: temp.view(round.ids[1]) };
        let to = if by.num_passes() % 2 == 1 { [own, room] } else { [room, own] };
        // SAFETY: the plan's memory and the caller's.
        unsafe {
            let args = (self.asked.coords, self.asked.frame.slice(), num_levels, to[1].keys, to[1].values);
            stream.launch_items::<quadtree_codes<C, D>>(n as u64, args)?;
            let [sorted, room] = round.sort.run(stream, &temp, by, to[1].read_only(), to)?;
            self.cut(&temp, &round, sorted.keys.read_only(), room.keys, roots, 0, num_levels, goes_on)
        }
    }

    /// The levels from level `level` on, of nodes that have too many points there.
    ///
    /// # Safety
    /// As [`first`](Self::first).
    unsafe fn later(
        &mut self,
        workspace: &mut Workspace,
        of: Deep,
        level: u32,
        num_levels: u32,
        goes_on: bool,
    ) -> Result<Option<Deep>> {
        let stream = self.asked.stream;
        let num_roots = of.nodes.len();
        let offsets = self.scanned(workspace, &of.lens)?;
        let len = offsets.part_to_vec(stream, num_roots..num_roots + 1)?[0] as usize;
        let mut layout = Layout::new();
        let round = Round::<u64>::plan(&mut layout, len, [len, len], num_levels);
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        // SAFETY: the buffer has one more.
        let of_roots = unsafe { offsets.slice().part(0, num_roots) };
        let roots = RootsOn { nodes: of.nodes.slice(), starts: of.starts.slice(), offsets: of_roots };
        let code_bits = num_levels * D as u32;
        let by = SortBy::low_bits(code_bits + (num_roots as u32).next_power_of_two().ilog2());
        let pairs = [0, 1].map(|i| Pairs { keys: temp.view(round.keys[i]), values: temp.view(round.ids[i]) });
        // SAFETY: the plan's memory and the caller's.
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
            let [sorted, room] = round.sort.run(stream, &temp, by, pairs[1].read_only(), pairs)?;
            let sorted = sorted.read_only();
            let args =
                (sorted.keys, sorted.values, code_bits, roots.starts, roots.offsets, self.ids.slice_mut());
            stream.launch_items::<quadtree_place>(len as u64, args)?;
            self.cut(&temp, &round, sorted.keys, room.keys, roots, level, num_levels, goes_on)
        }
    }

    /// Numbers of points, scanned.
    fn scanned(&self, workspace: &mut Workspace, lens: &Buffer<u32>) -> Result<Buffer<u32>> {
        let mut layout = Layout::new();
        let scan = Scan::plan::<u32, Decoupled>(&mut layout, lens.len());
        let temp = workspace.carve(self.asked.stream, &layout, "quadtree")?;
        let mut offsets = Buffer::uninitialized(self.asked.stream.gpu(), lens.len(), "points of a quadtree")?;
        // SAFETY: of one length, and they wait for the device before they are freed.
        unsafe {
            let (from, to) = (lens.slice(), offsets.slice_mut());
            scan.run::<u32, Sum, Decoupled>(self.asked.stream, &temp, from, to, Ends::Exclusive)?;
        }
        Ok(offsets)
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
            round.scan.run::<u32, Sum, Decoupled>(stream, temp, from, counts, Ends::Exclusive)?;
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
            stream.launch_items::<quadtree_children<K, D>>(all.into(), args)?;
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
        let listed = Listed::<u32, NoValue>::plan(&mut layout, nums, room);
        let temp = workspace.carve(stream, &layout, "quadtree")?;
        let (ids, offsets) = (temp.view(ids), temp.view(offsets));
        let ([short, long], num_listed) = listed.empty(stream, &temp)?;
        // SAFETY: the plan's memory and the caller's.
        unsafe {
            stream.copy(ids, self.ids.slice())?;
            let (from, to) = (ids.read_only(), self.ids.slice_mut());
            let nodes = self.nodes.nodes.slice();
            let args = (nodes, most, self.ends, from, to, offsets, short, long, num_listed);
            stream.launch_items::<quadtree_order>(nodes.len().next_multiple_of(32) as u64, args)?;
            if nums[0] > 0 {
                let by = SortBy::low_bits(u32::BITS - (num as u32).leading_zeros());
                let (from, to) = (Source::of_keys(from), Pairs::of_keys(to));
                listed.run(stream, &temp, from, offsets.read_only(), to, by, most as usize)?;
            }
            Ok(())
        }
    }
}
