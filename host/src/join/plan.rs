//! Plans of joins: method and memory, before a join runs.

use super::boxes::BoxMethod;
use super::cpu;
use super::distance::{DistanceJoin, pairing_of};
use super::gpu::MemoryPlan;
use super::nearest::KnnJoin;
use super::scored::{Score, Scored};
use super::sets::{HostSets, checked_sets};
use super::strategy::Strategy;
use super::top_k::TopKDistanceJoin;
use crate::device::Device;
use crate::error::Result;
use crate::kdtree::{KdTree, KdTreeOptions};
use crate::point::{DistanceOf, Point, are_floats_copied};
use crate::query::item_bytes;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::words::Bits128;
use std::fmt;

/// The method and the memory of a join, known before it runs. Its text has a line for each field.
///
/// ```
/// use kauri::{Device, DistanceJoin};
/// let points: Vec<[f32; 2]> = (0..1000).map(|i| [i as f32, 0.0]).collect();
/// let plan = DistanceJoin::new(2.0).plan(&Device::cpu(), &points, None)?;
/// assert!(plan.temp_bytes > 20_000 && plan.pair_bytes == 8);
/// println!("{plan}");
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JoinPlan {
    /// The device, as text.
    pub device: String,
    /// Number of points of the left and the right set.
    pub num_points: [usize; 2],
    /// Number of cells of the grid, many of which may be empty, and bits of their codes; `None` without a grid, or if no pair is possible.
    pub grid: Option<(f64, u32)>,
    /// How the pairs are found.
    pub method: JoinMethod,
    /// Bytes of the sets in device memory; on the CPU, bytes of converted coordinates.
    pub input_bytes: u64,
    /// Temporary bytes besides the sets: on a GPU an upper bound, on the CPU an estimate.
    pub temp_bytes: u64,
    /// Further bytes per pair within the distance; the number of pairs is not known in advance.
    pub pair_bytes: u64,
}

/// How a join finds its pairs: the [`JoinPlan::method`] of a plan.
///
/// ```
/// use kauri::DistanceJoin;
/// use kauri::join::JoinMethod;
/// let points = [[0.0f32, 0.0], [1.0, 0.0]];
/// let plan = DistanceJoin::new(1.0).plan(&kauri::Device::cpu(), &points, Some(&points[..]))?;
/// assert_eq!(plan.method, JoinMethod::Cells);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinMethod {
    /// A top-k join by this strategy.
    Best(Strategy),
    /// A grid.
    Cells,
    /// A [`KdTree`] over the left points.
    Tree,
    /// A join of boxes by this method.
    Boxes(BoxMethod),
}

impl fmt::Display for JoinMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Best(Strategy::Threshold) => "points with the best scores first, then cells",
            Self::Best(Strategy::NestedLoop) => "all pairs, without a grid",
            Self::Best(Strategy::Filter) => "all pairs of cells, then the best",
            #[cfg(feature = "research")]
            Self::Best(Strategy::AppendSort) => "all pairs of cells in any order, then a sort",
            #[cfg(feature = "research")]
            Self::Best(Strategy::RegisterHeap) => "cells, the best of each right point in registers",
            #[cfg(feature = "research")]
            Self::Best(Strategy::SharedHeap) => "cells, the best of each right point in shared memory",
            #[cfg(feature = "research")]
            Self::Boxes(BoxMethod::MultiLayerGrid) => "a grid with a layer for each partition",
            #[cfg(feature = "research")]
            Self::Boxes(BoxMethod::SortBased) => "sorted ends of boxes",
            #[cfg(feature = "research")]
            Self::Boxes(BoxMethod::PlainNestedLoop) => "all pairs, without shared memory",
            Self::Boxes(BoxMethod::NestedLoop) => "all pairs, without a grid",
            Self::Boxes(_) => "cells of several sizes",
            Self::Best(_) | Self::Cells => "cells",
            Self::Tree => "k-d tree",
        })
    }
}

impl fmt::Display for JoinPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = self.num_points;
        writeln!(f, "device    {}", self.device)?;
        writeln!(f, "sets      {left} left, {right} right")?;
        match self.grid {
            Some((cells, bits)) => writeln!(f, "grid      {cells:.0} cells, codes of {bits} bits")?,
            None => writeln!(f, "grid      none")?,
        }
        writeln!(f, "strategy  {}", self.method)?;
        let (input, temp) = (Bytes(self.input_bytes), Bytes(self.temp_bytes));
        write!(f, "memory    {input} for the sets, {temp} beside them")?;
        match self.pair_bytes {
            0 => Ok(()),
            bytes => write!(f, ", {bytes} bytes more for each pair"),
        }
    }
}

/// Formats a number of bytes with a binary unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut size, mut unit) = (self.0 as f64, "bytes");
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if size >= 1024.0 {
                (size, unit) = (size / 1024.0, larger);
            }
        }
        if unit == "bytes" { write!(f, "{size} {unit}") } else { write!(f, "{size:.1} {unit}") }
    }
}

