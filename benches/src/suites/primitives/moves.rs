//! Fill, gather and scatter, bounds, histograms.

use super::{Bench, expect};
use cust_core::DeviceCopy;
use kauri::Result;
use kauri::device::Buffer;
use kauri::primitives::{bounds, cpu, generate, histogram, permute};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let n = bench.n;
    let noise = bench.noise();
    let mut items = bench.uninitialized::<u32>(n)?;
    bench.time("fill", "u32", 4 * n, 0, |stream, _| generate::fill(stream, 7u32, &mut items))?;
    bench.time("iota", "u32", 4 * n, 0, |stream, _| generate::iota(stream, 0, 1, &mut items))?;

    let straight = bench.make(n, |i| i as u32)?;
    // A permutation if n is a power of two, else nearly one: the factor is odd.
    let shuffled = bench.make(n, |i| (i.wrapping_mul(0x9E37_79B1) % n.max(1) as u64) as u32)?;
    permutes::<1>(bench, "4 bytes", &straight, &shuffled)?;
    permutes::<3>(bench, "12 bytes", &straight, &shuffled)?;
    permutes::<4>(bench, "16 bytes", &straight, &shuffled)?;
    permutes::<16>(bench, "64 bytes", &straight, &shuffled)?;
    drop((straight, shuffled));

    let points = bench.make(n, |i| [0, 1, 2].map(|axis| (noise(3 * i + axis) >> 40) as f32))?;
    let mut corners = bench.uninitialized(2)?;
    bench.time("bounds", "f32 x 3", 12 * n, bounds::plan::<f32, 3>(), |stream, workspace| {
        bounds::bounds(stream, workspace, &points, &mut corners)
    })?;
    if bench.is_checked() {
        let expected = cpu::bounds::bounds(&points.to_vec(&bench.stream)?);
        expect("bounds", &corners.to_vec(&bench.stream)?, &expected);
    }
    drop(points);

    let floats = bench.make(n, |i| (noise(i) >> 40) as f32 / (1 << 24) as f32)?;
    for num_bins in [256, 4096] {
        let mut counts = bench.uninitialized(num_bins)?;
        bench.time("histogram", &format!("f32, {num_bins} bins"), 4 * n, 0, |stream, _| {
            histogram::even(stream, &floats, 0.0, 1.0, &mut counts)
        })?;
        if bench.is_checked() {
            let expected = cpu::histogram::even(&floats.to_vec(&bench.stream)?, 0.0, 1.0, num_bins);
            expect("histogram", &counts.to_vec(&bench.stream)?, &expected);
        }
    }
    drop(floats);
    generate::noise(&bench.stream, bench.seed, &mut items)?;
    let mut counts = bench.uninitialized(4 * 256)?;
    bench.time("digit histogram", "u32", 4 * n, 0, |stream, _| histogram::digits(stream, &items, &mut counts))
}

fn permutes<const N: usize>(
    bench: &mut Bench<'_>,
    name: &str,
    straight: &Buffer<u32>,
    shuffled: &Buffer<u32>,
) -> Result<()>
where
    [u32; N]: DeviceCopy,
{
    let n = bench.n;
    // 1G items of 64 bytes and their copy do not fit.
    if n * N * 8 > 64 << 30 {
        return Ok(());
    }
    let mut items = bench.uninitialized::<[u32; N]>(n)?;
    items.fill_bytes(&bench.stream, 1)?;
    let mut out = bench.uninitialized::<[u32; N]>(n)?;
    let bytes = 4 * n + 8 * N * n;
    for (order, indices) in [("in order", straight), ("shuffled", shuffled)] {
        let input = format!("{name}, {order}");
        bench.time("gather", &input, bytes, 0, |stream, _| {
            permute::gather(stream, &items, indices, &mut out)
        })?;
        bench.time("scatter", &input, bytes, 0, |stream, _| {
            permute::scatter(stream, &items, indices, &mut out)
        })?;
    }
    Ok(())
}
