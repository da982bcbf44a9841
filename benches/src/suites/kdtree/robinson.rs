//! The published experiment of Robinson: builds of balanced trees over points of four coordinates, by phase and by number of warps, from
//! device memory, and from and to page-locked and pageable host memory.

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, PinnedBuffer, Stream, Workspace};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Error, Point, Result, Stats};
use std::time::Duration;

/// Number of points of the published experiment.
const PUBLISHED: usize = 1 << 24;
/// The phases of a build after the copy of the points to the device.
const PHASES: [&str; 3] = ["sort", "dedupe", "partition"];

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        // Fewer dimensions where the published four do not fit in device memory.
        match n {
            0..400_000_000 => of_dims::<4>(settings, n, report)?,
            400_000_000..800_000_000 => of_dims::<3>(settings, n, report)?,
            _ => of_dims::<2>(settings, n, report)?,
        }
        if n == 100_000_000 {
            of_dims::<3>(settings, n, report)?;
        }
    }
    Ok(())
}

fn of_dims<const D: usize>(settings: &Settings, n: usize, report: &mut Report) -> Result<()> {
    let points = points::uniform::<f32, D>(n, settings.seed);
    let mut bench = Bench { settings, input: format!("f32 x {D}, uniform"), points: &points, report };
    let options = BalancedOptions::default();
    bench.builds("balanced", &options)?;
    let tree = BalancedKdTree::build(&settings.device, &points, &options)?;
    let timing = settings.effort.wall(|| tree.verify())?;
    bench.push("balanced: verify", Row { timing: Some(timing), ..Row::default() });
    drop(tree);
    bench.on_device("balanced", &options)?;
    if n > PUBLISHED {
        return Ok(());
    }
    let robinson = options.clone().algorithm(BuildAlgorithm::Robinson);
    bench.builds("Robinson", &robinson)?;
    bench.on_device("Robinson", &robinson)?;
    for warps in (5..=16).step_by(2).map(|log| 1 << log) {
        bench.builds(&format!("Robinson, {warps} warps"), &robinson.clone().warps(warps))?;
    }
    let lattice: Vec<_> = points.iter().map(|point| point.map(|x| (x * 30.0).floor())).collect();
    let many_equal = "balanced, many equal coordinates and points";
    let mut bench = Bench { points: &lattice, ..bench };
    bench.builds(many_equal, &options)?;
    bench.on_device(many_equal, &options)?;

    // Integers of 32 bits. Those of type `i64` become `f64` on the host, and a GPU reads `f64`.
    let integers: Vec<_> =
        points.iter().map(|point| point.map(|x| ((x - 0.5) * 4_294_967_296.0) as i32)).collect();
    let input = format!("i32 x {D}, uniform");
    let mut bench = Bench { settings, input, points: &integers, report: bench.report };
    bench.builds("balanced", &options)?;
    bench.on_device("balanced", &options)?;
    let integers: Vec<_> = integers.iter().map(|point| point.map(i64::from)).collect();
    let input = format!("i64 x {D}, uniform");
    let mut bench = Bench { settings, input, points: &integers, report: bench.report };
    bench.builds("balanced", &options)?;
    bench.on_device("balanced", &options)
}

/// The state that the rows of one input share.
struct Bench<'a, P> {
    settings: &'a Settings,
    input: String,
    points: &'a [P],
    report: &'a mut Report,
}

impl<P: Point> Bench<'_, P> {
    fn push(&mut self, work: &str, row: Row) {
        let n = self.points.len() as u64;
        self.report.push(Row { work: work.to_owned(), input: self.input.clone(), n, items: Some(n), ..row });
    }

    /// Measures the phases of a build over host memory and their sum, and checks the tree.
    fn builds(&mut self, work: &str, options: &BalancedOptions) -> Result<()> {
        let Self { settings, points, .. } = *self;
        let runs = settings.effort.repeat(|| {
            let tree = BalancedKdTree::build(&settings.device, points, options)?;
            Ok(tree.stats().clone())
        })?;
        BalancedKdTree::build(&settings.device, points, options)?.verify()?;
        let of = |stats: &Stats, names: &[&str]| -> Duration {
            let phases = stats.phases.iter().filter(|phase| names.contains(&phase.name));
            phases.map(|phase| phase.duration).sum()
        };
        let mut push = |what: &str, names: &[&str]| {
            let times: Vec<_> = runs.iter().map(|stats| of(stats, names)).collect();
            let timing = Some(Timing::of("wall", &times));
            let temp_bytes = runs.first().map(|stats| stats.temp_bytes);
            let row = Row { timing, temp_bytes, check: Some("verify"), ..Row::default() };
            self.push(&format!("{work}: {what}"), row);
        };
        push("validate", &["validate"]);
        push("init", &["init"]);
        PHASES.into_iter().for_each(|phase| push(phase, &[phase]));
        push("sort, dedupe and partition", &PHASES);
        Ok(())
    }

    /// Measures a build from device memory to device memory, a build from and to page-locked host memory with its copies, and a build from
    /// and to pageable host memory. The workspace and the tree are reused. Compares the tree with one over host memory.
    fn on_device(&mut self, work: &str, options: &BalancedOptions) -> Result<()> {
        let Self { settings, points, .. } = *self;
        let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let effort = settings.effort;
        let mut pinned = PinnedBuffer::<P::Coord>::zeroed(gpu, points.len() * P::DIMS, "points")?;
        pinned.copy_from_slice(&P::coordinates(points, "point")?);
        let mut coords = Buffer::from_slice(&stream, &pinned, "points")?;
        let mut tree = BalancedKdTree::<P>::build_on(&stream, &mut workspace, &coords, options)?;
        let mut medians = Buffer::uninitialized(gpu, (1 << tree.num_levels()) - 1, "medians")?;
        let mut pinned_medians = PinnedBuffer::<u32>::zeroed(gpu, medians.len(), "medians")?;

        let temp_bytes = Some(workspace.bytes());
        let timing = effort.events(&stream, || tree.rebuild_on(&stream, &mut workspace, &coords, options))?;
        tree.verify()?;
        let row = Row { timing: Some(timing), temp_bytes, check: Some("verify"), ..Row::default() };
        self.push(&format!("{work}: build on the device"), row);
        let mut push = |what: &str, timing| {
            self.push(&format!("{work}: {what}"), Row { timing: Some(timing), ..Row::default() });
        };
        push("points from pinned memory", effort.wall(|| coords.copy_from_slice(&stream, &pinned))?);
        let timing = effort.wall(|| {
            tree.medians_on(&stream, &mut medians)?;
            medians.copy_to_slice(&stream, &mut pinned_medians)
        })?;
        push("nodes to pinned memory", timing);
        let timing = effort.wall(|| {
            coords.copy_from_slice(&stream, &pinned)?;
            tree.rebuild_on(&stream, &mut workspace, &coords, options)?;
            tree.medians_on(&stream, &mut medians)?;
            medians.copy_to_slice(&stream, &mut pinned_medians)
        })?;
        push("from and to pinned memory", timing);
        // The device has memory for only one build over many points.
        drop((tree, coords, workspace));
        let build = || BalancedKdTree::build(&settings.device, points, options);
        let timing = effort.wall(|| build()?.medians())?;
        push("from and to pageable memory", timing);
        let tree = build()?;
        push("nodes to pageable memory", effort.wall(|| tree.medians())?);
        push("nodes with children", effort.wall(|| tree.nodes())?);
        assert!(tree.medians()? == *pinned_medians, "{work}: trees over host and device memory differ");
        Ok(())
    }
}