/// Returns the plan of a join by a method, which takes `temp_bytes` on a GPU.
fn plan_of<P: Point>(
    device: &Device,
    memory: &MemoryPlan<DistanceOf<P>>,
    method: JoinMethod,
    score_bytes: usize,
    [temp_bytes, pair_bytes]: [u64; 2],
) -> JoinPlan {
    let (is_on_gpu, num_points) = (!device.is_cpu(), memory.lens);
    let num_sets = if memory.params.pairing.is_self_join() { 1 } else { 2 };
    let point_bytes = P::DIMS * size_of::<DistanceOf<P>>();
    let copied = if is_on_gpu || are_floats_copied::<P>() { point_bytes } else { 0 };
    let copied = copied + if is_on_gpu { score_bytes } else { 0 };
    let bytes = |of_point: usize, len: usize| (len as u64).saturating_mul(of_point as u64);
    // Code, id, coordinates and score of each point in the order of cells; the pairs to sort, of one set at a time; and the trees of
    // overfull cells, which may contain all points of the build side.
    let in_order = size_of::<u64>() + size_of::<u32>() + point_bytes + if score_bytes > 0 { 8 } else { 0 };
    let sorted = bytes(size_of::<(u64, u32)>(), num_points[0].max(num_points[1]));
    let trees = bytes(cpu::tree_bytes::<DistanceOf<P>>(P::DIMS), num_points[0]);
    let on_cpu = num_points.iter().map(|&len| bytes(in_order, len)).sum::<u64>() + sorted + trees;
    JoinPlan {
        device: device.to_string(),
        num_points,
        grid: memory.grid().filter(|_| method != JoinMethod::Best(Strategy::NestedLoop)),
        method: if is_on_gpu { method } else { JoinMethod::Cells },
        input_bytes: num_points[..num_sets].iter().map(|&len| bytes(copied, len)).sum(),
        temp_bytes: if is_on_gpu { temp_bytes } else { on_cpu },
        pair_bytes,
    }
}

impl<C: Float> TopKDistanceJoin<C> {
    /// Plans [`run`](Self::run) with these sets. Takes O(n) time on the CPU and no device memory.
    ///
    /// ```
    /// use kauri::join::{Scored, TopKDistanceJoin};
    /// use kauri::Device;
    /// let points = [[0.0f32, 0.0], [5.0, 5.0], [9.0, 0.0]];
    /// let set = Scored::new(&points, &[3u32, 5, 4])?;
    /// let plan = TopKDistanceJoin::new(1.0, 2).plan(&Device::cpu(), set, set)?;
    /// assert_eq!(plan.num_points, [3, 3]);
    /// println!("{plan}");
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run) that concern points, distance and weights.
    pub fn plan<P: Point<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        device: &Device,
        left: Scored<'_, P, S>,
        right: Scored<'_, P, S>,
    ) -> Result<JoinPlan> {
        let lens = [left.points().len(), right.points().len()];
        let params = self.params::<P, S>(lens)?;
        let coords = checked_sets(left.points(), right.points())?;
        let memory = MemoryPlan::new([&coords[0], &coords[1]], &params.join);
        let params = params.choose_strategy(lens)?;
        // All pairs, and a second copy where they are sorted.
        let has_all_pairs = !device.is_cpu() && params.strategy.has_all_pairs();
        let pair_bytes = if has_all_pairs { 2 * size_of::<Bits128>() as u64 } else { 0 };
        let (method, bytes) = (JoinMethod::Best(params.strategy), [memory.of_top_k(&params), pair_bytes]);
        let mut plan = plan_of::<P>(device, &memory, method, size_of::<S>(), bytes);
        if device.is_cpu() {
            plan.temp_bytes = plan.temp_bytes.saturating_add(cpu::best_bytes(params.k, lens));
        }
        Ok(plan)
    }
}

impl<C: Float> DistanceJoin<C> {
    /// Plans [`rows`](Self::rows) with these sets, or [`self_rows`](Self::self_rows) with one; see [`TopKDistanceJoin::plan`].
    ///
    /// # Errors
    /// The errors of [`rows`](Self::rows) that concern points and distance.
    pub fn plan<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: Option<&[P]>,
    ) -> Result<JoinPlan> {
        let pairing = pairing_of(right);
        let params = self.params::<P>(pairing)?;
        let sets = right.map_or(HostSets::one(left, pairing), |right| HostSets::two(left, right));
        let memory = MemoryPlan::new(sets.validate()?.slices(), &params);
        // The CPU keeps two copies of the ids of short rows while it runs.
        let pair_bytes = if device.is_cpu() { 2 } else { 1 } * size_of::<u32>() as u64;
        let mut plan = plan_of::<P>(device, &memory, JoinMethod::Cells, 0, [memory.of_rows(), pair_bytes]);
        plan.num_points.reverse();
        Ok(plan)
    }
}

impl<C: Float> KnnJoin<C> {
    /// Plans [`run`](Self::run) with these sets; see [`TopKDistanceJoin::plan`].
    ///
    /// # Errors
    /// The errors of [`run`](Self::run) that concern points and distance.
    pub fn plan<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
    ) -> Result<JoinPlan> {
        let result = (right.len() as u64).saturating_mul(self.k as u64).saturating_mul(item_bytes::<C>());
        let params = self.grid_params::<P>()?;
        let coords = checked_sets(left, right)?;
        if let Some(params) = params.filter(|_| !device.is_cpu()) {
            let memory = MemoryPlan::new([&coords[0], &coords[1]], &params);
            if memory.density() <= self.max_density() {
                let temp_bytes = memory.of_nearest().saturating_add(result);
                return Ok(plan_of::<P>(device, &memory, JoinMethod::Cells, 0, [temp_bytes, 0]));
            }
        }
        let tree = KdTree::<P>::plan(device, left.len(), &KdTreeOptions::default());
        let queries = (right.len() * P::DIMS * size_of::<P::Coord>()) as u64;
        Ok(JoinPlan {
            device: device.to_string(),
            num_points: [left.len(), right.len()],
            grid: None,
            method: JoinMethod::Tree,
            input_bytes: tree.tree_bytes + queries,
            temp_bytes: tree.temp_bytes.max(result),
            pair_bytes: 0,
        })
    }
}
