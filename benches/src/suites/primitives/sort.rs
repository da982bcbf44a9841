//! The radix sort, of arrays and of segments.

use super::{Bench, expect};
use kauri::Result;
use kauri::device::Buffer;
use kauri::primitives::radix_sort::{self, RadixSortOptions, SortKey};
use kauri::primitives::{cpu, segmented_sort};
use kauri::research::primitives::RadixSortPolicy;

/// Masks keys to two values per digit.
const FEW_DISTINCT: u64 = 0x1010_1010_1010_1010;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let options = RadixSortOptions::default();
    for_keys::<u32>(bench, "", &options)?;
    for_keys::<u64>(bench, "", &options)?;
    for segment in [16, 200, 5000] {
        segments(bench, segment)?;
    }
    Ok(())
}

/// The sorts with tiles of every available shape, and by one digit only.
pub(super) fn shapes(bench: &mut Bench<'_>) -> Result<()> {
    for bits in [None, Some(0..8)] {
        let digits = if bits.is_none() { "" } else { ", one digit" };
        let shapes = |policy: RadixSortPolicy| {
            let what = format!(" by {} x {}{digits}", policy.warps, policy.items);
            let mut options = RadixSortOptions::default().policy(policy);
            options.bits = bits.clone();
            (what, options)
        };
        for (warps, items) in [(12, 28), (12, 16), (8, 4)] {
            let (what, options) = shapes(RadixSortPolicy { warps, items });
            for_keys::<u32>(bench, &what, &options)?;
        }
        let (what, options) = shapes(RadixSortPolicy { warps: 8, items: 4 });
        for_keys::<u64>(bench, &what, &options)?;
    }
    Ok(())
}

/// A key type of the benchmarks.
trait Key: SortKey + PartialEq {
    const NAME: &'static str;
    fn of(bits: u64) -> Self;
}

impl Key for u32 {
    const NAME: &'static str = "u32";
    fn of(bits: u64) -> Self {
        bits as u32
    }
}

impl Key for u64 {
    const NAME: &'static str = "u64";
    fn of(bits: u64) -> Self {
        bits
    }
}

fn for_keys<K: Key>(bench: &mut Bench<'_>, what: &str, options: &RadixSortOptions) -> Result<()> {
    let (n, noise) = (bench.n, bench.noise());
    let keys = bench.make(n, |i| K::of(noise(i)))?;
    let mut sorted = bench.uninitialized(n)?;
    let passes = options.bits.as_ref().map_or(size_of::<K>(), |bits| bits.len() / 8);
    let bytes = n * size_of::<K>() * (1 + 2 * passes);
    let (work, input) = (format!("radix sort keys{what}"), format!("{}, uniform", K::NAME));
    bench.time(&work, &input, bytes, radix_sort::plan_keys::<K>(n, options)?, |stream, workspace| {
        radix_sort::sort_keys(stream, workspace, &keys, &mut sorted, options)
    })?;
    check(bench, &keys, &sorted, options)?;

    let values = bench.make(n, |i| noise(i + 1) as u32)?;
    let mut sorted_values = bench.uninitialized(n)?;
    let mut pairs = |bench: &mut Bench<'_>, input: &str, keys: &Buffer<K>| {
        let bytes = n * (size_of::<K>() * (1 + 2 * passes) + 4 * 2 * passes);
        let (work, input) = (format!("radix sort pairs{what}"), format!("{}/u32, {input}", K::NAME));
        bench.time(
            &work,
            &input,
            bytes,
            radix_sort::plan_pairs::<K, u32>(n, options)?,
            |stream, workspace| {
                let (out, values_out) = (&mut sorted, &mut sorted_values);
                radix_sort::sort_pairs(stream, workspace, keys, &values, out, values_out, options)
            },
        )?;
        check(bench, keys, &sorted, options)
    };
    pairs(bench, "uniform", &keys)?;
    drop(keys);
    let few = bench.make(n, |i| K::of(noise(i) & FEW_DISTINCT))?;
    pairs(bench, "few distinct", &few)
}

/// Segmented sorts of pairs, with segments of equal length.
fn segments(bench: &mut Bench<'_>, segment: usize) -> Result<()> {
    let (n, noise) = (bench.n, bench.noise());
    let keys = bench.make(n, |i| noise(i) as u32)?;
    let values = bench.make(n, |i| noise(i + 1) as u32)?;
    let num_segments = n.div_ceil(segment);
    let offsets = bench.make(num_segments + 1, |i| (i * segment as u64).min(n as u64))?;
    let (mut sorted, mut sorted_values) = (bench.uninitialized(n)?, bench.uninitialized(n)?);
    let options = RadixSortOptions::default();
    let temp = segmented_sort::plan_pairs::<u32, u32>(n, num_segments, &options)?;
    let (work, input) = ("segmented sort pairs", format!("u32/u32, segments of {segment}"));
    bench.time(work, &input, 16 * n, temp, |stream, workspace| {
        let (out, values_out) = (&mut sorted, &mut sorted_values);
        segmented_sort::sort_pairs(stream, workspace, &keys, &values, &offsets, out, values_out, &options)
    })?;
    if bench.is_checked() {
        let (host, offsets) = (keys.to_vec(&bench.stream)?, offsets.to_vec(&bench.stream)?);
        let mut expected = host.clone();
        cpu::segmented_sort::sort_keys(&host, &offsets, &mut expected, &options)?;
        expect(work, &sorted.to_vec(&bench.stream)?, &expected);
    }
    Ok(())
}

fn check<K: Key>(
    bench: &Bench<'_>,
    keys: &Buffer<K>,
    sorted: &Buffer<K>,
    options: &RadixSortOptions,
) -> Result<()> {
    if bench.is_checked() {
        let host = keys.to_vec(&bench.stream)?;
        let mut expected = host.clone();
        cpu::radix_sort::sort_keys(&host, &mut expected, options)?;
        expect("radix sort", &sorted.to_vec(&bench.stream)?, &expected);
    }
    Ok(())
}
