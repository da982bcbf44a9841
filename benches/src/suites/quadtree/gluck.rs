//! The experiments of Gluck 2014, figures 5 to 10: builds from host memory on a GPU compared with one core of the CPU, by the number of points;
//! builds with less device memory than needed, where the CPU splits the upper levels; threads per block, and a thread per node; points per
//! leaf; the reduction that finds the bounding box of the points, which is the root.
//!
//! The points are those of a generated laser scan. A row is the result of ten runs, as in the paper.

use crate::figures::{Figure, FigurePoint, Quantity};
use crate::measure::{Effort, Timing};
use crate::report::{Report, Row};
use crate::suites::{Settings, unless_too_large};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::lidar::Lidar;
use kauri::quadtree::{OutOfCore, Quadtree, QuadtreeOptions, RootCell};
use kauri::research::quadtree::{BuildAlgorithm, LevelsOptions};
use kauri::{Device, Error, Result};
use rayon::ThreadPoolBuilder;
use std::time::{Duration, Instant};

const fn figure(name: &'static str, quantity: Quantity) -> Figure {
    Figure { name, x_axis: "points", quantity }
}

const FIGURES: [Figure; 6] = [
    figure("figure 5", Quantity::Milliseconds),
    figure("figure 6", Quantity::TimesAsFast),
    figure("figure 7", Quantity::Milliseconds),
    figure("figure 8", Quantity::TimesAsFast),
    figure("figure 9", Quantity::Milliseconds),
    figure("figure 10", Quantity::Milliseconds),
];

/// Maximum numbers of points of a leaf (Gluck's z) in figure 10.
const LEAF_POINTS: [u32; 3] = [20, 200, 2000];
/// Threads per block; the paper has up to 128.
const THREADS: [u32; 8] = [4, 8, 16, 32, 64, 128, 256, 512];
/// Levels from which on a thread splits each node; blocks split the nodes above.
const THREAD_LEVELS: [u32; 4] = [0, 2, 4, 6];
/// With more points, ten builds by one thread for each node of all levels take minutes.
const MOST_BY_ONE_THREAD: usize = 10_000_000;
/// Runs of a measurement. With few threads a run of 80M points takes many seconds, so no time limit ends it early.
const RUNS: usize = 10;
/// The memory that a build of 40M points takes here: at that number the device of the paper ran out of memory.
const CAP: u64 = 40_000_000 * 52;

/// x and y of each point, relative to the low corner of the scan.
type Points = Vec<[f32; 2]>;

fn scan(n: usize, seed: u64) -> Result<Points> {
    let scan = Lidar::new(n as u64, seed);
    let [low, _] = scan.bounds();
    let mut points = Vec::with_capacity(n);
    for begin in (0..n as u64).step_by(1 << 24) {
        let part = scan.points(begin..(begin + (1 << 24)).min(n as u64))?;
        points.extend(part.iter().map(|point| [0, 1].map(|axis| (point.position[axis] - low[axis]) as f32)));
    }
    Ok(points)
}

/// All experiments.
pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.figures = &FIGURES;
    let settings = &with_ten_runs(settings);
    for &n in &settings.sizes {
        let points = scan(n, settings.seed)?;
        from_host(settings, report, &points)?;
        root_box(settings, report, &points)?;
        shapes(settings, report, &points)?;
        nulls(settings, report, &points)?;
    }
    Ok(())
}

/// Only figures 5 to 8.
pub(super) fn run_from_host(settings: &Settings, report: &mut Report) -> Result<()> {
    report.figures = &FIGURES[..4];
    let settings = &with_ten_runs(settings);
    settings.sizes.iter().try_for_each(|&n| from_host(settings, report, &scan(n, settings.seed)?))
}

fn with_ten_runs(settings: &Settings) -> Settings {
    let effort = Effort { warm_up: 1, runs: RUNS, limit: Duration::MAX, ..settings.effort };
    Settings { effort, ..settings.clone() }
}

