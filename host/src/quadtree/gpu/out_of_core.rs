//! Queries on a GPU to a tree in host memory.
//!
//! The points of the tree are cut into parts by tree order, so that a bucket index over a part fits in device memory. A single part stays
//! there. Several parts are brought to the device one after another by each call, which merges their rows.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::once::Once;
use crate::quadtree::backend::{Backend, Outline};
use crate::quadtree::gpu::index::Cells;
use crate::quadtree::host::HostTree;
use crate::query::backend::{
    NearestQuery, NearestRows, QueryBackend, RangeQuery, ValidatedQueries, VisitQuery,
};
use crate::query::cpu::backend::CpuTree;
use crate::query::gpu::{BucketIndex, Locator, index_bytes, node_slots};
use crate::query::options::ValidatedOptions;
use crate::query::result_rows;
use crate::query::union::{Indexes, Rounds, UnionIndex};
use crate::query::within::RangeResult;
use crate::rows::Rows;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of points of a part. A device without memory for such a part answers no queries.
const MIN_POINTS: usize = 1 << 8;
/// Maximum number of points per row of the result for which parts pass through the device. The CPU answers calls with fewer rows, since a
/// call takes at least the time of the copies.
const POINTS_PER_ROW: usize = 1 << 10;
/// Nodes with more points than this are split to find the bucket that a query starts in.
const LEAF_POINTS: u32 = 64;

/// A tree in host memory whose queries run on a GPU.
pub(crate) struct OutOfCoreTree<C> {
    gpu: Gpu,
    tree: Arc<HostTree<C>>,
    /// The parts, which the first query plans.
    parts: Once<PartsIndex<C>>,
}

impl<C: Coord> OutOfCoreTree<C> {
    pub(crate) fn new(gpu: &Gpu, tree: HostTree<C>) -> Self {
        Self { gpu: gpu.clone(), tree: Arc::new(tree), parts: Once::new() }
    }
}

impl<C: Coord> Backend<C> for OutOfCoreTree<C> {
    fn outline(&self) -> &Outline {
        self.tree.outline()
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        self.tree.nodes()
    }
    fn cells(&self, nodes: Range<u32>) -> Result<Cow<'_, [u32]>> {
        self.tree.cells(nodes)
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        self.tree.ids()
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        self.tree.coords()
    }
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        Backend::leaf_of(&*self.tree, queries)
    }
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        Backend::adjacent_leaves(&*self.tree, nodes)
    }
    fn samples(&self) -> Result<Vec<u32>> {
        Backend::samples(&*self.tree)
    }
    fn verify(&self) -> Result<()> {
        self.tree.verify()
    }
    /// Returns the backend of the CPU as long as the device lacks memory for a part.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        match self.parts.get_or_try_init(|| PartsIndex::new(&self.gpu, &self.tree)) {
            Ok(parts) => Ok(parts),
            Err(error) if is_short_of_device_memory(&error) => self.tree.query_backend(),
            Err(error) => Err(error),
        }
    }
}

/// The parts of a tree, and the tree itself for calls that the device lacks memory for.
struct PartsIndex<C> {
    tree: Arc<HostTree<C>>,
    union: UnionIndex<C>,
    /// The only part stays in device memory.
    is_resident: bool,
}

impl<C: Coord> PartsIndex<C> {
    /// Plans the parts. Returns an error if device memory is too small for any.
    fn new(gpu: &Gpu, tree: &Arc<HostTree<C>>) -> Result<Self> {
        let (dims, n, free) = (tree.outline.dims, tree.ids.len(), gpu.free_memory()?);
        // Half of the memory is left for queries and results.
        let fits =
            |num_points: usize| index_bytes::<C>(num_points, dims, levels(num_points as u32)) <= free / 2;
        let mut max_points = n;
        while !fits(max_points) {
            max_points = max_points / 8 * 7;
            if max_points < MIN_POINTS {
                let requested = 2 * index_bytes::<C>(MIN_POINTS, dims, levels(MIN_POINTS as u32));
                let label = "a part of a quadtree";
                return Err(Error::OutOfMemory { memory: "device", requested, free, label });
            }
        }
        let parts = PartsOfTree { gpu: gpu.clone(), tree: tree.clone(), max_points: max_points.max(1) };
        let is_resident = max_points >= n;
        let rounds: Box<dyn Rounds<C>> = if is_resident {
            Box::new(vec![Box::new(parts.load(0..n)?) as Box<dyn QueryBackend<C>>])
        } else {
            Box::new(parts)
        };
        let by_id = tree.clone();
        let coords_by_id = Box::new(move || Ok(by_id.coords_by_id()?.into_owned()));
        Ok(Self { tree: tree.clone(), union: UnionIndex { rounds, coords_by_id }, is_resident })
    }

