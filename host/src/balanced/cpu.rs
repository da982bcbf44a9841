//! Balanced trees on the CPU (Brown 2015): sorts one array per axis, then partitions them depth first, both subtrees in parallel.

pub(crate) mod index;

use crate::point::with_dims;
use kauri_kernels::balanced::{NONE, Run, medians_len};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Float;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use crate::balanced::backend::Backend;
#[cfg(feature = "io")]
use crate::balanced::backend::Sections;
use crate::balanced::super_key;
use crate::error::{Error, Result};
use crate::memory::{self, Items, MemoryPlan, Parts};
use crate::once::Once;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::query::backend::QueryBackend;
use crate::query::cpu::CpuIndex;
use crate::stats::Stats;

/// One task partitions a run of at most this many points.
const MAX_TASK_POINTS: usize = 4096;
/// One task partitions this many points of an array.
const PARTITION_TASK_POINTS: usize = 1 << 16;

/// A tree in host memory.
pub(crate) struct CpuTree<C: Float> {
    pub(super) dims: usize,
    pub(super) coords: Arc<Items<C>>,
    pub(super) num_nodes: usize,
    pub(super) medians: Items<u32>,
    pub(super) representatives: Items<u32>,
    pub(super) index: Once<CpuIndex<C>>,
}

/// Returns the bytes of a tree, with its coordinates, and the temporary bytes of its build: one array per axis, and the keys of one sort.
/// Partitions take less: a scratch array, and a byte per point.
pub(crate) fn memory_plan<C: Float>(num_points: usize, dims: usize) -> MemoryPlan {
    let tree_bytes = num_points * dims * size_of::<C>() + 4 * medians_len(num_points as u32);
    let temp_bytes = num_points * (4 * dims + size_of::<(C::Key, u32)>());
    MemoryPlan { tree_bytes: tree_bytes as u64, temp_bytes: temp_bytes as u64 }
}

impl<C: Float> CpuTree<C> {
    pub(crate) fn build(coords: &[C], dims: usize, stats: &mut Stats) -> Result<Self> {
        with_dims!(dims, D => build(coords.as_chunks::<D>().0, stats))
    }
}

/// Compares two points, given by their ids, by the super key that begins on an axis.
fn compare<C: Float, const D: usize>(points: &[[C; D]], axis: usize, a: u32, b: u32) -> Ordering {
    super_key::compare(&points[a as usize], &points[b as usize], axis)
}

fn build<C: Float, const D: usize>(points: &[[C; D]], stats: &mut Stats) -> Result<CpuTree<C>> {
    let n = points.len();
    let mut coords = memory::vec_with_capacity(n * D, "coordinates of the points")?;
    stats.phase("init", || coords.extend_from_slice(points.as_flattened()));
    let mut arrays: [Vec<u32>; D] = std::array::from_fn(|_| Vec::new());
    stats.phase("sort", || {
        arrays.iter_mut().enumerate().try_for_each(|(axis, array)| {
            *array = sorted(points, axis)?;
            Ok(())
        })
    })?;
    let representatives = stats.phase("dedupe", || {
        let representatives = representatives(points, &arrays[0])?;
        if !representatives.is_empty() {
            arrays.par_iter_mut().enumerate().for_each(|(axis, array)| {
                array.dedup_by(|&mut a, &mut b| compare(points, axis, a, b).is_eq());
            });
        }
        Ok(representatives)
    })?;
    let num_nodes = arrays[0].len();
    let num_medians = medians_len(num_nodes as u32);
    let mut medians = memory::vec_with_capacity(num_medians, "medians of the tree")?;
    medians.resize_with(num_medians, || AtomicU32::new(NONE));
    let mut scratch = memory::filled(num_nodes, 0, "scratch memory of partitions")?;
    let mut sides = memory::vec_with_capacity(n, "sides of points")?;
    sides.resize_with(n, || AtomicU8::new(0));
    stats.phase("partition", || {
        let build = Build { sides: &sides, medians: &medians };
        build.subtree(arrays.each_mut().map(|array| &mut array[..]), &mut scratch, 0, 0);
    });
    let medians = medians.into_iter().map(AtomicU32::into_inner).collect::<Vec<_>>().into();
    let (coords, representatives) = (Arc::new(coords.into()), representatives.into());
    Ok(CpuTree { dims: D, coords, num_nodes, medians, representatives, index: Once::new() })
}

