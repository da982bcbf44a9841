//! Trees whose points change, in device memory: batches of inserts and removals, queries in comparison with a fresh tree, and memory.
//!
//! A row of changes has the time of each batch: the median, the least and the greatest, and in its note the mean, which contains the builds
//! of trees now and then.

use super::{Settings, Suite, copy, unless_too_large};
use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::dynamic::DynamicOptions;
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
use kauri::{DynamicKdTree, KdTree, KdTreeOptions, Result};
use std::time::{Duration, Instant};

/// The suites.
pub const SUITES: [(&str, Suite); 1] = [("dynamic", run)];

/// Points of a batch.
const BATCHES: [usize; 2] = [100_000, 1_000_000];
/// Most batches of a row.
const MAX_BATCHES: usize = 50;

type P = [f32; 3];
type Tree = DynamicKdTree<P>;

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        for (how, make) in
            [("uniform", points::uniform as fn(usize, u64) -> Vec<P>), ("clustered", points::clustered)]
        {
            let mut bench = Bench::new(settings, gpu, n, format!("f32 x 3, {how}"), make, report)?;
            for batch in BATCHES.into_iter().filter(|&batch| batch <= n) {
                unless_too_large(bench.inserts(batch))?;
                unless_too_large(bench.removals(batch))?;
                unless_too_large(bench.exchanges(batch))?;
            }
        }
    }
    Ok(())
}

/// The state that the rows of one input share.
struct Bench<'a> {
    settings: &'a Settings,
    gpu: &'a Gpu,
    stream: Stream,
    workspace: Workspace,
    name: String,
    /// The first points, and those to insert.
    points: Vec<P>,
    more: Vec<P>,
    queries: Buffer<f32>,
    report: &'a mut Report,
}

impl<'a> Bench<'a> {
    fn new(
        settings: &'a Settings,
        gpu: &'a Gpu,
        n: usize,
        name: String,
        make: fn(usize, u64) -> Vec<P>,
        report: &'a mut Report,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let queries = make(n, settings.seed + 1);
        Ok(Self {
            settings,
            gpu,
            workspace: Workspace::new(gpu),
            name,
            points: make(n, settings.seed),
            more: make(n, settings.seed + 2),
            queries: Buffer::from_slice(&stream, queries.as_flattened(), "queries")?,
            stream,
            report,
        })
    }

    /// Returns a tree of the first points, on kernels that are loaded.
    fn tree(&mut self) -> Result<Tree> {
        let mut tree = Tree::new(&self.settings.device, &DynamicOptions::default())?;
        let coords = self.upload(0..self.points.len(), false)?;
        tree.insert_on(&self.stream, &mut self.workspace, &coords)?;
        Ok(tree)
    }

    /// Uploads some of the first points or of the others.
    fn upload(&self, range: std::ops::Range<usize>, are_more: bool) -> Result<Buffer<f32>> {
        let points = if are_more { &self.more } else { &self.points };
        Buffer::from_slice(&self.stream, points[range].as_flattened(), "points")
    }

    /// Times a change of the tree by the clock of the host, which waits for the device.
    fn timed(&mut self, change: impl FnOnce(&Stream, &mut Workspace) -> Result<()>) -> Result<Duration> {
        self.stream.synchronize()?;
        let begin = Instant::now();
        change(&self.stream, &mut self.workspace)?;
        self.stream.synchronize()?;
        Ok(begin.elapsed())
    }

    /// Changes the tree by up to `num_points` points, batch by batch, and measures queries and memory after half of the batches and at the end.
    fn changes(
        &mut self,
        work: &str,
        batch: usize,
        num_points: usize,
        change: impl Fn(&mut Self, &mut Tree, usize) -> Result<Duration>,
        points: impl Fn(&Self, usize) -> Vec<(u32, P)>,
    ) -> Result<()> {
        let num_batches = (num_points / batch).min(MAX_BATCHES);
        if num_batches == 0 {
            return Ok(());
        }
        // Twice: kernels are loaded and memory is there the second time.
        for is_measured in [false, true] {
            let (mut tree, mut times) = (self.tree()?, Vec::new());
            let last = if is_measured { num_batches } else { num_batches.min(3) };
            for i in 0..last {
                times.push(change(self, &mut tree, i)?);
                if is_measured && [num_batches.div_ceil(2), num_batches].contains(&(i + 1)) {
                    let what = format!("after {} x {work} {batch}", i + 1);
                    self.queries(&what, &tree, &points(self, i + 1))?;
                }
            }
            if is_measured {
                let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64;
                let held = self.gpu.memory_use().live_bytes;
                drop(tree);
                let tree_bytes = held - self.gpu.memory_use().live_bytes;
                self.report.push(Row {
                    work: format!("{work} {batch}"),
                    input: self.name.clone(),
                    n: self.points.len() as u64,
                    timing: Some(Timing::of("wall", &times)),
                    items: Some(batch as u64),
                    temp_bytes: Some(self.workspace.bytes()),
                    note: Some(format!("mean {mean:.3} ms; at the end a tree of {tree_bytes} bytes")),
                    ..Row::default()
                });
            }
        }
        Ok(())
    }

