//! What a join will do and the memory that it takes, before it runs.

use super::distance::with_sets;
use super::gpu::{Needs, Planned};
use super::{
    DistanceJoin, KnnIndex, KnnJoin, Near, Score, Scored, Strategy, TopKDistanceJoin, checked_sets, cpu,
};
use crate::device::Device;
use crate::error::Result;
use crate::kdtree::{KdTree, KdTreeOptions};
use crate::point::Point;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::{Curve, MAX_DIMS};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use std::fmt;

/// What a join will do, and the memory that it takes. The text of it has a line for each.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JoinPlan {
    /// The device, as text.
    pub device: String,
    /// Points of the left and the right set.
    pub num_points: [usize; 2],
    /// Number of cells of the grid, of which many may be empty, and bits of their codes; nothing if there is no grid, or no two points can
    /// be near each other.
    pub grid: Option<(f64, u32)>,
    /// How pairs are found.
    pub method: JoinMethod,
    /// Bytes of the sets in the device's memory; on the CPU, of those whose coordinates are converted.
    pub input_bytes: u64,
    /// Most temporary bytes beside them: on a GPU no more than that, on the CPU about that.
    pub temp_bytes: u64,
    /// Bytes for each pair within the distance that come to these: how many there are is not known before.
    pub pair_bytes: u64,
}

/// How pairs are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinMethod {
    /// The best of them, by this strategy.
    Best(Strategy),
    /// By the cells of a grid.
    Cells,
    /// By a [`KdTree`] over the left points.
    Tree,
}

impl fmt::Display for JoinMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Best(Strategy::Threshold) => f.write_str("points with the best scores first, then cells"),
            Self::Best(Strategy::NestedLoop) => f.write_str("all pairs, without a grid"),
            Self::Best(Strategy::Filter) => f.write_str("all pairs of cells, then the best"),
            Self::Best(Strategy::RegisterHeap) => {
                f.write_str("cells, the best of each right point in registers")
            }
            Self::Best(Strategy::SharedHeap) => {
                f.write_str("cells, the best of each right point in shared memory")
            }
            Self::Best(_) | Self::Cells => f.write_str("cells"),
            Self::Tree => f.write_str("k-d tree"),
        }
    }
}

impl fmt::Display for JoinPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = self.num_points;
        writeln!(f, "device    {}", self.device)?;
        writeln!(f, "points    {left} left, {right} right")?;
        match self.grid {
            Some((cells, bits)) => writeln!(f, "grid      {cells:.0} cells, codes of {bits} bits")?,
            None => writeln!(f, "grid      none")?,
        }
        writeln!(f, "strategy  {}", self.method)?;
        let (input, temp) = (Bytes(self.input_bytes), Bytes(self.temp_bytes));
        write!(f, "memory    {input} for the points, {temp} beside them")?;
        match self.pair_bytes {
            0 => Ok(()),
            bytes => write!(f, ", {bytes} bytes more for each pair"),
        }
    }
}

/// A number of bytes for people.
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

/// Sets whose join is planned.
struct Sets<C> {
    device: String,
    num_points: [usize; 2],
    dims: usize,
    needs: Needs,
    is_on_gpu: bool,
    is_converted: bool,
    coord: std::marker::PhantomData<C>,
}

impl<C: Coord> Sets<C> {
    fn new<P: Point<Coord = C>>(device: &Device, [left, right]: [&[P]; 2], near: &Near<C>) -> Result<Self> {
        let [left, right] = checked_sets(left, right)?;
        Ok(Self::of::<P>(device, [&left, &right], near))
    }

    /// Of checked coordinates.
    fn of<P: Point<Coord = C>>(device: &Device, coords: [&[C]; 2], near: &Near<C>) -> Self {
        Self {
            device: device.to_string(),
            num_points: coords.map(|coords| coords.len() / P::DIMS),
            dims: P::DIMS,
            needs: Needs::new(P::DIMS, coords, near),
            is_on_gpu: !device.is_cpu(),
            is_converted: P::CONVERTED,
            coord: std::marker::PhantomData,
        }
    }

