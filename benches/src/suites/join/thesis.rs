//! The experiments that Løvik published (2020, chapter 7), with the published axes: the best pairs as a function of the sizes of both
//! sets, of the distance and of `k`, for real-like sets, and with limited memory. In device memory, by the wall clock.
//!
//! In figures 7.1, 7.2 and 7.9, `--n` is the size of both sets; published are 1e3 to 1e8. All other sets have the published sizes, or
//! smaller ones if all values of `--n` are smaller. Occupancy, traffic and cache hits (parts of 7.4, 7.5 and 7.7) are a profiler's: the suite
//! `join-thesis-once` runs each of those joins once for `ncu`, and `--profile` adds its results ([`profile`]). Without them 7.7 is only the
//! memory of the join.
//!
//! Phases are differences of times, because a join is one call. For kauri's strategies `hash and sort` is the time of a join that sorts
//! one set and probes it with two points, of either set, minus that with four points. The filter's `final selection` is the time of
//! the best pairs minus that of the ids of all pairs (4 bytes per pair; the filter writes 16). The `final sort` of appended pairs is the
//! time to sort the same number of random scores. Heaps and cells select while they filter. The rival's phases are measured by events.
//!
//! The rival is `benches/rivals/thesis_lovik.cu`.

pub(crate) mod profile;

use super::{MOST_IN_HEAPS, STRATEGIES, has_heaps};
use crate::figures::{Figure, FigurePoint, Quantity};
use crate::measure::Effort;
use crate::points::{self, noise};
use crate::report::{Phase, Report, Row};
use crate::suites::{Settings, copy};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::join::{DeviceScored, DistanceJoin, ScoredPair, Strategy, TopKDistanceJoin};
use kauri::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use kauri::{Error, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::time::Duration;

const OVER_RIGHTS: Figure =
    Figure { name: "7.1 time", x_axis: "right points", quantity: Quantity::Milliseconds };
const OVER_LEFTS: Figure =
    Figure { name: "7.2 time", x_axis: "left points", quantity: Quantity::Milliseconds };
const SHARES: Figure = Figure { name: "7.4 phases", x_axis: "distance", quantity: Quantity::Percent };
const OCCUPANCY: Figure = Figure { name: "7.4 occupancy", x_axis: "distance", quantity: ACTIVE_WARPS };
const OVER_DISTANCE: Figure =
    Figure { name: "7.3 time", x_axis: "distance", quantity: Quantity::Milliseconds };
const SHARES_OF_K: Figure = Figure { name: "7.5 phases", x_axis: "pairs", quantity: Quantity::Percent };
const OCCUPANCY_OF_K: Figure = Figure { name: "7.5 occupancy", x_axis: "pairs", quantity: ACTIVE_WARPS };
const OVER_K: Figure = Figure { name: "7.6 time", x_axis: "pairs", quantity: Quantity::Milliseconds };
const HITS: Figure =
    Figure { name: "7.7 cache hits", x_axis: "pairs", quantity: Quantity::Profiled("% of accesses") };
const TRAFFIC: Figure = Figure { name: "7.7 traffic", x_axis: "pairs", quantity: Quantity::Profiled("MB") };
const MEMORY_OF_K: Figure = Figure { name: "7.7 memory", x_axis: "pairs", quantity: Quantity::Megabytes };
const REAL: Figure =
    Figure { name: "7.8 time", x_axis: "distance in degrees", quantity: Quantity::Milliseconds };
const MEMORY: Figure = Figure { name: "7.9 memory", x_axis: "right points", quantity: Quantity::Megabytes };
const MEMORY_OF_LEFTS: Figure =
    Figure { name: "7.9 memory over left points", x_axis: "left points", quantity: Quantity::Megabytes };
const ACTIVE_WARPS: Quantity = Quantity::Profiled("% of warps active");
const FIGURES: [Figure; 14] = [
    OVER_RIGHTS,
    OVER_LEFTS,
    OVER_DISTANCE,
    SHARES,
    OCCUPANCY,
    SHARES_OF_K,
    OCCUPANCY_OF_K,
    OVER_K,
    HITS,
    TRAFFIC,
    MEMORY_OF_K,
    REAL,
    MEMORY,
    MEMORY_OF_LEFTS,
];

/// Points of a set in figures with another axis.
const PUBLISHED: usize = 1_000_000;
const DISTANCE: f32 = 0.001;
const DISTANCES: [f32; 7] = [0.0001, 0.0003, DISTANCE, 0.003, 0.01, 0.03, 0.1];
const K: usize = 16;
/// The largest published value is unknown.
const KS: [usize; 13] = [1, 2, 4, 8, K, 32, 64, 128, 256, 512, 1024, 10_000, 100_000];
/// The numbers of pairs of figure 7.7.
const COMPARED_KS: [usize; 2] = [32, 64];
/// Default bytes for the best pairs of each right point, and the bytes of the published experiment.
const RESULTS: u64 = 4 << 30;
const SMALL_RESULTS: u64 = 50 << 20;
/// Bits of the sum of two scores.
const SCORE_BITS: u32 = 25;
/// A measurement ends with the run during which this time has passed.
const LIMIT: Duration = Duration::from_millis(500);

/// Makes points from their number and a seed.
type Make = fn(usize, u64) -> Vec<[f32; 2]>;

/// Sets of New York by the model of their points, with the sizes of the real sets.
const REAL_SETS: [(&str, [(usize, Make); 2]); 2] = [
    // Pairs exist only for distances beyond about a hundredth of a degree.
    ("harbours and trees", [(89_545, points::harbors), (683_788, points::inland)]),
    ("tanks and addresses", [(25_054, points::inland), (964_214, points::inland)]),
];

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.figures = &FIGURES;
    report.push(copy(gpu, settings.effort)?);
    let settings = Settings {
        effort: Effort { limit: settings.effort.limit.min(LIMIT), ..settings.effort },
        ..settings.clone()
    };
    over_sizes(&settings, gpu, report)?;
    over_distances_and_numbers(&settings, gpu, report)?;
    of_real_sets(&settings, gpu, report)
}

