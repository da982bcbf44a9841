//! Balanced trees on the CPU (Brown 2015): sorts one array per axis, then partitions them depth first, both subtrees in parallel.

pub(crate) mod index;

use crate::point::with_dims;
use kauri_kernels::balanced::{NONE, Run, medians_len};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Float;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::balanced::backend::Backend;
#[cfg(feature = "io")]
use crate::balanced::backend::Sections;
use crate::balanced::super_key;
use crate::error::{Error, Result};
use crate::memory::{self, Items, MemoryPlan};
use crate::once::Once;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::query::backend::QueryBackend;
use crate::query::cpu::CpuIndex;
use crate::stats::Stats;

/// One task partitions a run of at most this many points.
const MAX_TASK_POINTS: usize = 4096;

/// A tree in host memory.
pub(crate) struct CpuTree<C: Float> {
    pub(super) dims: usize,
    pub(super) coords: Arc<Items<C>>,
    pub(super) num_nodes: usize,
    pub(super) medians: Items<u32>,
    pub(super) representatives: Items<u32>,
    pub(super) index: Once<CpuIndex<C>>,
}

/// Returns the bytes of a tree, with its coordinates, and the temporary bytes of its build: one array per axis, and a scratch array for
/// partitions.
pub(crate) fn memory_plan<C: Float>(num_points: usize, dims: usize) -> MemoryPlan {
    let tree_bytes = num_points * dims * size_of::<C>() + 4 * medians_len(num_points as u32);
    MemoryPlan { tree_bytes: tree_bytes as u64, temp_bytes: 4 * num_points as u64 * (dims as u64 + 1) }
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
    let mut arrays: [Vec<u32>; D] = std::array::from_fn(|_| Vec::new());
    stats.phase("init", || {
        coords.extend_from_slice(points.as_flattened());
        arrays.iter_mut().try_for_each(|array| {
            memory::reserve(array, n, "sorted arrays")?;
            array.extend(0..n as u32);
            Ok(())
        })
    })?;
    stats.phase("sort", || {
        for (axis, array) in arrays.iter_mut().enumerate() {
            array.par_sort_unstable_by(|&a, &b| compare(points, axis, a, b).then(a.cmp(&b)));
        }
    });
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
    stats.phase("partition", || {
        let build = Build { points, medians: &medians };
        build.subtree(arrays.each_mut().map(|array| &mut array[..]), &mut scratch, 0, 0);
    });
    let medians = medians.into_iter().map(AtomicU32::into_inner).collect::<Vec<_>>().into();
    let (coords, representatives) = (Arc::new(coords.into()), representatives.into());
    Ok(CpuTree { dims: D, coords, num_nodes, medians, representatives, index: Once::new() })
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

/// The data that all subtrees of a build share.
struct Build<'a, C, const D: usize> {
    points: &'a [[C; D]],
    medians: &'a [AtomicU32],
}

impl<C: Float, const D: usize> Build<'_, C, D> {
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
        let mut less_halves = [const { None }; D];
        let mut greater_halves = [const { None }; D];
        for (other, array) in arrays.into_iter().enumerate() {
            if other != axis {
                self.partition(array, scratch, axis, median, middle);
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

    /// Partitions an array stably: the points before the median, the median, the points after it.
    fn partition(&self, array: &mut [u32], scratch: &mut [u32], axis: usize, median: u32, middle: usize) {
        let (mut less, mut greater) = (0, middle + 1);
        for &id in &*array {
            match compare(self.points, axis, id, median) {
                Ordering::Less => {
                    scratch[less] = id;
                    less += 1;
                }
                Ordering::Equal => {}
                Ordering::Greater => {
                    scratch[greater] = id;
                    greater += 1;
                }
            }
        }
        scratch[middle] = median;
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