/// Figures 5 to 8: builds from host memory.
fn from_host(settings: &Settings, report: &mut Report, points: &[[f32; 2]]) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    // Checks and bounds of the points take all threads of a pool.
    let one_thread = ThreadPoolBuilder::new().num_threads(1).build().expect("the pool of one thread starts");
    let capped = Device::from_gpu(gpu.with_memory_limit(CAP));
    let (n, across) = (points.len(), points.len() as f64);
    // The time of each run, and that of the levels which the CPU builds for the GPU.
    let runs = |device: &Device, options: &QuadtreeOptions| {
        settings.effort.repeat(|| {
            let begin = Instant::now();
            let tree = Quadtree::build(device, points, options)?;
            let time = begin.elapsed();
            let top = tree.stats().phases.iter().find(|phase| phase.name == "levels by the CPU");
            Ok((time, top.map_or(Duration::ZERO, |top| top.duration)))
        })
    };
    let timed = |work: &str, times: &mut dyn Iterator<Item = Duration>| {
        row(work, n, Some(Timing::of("wall", &times.collect::<Vec<_>>())))
    };
    let build = |device: &Device, options: &QuadtreeOptions, work: &str| -> Result<Row> {
        Ok(timed(work, &mut runs(device, options)?.into_iter().map(|(time, _)| time)))
    };
    let levels = QuadtreeOptions::default().algorithm(BuildAlgorithm::LEVELS);
    let one_core = one_thread.install(|| runs(&Device::cpu(), &levels))?;
    let mut one_core_row = timed("level by level, one core", &mut one_core.iter().map(|&(time, _)| time));
    let one_core_ms = median(&one_core_row);
    one_core_row.figure_points.push(FigurePoint::new("figure 5", "", "one core", across));
    report.push(one_core_row);
    let mut push = |mut row: Row, figures, line, compared_ms: f64| {
        row.figure_points = figure_points(figures, line, across, compared_ms / median(&row));
        report.push(row);
    };
    let (all, part) = (["figure 5", "figure 6"], ["figure 7", "figure 8"]);
    push(build(&settings.device, &levels, "level by level")?, all, "all in its memory", one_core_ms);
    let codes = QuadtreeOptions::default();
    push(build(&settings.device, &codes, "by codes")?, all, "by codes", one_core_ms);
    unless_too_large((|| {
        let streamed = codes.clone().out_of_core(OutOfCore::Streamed);
        push(build(&capped, &streamed, "out of core, 2 GB")?, all, "out of core", one_core_ms);
        Ok(())
    })())?;
    // Where the points do not fit, the CPU splits the upper levels. Without that time on either side, the GPU's speedup is as before.
    let top =
        levels.clone().out_of_core(if n > 40_000_000 { OutOfCore::CpuTop } else { OutOfCore::WhereNeeded });
    let whole = match runs(&capped, &top) {
        Err(error) => return unless_too_large(Err(error)),
        Ok(whole) => whole,
    };
    let row = timed("level by level, 2 GB", &mut whole.iter().map(|&(time, _)| time));
    push(row, all, "the CPU splits what does not fit", one_core_ms);
    let mut by_cpu: Vec<_> = whole.iter().map(|&(_, by_cpu)| by_cpu).collect();
    by_cpu.sort_unstable();
    let by_cpu = by_cpu[by_cpu.len() / 2];
    let without = "without those levels";
    let mut one_core = timed(
        &format!("level by level, one core, {without}"),
        &mut one_core.iter().map(|&(time, _)| time.saturating_sub(by_cpu)),
    );
    let one_core_ms = median(&one_core);
    one_core.figure_points.push(FigurePoint::new("figure 7", "", "one core", across));
    let rest = timed(
        "level by level, 2 GB, without the levels by the CPU",
        &mut whole.iter().map(|&(time, by_cpu)| time - by_cpu),
    );
    push(rest, part, "the GPU's part", one_core_ms);
    report.push(one_core);
    Ok(())
}

/// A build whose root is the bounding box of the points, from host memory, and the part of its time that the reduction of the box takes.
fn root_box(settings: &Settings, report: &mut Report, points: &[[f32; 2]]) -> Result<()> {
    let options = QuadtreeOptions::default().algorithm(BuildAlgorithm::LEVELS).root(RootCell::BoundingBox);
    let runs = settings.effort.repeat(|| {
        let begin = Instant::now();
        let tree = Quadtree::build(&settings.device, points, &options)?;
        let bounds = tree.stats().phases.iter().find(|phase| phase.name == "bounds");
        Ok((begin.elapsed(), bounds.map_or(Duration::ZERO, |bounds| bounds.duration)))
    })?;
    let (builds, reductions): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    for (what, times) in [("", builds), (": the box", reductions)] {
        let work = format!("level by level, root by min and max{what}");
        report.push(row(&work, points.len(), Some(Timing::of("wall", &times))));
    }
    Ok(())
}