/// Each join of the figures that need a profiler, once.
pub(super) fn run_once(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    let effort = Effort { warm_up: 0, runs: 1, limit: Duration::ZERO, ..settings.effort };
    let settings = Settings { effort, ..settings.clone() };
    let n = published(&settings, PUBLISHED);
    let stream = Stream::new(gpu)?;
    let sets = [0, 1].map(|side| Set::uniform(&stream, n, settings.seed + side));
    let [left, right] = sets;
    let (left, right) = (left?, right?);
    let mut bench = Bench::new(&settings, gpu, [&left, &right], uniform(n), report)?;
    for join in profiled_joins() {
        bench.top_k(join, vec![])?;
    }
    Ok(())
}

/// Returns the joins that a profiler measures: first over distances, then over values of `k` up to the most that a heap holds. The rival
/// runs its strategies in the same order.
fn profiled_joins() -> impl Iterator<Item = Join> {
    let ks = KS.into_iter().filter(|&k| k != K && k <= MOST_IN_HEAPS).map(|k| (DISTANCE, k));
    let joins = DISTANCES.into_iter().map(|epsilon| (epsilon, K)).chain(ks);
    joins.flat_map(|(epsilon, k)| {
        STRATEGIES.into_iter().skip(1).map(move |(name, strategy)| Join::new(epsilon, k, name, strategy))
    })
}

/// Returns a published number of points, scaled down in proportion if no size of the run reaches a million.
fn published(settings: &Settings, len: usize) -> usize {
    let most = settings.sizes.iter().copied().max().unwrap_or(0).min(PUBLISHED);
    (len * most).div_ceil(PUBLISHED)
}

fn uniform(num_left: usize) -> String {
    format!("f32 x 2, u24, uniform, {num_left} left")
}

