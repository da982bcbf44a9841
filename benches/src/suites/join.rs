//! Joins of points in device memory, including the computation of the grid; wall-clock times, because the host takes part.
//!
//! The rival is `benches/rivals/join_lovik.cu`, which has Løvik's three strategies: heaps in registers, heaps in shared memory, and a sort of
//! all pairs. Their rows are compared with the rows of the same strategy.

mod boxes;
mod boxes_thesis;
mod from_host;
mod on_cpu;
mod thesis;

pub use thesis::profile::add_profile;

use super::{Settings, Suite, copy, unless_too_large};
use crate::points::{self, noise};
use crate::report::{Note, Report, Row};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::join::{
    Curve, DeviceScored, DistanceJoin, KnnIndex, KnnJoin, Score, ScoredPair, SelfPairs, Strategy,
    TopKDistanceJoin,
};
use kauri::research::join::Lookup;
use kauri::{Batches, Device, Error, Result};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// The limiting resource of each row that misses a goal.
pub const NOTES: &[Note] = &[
    Note::new(
        "pairs found by a tree built before*",
        "",
        0,
        "a traversal of nodes with one point each, where kiddo tests the 32 points of a leaf; the call also sorts the queries; not \
         profiled",
    ),
    Note::new(
        "pairs*",
        "f32 x 2, uniform, host memory",
        0,
        "kiddo's tree is built before, and its sorted queries are sorted before; with \
         its tree built in the call it is slower",
    ),
    Note::new("top 16 within 0.001, append*", "", 0, APPENDED),
    Note::new("top 16 within 0.003, append*", "", 0, APPENDED),
    Note::new("top 16 within 0.01, append*", "", 0, APPENDED),
    Note::new("top 16 within 0.03, append*", "", 0, APPENDED),
    Note::new("top 100000 within 0.001, append*", "", 0, APPENDED),
    Note::new("top 16 within 0.03, shared memory*", "", 0, SHARED),
    Note::new("top 16 within 0.1, shared memory*", "", 0, SHARED),
    Note::new(
        "top 16 within 0.001, *",
        "f32 x 2, u24, uniform, 100000000",
        0,
        "both sets are sorted, with codes of 8 bytes, coordinates and scores, where the rival sorts numbers of 4 bytes; the strategies with \
         a threshold leave the larger set unsorted",
    ),
    Note::new(
        "top 16 within *",
        "f32 x 2, u24, tanks",
        0,
        "all pairs of few left points by heaps or a filter; not profiled",
    ),
    Note::new(
        "top 16 within 0.001, *",
        "f32 x 2, u24, uniform, 1000 left",
        0,
        "launches: a thousand points do not fill the device",
    ),
];

const APPENDED: &str = "pairs of 16 bytes with scores of 64 bits beside the rival's 12 and 32, and pairs of equal scores in the order of \
    their ids; not profiled";
const SHARED: &str =
    "an entry is compared by a score of 64 bits and an id, the rival's by a score of 32 bits; not profiled";

/// Joins on a GPU, on the CPU, and of sets in host memory; the published experiments, and their joins for a profiler.
pub const SUITES: [(&str, Suite); 7] = [
    ("join", run),
    ("box-join", boxes::run),
    ("box-join-thesis", boxes_thesis::run),
    ("join-cpu", on_cpu::run),
    ("join-host", from_host::run),
    ("join-thesis", thesis::run),
    ("join-thesis-once", thesis::run_once),
];

/// Lookups, and their names in rows.
const LOOKUPS: [(&str, Lookup); 2] =
    [("by codes of points", Lookup::Points), ("by a list of cells", Lookup::Cells)];

/// Average number of pairs per point in a self join.
const PARTNERS: f64 = 60.0;

/// Strategies, and their names in rows; the first is the one that is chosen automatically.
const STRATEGIES: [(&str, Strategy); 6] = [
    ("", Strategy::Auto),
    (", cells", Strategy::Cells),
    (", registers", Strategy::RegisterHeap),
    (", shared memory", Strategy::SharedHeap),
    (", append and sort", Strategy::AppendSort),
    (", filter", Strategy::Filter),
];

/// Most pairs of a heap.
const MOST_IN_HEAPS: usize = 128;

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        unless_too_large(of_size(settings, gpu, n, report))?;
    }
    Ok(())
}