    fn inserts(&mut self, batch: usize) -> Result<()> {
        let change = |bench: &mut Self, tree: &mut Tree, i: usize| {
            let coords = bench.upload(i * batch..(i + 1) * batch, true)?;
            bench.timed(|stream, workspace| tree.insert_on(stream, workspace, &coords).map(drop))
        };
        self.changes("insert", batch, self.more.len(), change, |bench, i| {
            let all = bench.points.iter().chain(&bench.more[..i * batch]);
            (0..).zip(all.copied()).collect()
        })
    }

    /// Removes half of the points.
    fn removals(&mut self, batch: usize) -> Result<()> {
        let n = self.points.len();
        let ids =
            move |i: usize| (i * batch..(i + 1) * batch).map(move |rank| spread(rank, n)).collect::<Vec<_>>();
        let change = |bench: &mut Self, tree: &mut Tree, i: usize| {
            let ids = Buffer::from_slice(&bench.stream, &ids(i), "ids")?;
            bench.timed(|stream, workspace| tree.remove_on(stream, workspace, &ids))
        };
        self.changes("remove", batch, n / 2, change, |bench, i| {
            let mut points: Vec<_> = (0..).zip(bench.points.iter().copied()).map(Some).collect();
            (0..i).flat_map(ids).for_each(|id| points[id as usize] = None);
            points.into_iter().flatten().collect()
        })
    }

    /// Inserts a batch and removes the oldest points.
    fn exchanges(&mut self, batch: usize) -> Result<()> {
        let change = |bench: &mut Self, tree: &mut Tree, i: usize| {
            let coords = bench.upload(i * batch..(i + 1) * batch, true)?;
            let oldest: Vec<u32> = (i * batch..(i + 1) * batch).map(|id| id as u32).collect();
            let ids = Buffer::from_slice(&bench.stream, &oldest, "ids")?;
            bench.timed(|stream, workspace| {
                tree.insert_on(stream, workspace, &coords)?;
                tree.remove_on(stream, workspace, &ids)
            })
        };
        self.changes("insert and remove", batch, self.more.len(), change, |bench, i| {
            let all = bench.points.iter().chain(&bench.more[..i * batch]);
            (0..).zip(all.copied()).skip(i * batch).collect()
        })
    }

    /// Measures nearest queries to the tree and to a fresh tree of the same points, and compares results and memory.
    fn queries(&mut self, what: &str, tree: &Tree, points: &[(u32, P)]) -> Result<()> {
        let coords: Vec<P> = points.iter().map(|&(_, point)| point).collect();
        let coords = Buffer::from_slice(&self.stream, coords.as_flattened(), "points")?;
        let before = self.gpu.memory_use().live_bytes;
        let fresh = KdTree::<P>::build_on(
            &self.stream,
            &mut Workspace::new(self.gpu),
            &coords,
            &KdTreeOptions::default(),
        )?;
        let fresh_bytes = self.gpu.memory_use().live_bytes - before;
        for k in [1, 8] {
            let (ids, timing) = self.nearest(tree, k)?;
            let (expected, expected_timing) = self.nearest(&fresh, k)?;
            let checked = expected.len().min(1000 * k);
            let of = |i: &u32| points[*i as usize].0;
            assert!(
                ids[..checked].iter().copied().eq(expected[..checked].iter().map(of)),
                "{what}: another result"
            );
            let ratio = timing.median_ms / expected_timing.median_ms;
            for (system, timing, note) in [
                (String::new(), timing, format!("{ratio:.2} of a fresh tree")),
                ("fresh tree".to_owned(), expected_timing, format!("a tree of {fresh_bytes} bytes")),
            ] {
                self.report.push(Row {
                    system,
                    work: format!("nearest k={k}, {what}"),
                    input: self.name.clone(),
                    n: points.len() as u64,
                    timing: Some(timing),
                    items: Some((self.queries.len() / 3) as u64),
                    note: Some(note),
                    check: Some("1000 queries as in a fresh tree"),
                    ..Row::default()
                });
            }
        }
        Ok(())
    }

    /// Measures nearest queries, and returns the ids.
    fn nearest<I: DeviceIndex<Point = P, StoredCoord = f32>>(
        &self,
        tree: &I,
        k: usize,
    ) -> Result<(Vec<u32>, Timing)> {
        let entries = self.queries.len() / 3 * k;
        let mut ids = Buffer::uninitialized(self.gpu, entries, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(self.gpu, entries, "distances of neighbors")?;
        let (stream, mut workspace) = (&self.stream, Workspace::new(self.gpu));
        let prepared = tree.prepare(stream, &QueryOptions::default())?;
        let queries = DeviceQueries::Coordinates(&self.queries);
        let timing = self.settings.effort.events(stream, || {
            tree.nearest_on(stream, &mut workspace, queries, k, &prepared, &mut ids, &mut dist2)
        })?;
        Ok((ids.front_to_vec(stream, entries.min(1000 * k))?, timing))
    }
}

/// Returns different ids below `n` for the ranks below `n`, far from each other.
fn spread(rank: usize, n: usize) -> u32 {
    // A prime number that divides no size of interest.
    (rank as u64 * 982_451_653 % n as u64) as u32
}
