//! Copies between host memory and a GPU: pageable and page-locked memory, and vectors that a call returns.
//!
//! The rival is `benches/rivals/copies.cu`: the same copies by the driver.

use super::{Settings, Suite, unless_too_large};
use crate::report::{Note, Report, Row};
use kauri::device::{Buffer, Gpu, PinnedBuffer, Stream};
use kauri::{Error, Result};

pub(super) const SUITES: [(&str, Suite); 1] = [("copies", run)];

/// The bounds of rows that are not ahead of the rival's.
pub const NOTES: &[Note] = &[
    Note::new("copy *", PAGE_LOCKED, 0, "the bus: both are one copy by the driver"),
    Note::new("copy *", NEW, 0, "the system's first use of each page"),
    Note::new("copy *", PAGEABLE, 0, "both are one copy by the driver; the difference is not explained"),
];

const TO_DEVICE: &str = "copy to the device";
const FROM_DEVICE: &str = "copy from the device";
const PAGEABLE: &str = "u32, pageable";
const PAGE_LOCKED: &str = "u32, page-locked";
const NEW: &str = "u32, new vector";

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
    settings.sizes.iter().try_for_each(|&n| unless_too_large(copies(settings, gpu, n, report)))
}

fn copies(settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
    let stream = Stream::new(gpu)?;
    let mut items: Vec<u32> = (0..n as u32).collect();
    let mut pinned = PinnedBuffer::zeroed(gpu, n, "page-locked")?;
    pinned.copy_from_slice(&items);
    let mut buffer = Buffer::from_slice(&stream, &items, "copied")?;
    let mut push = |work: &str, input: &str, timing| {
        let (work, input, n) = (work.to_owned(), input.to_owned(), n as u64);
        report.push(Row { work, input, n, timing: Some(timing), bytes: Some(4 * n), ..Row::default() });
    };
    let effort = settings.effort;
    push(TO_DEVICE, PAGEABLE, effort.wall(|| buffer.copy_from_slice(&stream, &items))?);
    push(TO_DEVICE, PAGE_LOCKED, effort.wall(|| buffer.copy_from_slice(&stream, &pinned))?);
    push(FROM_DEVICE, PAGEABLE, effort.wall(|| buffer.copy_to_slice(&stream, &mut items))?);
    push(FROM_DEVICE, PAGE_LOCKED, effort.wall(|| buffer.copy_to_slice(&stream, &mut pinned))?);
    push(FROM_DEVICE, NEW, effort.wall(|| buffer.to_vec(&stream))?);
    assert!(items.iter().copied().eq(0..n as u32) && *items == *pinned, "copies differ");
    Ok(())
}
