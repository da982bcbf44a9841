//! Scan and reduce, of arrays and of segments.

use super::{Bench, expect};
use bytemuck::AnyBitPattern;
use cust_core::DeviceCopy;
use kauri::Result;
use kauri::device::Buffer;
use kauri::primitives::item::Item;
use kauri::primitives::operator::{Max, Sum};
use kauri::primitives::scan::ScanOperator;
use kauri::primitives::segmented::SegmentedOperator;
use kauri::primitives::{cpu, reduce, scan, segmented};
use kauri_kernels::thread::words::Words;

/// The average number of items of a segment, and its text in the rows.
const SEGMENT_ITEMS: [(u64, &str); 3] =
    [(8, "segments of 8"), (1000, "segments of 1000"), (u64::MAX, "one segment")];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let noise = bench.noise();
    let narrow = bench.make(bench.n, |i| noise(i) as u32)?;
    one::<u32, Sum>(bench, "sum", "u32", &narrow)?;
    one::<u32, Max>(bench, "max", "u32", &narrow)?;
    segments::<u32, Sum>(bench, "u32", &narrow)?;
    drop(narrow);
    let wide = bench.make(bench.n, &noise)?;
    one::<u64, Sum>(bench, "sum", "u64", &wide)?;
    drop(wide);
    let floats = bench.make(bench.n, |i| (noise(i) >> 40) as f32 / (1 << 24) as f32)?;
    one::<f32, Sum>(bench, "sum", "f32", &floats)?;
    let mut out = bench.uninitialized(bench.n)?;
    let temp = scan::plan::<f32, Sum>(bench.n);
    bench.time("scan sum any order", "f32", 8 * bench.n, temp, |stream, workspace| {
        scan::inclusive_any_order::<f32, Sum>(stream, workspace, &floats, &mut out)
    })?;
    segments::<f32, Sum>(bench, "f32", &floats)
}

fn one<T: Words + PartialEq, O: ScanOperator<T>>(
    bench: &mut Bench<'_>,
    operator: &str,
    input: &str,
    items: &Buffer<T>,
) -> Result<()> {
    let bytes = items.len() * size_of::<T>();
    let mut out = bench.uninitialized(items.len())?;
    let mut sum = bench.uninitialized(1)?;
    let work = format!("scan {operator}");
    bench.time(&work, input, 2 * bytes, scan::plan::<T, O>(items.len()), |stream, workspace| {
        scan::inclusive::<T, O>(stream, workspace, items, &mut out)
    })?;
    let work = format!("reduce {operator}");
    bench.time(&work, input, bytes, reduce::plan::<T>(items.len()), |stream, workspace| {
        reduce::reduce::<T, O>(stream, workspace, items, &mut sum)
    })?;
    if bench.is_checked() {
        let host = items.to_vec(&bench.stream)?;
        let mut expected = host.clone();
        cpu::scan::inclusive::<T, O>(&host, &mut expected);
        expect("scan", &out.to_vec(&bench.stream)?, &expected);
        expect("reduce", &sum.to_vec(&bench.stream)?, &[cpu::reduce::reduce::<T, O>(&host)]);
    }
    Ok(())
}

fn segments<T: Words + Item + PartialEq, O: SegmentedOperator<T>>(
    bench: &mut Bench<'_>,
    input: &str,
    items: &Buffer<T>,
) -> Result<()> {
    let bytes = items.len() * size_of::<T>();
    let mut out = bench.uninitialized(items.len())?;
    for (segment_items, name) in SEGMENT_ITEMS {
        let offsets = offsets(bench, segment_items)?;
        let mut sums = bench.uninitialized(offsets.len() - 1)?;
        let input = format!("{input}, {name}");
        let temp = segmented::plan_scan::<T, O>(items.len());
        bench.time("segmented scan sum", &input, 2 * bytes, temp, |stream, workspace| {
            segmented::inclusive::<T, O>(stream, workspace, items, &offsets, &mut out)
        })?;
        let sums_bytes = sums.len() * size_of::<T>();
        let temp = segmented::plan_reduce::<T, O>(items.len(), sums.len());
        bench.time("segmented reduce sum", &input, bytes + sums_bytes, temp, |stream, workspace| {
            segmented::reduce::<T, O>(stream, workspace, items, &offsets, &mut sums)
        })?;
        if bench.is_checked() {
            let expected = cpu::segmented::reduce::<T, O>(&to_vec(bench, items)?, &to_vec(bench, &offsets)?);
            expect("segmented reduce", &to_vec(bench, &sums)?, &expected);
        }
    }
    Ok(())
}

fn to_vec<T: DeviceCopy + AnyBitPattern>(bench: &Bench<'_>, items: &Buffer<T>) -> Result<Vec<T>> {
    items.to_vec(&bench.stream)
}

/// Returns offsets of segments of equal length.
pub(super) fn offsets(bench: &Bench<'_>, segment_items: u64) -> Result<Buffer<u64>> {
    let n = bench.n as u64;
    let num_segments = n.div_ceil(segment_items).max(1);
    bench.make(num_segments as usize + 1, |i| if i == num_segments { n } else { i * segment_items })
}
