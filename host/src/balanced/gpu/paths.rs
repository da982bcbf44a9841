//! The builder by paths: arrays sorted by radix sort, then put in the order of runs only when these are split on their axis, and whole
//! subtrees in shared memory.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::paths::{
    CLASSES, MAX_PENDING, TILE, balanced_begin_paths, balanced_number_anew, balanced_number_points,
    balanced_partition_by_paths, balanced_put_numbers, pending,
};
use kauri_kernels::balanced::subtrees::{balanced_subtrees, room, rows};
use kauri_kernels::balanced::ties::balanced_find_equal;
use kauri_kernels::policy::{RENUMBER_MAX_RUN, RENUMBER_MIN_POINTS};
use kauri_kernels::thread::coord::Coord;

use crate::balanced::BalancedOptions;
use crate::balanced::gpu::coordinate_sort::CoordinateSort;
use crate::balanced::gpu::{Build, Plan};
use crate::device::{Buffer, Layout, Region};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::stats::Stats;

/// Temporary memory of a build.
pub(crate) struct Paths<C: Coord> {
    num_points: usize,
    /// The level on which points are numbered anew, if they are.
    numbered_level: Option<u32>,
    sort: CoordinateSort<C>,
    /// The array of each axis, and room for one more.
    arrays: Region<u32>,
    /// Of each axis but the first the keys of the points by number.
    keys: Region<C::Key>,
    /// Their ids and paths, twice if they are numbered anew, and a number in its subtree for each.
    names: [Region<u32>; 2],
    paths: [Region<u8>; 2],
    numbers: Region<u16>,
    /// For tickets of tiles, and what tiles publish.
    words: Region<u64>,
    /// How many points are equal to another.
    num_equal: Region<u32>,
}

/// Levels above the subtrees that fit in shared memory.
fn num_upper_levels(num_points: usize, dims: usize) -> u32 {
    let fits = |level: &u32| longest(num_points, *level) <= room(dims);
    (0..32).find(fits).unwrap_or(32)
}

/// Points of the longest run of a level; others have one less, if that.
fn longest(num_points: usize, level: u32) -> usize {
    (num_points + 1).div_ceil(1 << level) - 1
}

/// What is known of points by number: their ids, and their paths.
#[derive(Clone, Copy)]
struct Points<'a> {
    names: SliceMut<'a, u32>,
    paths: SliceMut<'a, u8>,
}

/// A pass over an array, from one place to another.
struct Pass<'a> {
    arrays: [SliceMut<'a, u32>; 2],
    /// Those of the runs that it is in the order of, and how many below it is to be.
    level: u32,
    pending: u32,
    /// Where the medians of that level go, if it is split on the axis of the array.
    medians: SliceMut<'a, u32>,
}

impl<C: Coord> Paths<C> {
    pub(crate) fn plan(layout: &mut Layout, n: usize, dims: usize, options: &BalancedOptions) -> Self {
        let sort = CoordinateSort::plan(layout, n);
        let is_numbered_anew = options.numbered_anew || n >= RENUMBER_MIN_POINTS;
        let fits = |level: &u32| longest(n, *level) <= RENUMBER_MAX_RUN;
        let numbered_level = (1..32).find(fits).filter(|_| is_numbered_anew);
        let anew = if is_numbered_anew { n } else { 0 };
        // Every run has a tile that is not full.
        let num_tiles = n.div_ceil(TILE) + (1 << num_upper_levels(n, dims)) / 2;
        Self {
            num_points: n,
            numbered_level,
            sort,
            arrays: layout.reserve((dims + 1) * n),
            keys: layout.reserve(n * (dims - 1)),
            names: [layout.reserve(n), layout.reserve(anew)],
            paths: [layout.reserve(n), layout.reserve(anew)],
            numbers: layout.reserve(n),
            words: layout.reserve(1 + CLASSES * num_tiles),
            num_equal: layout.reserve(1),
        }
    }

