//! The published experiment of Wald 2022: builds alone, from device memory to device memory, of trees over points of one integer
//! and of four floats; and his algorithm on the CPU, from host memory to host memory. The rival is `benches/rivals/wald_builds.cu`.

use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::{Device, Error, KdTree, KdTreeOptions, Result, Scalar};
use kauri_kernels::thread::coord::Coord;

/// The build algorithms with the names of their rows.
const ALGORITHMS: [(&str, BuildAlgorithm); 5] = [
    ("build", BuildAlgorithm::Selection),
    ("build, by tags", BuildAlgorithm::Tags),
    ("build, by tags of unfinished points", BuildAlgorithm::TagsOfUnfinished),
    ("build, by tags above coordinates", BuildAlgorithm::TagsAboveCoordinates),
    ("build, by tags in place", BuildAlgorithm::TagsInPlace),
];
/// The build algorithms of the CPU.
const ALGORITHMS_OF_CPU: [(&str, BuildAlgorithm); 2] =
    [("build on the CPU", BuildAlgorithm::Selection), ("build on the CPU, by tags", BuildAlgorithm::Tags)];
/// With more points, a build in place, which sorts by swaps, takes minutes.
const MOST_BY_SWAPS: usize = 100_000_000;
/// With more points, ten builds by tags on the CPU take minutes.
const MOST_ON_CPU: usize = 10_000_000;

/// Sets the split rule of options.
type Split = fn(KdTreeOptions) -> KdTreeOptions;

/// The suffixes of row names with their split rules.
const SPLITS: [(&str, Split); 2] =
    [("", |options| options), (", widest", |options| options.split(SplitRule::Widest))];

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        let ints = Input { name: "int1, uniform", make: points::integers };
        let floats = Input { name: "float4, uniform", make: points::uniform::<f32, 4> };
        ints.builds(settings, gpu, n, report)?;
        floats.builds(settings, gpu, n, report)?;
        if n <= MOST_ON_CPU {
            ints.builds_on_cpu(settings, n, report)?;
            floats.builds_on_cpu(settings, n, report)?;
        }
    }
    Ok(())
}

/// Points of one kind.
struct Input<C, const D: usize> {
    name: &'static str,
    make: fn(usize, u64) -> Vec<[C; D]>,
}

impl<C: Coord + Scalar<Coord = C>, const D: usize> Input<C, D> {
    fn row(&self, work: String, n: usize) -> Row {
        Row { work, input: self.name.to_owned(), n: n as u64, ..Row::default() }
    }

    /// Measures a row for each algorithm and split rule. A row says so if the device has too little memory.
    fn builds(&self, settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
        let free = gpu.free_memory()?;
        let stream = Stream::new(gpu)?;
        let mut coords = None;
        for (work, algorithm) in ALGORITHMS {
            if algorithm == BuildAlgorithm::TagsInPlace && n > MOST_BY_SWAPS {
                continue;
            }
            for (rule, split) in SPLITS {
                let options = split(KdTreeOptions::default().algorithm(algorithm));
                let row = self.row(format!("{work}{rule}"), n);
                // The temporary bytes include the uploaded points.
                let plan = KdTree::<[C; D]>::plan(&settings.device, n, &options);
                let needed = plan.tree_bytes + plan.temp_bytes;
                if needed > free {
                    let note = format!("left out: takes {}, {} are free", gigabytes(needed), gigabytes(free));
                    report.push(Row { note: Some(note), ..row });
                    continue;
                }
                if coords.is_none() {
                    let points = (self.make)(n, settings.seed);
                    coords = Some(Buffer::from_slice(&stream, points.as_flattened(), "points")?);
                }
                if let Some(coords) = &coords {
                    report.push(timed_build::<C, D>(settings, &stream, coords, &options, row)?);
                }
            }
        }
        Ok(())
    }

    /// Measures a row for each algorithm of the CPU and each split rule.
    fn builds_on_cpu(&self, settings: &Settings, n: usize, report: &mut Report) -> Result<()> {
        let points = (self.make)(n, settings.seed);
        for (work, algorithm) in ALGORITHMS_OF_CPU {
            for (rule, split) in SPLITS {
                let options = split(KdTreeOptions::default().algorithm(algorithm));
                let build = || KdTree::build(&Device::cpu(), &points, &options);
                let tree = build()?;
                tree.verify()?;
                let (items, temp_bytes) = (Some(n as u64), Some(tree.stats().temp_bytes));
                let timing = Some(settings.effort.wall(build)?);
                let row = self.row(format!("{work}{rule}"), n);
                report.push(Row { timing, items, temp_bytes, check: Some("verify"), ..row });
            }
        }
        Ok(())
    }
}

/// Measures a build and checks its tree. Returns the row with the result.
fn timed_build<C: Coord + Scalar<Coord = C>, const D: usize>(
    settings: &Settings,
    stream: &Stream,
    coords: &Buffer<C>,
    options: &KdTreeOptions,
    row: Row,
) -> Result<Row> {
    let mut workspace = Workspace::new(stream.gpu());
    let mut tree = KdTree::<[C; D]>::build_on(stream, &mut workspace, coords, options)?;
    let rebuild = || tree.rebuild_on(stream, &mut workspace, coords, options);
    let timing = settings.effort.events(stream, rebuild)?;
    drop(workspace);
    tree.verify()?;
    let (items, temp_bytes) = (Some(tree.len() as u64), Some(tree.stats().temp_bytes));
    Ok(Row { timing: Some(timing), items, temp_bytes, check: Some("verify"), ..row })
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}
