//! Build by path codes: sorts one array per axis with radix sorts. An array is partitioned into the runs of a level only when that level
//! splits on its axis. Blocks finish whole subtrees in shared memory.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::coordinate_sort::balanced_find_equal;
use kauri_kernels::balanced::paths::{
    CLASSES, MAX_PENDING, NumberedPoints, Pass, TILE, balanced_begin_paths, balanced_number_points,
    balanced_partition_by_paths, balanced_put_numbers, balanced_renumber, pending,
};
use kauri_kernels::balanced::subtrees::{balanced_subtrees, capacity, rows};
use kauri_kernels::policy::{RENUMBER_MAX_RUN, RENUMBER_MIN_POINTS};
use kauri_kernels::thread::coord::Float;

use crate::balanced::gpu::coordinate_sort::CoordinateSort;
use crate::balanced::gpu::plan::{BuildContext, BuildPlan, Phases};
use crate::balanced::options::BalancedOptions;
use crate::device::{Buffer, Layout, Region};
use crate::error::Result;
use crate::primitives::pairs::empty_view;

/// Scratch memory of a build.
pub(crate) struct Paths<C: Float> {
    num_points: usize,
    /// The level on which points are renumbered, if at all: the points of a run then have consecutive numbers, and their path codes are
    /// close in memory.
    renumber_level: Option<u32>,
    sort: CoordinateSort<C>,
    /// The array of each axis, and a spare array to partition to.
    arrays: Region<u32>,
    /// The keys of the points by number, for each axis but the first.
    keys: Region<C::Key>,
    /// The ids of the points by number; the second region is used if points are renumbered.
    ids: [Region<u32>; 2],
    /// The path codes of the points by number, as `ids`.
    paths: [Region<u8>; 2],
    /// The number of each point within its subtree.
    local_numbers: Region<u16>,
    /// The ticket counter of the tiles, and the counts that tiles publish for look-back.
    look_back: Region<u64>,
    /// The number of points that equal their predecessor.
    num_equal: Region<u32>,
}

/// Returns the number of levels above the subtrees that fit in shared memory.
fn num_upper_levels(num_points: usize, dims: usize) -> u32 {
    let fits = |level: &u32| longest_run(num_points, *level) <= capacity(dims);
    (0..32).find(fits).unwrap_or(32)
}

/// Returns the length of the longest run of a level. The others are at most one shorter.
fn longest_run(num_points: usize, level: u32) -> usize {
    (num_points + 1).div_ceil(1 << level) - 1
}

/// The ids and the path codes of the points, by number.
#[derive(Clone, Copy)]
struct Points<'a> {
    ids: SliceMut<'a, u32>,
    paths: SliceMut<'a, u8>,
}

impl<C: Float> Paths<C> {
    pub(crate) fn plan(layout: &mut Layout, n: usize, dims: usize, options: &BalancedOptions) -> Self {
        let sort = CoordinateSort::plan(layout, n);
        let sort = if options.are_integers { sort.of_integers() } else { sort };
        let renumbers = options.renumber || n >= RENUMBER_MIN_POINTS;
        let fits = |level: &u32| longest_run(n, *level) <= RENUMBER_MAX_RUN;
        let renumber_level = (1..32).find(fits).filter(|_| renumbers);
        let renumbered = if renumbers { n } else { 0 };
        // Every run has one tile that is not full.
        let num_tiles = n.div_ceil(TILE) + (1 << num_upper_levels(n, dims)) / 2;
        Self {
            num_points: n,
            renumber_level,
            sort,
            arrays: layout.reserve((dims + 1) * n),
            keys: layout.reserve(n * (dims - 1)),
            ids: [layout.reserve(n), layout.reserve(renumbered)],
            paths: [layout.reserve(n), layout.reserve(renumbered)],
            local_numbers: layout.reserve(n),
            look_back: layout.reserve(1 + CLASSES * num_tiles),
            num_equal: layout.reserve(1),
        }
    }

