//! Builds of balanced trees on several GPUs, in halves on one GPU, and on one GPU, by phase, also by Robinson's builder. (Robinson's two
//! GPUs are 1.9 times as fast as one of them, with 16,777,216 points of four coordinates.)

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy, unless_too_large};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Device, Error, Result, Stats};
use std::time::{Duration, Instant};

/// Maximum number of points for which the tree is compared with that of one device, and of rows with equal points. Larger trees are only
/// verified.
const MAX_COMPARED: usize = 1 << 24;
/// The phases of a build after the copy of the points to the devices.
const PHASES: [&str; 4] = ["sort", "dedupe", "exchange", "partition"];

type Points = [[f32; 4]];
type Tree = BalancedKdTree<[f32; 4]>;

/// A build to measure.
struct Variant {
    work: String,
    devices: Vec<Device>,
    algorithm: BuildAlgorithm,
    /// Calls `build_over`, rather than `build` on the only device.
    is_in_parts: bool,
}

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        let variants = variants(&settings.device)?;
        let points = points::uniform(n, settings.seed);
        let uniform = "f32 x 4, uniform";
        for variant in &variants {
            unless_too_large(builds(settings, uniform, &points, variant, report))?;
        }
        for variant in of_kauri(&variants) {
            variant.keep_memory(true)?;
            let input = format!("{uniform}, memory kept");
            let built = unless_too_large(builds(settings, &input, &points, variant, report));
            variant.keep_memory(false)?;
            built?;
        }
        if n <= MAX_COMPARED {
            let points = points::duplicated(n, settings.seed);
            for variant in of_kauri(&variants) {
                unless_too_large(builds(settings, "f32 x 4, groups of 16 equal", &points, variant, report))?;
            }
        }
    }
    Ok(())
}

/// Returns the variants: one GPU as a whole and in halves; two, four and eight GPUs, as far as there are that many, and two GPUs that
/// exchange points through host memory; each but the last also by Robinson's builder.
fn variants(first: &Device) -> Result<Vec<Variant>> {
    let kauri = BuildAlgorithm::Paths;
    let variant = |work: &str, devices: Vec<Device>, algorithm, is_in_parts| Variant {
        work: work.to_owned(),
        devices,
        algorithm,
        is_in_parts,
    };
    let alone = vec![first.clone()];
    let mut variants = vec![
        variant("one GPU", alone.clone(), kauri, false),
        variant("halves on one GPU", alone.clone(), kauri, true),
        variant("Robinson's builder, one GPU", alone.clone(), BuildAlgorithm::Robinson, false),
        variant("Robinson's builder, halves on one GPU", alone, BuildAlgorithm::Robinson, true),
    ];
    let num_gpus = Device::list_cuda().map_or(0, |list| list.len());
    for count in [2, 4, 8].into_iter().filter(|&count| count <= num_gpus) {
        let devices = (0..count).map(Device::cuda).collect::<Result<Vec<_>>>()?;
        if count == 2 {
            let apart = |device: &Device| device.gpu().map(|gpu| Device::from_gpu(gpu.without_peer_copies()));
            let devices = devices.iter().filter_map(apart).collect();
            variants.push(variant("2 GPUs, through host memory", devices, kauri, true));
        }
        variants.push(variant(&format!("{count} GPUs"), devices.clone(), kauri, true));
        let robinson = format!("Robinson's builder, {count} GPUs");
        variants.push(variant(&robinson, devices, BuildAlgorithm::Robinson, true));
    }
    Ok(variants)
}

fn of_kauri(variants: &[Variant]) -> impl Iterator<Item = &Variant> {
    variants.iter().filter(|variant| variant.algorithm == BuildAlgorithm::Paths)
}

impl Variant {
    /// Lets the devices keep all memory that is freed, or none.
    fn keep_memory(&self, keeps: bool) -> Result<()> {
        let bytes = if keeps { u64::MAX } else { 0 };
        self.devices.iter().filter_map(Device::gpu).try_for_each(|gpu| gpu.keep_memory(bytes))
    }
}

fn build(points: &Points, variant: &Variant) -> Result<Tree> {
    let options = BalancedOptions::default().algorithm(variant.algorithm);
    if variant.is_in_parts {
        Tree::build_over(&variant.devices, points, &options)
    } else {
        Tree::build(&variant.devices[0], points, &options)
    }
}

/// Measures the phases of a build and their sum, and checks the tree.
fn builds(
    settings: &Settings,
    input: &str,
    points: &Points,
    variant: &Variant,
    report: &mut Report,
) -> Result<()> {
    let runs = settings.effort.repeat(|| {
        let begin = Instant::now();
        let tree = build(points, variant)?;
        // The whole call, with the copies to the devices and the allocations between the phases.
        Ok((begin.elapsed(), tree.stats().clone()))
    })?;
    let tree = build(points, variant)?;
    tree.verify()?;
    let check = if points.len() <= MAX_COMPARED {
        let expected = Tree::build(&settings.device, points, &BalancedOptions::default())?;
        assert!(tree.medians()? == expected.medians()?, "another tree: {}", variant.work);
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
            work: format!("balanced, {}: {what}", variant.work),
            input: input.into(),
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