/// Returns the ids of the points, sorted by the super key that begins on an axis; equal points are in the order of their ids.
fn sorted<C: Float, const D: usize>(points: &[[C; D]], axis: usize) -> Result<Vec<u32>> {
    let keyed = |id: usize| (points[id][axis].key(), id as u32);
    let mut keys = parallel::collect(points.len(), TASK_ITEMS, "keys of a sort", keyed)?;
    // Comparisons read the points only where keys are equal.
    keys.par_sort_unstable_by(|&(key, a), &(other, b)| {
        key.cmp(&other).then_with(|| compare(points, axis, a, b)).then(a.cmp(&b))
    });
    parallel::collect(keys.len(), TASK_ITEMS, "sorted arrays", |i| keys[i].1)
}

/// Returns for each point the first point that equals it. Empty if all points are distinct. `sorted` is the array of the first axis.
fn representatives<C: Float, const D: usize>(points: &[[C; D]], sorted: &[u32]) -> Result<Vec<u32>> {
    let are_equal = |pair: &[u32]| compare(points, 0, pair[0], pair[1]).is_eq();
    let has_equal =
        |range: Range<usize>| sorted[range.start..sorted.len().min(range.end + 1)].windows(2).any(are_equal);
    if !Ranges::new(sorted.len(), TASK_ITEMS).any(&has_equal) {
        return Ok(Vec::new());
    }
    let mut representatives = memory::collect(0..points.len() as u32, "representatives of the points")?;
    for pair in sorted.windows(2).filter(|pair| are_equal(pair)) {
        representatives[pair[1] as usize] = representatives[pair[0] as usize];
    }
    Ok(representatives)
}

/// The side of a point: before a median, the median itself, or after it.
const LESS: u8 = 0;
const MEDIAN: u8 = 1;
const GREATER: u8 = 2;

/// The data that all subtrees of a build share.
struct Build<'a, const D: usize> {
    /// The side of each point, relative to the last median of its subtree.
    sides: &'a [AtomicU8],
    medians: &'a [AtomicU32],
}

impl<const D: usize> Build<'_, D> {
    /// Builds the subtree at an address of a level. `arrays` holds its points, sorted on each axis.
    fn subtree(&self, arrays: [&mut [u32]; D], scratch: &mut [u32], level: u32, address: u32) {
        let len = arrays[0].len();
        if len == 0 {
            return;
        }
        let (axis, middle) = (level as usize % D, Run { begin: 0, len: len as u32 }.median() as usize);
        let median = arrays[axis][middle];
        self.medians[(full_tree(level) + address) as usize].store(median, Relaxed);
        if len == 1 {
            return;
        }
        // The array of the axis has the sides in order.
        let mark = |ids: &[u32], side: u8| {
            let ranges = Ranges::new(ids.len(), MAX_TASK_POINTS);
            ranges.for_each(&|range| {
                ids[range].iter().for_each(|&id| self.sides[id as usize].store(side, Relaxed))
            });
        };
        mark(&arrays[axis][..middle], LESS);
        mark(&[median], MEDIAN);
        mark(&arrays[axis][middle + 1..], GREATER);
        let mut less_halves = [const { None }; D];
        let mut greater_halves = [const { None }; D];
        for (other, array) in arrays.into_iter().enumerate() {
            if other != axis {
                self.partition(array, scratch, middle);
            }
            let (less, rest) = array.split_at_mut(middle);
            (less_halves[other], greater_halves[other]) = (Some(less), Some(&mut rest[1..]));
        }
        let unwrap = |halves: [Option<_>; D]| halves.map(|half: Option<&mut [u32]>| half.unwrap_or_default());
        let (less_scratch, rest) = scratch.split_at_mut(middle);
        let greater_scratch = &mut rest[1..];
        let less = |this: &Self| this.subtree(unwrap(less_halves), less_scratch, level + 1, 2 * address);
        let greater =
            |this: &Self| this.subtree(unwrap(greater_halves), greater_scratch, level + 1, 2 * address + 1);
        if len > MAX_TASK_POINTS {
            parallel::join(|| less(self), || greater(self));
        } else {
            less(self);
            greater(self);
        }
    }

    /// Partitions an array stably by the sides of its points: those before the median, the median, those after it.
    fn partition(&self, array: &mut [u32], scratch: &mut [u32], middle: usize) {
        let side = |id: u32| self.sides[id as usize].load(Relaxed);
        let (source, ranges) = (&*array, Ranges::new(array.len(), PARTITION_TASK_POINTS));
        let output = Parts::of_initialized(&mut scratch[..source.len()]);
        let move_range = |range: Range<usize>, mut nexts: [usize; 3]| {
            for &id in &source[range] {
                let to = &mut nexts[side(id) as usize];
                // SAFETY: by the counts, each position is the place of one point.
                unsafe { output.part(*to..*to + 1) }.fill(MaybeUninit::new(id));
                *to += 1;
            }
        };
        let first = [0, middle, middle + 1];
        if ranges.num() == 1 {
            move_range(0..source.len(), first);
        } else {
            // The numbers of points of each range on each side, then where they begin.
            let mut begins = ranges.map(|range| {
                let mut counts = [0; 3];
                source[range].iter().for_each(|&id| counts[side(id) as usize] += 1);
                counts
            });
            begins.iter_mut().fold(first, |begin, counts| {
                let lens = std::mem::replace(counts, begin);
                [0, 1, 2].map(|side| begin[side] + lens[side])
            });
            ranges.for_each(&|range| move_range(range.clone(), begins[range.start / PARTITION_TASK_POINTS]));
        }
        array.copy_from_slice(&scratch[..array.len()]);
    }
}