    /// Returns the first `len` entries of an array.
    fn array<'a>(&self, context: BuildContext<'a, C>, slot: usize, len: usize) -> SliceMut<'a, u32> {
        // SAFETY: each array is planned for `num_points` entries, and `len` is at most that.
        unsafe { context.temp.view(self.arrays).part(slot * self.num_points, len) }
    }

    /// Sorts the array of an axis by its keys, stably. The input is the array of axis `from`, or all numbers in order.
    fn sort_axis(
        &self,
        context: BuildContext<'_, C>,
        from: Option<usize>,
        axis: usize,
        len: usize,
    ) -> Result<()> {
        let array = |slot| self.array(context, slot, len);
        let from = from.map(|slot| array(slot).read_only());
        // SAFETY: the plan has keys for each axis but the first.
        let keys = unsafe { context.temp.view(self.keys).part((axis - 1) * len, len) };
        self.sort.by_keys(context, keys.read_only(), from, [array(axis), array(context.dims)])
    }

    /// Marks the path code of each point that equals its predecessor in the sorted array. Returns the number of these points.
    fn find_equal(
        &self,
        context: BuildContext<'_, C>,
        keys: Slice<'_, C::Key>,
        paths: SliceMut<'_, u8>,
    ) -> Result<usize> {
        let BuildContext { temp, coords, dims } = context;
        let num_equal = temp.view(self.num_equal);
        temp.clear(self.num_equal)?;
        temp.clear(self.paths[0])?;
        let args =
            (keys, self.array(context, 0, keys.len()).read_only(), coords, dims as u32, paths, num_equal);
        // SAFETY: the arrays of a plan do not overlap, and the read waits for the kernel.
        let num_equal = unsafe {
            temp.stream.launch_items::<balanced_find_equal<C>>(keys.len() as u64, args)?;
            temp.stream.read(num_equal.read_only())?
        };
        Ok(num_equal[0] as usize)
    }

    /// Partitions an array by path codes.
    fn pass(
        &self,
        context: BuildContext<'_, C>,
        num_nodes: usize,
        points: Points<'_>,
        pass: Pass<'_>,
    ) -> Result<()> {
        let BuildContext { temp, .. } = context;
        let longest = if pass.level == 0 { pass.from.len() } else { longest_run(num_nodes, pass.level) };
        let tiles_per_run = longest.div_ceil(TILE);
        let num_tiles = tiles_per_run << pass.level;
        // SAFETY: the plan has words for the tiles of any level.
        let look_back = unsafe { temp.view(self.look_back).part(0, 1 + CLASSES * num_tiles) };
        let points = NumberedPoints { ids: points.ids.read_only(), paths: points.paths };
        let args = (pass, points, num_nodes as u32, tiles_per_run as u32, look_back);
        // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
        unsafe {
            temp.stream.fill_bytes(look_back, 0)?;
            temp.stream.launch::<balanced_partition_by_paths>(num_tiles as u64, args)
        }
    }
}

impl<C: Float> BuildPlan<C> for Paths<C> {
    fn sort(
        &self,
        context: BuildContext<'_, C>,
        representatives: &mut Buffer<u32>,
        phases: &mut Phases<'_>,
    ) -> Result<usize> {
        let BuildContext { temp, coords, dims } = context;
        let n = self.num_points;
        let points = Points { ids: temp.view(self.ids[0]), paths: temp.view(self.paths[0]) };
        let buffers = [self.array(context, 0, n), self.array(context, dims, n)];
        let (keys, may_be_equal) = phases.run("sort", || self.sort.by_super_key(context, buffers))?;
        let num_nodes = phases.run("dedupe", || {
            let all = self.array(context, 0, n);
            let num_equal =
                if may_be_equal { self.find_equal(context, keys.read_only(), points.paths)? } else { 0 };
            let num_nodes = n - num_equal;
            if num_equal == 0 {
                // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
                unsafe { temp.stream.copy(points.ids, all.read_only())? };
                return Ok(n);
            }
            let (from, to) = (all.read_only(), points.ids);
            let pass = Pass { from, to, level: 0, pending: 0, medians: empty_view() };
            self.pass(context, num_nodes, points, pass)?;
            // SAFETY: `num_nodes` is at most the number of points.
            let kept = unsafe { points.ids.part(0, num_nodes) };
            context.write_representatives(all.read_only(), kept.read_only(), representatives)?;
            Ok(num_nodes)
        })?;
        phases.run("sort", || {
            // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
            unsafe {
                let ids = points.ids.part(0, num_nodes).read_only();
                let args = (coords, dims as u32, ids, temp.view(self.keys));
                temp.stream.launch_items::<balanced_number_points<C>>(num_nodes as u64, args)?;
            }
            // Each axis starts from the array of the next axis: that order is the super key of this axis without its first coordinate, so a
            // stable sort by that coordinate completes it.
            for axis in (1..dims).rev() {
                let from = (axis + 1 < dims).then_some(axis + 1);
                self.sort_axis(context, from, axis, num_nodes)?;
            }
            Ok(num_nodes)
        })
    }

