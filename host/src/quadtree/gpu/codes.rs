//! Build from Morton codes, in rounds of several levels.
//!
//! A round sorts the codes of its points, counts and lists the nodes that split, and emits their children. The first round has one root,
//! the root of the tree. The roots of a later round are the nodes that still have too many points at the end of the round before. At
//! last, the points of each leaf are brought into input order.

mod plan;

pub(crate) use plan::{TEMP_BYTES, TEMP_SPLIT_BYTES, workspace_bytes};

use crate::device::{Buffer, Layout, Stream, Temp, Workspace};
use crate::error::Result;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::planned::carve;
use crate::primitives::radix_sort::SortBy;
use crate::primitives::reduce::Reduce;
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::segmented_sort::SegmentedSort;
use crate::quadtree::gpu::build::Build;
use crate::quadtree::node::check_num_nodes;
use cuda_std::mem::SliceMut;
use kauri_kernels::policy::{QUADTREE_WARP_POINTS, SEGMENT_SHORT_ITEMS};
use kauri_kernels::quadtree::codes::children::{NextRoots, SplitRound, Splits, quadtree_children};
use kauri_kernels::quadtree::codes::order::quadtree_order;
use kauri_kernels::quadtree::codes::splits::{Keys, quadtree_count, quadtree_rows, quadtree_splits};
use kauri_kernels::quadtree::codes::{Roots, quadtree_codes, quadtree_deep_codes, quadtree_place};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::{Max, Sum};
use kauri_kernels::thread::radix_key::RadixKey;
use kauri_kernels::warp::look_back::Decoupled;
use plan::{
    FirstRound, LaterRound, LaterSort, LeafOrder, MAX_ROUND_LEVELS, Round, first_round_levels,
    later_round_levels,
};

/// Builds the subtrees. Returns the number of nodes that split on each level, from that of the roots on.
///
/// # Safety
/// As [`Build::run`].
pub(crate) unsafe fn build<C: Coord, const D: usize>(
    build: &mut Build<'_, C, D>,
    workspace: &mut Workspace,
) -> Result<Vec<u32>> {
    let first_level = build.roots[0].level;
    let mut builder = RoundBuilder { build, splits: Vec::new(), round_ends: 0 };
    // SAFETY: the caller's promise.
    unsafe {
        let (mut level, mut roots) = match first_level {
            0 => builder.first_round(workspace)?,
            level => (level, Some(RootBuffers::of_build(builder.build)?)),
        };
        while let Some(round_roots) = roots {
            (level, roots) = builder.later_round(workspace, round_roots, level)?;
        }
        builder.order_leaves(workspace)?;
    }
    Ok(builder.splits)
}

/// The roots of a later round.
struct RootBuffers {
    /// Their node numbers.
    nodes: Buffer<u32>,
    /// The first point of each in tree order.
    starts: Buffer<u32>,
    /// The number of points of each, and a 0 at the end.
    lens: Buffer<u64>,
}

impl RootBuffers {
    /// Copies the roots of a build to the device.
    fn of_build<C, const D: usize>(build: &Build<'_, C, D>) -> Result<Self> {
        let (stream, roots) = (build.stream, build.roots);
        let numbers: Vec<u32> = (0..roots.len() as u32).collect();
        let starts: Vec<u32> = roots.iter().map(|root| root.start).collect();
        let lens: Vec<u64> = roots.iter().map(|root| root.len().into()).chain([0]).collect();
        Ok(Self {
            nodes: Buffer::from_slice(stream, &numbers, "nodes of a quadtree")?,
            starts: Buffer::from_slice(stream, &starts, "nodes of a quadtree")?,
            lens: Buffer::from_slice(stream, &lens, "nodes of a quadtree")?,
        })
    }

    /// Allocates memory for the roots of the next round.
    fn with_len(stream: &Stream, len: usize) -> Result<Self> {
        let gpu = stream.gpu();
        Ok(Self {
            nodes: Buffer::uninitialized(gpu, len, "nodes of a quadtree")?,
            starts: Buffer::uninitialized(gpu, len, "nodes of a quadtree")?,
            lens: Buffer::of_bytes(stream, len + 1, 0, "nodes of a quadtree")?,
        })
    }
}