    /// The first `len` places of an array.
    fn array<'a>(&self, build: Build<'a, C>, slot: usize, len: usize) -> SliceMut<'a, u32> {
        // SAFETY: no array is longer than the room for one.
        unsafe { build.temp.view(self.arrays).part(slot * self.num_points, len) }
    }

    /// Sorts the array of an axis, which begins as that of another axis, or as that of all numbers. Points that agree on it stay in order.
    fn sort_axis(&self, build: Build<'_, C>, from: Option<usize>, axis: usize, len: usize) -> Result<()> {
        let array = |slot| self.array(build, slot, len);
        let from = from.map(|slot| array(slot).read_only());
        // SAFETY: there are as many for each axis but the first.
        let keys = unsafe { build.temp.view(self.keys).part((axis - 1) * len, len) };
        self.sort.by_keys(build, keys.read_only(), from, [array(axis), array(build.dims)])
    }

    /// Tells the points of the sorted array that are equal to the one before, in their paths, and how many they are.
    fn find_equal(
        &self,
        build: Build<'_, C>,
        keys: Slice<'_, C::Key>,
        paths: SliceMut<'_, u8>,
    ) -> Result<usize> {
        let Build { stream, temp, coords, dims } = build;
        let num_equal = temp.view(self.num_equal);
        temp.clear(stream, self.num_equal)?;
        temp.clear(stream, self.paths[0])?;
        let args =
            (keys, self.array(build, 0, keys.len()).read_only(), coords, dims as u32, paths, num_equal);
        // SAFETY: arrays of the plan, of which none overlaps another; the word is read when it has been written.
        let num_equal = unsafe {
            stream.launch_items::<balanced_find_equal<C>>(keys.len() as u64, args)?;
            stream.read(num_equal.read_only())?
        };
        Ok(num_equal[0] as usize)
    }

    /// Puts an array in another order; see the kernel.
    fn pass(&self, build: Build<'_, C>, num_nodes: usize, points: Points<'_>, pass: Pass<'_>) -> Result<()> {
        let Build { stream, temp, .. } = build;
        let Pass { arrays: [from, to], level, pending, medians } = pass;
        let longest = if level == 0 { from.len() } else { longest(num_nodes, level) };
        let tiles_a_run = longest.div_ceil(TILE);
        let num_tiles = tiles_a_run << level;
        // SAFETY: a plan has words for all tiles of all levels.
        let words = unsafe { temp.view(self.words).part(0, 1 + CLASSES * num_tiles) };
        // SAFETY: arrays of the plan, of which none overlaps another, and buffers that live until the stream has been waited for.
        unsafe { stream.fill_bytes(words, 0)? };
        let args = (
            from.read_only(),
            to,
            num_nodes as u32,
            level,
            pending,
            points.paths,
            points.names.read_only(),
            medians,
            tiles_a_run as u32,
            words,
        );
        // SAFETY: arrays of the plan, of which none overlaps another, and buffers that live until the stream has been waited for.
        unsafe { stream.launch::<balanced_partition_by_paths>(num_tiles as u64, args) }
    }
}

impl<C: Coord> Plan<C> for Paths<C> {
    fn sort(&self, build: Build<'_, C>, stats: &mut Stats) -> Result<(usize, Option<Buffer<u32>>)> {
        let Build { stream, temp, coords, dims } = build;
        let n = self.num_points;
        let points = Points { names: temp.view(self.names[0]), paths: temp.view(self.paths[0]) };
        let rooms = [self.array(build, 0, n), self.array(build, dims, n)];
        let (keys, may_be_equal) = stats.phase("sort", || self.sort.by_super_key(build, rooms))?;
        let (num_nodes, stays) = stats.phase("dedupe", || {
            let all = self.array(build, 0, n);
            let num_equal =
                if may_be_equal { self.find_equal(build, keys.read_only(), points.paths)? } else { 0 };
            let num_nodes = n - num_equal;
            if num_equal == 0 {
                // SAFETY: arrays of the plan, of which none overlaps another, and buffers that live until the stream has been waited for.
                unsafe { stream.copy(points.names, all.read_only())? };
                return Ok((n, None));
            }
            let pass = Pass { arrays: [all, points.names], level: 0, pending: 0, medians: empty_view() };
            self.pass(build, num_nodes, points, pass)?;
            // SAFETY: no more points are left than there were.
            let kept = unsafe { points.names.part(0, num_nodes) };
            Ok((num_nodes, Some(build.stays(all.read_only(), kept.read_only())?)))
        })?;
        stats.phase("sort", || {
            // SAFETY: arrays of the plan, of which none overlaps another, and buffers that live until the stream has been waited for.
            unsafe {
                let names = points.names.part(0, num_nodes).read_only();
                let args = (coords, dims as u32, names, temp.view(self.keys));
                stream.launch_items::<balanced_number_points<C>>(num_nodes as u64, args)?;
            }
            // From one axis to the next: in the order of its super key, points that agree on the axis before it are in the order of that.
            for axis in (1..dims).rev() {
                let from = (axis + 1 < dims).then_some(axis + 1);
                self.sort_axis(build, from, axis, num_nodes)?;
            }
            stream.synchronize()
        })?;
        Ok((num_nodes, stays))
    }

