//! The published experiment of Robinson: builds of balanced trees over points of four coordinates, by phase and by number of warps.

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Error, Result, Stats};
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
    let options = BalancedOptions::default();
    builds(settings, &points, "balanced", &options, report)?;
    let tree = BalancedKdTree::build(&settings.device, &points, &options)?;
    let timing = settings.effort.wall(|| tree.verify())?;
    report.push(Row { timing: Some(timing), ..row::<D>("balanced: verify", n) });
    if n <= PUBLISHED {
        let lattice: Vec<_> = points.iter().map(|point| point.map(|x| (x * 30.0).floor())).collect();
        builds(settings, &lattice, "balanced, many equal coordinates and points", &options, report)?;
    }
    if n <= PUBLISHED {
        let options = options.algorithm(BuildAlgorithm::Robinson);
        builds(settings, &points, "Robinson", &options, report)?;
        for warps in (5..=16).step_by(2).map(|log| 1 << log) {
            let (work, options) = (format!("Robinson, {warps} warps"), options.clone().warps(warps));
            builds(settings, &points, &work, &options, report)?;
        }
    }
    Ok(())
}

fn row<const D: usize>(work: &str, n: usize) -> Row {
    Row {
        work: work.to_owned(),
        input: format!("f32 x {D}, uniform"),
        n: n as u64,
        items: Some(n as u64),
        ..Row::default()
    }
}

/// Measures the phases of a build and their sum, and checks the tree.
fn builds<const D: usize>(
    settings: &Settings,
    points: &[[f32; D]],
    work: &str,
    options: &BalancedOptions,
    report: &mut Report,
) -> Result<()> {
    let device = &settings.device;
    let runs = settings.effort.repeat(|| {
        let tree = BalancedKdTree::build(device, points, options)?;
        Ok(tree.stats().clone())
    })?;
    BalancedKdTree::build(device, points, options)?.verify()?;
    let of = |stats: &Stats, names: &[&str]| -> Duration {
        let phases = stats.phases.iter().filter(|phase| names.contains(&phase.name));
        phases.map(|phase| phase.duration).sum()
    };
    let mut push = |what: &str, names: &[&str]| {
        let times: Vec<_> = runs.iter().map(|stats| of(stats, names)).collect();
        let timing = Some(Timing::of("wall", &times));
        let temp_bytes = runs.first().map(|stats| stats.temp_bytes);
        let name = format!("{work}: {what}");
        report.push(Row { timing, temp_bytes, check: Some("verify"), ..row::<D>(&name, points.len()) });
    };
    push("init", &["init"]);
    PHASES.into_iter().for_each(|phase| push(phase, &[phase]));
    push("sort, dedupe and partition", &PHASES);
    Ok(())
}
