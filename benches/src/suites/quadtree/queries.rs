//! Queries to quadtrees and octrees: from device buffers to device buffers, timed by device events; from host slices to host memory, with and
//! without a tree in device memory, in wall-clock time. Cells, samples, checks and rebuilds of the tree, and cells of either kind of root.

use crate::measure::Timing;
use crate::points::{self, Number, Uniform};
use crate::report::{Report, Row};
use crate::suites::{Settings, unless_too_large};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::quadtree::{CartesianPoint, CellTree, OutOfCore, QuadtreeOptions, RootCell};
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions, num_found};
use kauri::{Device, Error, Result, SpatialIndex};
use rayon::prelude::*;
use std::f64::consts::PI;

/// Number of points that a range query finds on average.
const HITS: f64 = 30.0;
/// Numbers of neighbors.
const NEIGHBORS: [usize; 3] = [1, 8, 32];
/// Device memory of trees out of core: the first holds all points of most sizes, the second holds parts.
const CAPS: [(&str, u64); 2] = [("16 GiB", 16 << 30), ("1 GiB", 1 << 30)];
/// Number of queries whose results are compared with the results of the CPU.
const CHECKED_QUERIES: usize = 1000;
/// Maximum number of points for which they are compared.
const CHECKED_POINTS: usize = 20_000_000;
/// The check of rows that were compared.
const AS_ON_THE_CPU: &str = "1000 queries as on the CPU";

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    for &n in &settings.sizes {
        queries::<f32, 2>(settings, report, n)?;
        queries::<f32, 3>(settings, report, n)?;
        queries::<f64, 2>(settings, report, n)?;
        roots(settings, report, n)?;
    }
    Ok(())
}

/// Measures all queries to a tree over uniform points.
fn queries<C: Number + Uniform, const D: usize>(
    settings: &Settings,
    report: &mut Report,
    n: usize,
) -> Result<()>
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    let points = points::uniform::<C, D>(n, settings.seed);
    let mut bench = Bench::new(settings, gpu, &points, points::uniform(n, settings.seed + 1), report)?;
    unless_too_large(bench.on_buffers())?;
    unless_too_large(bench.cells_on_buffers())?;
    unless_too_large(bench.of_the_tree())?;
    unless_too_large(bench.rebuilds())?;
    let in_core = Device::from_gpu(gpu.clone());
    unless_too_large(bench.on_slices("", &in_core, OutOfCore::WhereNeeded))?;
    for (name, bytes) in CAPS {
        let device = Device::from_gpu(gpu.with_memory_limit(bytes));
        unless_too_large(bench.on_slices(&format!(", out of core in {name}"), &device, OutOfCore::Streamed))?;
    }
    Ok(())
}

/// The tree of the CPU, and the queries to compare.
type Checked<'a, C, const D: usize> = (&'a CellTree<[C; D], D>, &'a [[C; D]]);

/// The state that the rows of one input share.
struct Bench<'a, C: Number, const D: usize>
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    settings: &'a Settings,
    gpu: &'a Gpu,
    stream: Stream,
    points: &'a [[C; D]],
    queries: Vec<[C; D]>,
    boxes: Vec<[[C; D]; 2]>,
    radius: C,
    coords: Buffer<C>,
    tree: CellTree<[C; D], D>,
    /// `None` if there are too many points for the CPU.
    reference: Option<CellTree<[C; D], D>>,
    report: &'a mut Report,
}

