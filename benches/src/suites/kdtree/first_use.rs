//! The first calls on a device, and their repetition. The first calls also load kernels, which the driver compiles unless its cache has
//! them. The device is opened again, so that no kernel is loaded.

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::Settings;
use kauri::device::Gpu;
use kauri::query::QueryOptions;
use kauri::{Device, KdTree, KdTreeOptions, Result, SpatialIndex};
use std::time::{Duration, Instant};

/// Number of points; enough for a build to launch all its kernels.
const POINTS: usize = 100_000;

/// Measures calls from host memory to host memory by the wall clock, once each.
pub(super) fn run(settings: &Settings, gpu: &Gpu, report: &mut Report) -> Result<()> {
    let points = points::uniform::<f32, 3>(POINTS, settings.seed);
    let queries = points::uniform::<f32, 3>(POINTS, settings.seed + 1);
    let mut push = |work: &str, time: Duration| {
        report.push(Row {
            work: work.to_owned(),
            input: "f32 x 3, uniform".to_owned(),
            n: POINTS as u64,
            timing: Some(Timing::of("wall", &[time])),
            ..Row::default()
        });
    };
    let (device, time) = timed(|| Device::from_name(&gpu.info().id))?;
    push("open the device again", time);
    let build = || KdTree::build(&device, &points, &KdTreeOptions::default());
    let (tree, time) = timed(build)?;
    push("first build, host to host", time);
    push("second build, host to host", timed(build)?.1);
    let nearest = || tree.nearest(&queries, 8);
    push("first nearest k=8, host to host", timed(nearest)?.1);
    push("second nearest k=8, host to host", timed(nearest)?.1);
    let within = || tree.within(&queries, 0.02, &QueryOptions::default());
    push("first within radius, host to host", timed(within)?.1);
    push("second within radius, host to host", timed(within)?.1);
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let begin = Instant::now();
    let result = work()?;
    Ok((result, begin.elapsed()))
}