impl<C: Float> Backend<C> for CpuTree<C> {
    fn num_nodes(&self) -> usize {
        self.num_nodes
    }

    fn verify(&self) -> Result<()> {
        with_dims!(self.dims, D => {
            let check = Check { tree: self, points: self.coords.as_chunks::<D>().0 };
            check.whole_tree()
        })
    }

    fn medians(&self) -> Result<Vec<u32>> {
        memory::copy(&self.medians, "medians of the tree")
    }

    fn representatives(&self) -> Result<Vec<u32>> {
        memory::copy(&self.representatives, "representatives of the points")
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        Ok(self.index.get_or_try_init(|| index::of_balanced(&self.coords, self.dims, &self.medians))?)
    }

    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>> {
        let (coords, medians, representatives) = (&**self.coords, &*self.medians, &*self.representatives);
        Ok(Sections {
            coords: coords.into(),
            medians: medians.into(),
            representatives: representatives.into(),
        })
    }
}

/// Checks a tree, depth first.
struct Check<'a, C: Float, const D: usize> {
    tree: &'a CpuTree<C>,
    points: &'a [[C; D]],
}

/// The nearest ancestors that bound the points of a subtree from below and from above, on each axis.
type Bounds<const D: usize> = [[Option<u32>; 2]; D];

impl<C: Float, const D: usize> Check<'_, C, D> {
    fn whole_tree(&self) -> Result<()> {
        let mut seen = memory::filled(self.points.len(), false, "points seen")?;
        let run = Run { begin: 0, len: self.tree.num_nodes as u32 };
        let num_nodes = self.subtree(run, 0, 0, [[None; 2]; D], &mut seen)?;
        let num_stored = self.tree.medians.iter().filter(|&&id| id != NONE).count();
        if num_nodes != self.tree.num_nodes || num_stored != num_nodes {
            let what = format!(
                "{num_stored} nodes, of which {num_nodes} in place, instead of {}",
                self.tree.num_nodes
            );
            return Err(Error::corrupt(0, what));
        }
        Ok(())
    }

    /// Checks the subtree at an address, which must have the points of a run. Returns its number of nodes.
    fn subtree(
        &self,
        run: Run,
        level: u32,
        address: u32,
        bounds: Bounds<D>,
        seen: &mut [bool],
    ) -> Result<usize> {
        if run.len == 0 {
            return Ok(0);
        }
        let slot = (full_tree(level) + address) as usize;
        let id = self.tree.medians.get(slot).copied().unwrap_or(NONE);
        match seen.get_mut(id as usize) {
            None => {
                let what = format!("id {id}, but there are {} points", self.points.len());
                return Err(Error::corrupt(slot, what));
            }
            Some(seen) if *seen => {
                return Err(Error::corrupt(slot, format!("id {id} is also the id of another node")));
            }
            Some(seen) => *seen = true,
        }
        for (axis, [below, above]) in bounds.into_iter().enumerate() {
            let is_less = |a, b| compare(self.points, axis, a, b).is_lt();
            if below.is_some_and(|below| !is_less(below, id))
                || above.is_some_and(|above| !is_less(id, above))
            {
                let what = format!("id {id} is on the wrong side of an ancestor on axis {axis}");
                return Err(Error::corrupt(slot, what));
            }
        }
        let axis = level as usize % D;
        let (mut less, mut greater) = (bounds, bounds);
        (less[axis][1], greater[axis][0]) = (Some(id), Some(id));
        let less = self.subtree(run.less(), level + 1, 2 * address, less, seen)?;
        let greater = self.subtree(run.greater(), level + 1, 2 * address + 1, greater, seen)?;
        Ok(less + 1 + greater)
    }
}
