//! The published experiment of Wald 2022: builds alone, from device memory to device memory, of trees over points of one integer
//! and of four floats. The rival is `benches/rivals/wald_builds.cu`.

use crate::points::{self, Number};
use crate::report::{Report, Row};
use crate::suites::{Settings, copy};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::{Error, KdTree, KdTreeOptions, Result};

/// The build algorithms with the names of their rows.
const ALGORITHMS: [(&str, BuildAlgorithm); 2] =
    [("build", BuildAlgorithm::Selection), ("build, by tags", BuildAlgorithm::Tags)];

/// Sets the split rule of options.
type Split = fn(KdTreeOptions) -> KdTreeOptions;

/// The suffixes of row names with their split rules.
const SPLITS: [(&str, Split); 2] =
    [("", |options| options), (", widest", |options| options.split(SplitRule::Widest))];

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        // Integers of 32 bits are indexed as `f64`.
        let ints = Input { name: "int1, uniform", note: Some("as f64"), make: points::integers::<f64> };
        ints.builds(settings, gpu, n, report)?;
        let floats = Input { name: "float4, uniform", note: None, make: points::uniform::<f32, 4> };
        floats.builds(settings, gpu, n, report)?;
    }
    Ok(())
}

/// Points of one kind.
struct Input<C, const D: usize> {
    name: &'static str,
    note: Option<&'static str>,
    make: fn(usize, u64) -> Vec<[C; D]>,
}

impl<C: Number, const D: usize> Input<C, D> {
    /// Measures a row for each algorithm and split rule. A row says so if the device has too little memory.
    fn builds(&self, settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
        let free = gpu.free_memory()?;
        let stream = Stream::new(gpu)?;
        let mut coords = None;
        for (work, algorithm) in ALGORITHMS {
            for (rule, split) in SPLITS {
                let options = split(KdTreeOptions::default().algorithm(algorithm));
                let row = Row {
                    work: format!("{work}{rule}"),
                    input: self.name.to_owned(),
                    n: n as u64,
                    note: self.note.map(str::to_owned),
                    ..Row::default()
                };
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
}

/// Measures a build and checks its tree. Returns the row with the result.
fn timed_build<C: Number, const D: usize>(
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