/// Figures 7.1, 7.2 and 7.9.
fn over_sizes(settings: &Settings, gpu: &Gpu, report: &mut Report) -> Result<()> {
    let stream = Stream::new(gpu)?;
    let all = |side| {
        let set = |&n: &usize| Set::uniform(&stream, n, settings.seed + side);
        settings.sizes.iter().map(set).collect::<Result<Vec<_>>>()
    };
    let (lefts, rights) = (all(0)?, all(1)?);
    for left in &lefts {
        for right in &rights {
            let mut bench = Bench::new(settings, gpu, [left, right], uniform(left.len), report)?;
            let [num_left, num_right] = [left.len as f64, right.len as f64];
            let [left_panel, right_panel] =
                [format!("{num_left:.0e} left points"), format!("{num_right:.0e} right points")];
            let points = |figures: &[Figure], line: &str| -> Vec<FigurePoint> {
                let point = |figure: &Figure| match figure.x_axis {
                    "right points" => FigurePoint::new(figure.name, &left_panel, line, num_right),
                    _ => FigurePoint::new(figure.name, &right_panel, line, num_left),
                };
                figures.iter().map(point).collect()
            };
            for (name, strategy) in STRATEGIES {
                let (join, line) = (Join::new(DISTANCE, K, name, strategy), line_of(name));
                if !join.has_heaps() {
                    bench.top_k(join, points(&[OVER_RIGHTS, OVER_LEFTS, MEMORY, MEMORY_OF_LEFTS], line))?;
                    continue;
                }
                bench.top_k(join, points(&[OVER_RIGHTS, OVER_LEFTS], line))?;
                let join = Join { result_bytes: SMALL_RESULTS, ..join };
                bench.top_k(join, points(&[MEMORY, MEMORY_OF_LEFTS], line))?;
            }
        }
    }
    Ok(())
}

/// Figures 7.3 to 7.7.
fn over_distances_and_numbers(settings: &Settings, gpu: &Gpu, report: &mut Report) -> Result<()> {
    let (n, stream) = (published(settings, PUBLISHED), Stream::new(gpu)?);
    let (left, right) =
        (Set::uniform(&stream, n, settings.seed)?, Set::uniform(&stream, n, settings.seed + 1)?);
    let mut bench = Bench::new(settings, gpu, [&left, &right], uniform(n), report)?;
    for epsilon in DISTANCES {
        for (name, strategy) in STRATEGIES {
            let line = line_of(name);
            let across = f64::from(epsilon);
            let points = vec![
                FigurePoint::new(OVER_DISTANCE.name, "", line, across),
                FigurePoint::new(SHARES.name, line, "", across),
            ];
            bench.top_k_in_phases(Join::new(epsilon, K, name, strategy), points)?;
        }
    }
    for k in KS {
        for (name, strategy) in STRATEGIES {
            let (join, line) = (Join::new(DISTANCE, k, name, strategy), line_of(name));
            if join.has_heaps() && k > MOST_IN_HEAPS {
                continue;
            }
            let mut points = vec![
                FigurePoint::new(OVER_K.name, "", line, k as f64),
                FigurePoint::new(SHARES_OF_K.name, line, "", k as f64),
            ];
            if COMPARED_KS.contains(&k) {
                points.push(FigurePoint::new(MEMORY_OF_K.name, "", line, k as f64));
            }
            bench.top_k_in_phases(join, points)?;
        }
    }
    Ok(())
}

/// Figure 7.8.
fn of_real_sets(settings: &Settings, gpu: &Gpu, report: &mut Report) -> Result<()> {
    let stream = Stream::new(gpu)?;
    for (what, sets) in REAL_SETS {
        let set = |side: usize| {
            let (len, make) = sets[side];
            let (n, seed) = (published(settings, len), settings.seed + side as u64);
            Set::new(&stream, &make(n, seed), seed + 2)
        };
        let (left, right) = (set(0)?, set(1)?);
        let input = format!("f32 x 2, u24, {what}, {} left", left.len);
        let mut bench = Bench::new(settings, gpu, [&left, &right], input, report)?;
        for epsilon in DISTANCES {
            for (name, strategy) in STRATEGIES {
                let point = FigurePoint::new(REAL.name, what, line_of(name), epsilon.into());
                bench.top_k(Join::new(epsilon, K, name, strategy), vec![point])?;
            }
        }
    }
    Ok(())
}