    /// Runs a call with some rows on the device, or on the CPU if the rows are few or the device lacks memory.
    fn run<R>(
        &self,
        num_rows: usize,
        on_device: impl FnOnce(&UnionIndex<C>) -> Result<R>,
        on_cpu: impl FnOnce(&HostTree<C>) -> Result<R>,
    ) -> Result<R> {
        if self.is_resident || num_rows.saturating_mul(POINTS_PER_ROW) >= self.tree.ids.len() {
            match on_device(&self.union) {
                Err(error) if is_short_of_device_memory(&error) => {}
                result => return result,
            }
        }
        on_cpu(&self.tree)
    }
}

impl<C: Coord> QueryBackend<C> for PartsIndex<C> {
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()> {
        self.tree.check_queries(queries, options)
    }

    fn self_coords(&self) -> Result<Option<Cow<'_, [C]>>> {
        self.tree.coords_by_id().map(Some)
    }

    fn nearest(
        &self,
        query: NearestQuery<'_, C>,
        rows: NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>> {
        let num_queries = query.queries.len;
        self.run(
            num_queries,
            |union| union.nearest(query, rows),
            |tree| tree.nearest(query, result_rows(num_queries, query.k)?),
        )
    }

    fn visit(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
        visit: &VisitQuery<'_, C::Distance>,
    ) -> Result<()> {
        self.tree.visit(queries, options, visit)
    }

    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>> {
        self.run(query.num_rows(), |union| union.count(query), |tree| tree.count(query))
    }

    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>> {
        self.run(query.num_rows(), |union| union.find(query), |tree| tree.find(query))
    }
}

/// Returns true for an error that a device with more memory would not return.
fn is_short_of_device_memory(error: &Error) -> bool {
    let (Error::OutOfMemory { memory, .. } | Error::ResultTooLarge { memory, .. }) = error else {
        return false;
    };
    *memory != "host"
}

/// Parts of a tree that pass through the device one after another.
struct PartsOfTree<C> {
    gpu: Gpu,
    tree: Arc<HostTree<C>>,
    /// Number of points of a part; the last part has the rest.
    max_points: usize,
}

impl<C: Coord> Rounds<C> for PartsOfTree<C> {
    fn num_rounds(&self) -> usize {
        self.tree.ids.len().div_ceil(self.max_points)
    }

    fn indexes(&self, round: usize) -> Result<Indexes<'_, C>> {
        let begin = round * self.max_points;
        let end = self.tree.ids.len().min(begin + self.max_points);
        Ok(Indexes::Loaded(Box::new(self.load(begin..end)?)))
    }
}