/// A build in progress.
struct RoundBuilder<'a, 'b, C, const D: usize> {
    build: &'a mut Build<'b, C, D>,
    /// The number of nodes that split on each level so far.
    splits: Vec<u32>,
    /// A bit for each level that a round ended with.
    round_ends: u64,
}

impl<C: Coord, const D: usize> RoundBuilder<'_, '_, C, D> {
    /// Runs the first round, from the root of the tree on. Returns the level and the roots of the next.
    ///
    /// # Safety
    /// As [`Build::run`].
    unsafe fn first_round(&mut self, workspace: &mut Workspace) -> Result<(u32, Option<RootBuffers>)> {
        let &mut Build { stream, coords, leaf_points, depth, ref frame, ref ids, .. } = self.build;
        let n = ids.len();
        let num_levels = first_round_levels(n, D, leaf_points, depth);
        let plan = |layout: &mut _| FirstRound::plan(layout, n, num_levels);
        let (FirstRound { round, sort, zeros }, temp) = carve(stream, workspace, "quadtree", plan)?;
        temp.clear(zeros)?;
        let zero = temp.view(zeros.of_type::<u32>()).read_only();
        let roots = Roots { nodes: zero, starts: zero, offsets: temp.view(zeros).read_only() };
        let by = SortBy::low_bits(num_levels * D as u32);
        let [keys, other_keys] = round.keys.map(|keys| temp.view(keys));
        // The last pass must write to the tree's ids. A sort may read the second of the buffers that it writes.
        // SAFETY: the whole buffer, which is neither moved nor freed during the call.
        let ids = unsafe { SliceMut::from_raw_parts(ids.as_raw() as *mut u32, n) };
        let in_tree = Pairs { keys, values: ids };
        let in_temp = Pairs { keys: other_keys, values: temp.view(round.ids[1]) };
        let to = if by.num_passes() % 2 == 1 { [in_tree, in_temp] } else { [in_temp, in_tree] };
        // SAFETY: the arrays of the plan do not overlap; the rest is the caller's promise.
        unsafe {
            let args = (coords, frame.slice(), num_levels, to[1].keys, to[1].values);
            stream.launch_items::<quadtree_codes<C, D>>(n as u64, args)?;
            let [sorted, free] = sort.run(&temp, by, to[1].read_only(), to)?;
            let keys = Keys { keys: sorted.keys.read_only(), num_levels, leaf_points };
            Ok((num_levels, self.cut(&temp, &round, keys, free.keys, roots, 0)?))
        }
    }