    fn makes_children(&self) -> bool {
        false
    }

    fn partition(
        &self,
        build: Build<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        _children: SliceMut<'_, u32>,
    ) -> Result<()> {
        let Build { stream, temp, dims, .. } = build;
        let (num_dims, upper) = (dims as u32, num_upper_levels(num_nodes, dims));
        // Which array each axis has, and the one that none has.
        let mut slots: Vec<_> = (0..dims).collect();
        let mut spare = dims;
        let array = |slot| self.array(build, slot, num_nodes);
        let both =
            [0, 1].map(|i| Points { names: temp.view(self.names[i]), paths: temp.view(self.paths[i]) });
        let [mut points, mut room] = both;
        let args = (points.names.read_only(), array(0), points.paths, medians);
        // SAFETY: arrays of the plan, of which none overlaps another, and buffers that live until the stream has been waited for.
        unsafe { stream.launch_items::<balanced_begin_paths>(num_nodes as u64, args)? };
        for level in 1..=upper {
            // Below the last of these levels no array waits; and what a level tells its points is told when all have taken what was before.
            let primary = (level < upper).then_some(level % num_dims);
            let others = (0..num_dims).filter(|&axis| {
                Some(axis) != primary && {
                    let waited = pending(level, axis, num_dims, 0);
                    waited == MAX_PENDING || (level == upper && waited > 0)
                }
            });
            for axis in others.chain(primary) {
                let medians = if Some(axis) == primary { medians } else { empty_view() };
                let (pending, slot) = (pending(level, axis, num_dims, 0), &mut slots[axis as usize]);
                let pass =
                    Pass { arrays: [array(*slot), array(spare)], level: level - pending, pending, medians };
                self.pass(build, num_nodes, points, pass)?;
                std::mem::swap(slot, &mut spare);
            }
            if let (Some(primary), true) = (primary, self.numbered_level == Some(level)) {
                let numbers = temp.view(self.sort.keys[0].of_type::<u32>());
                let (of_primary, paths) = (array(slots[primary as usize]), points.paths.read_only());
                let args =
                    (of_primary, level, points.names.read_only(), paths, numbers, room.names, room.paths);
                // SAFETY: arrays of the plan, of which none overlaps another; keys have at least as many bytes as numbers.
                unsafe {
                    stream.fill_bytes(numbers, 0xff)?;
                    stream.launch_items::<balanced_number_anew>(num_nodes as u64, args)?;
                    for other in (0..dims).filter(|&other| other != primary as usize) {
                        let args = (numbers.read_only(), array(slots[other]));
                        stream.launch_items::<balanced_put_numbers>(num_nodes as u64, args)?;
                    }
                }
                std::mem::swap(&mut points, &mut room);
            }
        }
        let all_slots =
            slots.iter().enumerate().fold(0, |all, (axis, &slot)| all | (slot as u32) << (4 * axis));
        let arrays = temp.view(self.arrays).read_only();
        let numbers = temp.view(self.numbers);
        let names = points.names.read_only();
        let args = (arrays, all_slots, num_dims, num_nodes as u32, upper, names, numbers, medians);
        // SAFETY: arrays of the plan, of which none overlaps another, and buffers that live until the stream has been waited for.
        unsafe {
            if dims <= 4 {
                stream.launch::<balanced_subtrees<4, { rows(4) }>>(1 << upper, args)
            } else {
                stream.launch::<balanced_subtrees<8, { rows(8) }>>(1 << upper, args)
            }
        }
    }
}