impl<C: Coord> PartsOfTree<C> {
    /// Builds a bucket index over consecutive points of the tree.
    fn load(&self, points: Range<usize>) -> Result<BucketIndex<C>> {
        let (gpu, outline) = (&self.gpu, &self.tree.outline);
        let (n, dims, num_levels) = (points.len(), outline.dims, levels(points.len() as u32));
        let stream = Stream::new(gpu)?;
        let frame = Buffer::from_slice(&stream, &outline.frame, "quadtree frame")?.into();
        let nodes = Buffer::from_slice(&stream, &self.nodes(&points)?, "quadtree nodes")?.into();
        let locator = Locator::Other(Box::new(Cells { frame, nodes, dims, num_points: n as u32 }));
        let mut index = BucketIndex::with_slots(gpu, n, dims, num_levels, locator)?;
        // SAFETY: the index has an entry for each point, and the stream is synchronized below.
        unsafe {
            let slots = node_slots(&stream, dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
            let coords = &self.tree.coords[points.start * dims..points.end * dims];
            stream.upload(slots.coords, coords)?;
            stream.upload(slots.ids, &self.tree.ids[points])?;
            index.build_boxes(&stream)?;
        }
        stream.synchronize()?;
        Ok(index)
    }

    /// Returns the upper nodes of the tree, in which queries to a part start: their numbers of points and first points in the part. Nodes
    /// with few points in the part are leaves.
    fn nodes(&self, points: &Range<usize>) -> Result<Vec<Node>> {
        let (tree, num_children) = (&self.tree.nodes, 1 << self.tree.outline.dims);
        let (begin, end) = (points.start as u32, points.end as u32);
        let in_part = |node: Node| {
            let [start, end] = [node.start, node.end].map(|point| point.clamp(begin, end) - begin);
            Node { start, end, first_child: 0, level: node.level }
        };
        let (mut nodes, mut numbers, mut i) = (vec![in_part(tree[0])], vec![0], 0);
        while i < nodes.len() {
            let first_child = tree[numbers[i]].first_child as usize;
            if first_child > 0 && nodes[i].len() > LEAF_POINTS {
                nodes[i].first_child = nodes.len() as u32;
                memory::reserve_more(&mut nodes, num_children, "nodes of a part")?;
                memory::reserve_more(&mut numbers, num_children, "nodes of a part")?;
                let children = first_child..first_child + num_children;
                nodes.extend(tree[children.clone()].iter().map(|&child| in_part(child)));
                numbers.extend(children);
            }
            i += 1;
        }
        Ok(nodes)
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::device::{Device, SimOptions};
    use crate::quadtree::cpu;
    use crate::quadtree::options::QuadtreeOptions;
    use crate::query::backend::Regions;
    use crate::query::options::QueryOptions;
    use crate::stats::Stats;

    const N: usize = 4000;

    fn points(n: usize) -> Vec<[f32; 2]> {
        let coord = |i: usize, by: usize| (i * by % 1009) as f32 / 16.0;
        (0..n).map(|i| [coord(i, 613), coord(i, 877)]).collect()
    }

    fn tree() -> HostTree<f32> {
        cpu::build(&points(N), &QuadtreeOptions::default(), &mut Stats::default()).unwrap()
    }

    /// Parts that stay on the device, parts that pass through it, and no parts.
    #[test]
    fn parts_answer_as_the_whole_tree_does() {
        let sim = Device::sim(SimOptions::default()).unwrap();
        // Each query leaves itself out.
        let queries = &points(N)[7..67];
        let boxes: Vec<[f32; 2]> =
            queries.chunks(2).flat_map(|pair| [pair[0], pair[0].map(|x| x + 1.5)]).collect();
        for (limit, num_parts) in [(1 << 20, Some(1)), (80_000, Some(2)), (60_000, Some(2)), (2000, None)] {
            let gpu = sim.gpu().unwrap().with_memory_limit(limit);
            let tree = Arc::new(tree());
            let parts = match PartsIndex::new(&gpu, &tree) {
                Ok(parts) => parts,
                Err(error) => {
                    assert!(is_short_of_device_memory(&error) && num_parts.is_none(), "{limit}: {error}");
                    continue;
                }
            };
            assert_eq!(parts.is_resident, num_parts == Some(1), "{limit}");
            assert!(parts.union.rounds.num_rounds() >= num_parts.unwrap(), "{limit}");
            let options = QueryOptions::<[f32; 2]>::default().radius(0.5);
            let options = &ValidatedOptions::new(&options, N).unwrap();
            let queries = ValidatedQueries {
                coords: Some(queries.as_flattened()),
                first_excluded: Some(7),
                own_ids: &[],
                len: queries.len(),
                dims: 2,
            };
            for k in [0, 1, 8] {
                let query = NearestQuery { queries, k, options };
                let rows = || result_rows(queries.len, k).unwrap();
                // The union itself, which does not resort to the CPU.
                let found = parts.union.nearest(query, rows()).unwrap();
                assert!(found == tree.nearest(query, rows()).unwrap(), "{k} nearest, {limit}");
            }
            for regions in [Regions::Within(queries), Regions::InBoxes(boxes.as_flattened(), 2)] {
                let query = RangeQuery { regions, options };
                assert_eq!(parts.union.count(query).unwrap(), tree.count(query).unwrap(), "{limit}");
                let [found, expected] = [parts.union.find(query), tree.find(query)].map(Result::unwrap);
                assert!(found.offsets == expected.offsets && found.ids == expected.ids, "{limit}");
                assert!(found.dist2 == expected.dist2, "{limit}");
            }
            assert!(gpu.memory_use().peak_bytes <= limit);
        }
    }

    #[test]
    fn the_cpu_answers_what_the_device_has_no_memory_for() {
        let sim = Device::sim(SimOptions::default()).unwrap();
        let gpu = sim.gpu().unwrap().with_memory_limit(40_000);
        let tree = OutOfCoreTree::new(&gpu, tree());
        let queries = points(N);
        let options = &ValidatedOptions::new(&QueryOptions::<[f32; 2]>::default(), N).unwrap();
        let queries = ValidatedQueries {
            coords: Some(queries.as_flattened()),
            first_excluded: None,
            own_ids: &[],
            len: N,
            dims: 2,
        };
        let query = NearestQuery { queries, k: 8, options };
        let rows = || result_rows(N, 8).unwrap();
        let found = tree.query_backend().unwrap().nearest(query, rows()).unwrap();
        assert!(found == tree.tree.nearest(query, rows()).unwrap());
    }
}