/// Figures 9 and 10: builds from device memory in which a block splits a whole node, as in the paper.
fn shapes(settings: &Settings, report: &mut Report, points: &[[f32; 2]]) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    let (n, stream, mut workspace) = (points.len(), Stream::new(gpu)?, Workspace::new(gpu));
    let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let mut build = |options: &QuadtreeOptions, work: &str, point: FigurePoint| -> Result<()> {
        let timing = settings.effort.wall(|| {
            let tree = Quadtree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords, options)?;
            stream.synchronize().map(|()| tree)
        })?;
        report.push(Row { figure_points: vec![point], ..row(work, n, Some(timing)) });
        Ok(())
    };
    for threads in THREADS {
        let levels =
            LevelsOptions { threads: Some(threads), block_points: u32::MAX, ..LevelsOptions::default() };
        let options = QuadtreeOptions::default().algorithm(BuildAlgorithm::Levels(levels));
        let point = FigurePoint::new("figure 9", "", &format!("{threads} threads"), n as f64);
        build(&options, &format!("level by level, a block of {threads} threads a node"), point)?;
    }
    for thread_level in THREAD_LEVELS {
        if thread_level == 0 && n > MOST_BY_ONE_THREAD {
            continue;
        }
        let levels = LevelsOptions { thread_level, block_points: u32::MAX, ..LevelsOptions::default() };
        let options = QuadtreeOptions::default().algorithm(BuildAlgorithm::Levels(levels));
        let line = format!("a thread a node from level {thread_level} on");
        let point = FigurePoint::new("figure 9", "", &line, n as f64);
        build(&options, &format!("level by level, {line}"), point)?;
    }
    for z in LEAF_POINTS {
        let options = QuadtreeOptions::default().algorithm(BuildAlgorithm::LEVELS).leaf_points(z);
        let point = FigurePoint::new("figure 10", "", &format!("{z} points a leaf"), n as f64);
        build(&options, &format!("level by level, {z} points a leaf"), point)?;
    }
    Ok(())
}

/// Builds with and without null nodes, and the most device memory that each takes beside the points.
fn nulls(settings: &Settings, report: &mut Report, points: &[[f32; 2]]) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    for (prunes, what) in [(true, "pruned"), (false, "with null nodes")] {
        for z in LEAF_POINTS {
            unless_too_large((|| {
                // A handle with its own account of memory.
                let gpu = gpu.with_memory_limit(u64::MAX);
                let (stream, mut workspace) = (Stream::new(&gpu)?, Workspace::new(&gpu));
                let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
                let levels = BuildAlgorithm::Levels(LevelsOptions { prunes, ..LevelsOptions::default() });
                let options = QuadtreeOptions::default().algorithm(levels).leaf_points(z);
                let timing = settings.effort.wall(|| {
                    let tree = Quadtree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords, &options)?;
                    stream.synchronize().map(|()| tree)
                })?;
                let temp_bytes = Some(gpu.memory_use().peak_bytes - size_of_val(points) as u64);
                let work = format!("level by level, {what}, {z} points a leaf");
                report.push(Row { temp_bytes, ..row(&work, points.len(), Some(timing)) });
                Ok(())
            })())?;
        }
    }
    Ok(())
}

fn row(work: &str, n: usize, timing: Option<Timing>) -> Row {
    let (n, input) = (n as u64, "f32 x 2, laser scan".to_owned());
    Row { work: work.to_owned(), input, n, timing, items: Some(n), ..Row::default() }
}

fn median(row: &Row) -> f64 {
    row.timing.as_ref().map_or(f64::NAN, |timing| timing.median_ms)
}

/// Returns the places of a row in a figure of times and in a figure of speedups over one core.
fn figure_points(
    [times, factors]: [&'static str; 2],
    line: &str,
    across: f64,
    factor: f64,
) -> Vec<FigurePoint> {
    vec![FigurePoint::new(times, "", line, across), FigurePoint::new(factors, "", line, across).value(factor)]
}
