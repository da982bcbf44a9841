//! Wall-clock times of builds from host memory: in device memory, out of core, on all cores and on one core.

use crate::points::{self, Number};
use crate::report::{Phase, Report, Row};
use crate::suites::{Settings, unless_too_large};
use kauri::device::{Buffer, Stream};
use kauri::quadtree::{CartesianPoint, CellTree, OutOfCore, QuadtreeOptions};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::{Device, Error, Result};

/// Device memory of out-of-core builds, in bytes.
const CAP: u64 = 4 << 30;
/// Most points that the CPU builds with; more take half a minute.
const MOST_OF_CPU: usize = 100_000_000;

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    for &n in &settings.sizes {
        builds(settings, report, &points::uniform::<f32, 2>(n, settings.seed))?;
        if n <= MOST_OF_CPU {
            builds(settings, report, &points::uniform::<f32, 3>(n, settings.seed))?;
        }
    }
    Ok(())
}

fn builds<C: Number, const D: usize>(
    settings: &Settings,
    report: &mut Report,
    points: &[[C; D]],
) -> Result<()>
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    let n = points.len() as u64;
    let input = format!("{} x {D}, uniform, from host memory", C::NAME);
    let row = |work: &str, input: &str| Row {
        work: work.to_owned(),
        input: input.to_owned(),
        n,
        items: Some(n),
        ..Row::default()
    };
    unless_too_large((|| {
        let stream = Stream::new(gpu)?;
        let timing = settings.effort.wall(|| Buffer::from_slice(&stream, points.as_flattened(), "points"))?;
        let bytes = Some(size_of_val(points) as u64);
        report.push(Row { timing: Some(timing), bytes, ..row("copy to the device", &input) });
        Ok(())
    })())?;
    let options = QuadtreeOptions::default();
    let capped = Device::from_gpu(gpu.with_memory_limit(CAP));
    let streamed = options.clone().out_of_core(OutOfCore::Streamed);
    let (any, of_cpu) = (usize::MAX, MOST_OF_CPU);
    let cases = [
        ("build", any, &settings.device, options.clone()),
        ("build out of core", any, &settings.device, streamed.clone()),
        ("build out of core in 4 GiB", any, &capped, streamed),
        (
            "build below levels by one core in 4 GiB",
            of_cpu,
            &capped,
            options.clone().out_of_core(OutOfCore::CpuTop),
        ),
        ("build by all cores", of_cpu, &Device::cpu(), options.clone()),
        ("build by one core", of_cpu, &Device::cpu(), options.algorithm(BuildAlgorithm::LEVELS)),
    ];
    for (work, most, device, options) in cases {
        if points.len() > most {
            continue;
        }
        unless_too_large((|| {
            let (mut phases, mut temp_bytes) = (Vec::new(), 0);
            let timing = settings.effort.wall(|| {
                let tree = CellTree::build(device, points, &options)?;
                let of = |phase: &kauri::Phase| Phase {
                    name: phase.name.to_owned(),
                    ms: phase.duration.as_secs_f64() * 1e3,
                };
                (phases, temp_bytes) =
                    (tree.stats().phases.iter().map(of).collect(), tree.stats().temp_bytes);
                Ok(tree)
            })?;
            report.push(Row {
                timing: Some(timing),
                phases,
                temp_bytes: Some(temp_bytes),
                ..row(work, &input)
            });
            Ok(())
        })())?;
    }
    Ok(())
}
