//! The suites, by topic. The constant `SUITES` of each file lists the suites of its topic by name.

pub mod bvh;
pub mod clouds;
pub mod copies;
pub mod first_call;
pub mod join;
pub mod kdtree;
pub mod primitives;
pub mod quadtree;
pub mod rtree;
pub mod sah;
pub mod several_gpus;
pub mod terrain;

use crate::measure::Effort;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, Stream};
use kauri::{Device, Error, Result};
use std::path::PathBuf;

/// Settings of a suite.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Device to run on.
    pub device: Device,
    /// Numbers of points.
    pub sizes: Vec<usize>,
    /// Number of runs.
    pub effort: Effort,
    /// Seed of the random input.
    pub seed: u64,
    /// Files of meshes.
    pub models: Vec<PathBuf>,
}

/// A suite. It adds each row to the report at once, so that rows before an error are kept.
pub type Suite = fn(&Settings, &mut Report) -> Result<()>;

/// The suites by name.
pub fn all() -> impl Iterator<Item = (&'static str, Suite)> {
    let indexes = kdtree::SUITES
        .into_iter()
        .chain(rtree::SUITES)
        .chain(quadtree::SUITES)
        .chain(sah::SUITES)
        .chain(bvh::SUITES)
        .chain(clouds::SUITES)
        .chain(copies::SUITES)
        .chain(several_gpus::SUITES)
        .chain(terrain::SUITES);
    indexes.chain(first_call::SUITES).chain(join::SUITES).chain(primitives::SUITES)
}

/// Ignores out-of-memory errors, which the largest sizes of the widest items may cause.
fn unless_too_large(result: Result<()>) -> Result<()> {
    match result {
        Err(error @ (Error::OutOfMemory { .. } | Error::ResultTooLarge { .. })) => {
            eprintln!("left out: {error}");
            Ok(())
        }
        other => other,
    }
}

/// Bytes of the copy; far more than any cache.
const COPY_BYTES: usize = 1 << 30;

/// Measures a copy on the device, the upper bound for kernels that read and write as many bytes.
fn copy(gpu: &Gpu, effort: Effort) -> Result<Row> {
    let len = COPY_BYTES.min(gpu.free_memory()? as usize / 4) / 4;
    let stream = Stream::new(gpu)?;
    let mut from = Buffer::<u32>::uninitialized(gpu, len, "copied from")?;
    let mut to = Buffer::<u32>::uninitialized(gpu, len, "copied to")?;
    from.fill_bytes(&stream, 1)?;
    to.fill_bytes(&stream, 0)?;
    let timing = effort.events(&stream, || to.copy_from(&stream, &from))?;
    let bytes = Some(2 * 4 * len as u64);
    let (work, input) = ("device copy".to_owned(), "u32".to_owned());
    Ok(Row { work, input, n: len as u64, timing: Some(timing), bytes, ..Row::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::interface::CPU_SUITES;
    use std::time::Duration;

    #[test]
    fn suites_with_rows_on_the_cpu_are_listed() {
        let (sizes, effort) = (vec![300], Effort::new(1, Duration::from_secs(1)));
        let settings = Settings { device: Device::cpu(), sizes, effort, seed: 1, models: Vec::new() };
        for (name, suite) in all() {
            let mut report = Report::new(name, Hardware::of(&settings.device), settings.seed);
            // Most suites fail without a GPU.
            let _ = suite(&settings, &mut report);
            let has_times = report.rows.iter().any(|row| row.timing.is_some());
            assert_eq!(has_times, CPU_SUITES.contains(&name), "CPU_SUITES and the suite {name}");
        }
    }
}
