//! The suites: a file each.

pub mod join;
pub mod kdtree;
pub mod primitives;
pub mod quadtree;
pub mod sah;

use crate::measure::Effort;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, Stream};
use kauri::{Device, Error, Result};
use std::path::PathBuf;

/// What a suite runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to run.
    pub device: Device,
    /// Numbers of points.
    pub sizes: Vec<usize>,
    /// How often.
    pub effort: Effort,
    /// Of the random input.
    pub seed: u64,
    /// Files of meshes.
    pub models: Vec<PathBuf>,
}

/// A suite: adds rows to the report as it goes, so that those before an error are kept.
pub type Suite = fn(&Settings, &mut Report) -> Result<()>;

/// The suites by name.
pub fn all() -> impl Iterator<Item = (&'static str, Suite)> {
    let indexes = kdtree::SUITES.into_iter().chain(quadtree::SUITES).chain(sah::SUITES);
    indexes.chain(join::SUITES).chain(primitives::SUITES)
}

/// Leaves out work that the device has no memory for: the largest sizes of the widest items.
fn unless_too_large(result: Result<()>) -> Result<()> {
    match result {
        Err(error @ (Error::OutOfMemory { .. } | Error::ResultTooLarge { .. })) => {
            eprintln!("left out: {error}");
            Ok(())
        }
        other => other,
    }
}

/// Bytes that the copy moves from one place to another; far more than any cache.
const COPY_BYTES: usize = 1 << 30;

/// A copy on the device: what no kernel can be faster than that reads and writes as much.
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