    /// Runs a round from level `level` on. Returns the level and the roots of the next.
    ///
    /// # Safety
    /// As [`Build::run`].
    unsafe fn later_round(
        &mut self,
        workspace: &mut Workspace,
        roots: RootBuffers,
        level: u32,
    ) -> Result<(u32, Option<RootBuffers>)> {
        let &mut Build { stream, coords, leaf_points, depth, .. } = self.build;
        let num_roots = roots.nodes.len();
        let (offsets, [len, largest]) = offsets(stream, workspace, &roots.lens)?;
        let by_segment = largest as usize <= SEGMENT_SHORT_ITEMS;
        let (len, root_bits) = (len as usize, num_roots.next_power_of_two().ilog2());
        let num_levels = if by_segment {
            MAX_ROUND_LEVELS.min((u64::BITS - root_bits) / D as u32)
        } else {
            later_round_levels(len / num_roots, root_bits, D, leaf_points)
        };
        let num_levels = num_levels.min(depth - level);
        let plan = |layout: &mut _| LaterRound::plan(layout, len, num_levels, by_segment);
        let (LaterRound { round, sort }, temp) = carve(stream, workspace, "quadtree", plan)?;
        // SAFETY: the buffer has one element more.
        let begins = unsafe { offsets.slice().part(0, num_roots) };
        let roots = Roots { nodes: roots.nodes.slice(), starts: roots.starts.slice(), offsets: begins };
        let code_bits = num_levels * D as u32;
        let pairs = [0, 1].map(|i| Pairs { keys: temp.view(round.keys[i]), values: temp.view(round.ids[i]) });
        // SAFETY: the arrays of the plan do not overlap; the rest is the caller's promise.
        unsafe {
            let (frame, ids) = (self.build.frame.slice(), self.build.ids.slice());
            let Pairs { keys, values } = pairs[1];
            let args = (coords, frame, level, num_levels, roots, ids, keys, values);
            stream.launch_items::<quadtree_deep_codes<C, D>>(len as u64, args)?;
            let from = pairs[1].read_only();
            let [sorted, free] = match sort {
                LaterSort::Segments(listed) => {
                    let (offsets, by) = (offsets.slice(), SortBy::low_bits(code_bits));
                    let sort = SegmentedSort { source: from, offsets, target: pairs[0], by };
                    listed.sort(&temp, sort, largest as usize)?;
                    pairs
                }
                LaterSort::All(sort) => {
                    sort.run(&temp, SortBy::low_bits(code_bits + root_bits), from, pairs)?
                }
            };
            let sorted = sorted.read_only();
            let args = (sorted.keys, sorted.values, code_bits, roots, self.build.ids.slice_mut());
            stream.launch_items::<quadtree_place>(len as u64, args)?;
            let keys = Keys { keys: sorted.keys, num_levels, leaf_points };
            Ok((level + num_levels, self.cut(&temp, &round, keys, free.keys, roots, level)?))
        }
    }

    /// Cuts the nodes of a round from its sorted keys. Returns the nodes that have too many points on the level below the round, unless
    /// that is the last level. `free_keys` is scratch memory as long as the keys.
    ///
    /// # Safety
    /// As [`Build::run`].
    unsafe fn cut<K: RadixKey>(
        &mut self,
        temp: &Temp<'_>,
        round: &Round<K>,
        keys: Keys<'_, K>,
        free_keys: SliceMut<'_, K>,
        roots: Roots<'_>,
        level: u32,
    ) -> Result<Option<RootBuffers>> {
        let &mut Build { stream, frame_levels, depth, ref mut nodes, .. } = self.build;
        let (counts, rows, num_levels) = (temp.view(round.counts), temp.view(round.rows), keys.num_levels);
        self.round_ends |= 1 << (level + num_levels);
        let num_threads = 32 * keys.keys.len().div_ceil(QUADTREE_WARP_POINTS) as u64;
        // SAFETY: rows and counts are as long as planned, the other arrays as long as counted; the rest is the caller's promise.
        unsafe {
            stream.launch_items::<quadtree_count<K, D>>(num_threads, (keys, counts))?;
            let from = counts.read_only();
            round.scan.run::<u32, Sum, Decoupled>(temp, from, counts, ScanKind::Exclusive)?;
            stream.launch::<quadtree_rows>(1, (from, rows))?;
            let begins = stream.read(rows.read_only())?;
            let (num_inner, num_splits) = (begins[num_levels as usize], begins[num_levels as usize + 1]);
            // The count of a level fits in 32 bits, but the sums in `begins` may wrap around.
            let level_splits: Vec<_> = begins.windows(2).map(|row| row[1].wrapping_sub(row[0])).collect();
            let sum = |splits: &[u32]| splits.iter().map(|&num| u64::from(num)).sum();
            check_num_nodes(0, sum(&level_splits), 0)?;
            let level_splits = &level_splits[..num_levels as usize];
            check_num_nodes(nodes.nodes.len(), sum(level_splits), D)?;
            self.splits.extend(level_splits);
            // The list of nodes that split fits in the free keys, except for very small leaves.
            let (mut own, free_words) = (None, size_of::<K>() / size_of::<u32>() * free_keys.len());
            let positions = if num_splits as usize <= free_words {
                SliceMut::from_raw_parts(free_keys.as_ptr().cast::<u32>(), num_splits as usize)
            } else {
                let label = "nodes of a quadtree that split";
                own.insert(Buffer::uninitialized(stream.gpu(), num_splits as usize, label)?).slice_mut()
            };
            stream.launch_items::<quadtree_splits<K, D>>(num_threads, (keys, from, positions))?;
            let first_node = nodes.grow(stream, (num_inner as usize) << D)?;
            let is_last = level + num_levels == depth;
            let num_next = if is_last { 0 } else { (num_splits - num_inner) as usize };
            let mut next = RootBuffers::with_len(stream, num_next)?;
            let splits = Splits { positions: positions.read_only(), counts: from, rows: rows.read_only() };
            let next_roots = NextRoots {
                nodes: next.nodes.slice_mut(),
                starts: next.starts.slice_mut(),
                lens: next.lens.slice_mut(),
            };
            let round = SplitRound { keys, splits, roots, level, frame_levels, first_node };
            let args = (round, nodes.view(), next_roots);
            let num_threads = u64::from(num_splits).next_multiple_of(32);
            stream.launch_items::<quadtree_children<K, D>>(num_threads, args)?;
            Ok((num_next > 0).then_some(next))
        }
    }

