//! The primitives on device buffers, timed by device events, and compared with the CPU where that is quick. Each run
//! also measures the copy bandwidth. The programs in `benches/rivals` have rows with the same names and inputs.

mod best;
mod merge;
mod moves;
mod notes;
mod scan;
mod select;
mod sort;

pub use notes::NOTES;

use super::{Settings, Suite, unless_too_large};
use crate::measure::Effort;
use crate::report::{Report, Row};
use bytemuck::NoUninit;
use cust_core::DeviceCopy;
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::primitives::generate::splitmix64;
use kauri::{Error, Result};
use rayon::prelude::*;

/// The most items for which results are compared with the CPU's.
const CHECKED_ITEMS: usize = 1 << 22;

/// The common state of the rows of a size.
struct Bench<'a> {
    gpu: &'a Gpu,
    stream: Stream,
    workspace: Workspace,
    effort: Effort,
    seed: u64,
    n: usize,
    report: &'a mut Report,
}

type Measure = fn(&mut Bench<'_>) -> Result<()>;

/// All measurements, and a selection.
pub const SUITES: [(&str, Suite); 8] = [
    ("primitives", |settings, report| {
        on_gpu(settings, report, &[sort::run, scan::run, select::run, moves::run, best::run, merge::run])
    }),
    ("sort", |settings, report| on_gpu(settings, report, &[sort::run])),
    ("scan", |settings, report| on_gpu(settings, report, &[scan::run])),
    ("select", |settings, report| on_gpu(settings, report, &[select::run])),
    ("moves", |settings, report| on_gpu(settings, report, &[moves::run])),
    ("top-k", |settings, report| on_gpu(settings, report, &[best::run])),
    ("merge", |settings, report| on_gpu(settings, report, &[merge::run])),
    // The sorts with tiles of every available shape, and by one digit only.
    ("sort-shapes", |settings, report| on_gpu(settings, report, &[sort::shapes])),
];

fn on_gpu(settings: &Settings, report: &mut Report, parts: &[Measure]) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(super::copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        for part in parts {
            let mut bench = Bench {
                gpu,
                stream: Stream::new(gpu)?,
                workspace: Workspace::new(gpu),
                effort: settings.effort,
                seed: settings.seed,
                n,
                report: &mut *report,
            };
            unless_too_large(part(&mut bench))?;
        }
    }
    Ok(())
}

impl Bench<'_> {
    /// Creates an array of `len` items, computed from their indices on the host.
    fn make<T: DeviceCopy + NoUninit + Send>(
        &self,
        len: usize,
        item: impl Fn(u64) -> T + Send + Sync,
    ) -> Result<Buffer<T>> {
        let items: Vec<T> = (0..len as u64).into_par_iter().map(item).collect();
        Buffer::from_slice(&self.stream, &items, "input")
    }

    /// Returns the random bits of index `i`, equal to those of `primitives::generate::noise` and of the rivals.
    fn noise(&self) -> impl Fn(u64) -> u64 + Send + Sync + use<> {
        let seed = self.seed;
        move |i| splitmix64(seed.wrapping_add(i))
    }

    /// Allocates an output.
    fn uninitialized<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::uninitialized(self.gpu, len, "output")
    }

    /// Returns true if results of this size are compared with the CPU's.
    fn is_checked(&self) -> bool {
        self.n <= CHECKED_ITEMS
    }

    /// Times work that reads and writes a number of bytes and takes a number of bytes of temporary memory.
    fn time(
        &mut self,
        work: &str,
        input: &str,
        bytes: usize,
        temp_bytes: u64,
        mut run: impl FnMut(&Stream, &mut Workspace) -> Result<()>,
    ) -> Result<()> {
        let (stream, workspace) = (&self.stream, &mut self.workspace);
        let timing = self.effort.events(stream, || run(stream, workspace))?;
        self.report.push(Row {
            work: work.to_owned(),
            input: input.to_owned(),
            n: self.n as u64,
            timing: Some(timing),
            items: Some(self.n as u64),
            bytes: Some(bytes as u64),
            temp_bytes: Some(temp_bytes),
            check: self.is_checked().then_some("as on the CPU"),
            ..Row::default()
        });
        Ok(())
    }
}

/// Ends the program if a result is wrong.
fn expect<T: PartialEq>(work: &str, got: &[T], expected: &[T]) {
    assert!(got == expected, "{work}: the device and the CPU disagree");
}
