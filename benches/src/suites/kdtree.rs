//! The k-d tree: builds, nearest neighbors, points within a distance and points in boxes, from device memory to device memory on a GPU and
//! from host memory to host memory. Inputs are uniform points, and skewed points for the most used calls. A run also measures the copy
//! bandwidth.

mod batches;
mod multi_gpu;
mod on_device;
mod robinson;
mod rules;
mod wald;
mod within;

use super::{Settings, Suite, copy, unless_too_large};
use crate::measure::Timing;
use crate::points::{self, Number, Uniform};
use crate::report::{Note, Report, Row};
use kauri::device::Gpu;
use kauri::kdtree::BuildAlgorithm;
use kauri::query::QueryOptions;
use kauri::{Device, KdTree, KdTreeOptions, Point, Result, SpatialIndex, Stats};
use on_device::{Bench, Input};

pub(super) use on_device::along_curve;
use std::time::{Duration, Instant};

/// The bounds of rows that miss a goal.
pub const NOTES: &[Note] = &[Note::new(
    "nearest k=*",
    "",
    0,
    "small sets: as they come, the queries take as long as put in order (suite kdtree-rules: 0.067 and 0.068 ms for 100K in 2-D), so \
     what is left is the traversal of few warps, each of which waits for its loads; not profiled at this size",
)];

/// The suites: everything, device memory only, results in batches, the rules that choose a traversal, skewed points, two
/// published experiments, and builds on several GPUs.
pub const SUITES: [(&str, Suite); 8] = [
    ("kdtree", |settings, report| {
        run_on_device(settings, report)?;
        settings.sizes.iter().try_for_each(|&n| points::<f32, 3>(settings, n, report))
    }),
    ("kdtree-device", run_on_device),
    ("kdtree-batches", batches::run),
    ("kdtree-rules", rules::run),
    ("kdtree-skew", run_skewed),
    ("kdtree-robinson", robinson::run),
    ("kdtree-multi-gpu", multi_gpu::run),
    ("kdtree-wald", wald::run),
];

/// Generates a number of points or queries from a seed.
type Make = fn(usize, u64) -> Vec<[f32; 3]>;

/// Distributions of real data.
const SKEWED: [(&str, Make); 3] =
    [("clustered", points::clustered), ("duplicated", points::duplicated), ("lidar-like", points::lidar)];

fn run_on_device(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        on_input(settings, gpu, report, Input::<f32, 3>::uniform(settings, n), |bench| {
            bench.main_rows()?;
            bench.more_rows()?;
            bench.within(true)?;
            bench.in_boxes()
        })?;
        on_input(settings, gpu, report, Input::<f32, 2>::uniform(settings, n), |bench| {
            bench.main_rows()?;
            bench.within(false)?;
            bench.in_boxes()
        })?;
        on_input(settings, gpu, report, Input::<f32, 4>::uniform(settings, n), |bench| bench.main_rows())?;
        on_input(settings, gpu, report, Input::<f64, 3>::uniform(settings, n), |bench| bench.main_rows())?;
        for (how, make) in SKEWED {
            on_input(settings, gpu, report, Input::new(settings, n, how, make), |bench| {
                bench.build("build", BuildAlgorithm::Selection)?;
                bench.nearest("nearest k=8", 8, &QueryOptions::default())?;
                bench.within(false)
            })?;
        }
    }
    Ok(())
}

fn run_skewed(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        for (how, make) in [("uniform", points::uniform as Make)].into_iter().chain(SKEWED) {
            let mut input = Input::new(settings, n, how, make);
            if how == "duplicated" {
                // Queries that are at no point.
                input.queries = points::uniform(n, settings.seed + 1);
            }
            on_input(settings, gpu, report, input, |bench| bench.skewed_rows())?;
        }
        on_input(settings, gpu, report, Input::<f32, 2>::uniform(settings, n), |bench| bench.skewed_rows())?;
        on_input(settings, gpu, report, Input::<f32, 4>::uniform(settings, n), |bench| bench.skewed_rows())?;
        on_input(settings, gpu, report, Input::<f64, 3>::uniform(settings, n), |bench| bench.skewed_rows())?;
    }
    Ok(())
}

