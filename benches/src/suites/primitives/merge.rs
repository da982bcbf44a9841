//! Merge, merge sort, search and expand.

use super::scan::offsets;
use super::{Bench, expect};
use kauri::Result;
use kauri::device::Buffer;
use kauri::primitives::order::Ascending;
use kauri::primitives::{cpu, expand, merge, merge_sort, search};
use kauri::research::primitives as research;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    merges(bench)?;
    sorts(bench)?;
    super_keys(bench)?;
    searches(bench)?;
    expands(bench)
}

/// Two interleaved runs of even and odd numbers.
fn merges(bench: &mut Bench<'_>) -> Result<()> {
    let (n, noise) = (bench.n, bench.noise());
    let (first_len, second_len) = (n / 2, n - n / 2);
    let first = bench.make(first_len, |i| 8 * i as u32 + (noise(i) % 8) as u32)?;
    let second = bench.make(second_len, |i| 8 * i as u32 + (noise(i + (1 << 40)) % 8) as u32)?;
    let mut merged = bench.uninitialized(n)?;
    let temp = merge::plan::<u32>(n);
    bench.time("merge", "u32", 8 * n, temp, |stream, workspace| {
        merge::merge_keys::<u32, Ascending>(stream, workspace, &first, &second, &mut merged)
    })?;
    if bench.is_checked() {
        let (first, second) = (first.to_vec(&bench.stream)?, second.to_vec(&bench.stream)?);
        let expected = cpu::merge::merge_keys::<u32, Ascending>(&first, &second);
        expect("merge", &merged.to_vec(&bench.stream)?, &expected);
    }
    let (ids_1, ids_2) = (bench.make(first_len, |i| i as u32)?, bench.make(second_len, |i| i as u32)?);
    let mut ids = bench.uninitialized(n)?;
    bench.time("merge", "u32, u32", 16 * n, temp, |stream, workspace| {
        let to = (&mut merged, &mut ids);
        merge::merge_pairs::<u32, Ascending>(stream, workspace, (&first, &ids_1), (&second, &ids_2), to)
    })
}

fn sorts(bench: &mut Bench<'_>) -> Result<()> {
    let (n, noise) = (bench.n, bench.noise());
    let keys = bench.make(n, |i| noise(i) as u32)?;
    let mut sorted = bench.uninitialized(n)?;
    let temp = merge_sort::plan_keys::<u32>(n);
    bench.time("merge sort", "u32", 8 * n, temp, |stream, workspace| {
        merge_sort::sort_keys::<u32, Ascending>(stream, workspace, &keys, &mut sorted)
    })?;
    if bench.is_checked() {
        let expected = cpu::merge_sort::sort_keys::<u32, Ascending>(&keys.to_vec(&bench.stream)?);
        expect("merge sort", &sorted.to_vec(&bench.stream)?, &expected);
    }
    let ids = bench.make(n, |i| i as u32)?;
    let mut order = bench.uninitialized(n)?;
    let temp = merge_sort::plan_pairs::<u32>(n);
    bench.time("merge sort", "u32, u32", 16 * n, temp, |stream, workspace| {
        merge_sort::sort_pairs::<u32, Ascending>(stream, workspace, &keys, &ids, &mut sorted, &mut order)
    })
}

/// Points of four coordinates: uniform, and with few distinct coordinates, so that many comparisons look points up.
fn super_keys(bench: &mut Bench<'_>) -> Result<()> {
    let (n, noise) = (bench.n, bench.noise());
    if n > 1 << 28 {
        return Ok(());
    }
    for (name, bits) in [("f32 x 4", 24), ("f32 x 4, 256 distinct", 8)] {
        let points =
            bench.make(n, |i| [0, 1, 2, 3].map(|axis| (noise(4 * i + axis) >> (64 - bits)) as f32))?;
        let (mut coords, mut ids) = (bench.uninitialized(n)?, bench.uninitialized(n)?);
        let temp = research::plan_points::<f32>(n);
        bench.time("super key sort", name, 24 * n, temp, |stream, workspace| {
            research::sort_points(stream, workspace, &points, 0, &mut coords, &mut ids)
        })?;
        if bench.is_checked() {
            let expected = research::cpu::sort_points(&points.to_vec(&bench.stream)?, 0);
            expect("super key sort", &ids.to_vec(&bench.stream)?, &expected.1);
        }
    }
    Ok(())
}

fn searches(bench: &mut Bench<'_>) -> Result<()> {
    let (n, noise) = (bench.n, bench.noise());
    let sorted = bench.make(n, |i| 4 * i as u32)?;
    let range = 4 * n as u64;
    let random = bench.make(n, |i| (noise(i) % range) as u32)?;
    let in_order = bench.make(n, |i| 4 * i as u32 + 2)?;
    let mut positions = bench.uninitialized::<u64>(n)?;
    for (name, queries) in [("u32, random queries", &random), ("u32, queries in order", &in_order)] {
        bench.time("lower bound", name, 16 * n, 0, |stream, _| {
            search::lower_bound(stream, &sorted, queries, &mut positions)
        })?;
        if bench.is_checked() {
            let (sorted, queries) = (sorted.to_vec(&bench.stream)?, queries.to_vec(&bench.stream)?);
            let expected = cpu::search::lower_bound(&sorted, &queries);
            expect("lower bound", &positions.to_vec(&bench.stream)?, &expected);
        }
    }
    let sorted = sort_floats(bench)?;
    let mut ends = bench.uninitialized::<u64>(n)?;
    bench.time("equal range", "f32", 24 * n, 0, |stream, _| {
        search::equal_range(stream, &sorted, &sorted, &mut positions, &mut ends)
    })
}

fn sort_floats(bench: &mut Bench<'_>) -> Result<Buffer<f32>> {
    let noise = bench.noise();
    let floats = bench.make(bench.n, |i| (noise(i) >> 44) as f32)?;
    let mut sorted = bench.uninitialized(bench.n)?;
    merge_sort::sort_keys::<f32, Ascending>(&bench.stream, &mut bench.workspace, &floats, &mut sorted)?;
    Ok(sorted)
}

/// Expansions with as many outputs as the size of the row, from segments of equal length.
fn expands(bench: &mut Bench<'_>) -> Result<()> {
    let n = bench.n;
    let (mut segments, mut indices, mut overflow) =
        (bench.uninitialized(n)?, bench.uninitialized(n)?, bench.uninitialized(1)?);
    for (length, name) in [(1, "segments of 1"), (8, "segments of 8"), (1000, "segments of 1000")] {
        let counts = bench.make(n.div_ceil(length), |_| length as u32)?;
        let mut scanned = bench.uninitialized(counts.len() + 1)?;
        let temp = expand::plan(counts.len());
        bench.time("offsets of counts", name, 12 * counts.len(), temp, |stream, workspace| {
            expand::offsets(stream, workspace, &counts, &mut scanned)
        })?;
        let offsets = offsets(bench, length as u64)?;
        bench.time("expand", name, 8 * n + 8 * counts.len(), 0, |stream, _| {
            expand::expand(stream, &offsets, &mut segments, &mut indices, &mut overflow)
        })?;
        if bench.is_checked() {
            let expected = cpu::expand::expand(&offsets.to_vec(&bench.stream)?);
            let (expected_segments, expected_indices): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
            expect("expand", &segments.to_vec(&bench.stream)?, &expected_segments);
            expect("expand", &indices.to_vec(&bench.stream)?, &expected_indices);
        }
    }
    Ok(())
}