    /// A plan by these methods and bytes of a GPU.
    fn plan(self, method: JoinMethod, is_one: bool, score_bytes: usize, [temp, pair]: [u64; 2]) -> JoinPlan {
        let Self { device, num_points, dims, needs, .. } = self;
        let point_bytes = dims * size_of::<C>();
        let sets = if is_one { &num_points[..1] } else { &num_points };
        let copied = if self.is_on_gpu || self.is_converted { point_bytes } else { 0 };
        let copied = copied + if self.is_on_gpu { score_bytes } else { 0 };
        let bytes = |of_point: usize, len: usize| (len as u64).saturating_mul(of_point as u64);
        // Code, id and coordinates of each point in the order of cells, its score; what is sorted, of one set at a time; and the trees of
        // crowded cells, to which all left points may belong.
        let in_order =
            size_of::<u64>() + size_of::<u32>() + point_bytes + if score_bytes > 0 { 8 } else { 0 };
        let sorted = bytes(size_of::<(u64, u32)>(), num_points[0].max(num_points[1]));
        let crowds = bytes(cpu::crowd_bytes::<C>(dims), num_points[0]);
        let on_cpu = num_points.iter().map(|&len| bytes(in_order, len)).sum::<u64>() + sorted + crowds;
        JoinPlan {
            device,
            num_points,
            // A nested loop has none.
            grid: needs.grid().filter(|_| method != JoinMethod::Best(Strategy::NestedLoop)),
            method: if self.is_on_gpu { method } else { JoinMethod::Cells },
            input_bytes: sets.iter().map(|&len| bytes(copied, len)).sum(),
            temp_bytes: if self.is_on_gpu { temp } else { on_cpu },
            pair_bytes: pair,
        }
    }
}

impl<C: Coord> TopKDistanceJoin<C> {
    /// What [`run`](Self::run) will do with these sets. O(n), on the CPU, nothing is allocated on the device.
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
    /// Those of [`run`](Self::run) that are of points, distance and weights.
    pub fn plan<P: Point<Coord = C>, S: Score>(
        &self,
        device: &Device,
        left: Scored<'_, P, S>,
        right: Scored<'_, P, S>,
    ) -> Result<JoinPlan> {
        let (near, scoring) = (self.near::<P>()?, self.scoring::<S>()?);
        let sets = Sets::new(device, [left.points(), right.points()], &near)?;
        let (k, strategy, result_bytes, best_points) = self.wanted();
        let planned = Planned { k, strategy, result_bytes, best_points, scoring: &scoring, of: S::TYPE };
        let (strategy, temp) = sets.needs.of_best::<C>(&planned)?;
        // All pairs, and as much again where they are sorted.
        let has_all = sets.is_on_gpu && strategy == Strategy::Filter;
        let pair = if has_all { 2 * size_of::<Bits128>() as u64 } else { 0 };
        let mut plan = sets.plan(JoinMethod::Best(strategy), false, size_of::<S>(), [temp, pair]);
        if device.is_cpu() {
            plan.temp_bytes = plan.temp_bytes.saturating_add(cpu::best_bytes(k, plan.num_points));
        }
        Ok(plan)
    }
}

impl<C: Coord> DistanceJoin<C> {
    /// What [`rows`](Self::rows) will do with these sets, or [`self_rows`](Self::self_rows) with one; see
    /// [`TopKDistanceJoin::plan`].
    ///
    /// # Errors
    /// Those of [`rows`](Self::rows) that are of points and distance.
    pub fn plan<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: Option<&[P]>,
    ) -> Result<JoinPlan> {
        let near = self.near::<P>(if right.is_some() { Pairing::All } else { Pairing::Both })?;
        let sets = with_sets(left, right, |coords| Ok(Sets::of::<P>(device, coords, &near)))?;
        let is_one = right.is_none();
        let temp = sets.needs.of_pairs::<C>(is_one, true);
        // The CPU has the ids of short rows twice for a while.
        let pair = if device.is_cpu() { 2 } else { 1 } * size_of::<u32>() as u64;
        let mut plan = sets.plan(JoinMethod::Cells, is_one, 0, [temp, pair]);
        plan.num_points.reverse();
        Ok(plan)
    }
}

impl<C: Coord> KnnJoin<C> {
    /// What [`run`](Self::run) will do with these sets; see [`TopKDistanceJoin::plan`].
    ///
    /// # Errors
    /// Those of [`run`](Self::run) that are of points and distance.
    pub fn plan<P: Point<Coord = C>>(&self, device: &Device, left: &[P], right: &[P]) -> Result<JoinPlan> {
        let result = (right.len() as u64)
            .saturating_mul(self.k as u64)
            .saturating_mul((size_of::<u32>() + size_of::<C>()) as u64);
        // As `run` does, on every device and by every method.
        let near = |epsilon| Near::of::<P>(epsilon, self.norm, Curve::Linear, Pairing::All);
        let near = self.within.map(near).transpose()?;
        let may_take_grid = P::DIMS <= MAX_DIMS && self.k > 0 && self.index != KnnIndex::Tree;
        if let Some(near) = near.filter(|_| may_take_grid && !device.is_cpu()) {
            let sets = Sets::new(device, [left, right], &near)?;
            if self.index == KnnIndex::Grid || !sets.needs.is_dense(self.k) {
                let temp = sets.needs.of_pairs::<C>(false, false).saturating_add(result);
                return Ok(sets.plan(JoinMethod::Cells, false, 0, [temp, 0]));
            }
        } else {
            checked_sets(left, right)?;
        }
        let tree = KdTree::<P>::plan(device, left.len(), &KdTreeOptions::default());
        let queries = (right.len() * P::DIMS * size_of::<C>()) as u64;
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