    /// Brings the points of each leaf into input order.
    ///
    /// # Safety
    /// As [`Build::run`].
    unsafe fn order_leaves(&mut self, workspace: &mut Workspace) -> Result<()> {
        let &mut Build { stream, leaf_points, ref nodes, ids: ref mut tree_ids, .. } = self.build;
        let num = tree_ids.len();
        let plan = |layout: &mut _| LeafOrder::plan(layout, num, leaf_points);
        let (LeafOrder { ids, offsets, max_listed, listed }, temp) =
            carve(stream, workspace, "quadtree", plan)?;
        let (ids, offsets) = (temp.view(ids), temp.view(offsets));
        let ([short, long], num_listed) = listed.clear(&temp)?;
        // SAFETY: the arrays of the plan do not overlap; the rest is the caller's promise.
        unsafe {
            stream.copy(ids, tree_ids.slice())?;
            let (from, to, nodes) = (ids.read_only(), tree_ids.slice_mut(), nodes.nodes.bits());
            let args = (nodes, leaf_points, self.round_ends, from, to, offsets, short, long, num_listed);
            stream.launch_items::<quadtree_order>(nodes.len().next_multiple_of(32) as u64, args)?;
            if max_listed[0] > 0 {
                let by = SortBy::numbers_below(num);
                let (source, target) = (Source::of_keys(from), Pairs::of_keys(to));
                let sort = SegmentedSort { source, offsets: offsets.read_only(), target, by };
                listed.sort_listed(&temp, sort, leaf_points as usize)?;
            }
            Ok(())
        }
    }
}

/// Scans the lengths of roots, which end with a 0. Returns the offsets, and on the host the sum and the maximum of the lengths.
fn offsets(
    stream: &Stream,
    workspace: &mut Workspace,
    lens: &Buffer<u64>,
) -> Result<(Buffer<u64>, [u64; 2])> {
    let (num, mut layout) = (lens.len(), Layout::new());
    let scan = Scan::plan::<u64, Decoupled>(&mut layout, num);
    let (reduce, max) = (Reduce::<u64>::plan(&mut layout, num), layout.reserve::<u64>(1));
    let temp = workspace.carve(stream, &layout, "quadtree")?;
    let (mut offsets, max) =
        (Buffer::uninitialized(stream.gpu(), num, "points of a quadtree")?, temp.view(max));
    // SAFETY: the buffers have one length, and wait for the device before they are freed.
    unsafe {
        let (from, to) = (lens.slice(), offsets.slice_mut());
        scan.run::<u64, Sum, Decoupled>(&temp, from, to, ScanKind::Exclusive)?;
        reduce.run::<Max>(&temp, from, max)?;
        let sum = stream.read(to.part(num - 1, 1).read_only())?[0];
        let max = stream.read(max.read_only())?[0];
        Ok((offsets, [sum, max]))
    }
}
