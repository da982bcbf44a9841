//! Balanced trees over several GPUs, and in halves on one, beside those of one GPU, by the phases of the build. (Robinson's two GPUs are
//! 1.9 times as fast as one of them, at 16,777,216 points of four coordinates.)

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy, unless_too_large};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::{Device, Error, Result, Stats};
use std::time::{Duration, Instant};

/// Up to so many points the tree is compared with that of one device; of more it is checked by itself.
const COMPARED: usize = 1 << 24;
/// Phases of a build, without the copy of the points to the devices.
const PHASES: [&str; 4] = ["sort", "dedupe", "exchange", "partition"];

type Points = [[f32; 4]];
type Tree = BalancedKdTree<[f32; 4]>;

/// A way to build.
struct Way {
    work: String,
    /// One alone for a build without parts.
    devices: Vec<Device>,
    is_in_parts: bool,
}

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        let points = points::uniform::<f32, 4>(n, settings.seed);
        for way in ways(&settings.device)? {
            unless_too_large(builds(settings, &points, &way, report))?;
        }
    }
    Ok(())
}

/// One GPU as a whole and in halves, and two, four and eight of them, as many as there are; those of the same kind also through host
/// memory.
fn ways(first: &Device) -> Result<Vec<Way>> {
    let alone = vec![first.clone()];
    let mut ways = vec![
        Way { work: "one GPU".into(), devices: alone.clone(), is_in_parts: false },
        Way { work: "halves on one GPU".into(), devices: alone, is_in_parts: true },
    ];
    let num_gpus = Device::list_cuda().map_or(0, |list| list.len());
    for count in [2, 4, 8].into_iter().filter(|&count| count <= num_gpus) {
        let devices = (0..count).map(Device::cuda).collect::<Result<Vec<_>>>()?;
        if count == 2 {
            let apart = |device: &Device| device.gpu().map(|gpu| Device::from_gpu(gpu.without_peer_copies()));
            let devices = devices.iter().filter_map(apart).collect();
            ways.push(Way { work: "2 GPUs, through host memory".into(), devices, is_in_parts: true });
        }
        ways.push(Way { work: format!("{count} GPUs"), devices, is_in_parts: true });
    }
    Ok(ways)
}

fn build(points: &Points, way: &Way) -> Result<Tree> {
    let options = BalancedOptions::default();
    if way.is_in_parts {
        Tree::build_over(&way.devices, points, &options)
    } else {
        Tree::build(&way.devices[0], points, &options)
    }
}

/// Rows of the phases of builds, and of their sum; the tree is checked.
fn builds(settings: &Settings, points: &Points, way: &Way, report: &mut Report) -> Result<()> {
    let runs = settings.effort.repeat(|| {
        let begin = Instant::now();
        let tree = build(points, way)?;
        // The call as a whole: with the copies to the devices, and with allocations between the phases.
        Ok((begin.elapsed(), tree.stats().clone()))
    })?;
    let tree = build(points, way)?;
    tree.verify()?;
    let check = if points.len() <= COMPARED {
        let expected = Tree::build(&settings.device, points, &BalancedOptions::default())?;
        assert!(tree.medians()? == expected.medians()?, "another tree: {}", way.work);
        "verify, and the nodes of one GPU"
    } else {
        "verify"
    };
    let of = |stats: &Stats, names: &[&str]| -> Duration {
        let phases = stats.phases.iter().filter(|phase| names.contains(&phase.name));
        phases.map(|phase| phase.duration).sum()
    };
    let mut push = |what: &str, times: Vec<Duration>| {
        report.push(Row {
            work: format!("balanced, {}: {what}", way.work),
            input: "f32 x 4, uniform".into(),
            n: points.len() as u64,
            timing: Some(Timing::of("wall", &times)),
            items: Some(points.len() as u64),
            temp_bytes: runs.first().map(|(_, stats)| stats.temp_bytes),
            check: Some(check),
            ..Row::default()
        });
    };
    let times = |names: &[&str]| runs.iter().map(|(_, stats)| of(stats, names)).collect();
    push("init", times(&["init"]));
    PHASES.into_iter().for_each(|phase| push(phase, times(&[phase])));
    push("all but init", times(&PHASES));
    push("the call", runs.iter().map(|&(time, _)| time).collect());
    Ok(())
}