    fn partition(
        &self,
        context: BuildContext<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        _children: SliceMut<'_, u32>,
    ) -> Result<()> {
        let BuildContext { temp, dims, .. } = context;
        let (num_dims, upper) = (dims as u32, num_upper_levels(num_nodes, dims));
        // The slot of the array of each axis, and the slot of the spare array.
        let mut slots: Vec<_> = (0..dims).collect();
        let mut spare = dims;
        let array = |slot| self.array(context, slot, num_nodes);
        let [mut points, mut renumbered] =
            [0, 1].map(|i| Points { ids: temp.view(self.ids[i]), paths: temp.view(self.paths[i]) });
        let args = (points.ids.read_only(), array(0), points.paths, medians);
        // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
        unsafe { temp.stream.launch_items::<balanced_begin_paths>(num_nodes as u64, args)? };
        for level in 1..=upper {
            // An array is pending by the number of levels that it has not been partitioned by. A path code holds only `MAX_PENDING` levels,
            // so arrays that are this late catch up before the primary array, whose pass writes the next bit. On the last level all catch
            // up.
            let primary = (level < upper).then_some(level % num_dims);
            let others = (0..num_dims).filter(|&axis| {
                Some(axis) != primary && {
                    let pending = pending(level, axis, num_dims, 0);
                    pending == MAX_PENDING || (level == upper && pending > 0)
                }
            });
            for axis in others.chain(primary) {
                let medians = if Some(axis) == primary { medians } else { empty_view() };
                let (pending, slot) = (pending(level, axis, num_dims, 0), &mut slots[axis as usize]);
                let (from, to) = (array(*slot).read_only(), array(spare));
                let pass = Pass { from, to, level: level - pending, pending, medians };
                self.pass(context, num_nodes, points, pass)?;
                std::mem::swap(slot, &mut spare);
            }
            if let (Some(primary), true) = (primary, self.renumber_level == Some(level)) {
                let new_numbers = temp.view(self.sort.keys[0].of_type::<u32>());
                let (array_of_primary, ids) = (array(slots[primary as usize]), points.ids.read_only());
                let paths = points.paths.read_only();
                let args =
                    (array_of_primary, level, ids, paths, new_numbers, renumbered.ids, renumbered.paths);
                // SAFETY: the arrays of a plan do not overlap; a key has at least as many bytes as a number.
                unsafe {
                    temp.stream.fill_bytes(new_numbers, 0xff)?;
                    temp.stream.launch_items::<balanced_renumber>(num_nodes as u64, args)?;
                    for other in (0..dims).filter(|&other| other != primary as usize) {
                        let args = (new_numbers.read_only(), array(slots[other]));
                        temp.stream.launch_items::<balanced_put_numbers>(num_nodes as u64, args)?;
                    }
                }
                std::mem::swap(&mut points, &mut renumbered);
            }
        }
        let all_slots =
            slots.iter().enumerate().fold(0, |all, (axis, &slot)| all | (slot as u32) << (4 * axis));
        let arrays = temp.view(self.arrays).read_only();
        let local_numbers = temp.view(self.local_numbers);
        let ids = points.ids.read_only();
        let args = (arrays, all_slots, num_dims, num_nodes as u32, upper, ids, local_numbers, medians);
        // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
        unsafe {
            if dims <= 4 {
                temp.stream.launch::<balanced_subtrees<4, { rows(4) }>>(1 << upper, args)
            } else {
                temp.stream.launch::<balanced_subtrees<8, { rows(8) }>>(1 << upper, args)
            }
        }
    }
}