fn of_size(settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
    let uniform = points::uniform::<f32, 2>;
    let [left, right] = [settings.seed, settings.seed + 1].map(|seed| uniform(n, seed));
    let scores =
        |seed: u64| (0..n as u64).into_par_iter().map(|i| (noise(seed, i) >> 40) as u32).collect::<Vec<_>>();
    let [left_scores, right_scores] = [settings.seed + 2, settings.seed + 3].map(scores);
    let mut bench =
        Bench::new(settings, gpu, "uniform", [&left, &right], [&left_scores, &right_scores], report)?;
    bench.every_strategy(0.001, 16)?;
    for k in [32, 64, 128, 256, 1024, 10_000, 100_000] {
        bench.every_strategy(0.001, k)?;
    }
    for curve in [Curve::ZOrder, Curve::Hilbert] {
        bench.top_k(0.001, 16, &format!(", cells by {curve:?}"), Strategy::Cells, curve)?;
    }
    if n <= 1_000_000 {
        for epsilon in [0.01, 0.1] {
            bench.every_strategy(epsilon, 16)?;
        }
    }
    for (name, lookup) in LOOKUPS {
        bench.cells(0.001, &format!(", cells, {name}"), lookup)?;
    }
    if n <= 10_000_000 {
        for (name, lookup) in LOOKUPS {
            bench.self_join((PARTNERS / std::f64::consts::PI / n as f64).sqrt() as f32, name, lookup)?;
        }
    }
    drop(bench);
    if n <= 10_000_000 {
        nearest(settings, gpu, n, [&left, &right], report)?;
        batches(settings, gpu, n, &left, report)?;
    }

    // Sets whose best-scored points say little about the best pairs.
    type Change = fn(usize, [f32; 2], u32, bool) -> u32;
    let changes: [(&str, Change); 3] = [
        // The best points of each set are where the other set has no good ones.
        ("opposite scores", |_, [x, _], score, is_left| {
            let at = if is_left { x } else { 1.0 - x };
            (at * 16_000_000.0) as u32 + score % 65_536
        }),
        (
            "best scores without partners",
            |i, _, score, _| if i % 64 == 0 { score | 1 << 24 } else { score >> 2 },
        ),
        ("8 scores", |_, _, score, _| score & 7),
    ];
    for (what, change) in changes {
        let [mut left, mut right] = [left.clone(), right.clone()];
        if what == "best scores without partners" {
            for (set, by) in [(&mut left, 3.0), (&mut right, -3.0)] {
                set.iter_mut().step_by(64).for_each(|point| point[0] += by);
            }
        }
        let changed = |points: &[[f32; 2]], scores: &[u32], is_left| -> Vec<u32> {
            let of = |(i, (&point, &score))| change(i, point, score, is_left);
            points.iter().zip(scores).enumerate().map(of).collect()
        };
        let scores = [changed(&left, &left_scores, true), changed(&right, &right_scores, false)];
        let mut bench = Bench::new(settings, gpu, what, [&left, &right], [&scores[0], &scores[1]], report)?;
        bench.top_k(0.001, 16, "", Strategy::Auto, Curve::Linear)?;
        bench.top_k(0.001, 16, ", cells", Strategy::Cells, Curve::Linear)?;
    }
    Ok(())
}

/// Nearest points within a distance, in device memory: a grid compared with a tree, a question that Løvik 2020 left open.
fn nearest(
    settings: &Settings,
    gpu: &Gpu,
    n: usize,
    sets: [&[[f32; 2]]; 2],
    report: &mut Report,
) -> Result<()> {
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let buffer = |points: &[[f32; 2]]| Buffer::from_slice(&stream, points.as_flattened(), "points");
    let [left, right] = [buffer(sets[0])?, buffer(sets[1])?];
    for (k, partners) in [(1, 4.0), (1, 30.0), (8, 30.0), (8, 300.0), (32, 100.0)] {
        let epsilon = (partners / std::f64::consts::PI / n as f64).sqrt() as f32;
        let mut last = None;
        for (name, index) in [("grid", KnnIndex::Grid), ("tree", KnnIndex::Tree)] {
            let join = KnnJoin::new(k).within(epsilon).index(index);
            let mut found = None;
            let timing = settings.effort.wall(|| {
                found = Some(join.run_on::<[f32; 2]>(&stream, &mut workspace, &left, &right)?.0);
                stream.synchronize()
            })?;
            let found = found.map(|ids| ids.to_vec(&stream)).transpose()?;
            let check = last.as_ref().map(|last| {
                assert!(*last == found, "grid and tree disagree: {join:?}");
                "as by the grid"
            });
            last = Some(found);
            report.push(Row {
                work: format!("{k} nearest of {partners} within a distance, by a {name}"),
                input: "f32 x 2, uniform".to_owned(),
                n: n as u64,
                timing: Some(timing),
                items: Some(n as u64),
                temp_bytes: Some(workspace.bytes()),
                check,
                ..Row::default()
            });
        }
    }
    Ok(())
}

/// Pairs of one set, in both directions, from host memory to host memory.
fn batches(settings: &Settings, gpu: &Gpu, n: usize, points: &[[f32; 2]], report: &mut Report) -> Result<()> {
    let device = Device::from_gpu(gpu.clone());
    let join = DistanceJoin::new((PARTNERS / std::f64::consts::PI / n as f64).sqrt() as f32);
    for mib in [64, 256] {
        let (mut batches, mut items) = (Batches::new().bytes(mib << 20), 0);
        let timing = settings.effort.wall(|| {
            let delivered = join.self_rows_batches(&device, points, SelfPairs::Both, &mut batches, |_| {
                ControlFlow::Continue(())
            })?;
            items = delivered.items;
            Ok(())
        })?;
        report.push(Row {
            work: format!("self-join in batches of {mib} MiB, 60 a point"),
            input: "f32 x 2, uniform, host memory".to_owned(),
            n: n as u64,
            timing: Some(timing),
            items: Some(items),
            bytes: Some(items * 4),
            ..Row::default()
        });
    }
    Ok(())
}