/// Names of lines, by the end of the name of a row.
fn line_of(name: &'static str) -> &'static str {
    name.strip_prefix(", ").unwrap_or("threshold")
}

/// A set on the device.
struct Set {
    len: usize,
    coords: Buffer<f32>,
    scores: Buffer<u32>,
    /// Two points whose bounding box contains all other points.
    corners: Buffer<f32>,
}

impl Set {
    /// Makes the points of the suite `join`, as the rival does.
    fn uniform(stream: &Stream, len: usize, seed: u64) -> Result<Self> {
        Self::new(stream, &points::uniform(len, seed), seed + 2)
    }

    fn new(stream: &Stream, points: &[[f32; 2]], seed_of_scores: u64) -> Result<Self> {
        let score = |i| (noise(seed_of_scores, i) >> 40) as u32;
        let scores: Vec<u32> = (0..points.len() as u64).into_par_iter().map(score).collect();
        let mut corners = [[f32::MAX; 2], [f32::MIN; 2]];
        for point in points {
            for axis in 0..2 {
                corners[0][axis] = corners[0][axis].min(point[axis]);
                corners[1][axis] = corners[1][axis].max(point[axis]);
            }
        }
        Ok(Self {
            len: points.len(),
            coords: Buffer::from_slice(stream, points.as_flattened(), "points")?,
            scores: Buffer::from_slice(stream, &scores, "scores")?,
            corners: Buffer::from_slice(stream, corners.as_flattened(), "corners")?,
        })
    }

    fn scored(&self) -> DeviceScored<'_, f32, u32> {
        DeviceScored { coords: &self.coords, scores: &self.scores }
    }
}

/// A join to measure.
#[derive(Clone, Copy)]
struct Join {
    epsilon: f32,
    k: usize,
    /// The end of the name of its row.
    name: &'static str,
    strategy: Strategy,
    result_bytes: u64,
}

impl Join {
    fn new(epsilon: f32, k: usize, name: &'static str, strategy: Strategy) -> Self {
        Self { epsilon, k, name, strategy, result_bytes: RESULTS }
    }

    fn has_heaps(&self) -> bool {
        has_heaps(self.strategy)
    }

    fn work(&self) -> String {
        let &Self { epsilon, k, name, .. } = self;
        let results = if self.result_bytes == SMALL_RESULTS { ", 50 MiB of results" } else { "" };
        format!("top {k} within {epsilon}{name}{results}")
    }
}

/// The common part of the rows of two sets.
struct Bench<'a> {
    effort: Effort,
    gpu: &'a Gpu,
    stream: Stream,
    sets: [&'a Set; 2],
    input: String,
    report: &'a mut Report,
    /// The pairs of joins, by distance and number, to compare other strategies with.
    found: HashMap<(u32, usize), Vec<ScoredPair>>,
    /// The parts of joins by distance.
    parts: HashMap<u32, Parts>,
}

/// Milliseconds of parts of joins within a distance.
#[derive(Clone, Copy)]
struct Parts {
    /// Hash and sort.
    sorted: f64,
    /// Times of a join that finds the ids of all pairs, and of a sort of one score with ids per pair; `None` if they do not fit in memory.
    all_pairs: Option<(f64, f64)>,
}

