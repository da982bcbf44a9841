//! The published experiment of Robinson: balanced trees over points of four coordinates, by the phases of the build, and by numbers of
//! warps.

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy};
use kauri::kdtree::{BalancedKdTree, BalancedOptions};
use kauri::{Error, Result, Stats};
use std::time::Duration;

/// Phases of a build, without the copy of the points to the device.
const PHASES: [&str; 3] = ["sort", "dedupe", "partition"];

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        let points = points::uniform::<f32, 4>(n, settings.seed);
        let default = BalancedOptions::default();
        builds(settings, &points, "balanced", &default, report)?;
        let row = row("balanced: verify", n);
        let tree = BalancedKdTree::build(&settings.device, &points, &default)?;
        let timing = settings.effort.wall(|| tree.verify())?;
        report.push(Row { timing: Some(timing), ..row });
        for warps in (5..=16).map(|log| 1 << log) {
            let (work, options) = (format!("balanced, {warps} warps"), default.clone().warps(warps));
            builds(settings, &points, &work, &options, report)?;
        }
    }
    Ok(())
}

fn row(work: &str, n: usize) -> Row {
    Row {
        work: work.to_owned(),
        input: "f32 x 4, uniform".to_owned(),
        n: n as u64,
        items: Some(n as u64),
        ..Row::default()
    }
}

/// Rows of the phases of builds, and of their sum; the tree is checked.
fn builds(
    settings: &Settings,
    points: &[[f32; 4]],
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
        report.push(Row { timing, temp_bytes, check: Some("verify"), ..row(&name, points.len()) });
    };
    push("init", &["init"]);
    PHASES.into_iter().for_each(|phase| push(phase, &[phase]));
    push("sort, dedupe and partition", &PHASES);
    Ok(())
}