fn has_heaps(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::RegisterHeap | Strategy::SharedHeap)
}

/// The common part of the rows of one input.
struct Bench<'a, S> {
    settings: &'a Settings,
    stream: Stream,
    input: String,
    coords: [Buffer<f32>; 2],
    scores: [Buffer<S>; 2],
    report: &'a mut Report,
    /// The pairs and the parameters of the last join, to compare with the next.
    last: Option<(u32, usize, Vec<ScoredPair>)>,
}

impl<'a, S: Score> Bench<'a, S> {
    fn new(
        settings: &'a Settings,
        gpu: &Gpu,
        input: &str,
        points: [&[[f32; 2]]; 2],
        scores: [&[S]; 2],
        report: &'a mut Report,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let coords = |i: usize| Buffer::from_slice(&stream, points[i].as_flattened(), "points");
        let of_scores = |i: usize| Buffer::from_slice(&stream, scores[i], "scores");
        let (coords, scores) = ([coords(0)?, coords(1)?], [of_scores(0)?, of_scores(1)?]);
        let input = format!("f32 x 2, u24, {input}");
        Ok(Self { settings, stream, input, coords, scores, report, last: None })
    }

    /// Measures the join with each strategy that can keep `k` pairs.
    fn every_strategy(&mut self, epsilon: f32, k: usize) -> Result<()> {
        for (name, strategy) in STRATEGIES {
            if k <= MOST_IN_HEAPS || !has_heaps(strategy) {
                unless_too_large(self.top_k(epsilon, k, name, strategy, Curve::Linear))?;
            }
        }
        Ok(())
    }

    fn top_k(&mut self, epsilon: f32, k: usize, name: &str, strategy: Strategy, curve: Curve) -> Result<()> {
        self.timed(TopKDistanceJoin::new(epsilon, k).strategy(strategy).curve(curve), epsilon, k, name)
    }

    fn cells(&mut self, epsilon: f32, name: &str, lookup: Lookup) -> Result<()> {
        let k = 16;
        let join = TopKDistanceJoin::new(epsilon, k).strategy(Strategy::Cells).lookup(lookup);
        self.timed(join, epsilon, k, name)
    }

    fn timed(&mut self, join: TopKDistanceJoin<f32>, epsilon: f32, k: usize, name: &str) -> Result<()> {
        let (stream, mut workspace) = (&self.stream, Workspace::new(self.stream.gpu()));
        let set = |i: usize| DeviceScored { coords: &self.coords[i], scores: &self.scores[i] };
        let mut found = Vec::new();
        let timing = self.settings.effort.wall(|| {
            found = join.run_on::<[f32; 2], S>(stream, &mut workspace, set(0), set(1))?;
            Ok(())
        })?;
        let this = (epsilon.to_bits(), k);
        let check = match &self.last {
            Some((epsilon, k, pairs)) if (*epsilon, *k) == this => {
                assert!(*pairs == found, "strategies disagree: {join:?}");
                Some("as by the other strategies")
            }
            _ => {
                self.last = Some((this.0, this.1, found));
                None
            }
        };
        let n = self.coords[1].len() as u64 / 2;
        self.report.push(Row {
            work: format!("top {k} within {epsilon}{name}"),
            input: self.input.clone(),
            n,
            timing: Some(timing),
            items: Some(n),
            temp_bytes: Some(workspace.bytes()),
            check,
            ..Row::default()
        });
        Ok(())
    }

    /// Pairs of one set, in both directions: their number, and their ids.
    fn self_join(&mut self, epsilon: f32, name: &str, lookup: Lookup) -> Result<()> {
        let (stream, mut workspace) = (&self.stream, Workspace::new(self.stream.gpu()));
        let (join, points) = (DistanceJoin::new(epsilon).lookup(lookup), &self.coords[0]);
        let mut count = 0;
        let counted = self.settings.effort.wall(|| {
            count = join.count_on::<[f32; 2]>(stream, &mut workspace, points, None)?;
            Ok(())
        })?;
        let mut num_found = 0;
        let found = self.settings.effort.wall(|| {
            let (offsets, ids) = join.rows_on::<[f32; 2]>(stream, &mut workspace, points, None)?;
            num_found = ids.len() as u64;
            stream.synchronize()?;
            Ok((offsets, ids))
        })?;
        assert_eq!(count, num_found, "pairs found are those that were counted");
        let n = points.len() as u64 / 2;
        for (work, timing) in [("self-join counted", counted), ("self-join found", found)] {
            self.report.push(Row {
                work: format!("{work}, 60 a point, {name}"),
                input: self.input.clone(),
                n,
                timing: Some(timing),
                items: Some(count),
                temp_bytes: Some(workspace.bytes()),
                ..Row::default()
            });
        }
        Ok(())
    }
}