impl<'a> Bench<'a> {
    fn new(
        settings: &Settings,
        gpu: &'a Gpu,
        sets: [&'a Set; 2],
        input: String,
        report: &'a mut Report,
    ) -> Result<Self> {
        let (stream, effort) = (Stream::new(gpu)?, settings.effort);
        let (found, parts) = (HashMap::new(), HashMap::new());
        Ok(Self { effort, gpu, stream, sets, input, report, found, parts })
    }

    /// Returns the row of a join, which is measured once, and adds the figures that show it.
    fn top_k(&mut self, join: Join, points: Vec<FigurePoint>) -> Result<&mut Row> {
        let (work, n) = (join.work(), self.sets[1].len as u64);
        let is_it = |row: &Row| row.is_kauri() && row.work == work && row.input == self.input && row.n == n;
        let at = match self.report.rows.iter().position(is_it) {
            Some(at) => at,
            None => {
                let row = Row { work, input: self.input.clone(), n, ..Row::default() };
                let row = match self.measured(join, row.clone()) {
                    Ok(row) => row,
                    Err(error @ (Error::OutOfMemory { .. } | Error::ResultTooLarge { .. })) => {
                        Row { note: Some(format!("left out: {error}")), ..row }
                    }
                    Err(error) => return Err(error),
                };
                self.report.push(row);
                self.report.rows.len() - 1
            }
        };
        let row = &mut self.report.rows[at];
        row.figure_points.extend(points);
        Ok(row)
    }

    fn measured(&mut self, join: Join, row: Row) -> Result<Row> {
        let Join { epsilon, k, strategy, result_bytes, .. } = join;
        let [left, right] = self.sets.map(Set::scored);
        let top = TopKDistanceJoin::new(epsilon, k).strategy(strategy).heap_bytes(result_bytes);
        // A separate workspace measures the memory of the join.
        let gpu = self.gpu.with_memory_limit(u64::MAX);
        let (stream, mut workspace) = (Stream::new(&gpu)?, Workspace::new(&gpu));
        let mut found = Vec::new();
        let timing = self.effort.wall(|| {
            found = top.run_on::<[f32; 2], u32>(&stream, &mut workspace, left, right)?;
            Ok(())
        })?;
        let check = match self.found.get(&(epsilon.to_bits(), k)) {
            Some(other) => {
                assert!(*other == found, "strategies disagree: {top:?}");
                Some("as by the other strategies")
            }
            None => {
                self.found.insert((epsilon.to_bits(), k), found);
                None
            }
        };
        let (items, temp_bytes) = (Some(row.n), Some(gpu.memory_use().peak_bytes));
        Ok(Row { timing: Some(timing), items, temp_bytes, check, ..row })
    }

    /// Returns the row with its phases, for strategies that sort all points.
    fn top_k_in_phases(&mut self, join: Join, points: Vec<FigurePoint>) -> Result<()> {
        let row = self.top_k(join, points)?;
        let Some(all) = row.timing.as_ref().map(|timing| timing.median_ms) else { return Ok(()) };
        if join.strategy == Strategy::Auto || !row.phases.is_empty() {
            return Ok(());
        }
        let Parts { sorted, all_pairs } = self.parts_of(join.epsilon)?;
        let phases = match (join.strategy, all_pairs) {
            (Strategy::Filter, Some((with_ids, _))) => Phase::all([
                ("hash and sort", sorted),
                ("filter", with_ids - sorted),
                ("final selection", all - with_ids),
            ]),
            (Strategy::AppendSort, Some((_, pairs_sorted))) => Phase::all([
                ("hash and sort", sorted),
                ("filter", all - sorted - pairs_sorted),
                ("final sort", pairs_sorted),
            ]),
            _ => Phase::all([("hash and sort", sorted), ("filter and selection", all - sorted)]),
        };
        self.top_k(join, vec![])?.phases = phases;
        Ok(())
    }

    fn parts_of(&mut self, epsilon: f32) -> Result<Parts> {
        if let Some(&parts) = self.parts.get(&epsilon.to_bits()) {
            return Ok(parts);
        }
        let (join, mut workspace) = (DistanceJoin::new(epsilon), Workspace::new(self.gpu));
        let (stream, [left, right]) = (&self.stream, self.sets);
        let mut counted = |left: &Buffer<f32>, right: &Buffer<f32>| {
            let count = || join.count_on::<[f32; 2]>(stream, &mut workspace, left, Some(right));
            Ok::<_, Error>(self.effort.wall(count)?.median_ms)
        };
        // The build side of a distance join is the right set.
        let each = [counted(&left.corners, &left.coords)?, counted(&right.corners, &right.coords)?];
        let sorted = each[0] + each[1] - counted(&left.corners, &right.corners)?;
        let mut all_pairs = || {
            let mut num_pairs = 0;
            let with_ids = self.effort.wall(|| {
                let found =
                    join.rows_on::<[f32; 2]>(stream, &mut workspace, &right.coords, Some(&left.coords))?;
                num_pairs = found.1.len();
                stream.synchronize()?;
                Ok(found)
            })?;
            Ok((with_ids.median_ms, self.pairs_sorted(num_pairs)?))
        };
        let all_pairs = match all_pairs() {
            Ok(parts) => Some(parts),
            Err(Error::OutOfMemory { .. } | Error::ResultTooLarge { .. }) => None,
            Err(error) => return Err(error),
        };
        let parts = Parts { sorted, all_pairs };
        self.parts.insert(epsilon.to_bits(), parts);
        Ok(parts)
    }

    /// Returns the milliseconds of a sort of some pairs by the bits of the sum of two scores.
    fn pairs_sorted(&self, num_pairs: usize) -> Result<f64> {
        let (stream, mut workspace) = (&self.stream, Workspace::new(self.gpu));
        // The device's memory first: it is exhausted before the host's, and then this ends.
        let buffer = || Buffer::<u64>::uninitialized(self.gpu, num_pairs, "pairs");
        let (mut scores, mut ids) = (buffer()?, buffer()?);
        let (mut sorted_scores, mut sorted_ids) = (buffer()?, buffer()?);
        let score = |i| noise(7, i) >> (u64::BITS - SCORE_BITS);
        let random: Vec<_> = (0..num_pairs as u64).into_par_iter().map(score).collect();
        scores.copy_from_slice(stream, &random)?;
        ids.fill_bytes(stream, 0)?;
        let options = RadixSortOptions::default().bits(0..SCORE_BITS);
        let timing = self.effort.events(stream, || {
            let (sorted_scores, sorted_ids) = (&mut sorted_scores, &mut sorted_ids);
            sort_pairs(stream, &mut workspace, &scores, &ids, sorted_scores, sorted_ids, &options)
        })?;
        Ok(timing.median_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::plots;
    use kauri::Device;
    use kauri::device::SimOptions;

    fn settings(device: Device, sizes: &[usize]) -> Settings {
        let effort = Effort { warm_up: 0, ..Effort::new(1, Duration::ZERO) };
        Settings { device, sizes: sizes.into(), effort, seed: 1, models: Vec::new() }
    }

    /// In the simulator, with little memory, so that the bandwidth test copies little.
    fn simulated(sizes: &[usize]) -> Settings {
        let device = Device::sim(SimOptions::default()).unwrap();
        settings(Device::from_gpu(device.gpu().unwrap().with_memory_limit(64 << 20)), sizes)
    }

    /// Small sets: rows of every figure, compared with each other, and their plots.
    #[test]
    fn figures_of_small_sets() {
        let settings = simulated(&[40, 150]);
        let mut report = Report::new("join-thesis", Hardware::of(&settings.device), 1);
        run(&settings, &mut report).unwrap();
        let rival = r#"{"system":"Lovik in CUDA","work":"top 16 within 0.001, registers","input":"f32 x 2, u24, uniform, 150 left","n":150,
            "median_ms":3.0,"min_ms":3.0,"max_ms":4.0,"runs":5,"temp_bytes":9,"phases":[{"name":"filter","ms":3.0}]}"#;
        let rival = rival.replace('\n', "");
        for end in ["", ", 50 MiB of results"] {
            report.add_rivals(&rival.replace("registers", &format!("registers{end}"))).unwrap();
        }
        for kernel in ["join_in_registers_f32_2_K", "void filter_in_registers<K>(Sides, Pair *)"] {
            profile::add_profile(&mut report, &profile::tests::of_registers(kernel)).unwrap();
        }
        let folder = std::env::temp_dir().join(format!("kauri-figures-{}", std::process::id()));
        plots::write(&report, &folder).unwrap();
        let pictures: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert_eq!(pictures.len(), FIGURES.len());
        for name in ["7-1-time.svg", "7-4-phases.svg", "7-4-occupancy.svg", "7-9-memory.svg"] {
            let picture = std::fs::read_to_string(folder.join(name)).unwrap();
            assert!(picture.contains("Lovik") && picture.contains("registers"), "{name}: {picture}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let checked = report.rows.iter().filter(|row| row.check.is_some()).count();
        assert!(report.rows.iter().all(|row| row.note.is_none()) && checked > 100, "{checked}");
        assert!(report.to_markdown().contains("| kauri | hash and sort "));
    }

    #[test]
    fn once_of_small_sets() {
        let settings = simulated(&[150]);
        let mut once = Report::new("join-thesis-once", Hardware::of(&settings.device), 1);
        run_once(&settings, &mut once).unwrap();
        assert_eq!(once.rows.len(), (DISTANCES.len() + 7) * (STRATEGIES.len() - 1));
    }

    #[test]
    fn sizes_where_the_axis_is_another() {
        let of = |sizes: &[usize], len| published(&settings(Device::cpu(), sizes), len);
        assert_eq!(of(&[1000, 100_000_000], 89_545), 89_545);
        assert_eq!(of(&[1000], 89_545), 90);
        assert_eq!(of(&[], 89_545), 0);
    }
}
