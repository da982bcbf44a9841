//! The primitives, on device buffers: timed by device events, and compared with the CPU where that is quick. The copy
//! bandwidth of the same run stands beside them. The programs in `benches/rivals` have rows of the same names and inputs.

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

/// Up to so many items results are compared with the CPU's.
const CHECKED_ITEMS: usize = 1 << 22;

/// What the rows of one size share.
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

/// All of them, and some of them.
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
    // The same sorts by tiles of every shape that there is, and by one digit only.
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
    /// An array of `len` items that follow from their positions, made on the host.
    fn make<T: DeviceCopy + NoUninit + Send>(
        &self,
        len: usize,
        item: impl Fn(u64) -> T + Send + Sync,
    ) -> Result<Buffer<T>> {
        let items: Vec<T> = (0..len as u64).into_par_iter().map(item).collect();
        Buffer::from_slice(&self.stream, &items, "input")
    }

    /// Random bits of position `i`: what `primitives::generate::noise` and the rivals make.
    fn noise(&self) -> impl Fn(u64) -> u64 + Send + Sync + use<> {
        let seed = self.seed;
        move |i| splitmix64(seed.wrapping_add(i))
    }

    /// Room for an output.
    fn room<T: DeviceCopy>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::uninitialized(self.gpu, len, "output")
    }

    /// True if results of this size are compared with the CPU's.
    fn is_checked(&self) -> bool {
        self.n <= CHECKED_ITEMS
    }

    /// Times work that reads and writes so many bytes and takes so much temporary memory.
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

/// A wrong result ends the program: its speed is of no interest.
fn expect<T: PartialEq>(work: &str, got: &[T], expected: &[T]) {
    assert!(got == expected, "{work}: the device and the CPU disagree");
}