/// Measures the rows of an input, unless the device has too little memory.
fn on_input<C: Number, const D: usize>(
    settings: &Settings,
    gpu: &Gpu,
    report: &mut Report,
    input: Input<C, D>,
    rows: impl FnOnce(&mut Bench<'_, C, D>) -> Result<()>,
) -> Result<()> {
    unless_too_large(Bench::new(settings, gpu, input, report).and_then(|mut bench| rows(&mut bench)))
}

fn points<C: Uniform, const D: usize>(settings: &Settings, n: usize, report: &mut Report) -> Result<()>
where
    [C; D]: Point,
{
    let Settings { device, effort, seed, .. } = settings;
    let points: Vec<[C; D]> = points::uniform(n, *seed);
    let queries: Vec<[C; D]> = points::uniform(n, seed + 1);
    let row = |work: &str, timing: Timing| Row {
        work: work.to_owned(),
        input: format!("{} x {D}, uniform", C::NAME),
        n: n as u64,
        timing: Some(timing),
        items: Some(n as u64),
        ..Row::default()
    };

    let options = KdTreeOptions::default();
    let build = || KdTree::build(device, &points, &options);
    let tree = build()?;
    tree.verify()?;
    let plan = KdTree::<[C; D]>::plan(device, n, &options);
    // One loop measures the build and its phases, which the library times.
    let runs = effort.repeat(|| {
        let begin = Instant::now();
        let tree = build()?;
        Ok((begin.elapsed(), tree.stats().clone()))
    })?;
    let all: Vec<Duration> = runs.iter().map(|(time, _)| *time).collect();
    let (temp_bytes, check) = (Some(plan.temp_bytes), Some("verify"));
    report.push(Row { temp_bytes, check, ..row("build, host to host", Timing::of("wall", &all)) });
    for phase in &tree.stats().phases {
        let of_phase = |(_, stats): &(_, Stats)| {
            stats.phases.iter().filter(|other| other.name == phase.name).map(|other| other.duration).sum()
        };
        let times: Vec<Duration> = runs.iter().map(of_phase).collect();
        report.push(row(&format!("build, host to host: {}", phase.name), Timing::of("wall", &times)));
    }

    let reference = Reference::new(device, &points, &queries)?;
    for k in [1, 8] {
        let check = reference.compare(&tree, k)?;
        let timing = effort.wall(|| tree.nearest(&queries, k))?;
        report.push(Row { check, ..row(&format!("nearest k={k}, host to host"), timing) });
    }
    report.push(row("verify", effort.wall(|| tree.verify())?));
    Ok(())
}

/// Number of queries whose results are compared with those of the CPU before the measurement.
const CHECKED_QUERIES: usize = 1000;

/// The results of the CPU to compare with.
struct Reference<'a, P: Point> {
    /// `None` if the CPU itself is measured.
    tree: Option<KdTree<P>>,
    queries: &'a [P],
}

impl<'a, P: Point> Reference<'a, P> {
    fn new(device: &Device, points: &[P], queries: &'a [P]) -> Result<Self> {
        let build = || KdTree::build(&Device::cpu(), points, &KdTreeOptions::default());
        let tree = if device.is_cpu() { None } else { Some(build()?) };
        Ok(Reference { tree, queries: &queries[..queries.len().min(CHECKED_QUERIES)] })
    }

    /// Compares some results of `tree`. A wrong one ends the program.
    fn compare(&self, tree: &KdTree<P>, k: usize) -> Result<Option<&'static str>> {
        let Some(reference) = &self.tree else { return Ok(None) };
        let (near, expected) = (tree.nearest(self.queries, k)?, reference.nearest(self.queries, k)?);
        assert!(near.ids() == expected.ids(), "{} and the CPU disagree on the nearest points", tree.device());
        Ok(Some("1000 queries as on the CPU"))
    }
}