impl<'a, C: Number, const D: usize> Bench<'a, C, D>
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    fn new(
        settings: &'a Settings,
        gpu: &'a Gpu,
        points: &'a [[C; D]],
        queries: Vec<[C; D]>,
        report: &'a mut Report,
    ) -> Result<Self> {
        let options = QuadtreeOptions::default();
        let per_point = HITS / points.len() as f64;
        let half = 0.5 * per_point.powf(1.0 / D as f64);
        let radius = if D == 2 { (per_point / PI).sqrt() } else { (0.75 * per_point / PI).cbrt() };
        let moved = |query: &[C; D], by: f64| query.map(|x| C::from_f64(x.to_f64() + by));
        let boxes = queries.par_iter().map(|query| [moved(query, -half), moved(query, half)]).collect();
        let stream = Stream::new(gpu)?;
        let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
        let tree = CellTree::build_on(&stream, &mut Workspace::new(gpu), &coords, &options)?;
        let reference = (points.len() <= CHECKED_POINTS)
            .then(|| CellTree::build(&Device::cpu(), points, &options))
            .transpose()?;
        let radius = C::from_f64(radius);
        Ok(Self { settings, gpu, stream, points, queries, boxes, radius, coords, tree, reference, report })
    }

    fn push(&mut self, work: &str, timing: Timing, items: usize, row: Row) {
        self.report.push(Row {
            work: work.to_owned(),
            input: format!("{} x {D}, uniform", C::NAME),
            n: self.points.len() as u64,
            timing: Some(timing),
            items: Some(items as u64),
            ..row
        });
    }

    /// The queries that are compared, if any.
    fn checked(&self) -> Option<Checked<'_, C, D>> {
        let num_queries = self.queries.len().min(CHECKED_QUERIES);
        self.reference.as_ref().map(|tree| (tree, &self.queries[..num_queries]))
    }

    /// Measures neighbors and ranges on device buffers.
    fn on_buffers(&mut self) -> Result<()> {
        let (gpu, num_queries) = (self.gpu, self.queries.len());
        let coords = Buffer::from_slice(&self.stream, self.queries.as_flattened(), "queries")?;
        let queries = DeviceQueries::Coordinates(&coords);
        let plain = self.tree.prepare(&self.stream, &QueryOptions::default())?;
        for k in NEIGHBORS {
            let mut ids = Buffer::uninitialized(gpu, num_queries * k, "ids of neighbors")?;
            let mut dist2 = Buffer::uninitialized(gpu, num_queries * k, "distances of neighbors")?;
            let (stream, tree, mut workspace) = (&self.stream, &self.tree, Workspace::new(gpu));
            let timing = self.settings.effort.events(stream, || {
                tree.nearest_on(stream, &mut workspace, queries, k, &plain, &mut ids, &mut dist2)
            })?;
            let check = match self.checked() {
                None => None,
                Some((tree, queries)) => {
                    let got = ids.front_to_vec(&self.stream, queries.len() * k)?;
                    assert!(got == tree.nearest(queries, k)?.ids(), "{k} nearest: device and CPU disagree");
                    Some(AS_ON_THE_CPU)
                }
            };
            let temp_bytes = Some(workspace.bytes());
            self.push(
                &format!("nearest k={k}"),
                timing,
                num_queries,
                Row { check, temp_bytes, ..Row::default() },
            );
        }

        let within = self.tree.prepare(&self.stream, &QueryOptions::default().radius(self.radius))?;
        let corners = self.boxes.as_flattened().as_flattened();
        let corners = Buffer::from_slice(&self.stream, corners, "corners of boxes")?;
        let mut offsets = Buffer::uninitialized(gpu, num_queries + 1, "offsets of rows")?;
        for in_boxes in [false, true] {
            let work = if in_boxes { "in boxes, 30 hits" } else { "within radius, 30 hits" };
            let (stream, tree, mut workspace) = (&self.stream, &self.tree, Workspace::new(gpu));
            let mut counts = Buffer::uninitialized(gpu, num_queries, "counts of points")?;
            let timing = self.settings.effort.events(stream, || match in_boxes {
                true => tree.count_in_boxes_on(stream, &mut workspace, &corners, &plain, &mut counts),
                false => tree.count_within_on(stream, &mut workspace, queries, &within, &mut counts),
            })?;
            let temp_bytes = Some(workspace.bytes());
            let row = Row { temp_bytes, ..Row::default() };
            self.push(&format!("count {work}"), timing, num_queries, row);
            drop(counts);

            let (stream, tree, mut workspace) = (&self.stream, &self.tree, Workspace::new(gpu));
            let mut find = |offsets: &mut Buffer<u64>, ids: &mut Buffer<u32>| match in_boxes {
                true => tree.in_boxes_on(stream, &mut workspace, &corners, &plain, offsets, ids),
                false => tree.within_on(stream, &mut workspace, queries, &within, offsets, ids, None),
            };
            find(&mut offsets, &mut Buffer::uninitialized(gpu, 0, "no ids")?)?;
            let hits = num_found(stream, &offsets)? as usize;
            let mut ids = Buffer::uninitialized(gpu, hits, "ids of points found")?;
            let timing = self.settings.effort.events(stream, || find(&mut offsets, &mut ids))?;
            let check = match self.checked() {
                None => None,
                Some((tree, queries)) => {
                    let expected = match in_boxes {
                        true => tree.in_boxes(&self.boxes[..queries.len()], None)?.into_parts(),
                        false => {
                            let found = tree.within(queries, self.radius, &QueryOptions::default())?;
                            let (offsets, (ids, _)) = found.into_parts();
                            (offsets, ids)
                        }
                    };
                    let got = (
                        offsets.front_to_vec(&self.stream, expected.0.len())?,
                        ids.front_to_vec(&self.stream, expected.1.len())?,
                    );
                    assert!(got == expected, "{work}: device and CPU disagree");
                    Some(AS_ON_THE_CPU)
                }
            };
            let temp_bytes = Some(workspace.bytes());
            self.push(work, timing, hits, Row { check, temp_bytes, ..Row::default() });
        }
        Ok(())
    }

    /// Measures the leaves of queries, and the leaves adjacent to all nodes, on device buffers.
    fn cells_on_buffers(&mut self) -> Result<()> {
        let (gpu, num_queries, num_nodes) = (self.gpu, self.queries.len(), self.tree.num_nodes());
        let coords = Buffer::from_slice(&self.stream, self.queries.as_flattened(), "queries")?;
        let mut leaves = Buffer::uninitialized(gpu, num_queries, "leaves of points")?;
        let (stream, tree) = (&self.stream, &self.tree);
        let timing = self.settings.effort.events(stream, || tree.leaf_of_on(stream, &coords, &mut leaves))?;
        let check = match self.checked() {
            None => None,
            Some((tree, queries)) => {
                let got = leaves.front_to_vec(&self.stream, queries.len())?;
                assert!(got == tree.leaf_of(queries)?, "leaves: device and CPU disagree");
                Some(AS_ON_THE_CPU)
            }
        };
        self.push("leaf of", timing, num_queries, Row { check, ..Row::default() });

        let numbers: Vec<u32> = (0..num_nodes as u32).collect();
        let nodes = Buffer::from_slice(&self.stream, &numbers, "nodes")?;
        let mut offsets = Buffer::uninitialized(gpu, num_nodes + 1, "offsets of rows")?;
        let (stream, tree, mut workspace) = (&self.stream, &self.tree, Workspace::new(gpu));
        let mut find = |offsets: &mut Buffer<u64>, leaves: &mut Buffer<u32>| {
            tree.adjacent_leaves_on(stream, &mut workspace, &nodes, offsets, leaves)
        };
        find(&mut offsets, &mut Buffer::uninitialized(gpu, 0, "no leaves")?)?;
        let found = num_found(stream, &offsets)? as usize;
        let mut leaves = Buffer::uninitialized(gpu, found, "adjacent leaves")?;
        let timing = self.settings.effort.events(stream, || find(&mut offsets, &mut leaves))?;
        let check = match &self.reference {
            None => None,
            Some(tree) => {
                let expected = tree.adjacent_leaves(&numbers[..num_nodes.min(CHECKED_QUERIES)])?;
                let got = leaves.front_to_vec(&self.stream, expected.values().len())?;
                assert!(got == expected.values(), "adjacent leaves: device and CPU disagree");
                Some("1000 nodes as on the CPU")
            }
        };
        let temp_bytes = Some(workspace.bytes());
        self.push("adjacent leaves of all nodes", timing, found, Row { check, temp_bytes, ..Row::default() });
        Ok(())
    }

    /// Measures calls over the whole tree.
    fn of_the_tree(&mut self) -> Result<()> {
        let (n, num_nodes, effort) = (self.points.len(), self.tree.num_nodes(), self.settings.effort);
        let timing = effort.wall(|| self.tree.verify())?;
        self.push("verify", timing, n, Row::default());
        let timing = effort.wall(|| self.tree.level_of_detail(self.tree.depth() / 2))?;
        self.push("samples of a level, to host memory", timing, num_nodes, Row::default());
        let timing = effort.wall(|| self.tree.leaf_of(&self.queries))?;
        self.push("leaf of, host slices", timing, self.queries.len(), Row::default());
        let nodes: Vec<u32> = (0..num_nodes as u32).collect();
        let timing = effort.wall(|| self.tree.adjacent_leaves(&nodes))?;
        self.push("adjacent leaves of all nodes, host slices", timing, num_nodes, Row::default());
        Ok(())
    }

    /// Measures rebuilds, alone and with the buckets that the first query needs.
    fn rebuilds(&mut self) -> Result<()> {
        let (options, n, effort) = (QuadtreeOptions::default(), self.points.len(), self.settings.effort);
        let mut workspace = Workspace::new(self.gpu);
        for (work, is_prepared) in [("rebuild", false), ("rebuild and buckets", true)] {
            let (stream, coords, tree) = (&self.stream, &self.coords, &mut self.tree);
            let timing = effort.wall(|| {
                tree.rebuild_on(stream, &mut workspace, coords, &options)?;
                if is_prepared {
                    tree.prepare(stream, &QueryOptions::default())?;
                }
                stream.synchronize()
            })?;
            let temp_bytes = Some(workspace.bytes());
            self.push(work, timing, n, Row { temp_bytes, ..Row::default() });
        }
        Ok(())
    }

    /// Measures queries on slices to a tree of this device.
    fn on_slices(&mut self, place: &str, device: &Device, out_of_core: OutOfCore) -> Result<()> {
        let options = QuadtreeOptions::default().out_of_core(out_of_core);
        let tree = CellTree::build(device, self.points, &options)?;
        let (num_queries, effort, plain) =
            (self.queries.len(), self.settings.effort, QueryOptions::default());
        let check = match self.checked() {
            None => None,
            Some((reference, queries)) => {
                let [found, expected] = [&tree, reference].map(|tree| tree.nearest(queries, 8));
                assert!(found?.ids() == expected?.ids(), "nearest{place}: device and CPU disagree");
                Some(AS_ON_THE_CPU)
            }
        };
        for k in NEIGHBORS {
            let timing = effort.wall(|| tree.nearest(&self.queries, k))?;
            let row = Row { check: check.filter(|_| k == 8), ..Row::default() };
            self.push(&format!("nearest k={k}, host slices{place}"), timing, num_queries, row);
        }
        let timing = effort.wall(|| tree.count_within(&self.queries, self.radius, &plain))?;
        let work = format!("count within radius, 30 hits, host slices{place}");
        self.push(&work, timing, num_queries, Row::default());
        let timing = effort.wall(|| tree.within(&self.queries, self.radius, &plain))?;
        let work = format!("within radius, 30 hits, host slices{place}");
        self.push(&work, timing, num_queries, Row::default());
        let timing = effort.wall(|| tree.in_boxes(&self.boxes, None))?;
        self.push(&format!("in boxes, 30 hits, host slices{place}"), timing, num_queries, Row::default());
        Ok(())
    }
}

