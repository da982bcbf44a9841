//! Top-k of arrays and of segments.

use super::scan::offsets;
use super::{Bench, expect};
use kauri::Result;
use kauri::device::Buffer;
use kauri::primitives::operator::Min;
use kauri::primitives::order::{Ascending, NoValue, Order};
use kauri::primitives::top_k::{Best, RankKey};
use kauri::primitives::{cpu, reduce, top_k};
use kauri_kernels::thread::ranked::RankBits;

/// The values of k.
const KS: [usize; 6] = [1, 32, 1024, 10_000, 100_000, 1_000_000];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let noise = bench.noise();
    let floats = bench.make(bench.n, |i| (noise(i) >> 40) as f32 / (1 << 24) as f32)?;
    // The time of one read of the input, for comparison.
    let mut least = bench.uninitialized(1)?;
    bench.time("reduce min", "f32", 4 * bench.n, reduce::plan::<f32>(bench.n), |stream, workspace| {
        reduce::reduce::<f32, Min>(stream, workspace, &floats, &mut least)
    })?;
    all_k(bench, "f32", &floats)?;
    for (k, segment_items) in [(8, 100), (32, 1000), (100, 1000), (1000, 100_000)] {
        segments(bench, &floats, k, segment_items)?;
    }
    drop(floats);
    let n = bench.n as u64;
    let sorted = bench.make(bench.n, |i| i as f32)?;
    one(bench, "f32, sorted", &sorted, 1024)?;
    drop(sorted);
    let reversed = bench.make(bench.n, |i| (n - i) as f32)?;
    one(bench, "f32, reversed", &reversed, 1024)?;
    drop(reversed);
    let equal = bench.make(bench.n, |_| 1.0f32)?;
    one(bench, "f32, all equal", &equal, 1024)?;
    one(bench, "f32, all equal", &equal, 100_000)?;
    drop(equal);
    let wide = bench.make(bench.n, &noise)?;
    all_k(bench, "u64", &wide)
}

fn all_k<K: RankKey + PartialEq>(bench: &mut Bench<'_>, input: &str, keys: &Buffer<K>) -> Result<()>
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    KS.into_iter().filter(|&k| k <= keys.len()).try_for_each(|k| one(bench, input, keys, k))
}

fn one<K: RankKey + PartialEq>(bench: &mut Bench<'_>, input: &str, keys: &Buffer<K>, k: usize) -> Result<()>
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    if k > keys.len() {
        return Ok(());
    }
    let (mut best, mut ids) = (bench.uninitialized(k)?, bench.uninitialized(k)?);
    let bytes = size_of::<K>() * keys.len() + (4 + size_of::<K>()) * k;
    let work = format!("top-k k={k}");
    bench.time(&work, input, bytes, top_k::plan::<K>(keys.len(), k), |stream, workspace| {
        top_k::top_k(stream, workspace, keys, Best::Smallest, &mut best, &mut ids)
    })?;
    if bench.is_checked() {
        let expected = cpu::top_k::top_k(&keys.to_vec(&bench.stream)?, k, Best::Smallest);
        expect(&work, &ids.to_vec(&bench.stream)?, &expected.1);
        expect(&work, &best.to_vec(&bench.stream)?, &expected.0);
    }
    Ok(())
}

fn segments(bench: &mut Bench<'_>, keys: &Buffer<f32>, k: usize, segment_items: u64) -> Result<()> {
    let offsets = offsets(bench, segment_items)?;
    let num_segments = offsets.len() - 1;
    let (mut best, mut ids) =
        (bench.uninitialized(num_segments * k)?, bench.uninitialized(num_segments * k)?);
    let work = format!("segmented top-k k={k}");
    let input = format!("f32, segments of {segment_items}");
    let bytes = 4 * keys.len() + 8 * ids.len();
    let temp = top_k::plan_segmented(keys.len(), num_segments, k);
    bench.time(&work, &input, bytes, temp, |stream, workspace| {
        let (b, i) = (&mut best, &mut ids);
        top_k::top_k_segmented(stream, workspace, keys, &offsets, k, Best::Smallest, b, i)
    })?;
    if bench.is_checked() {
        let (keys, offsets) = (keys.to_vec(&bench.stream)?, offsets.to_vec(&bench.stream)?);
        let expected = cpu::top_k::top_k_segmented(&keys, &offsets, k, Best::Smallest);
        expect(&work, &ids.to_vec(&bench.stream)?, &expected.1);
    }
    Ok(())
}