/// Measures builds and queries of a strip of points, ten times as long as wide, in cells of either kind of root.
fn roots(settings: &Settings, report: &mut Report, n: usize) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    let strip = |seed: u64| -> Vec<[f32; 2]> {
        points::uniform::<f32, 2>(n, seed).into_par_iter().map(|[x, y]| [10.0 * x, y]).collect()
    };
    let (points, queries) = (strip(settings.seed), strip(settings.seed + 1));
    for (name, root) in [("square", RootCell::Square), ("bounding box", RootCell::BoundingBox)] {
        unless_too_large((|| {
            let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
            let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
            let query_coords = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
            let options = QuadtreeOptions::default().root(root);
            let mut built = None;
            let build = settings.effort.wall(|| {
                built = None;
                let tree = CellTree::<[f32; 2], 2>::build_on(&stream, &mut workspace, &coords, &options)?;
                stream.synchronize()?;
                built = Some(tree);
                Ok(())
            })?;
            let tree = built.ok_or(Error::NoDevice)?;
            let note = Some(format!("{} nodes, depth {}", tree.num_nodes(), tree.depth()));
            let mut push = |work: &str, timing, note| {
                report.push(Row {
                    work: format!("{work}, the root is the {name}"),
                    input: "f32 x 2, uniform in a strip 10 x 1".to_owned(),
                    n: n as u64,
                    timing: Some(timing),
                    items: Some(n as u64),
                    note,
                    ..Row::default()
                });
            };
            push("build", build, note);
            let prepared = tree.prepare(&stream, &QueryOptions::default())?;
            let mut ids = Buffer::uninitialized(gpu, 8 * n, "ids of neighbors")?;
            let mut dist2 = Buffer::uninitialized(gpu, 8 * n, "distances of neighbors")?;
            let on_device = DeviceQueries::Coordinates(&query_coords);
            let nearest = settings.effort.events(&stream, || {
                tree.nearest_on(&stream, &mut workspace, on_device, 8, &prepared, &mut ids, &mut dist2)
            })?;
            push("nearest k=8", nearest, None);
            let mut leaves = Buffer::uninitialized(gpu, n, "leaves of points")?;
            let leaf_of =
                settings.effort.events(&stream, || tree.leaf_of_on(&stream, &query_coords, &mut leaves))?;
            push("leaf of", leaf_of, None);
            Ok(())
        })())?;
    }
    Ok(())
}
