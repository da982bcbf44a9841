//! Top-k compared with the CPU: every type, small and large k, with and without a sample, misleading samples.

use crate::{bits, noise, on_each_schedule, on_each_schedule_in_turn};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::order::{Ascending, NoValue, Order};
use kauri::primitives::top_k::{Best, RankKey};
use kauri::primitives::{cpu, top_k};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::STREAM_ROWS;
use kauri_kernels::policy::TOP_K;
use kauri_kernels::primitives::top_k::sample::sample_index;
use kauri_kernels::primitives::top_k::segments::BLOCK_K;
use kauri_kernels::thread::ranked::RankBits;

fn check<K: RankKey>(stream: &Stream, keys: &[K], k: usize, best: Best)
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    let gpu = stream.gpu();
    let mut workspace = Workspace::new(gpu);
    let device_keys = Buffer::from_slice(stream, keys, "keys").unwrap();
    let mut best_keys = Buffer::uninitialized(gpu, k, "best keys").unwrap();
    let mut ids = Buffer::uninitialized(gpu, k, "ids").unwrap();
    top_k::top_k(stream, &mut workspace, &device_keys, best, &mut best_keys, &mut ids)
        .unwrap_or_else(|e| panic!("{k} of {}: {e}", keys.len()));
    assert!(k == 0 || workspace.bytes() == top_k::plan::<K>(keys.len(), k));
    let expected = cpu::top_k::top_k(keys, k, best);
    assert_eq!(ids.to_vec(stream).unwrap(), expected.1, "{k} of {}, {best:?}", keys.len());
    assert_eq!(bits(&best_keys.to_vec(stream).unwrap()), bits(&expected.0));
}

fn floats(n: usize, range: u64) -> Vec<f32> {
    noise(n, 61).iter().map(|x| (x % range) as f32 - range as f32 / 2.0).collect()
}

#[test]
fn all_are_candidates() {
    const TILE: usize = tile_items::<f32, STREAM_ROWS>();
    on_each_schedule_in_turn(5, |_, stream, turn| {
        let Some(&lens) = [[0, 33], [1, 1023], [2, 1025], [31, 32]].get(turn) else {
            return check(stream, &floats(TILE + 1, 1000), 5, Best::Smallest);
        };
        for n in lens {
            for k in [0, 1, 32, n / 2, n, n + 3] {
                check(stream, &floats(n, 1000), k, if k % 2 == 0 { Best::Largest } else { Best::Smallest });
            }
        }
    });
}

#[test]
fn every_type() {
    on_each_schedule_in_turn(2, |_, stream, turn| {
        let x = noise(1200, 67);
        let best = [Best::Smallest, Best::Largest][turn];
        check(stream, &x, 100, best);
        check(stream, &x.iter().map(|&x| x as i64).collect::<Vec<_>>(), 33, best);
        check(stream, &x.iter().map(|&x| x as u32).collect::<Vec<_>>(), 1, best);
        check(stream, &x.iter().map(|&x| x as i32).collect::<Vec<_>>(), 1024, best);
        let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0, -1.0];
        let wide: Vec<f64> = x.iter().map(|&x| special[(x % 8) as usize]).collect();
        check(stream, &wide, 1100, best);
        check(stream, &wide.iter().map(|&x| x as f32).collect::<Vec<_>>(), 1201, best);
    });
}

#[test]
fn by_a_sample() {
    on_each_schedule(|_, stream| {
        let n = 3 * TOP_K.items_per_sample_block + 5;
        for k in [1, 100, 2000] {
            check(stream, &floats(n, 1 << 24), k, Best::Smallest);
        }
        check(stream, &noise(n, 3), 77, Best::Largest);
        // All equal, few distinct values, ascending, descending.
        check(stream, &vec![5.0f32; n], 50, Best::Smallest);
        check(stream, &floats(n, 3), 60, Best::Largest);
        let sorted: Vec<u32> = (0..n as u32).collect();
        check(stream, &sorted, 70, Best::Smallest);
        check(stream, &sorted, 70, Best::Largest);
    });
}

#[test]
fn many_candidates_are_sorted() {
    on_each_schedule(|_, stream| {
        let n = TOP_K.ranked_items + 100;
        check(stream, &floats(n, 1 << 20), n / 2, Best::Largest);
    });
}

#[test]
fn a_sample_that_misleads() {
    on_each_schedule(|_, stream| {
        let (n, k) = (4 * TOP_K.items_per_sample_block + 9, 24);
        assert!(top_k::plan::<u32>(n, k) < 8 * n as u64, "there is a sample");
        // One minimum in eight should be among the best.
        let warp_samples = 32 * (n / (8 * 32 * k)).min(TOP_K.max_lane_samples[0] as usize);
        let num_samples = 4 * TOP_K.sample_threads / 32 * warp_samples;
        let sample_indices: Vec<usize> = (0..num_samples as u64).map(|i| sample_index(i, n)).collect();
        // The best keys are one sample of each warp: too few items reach the threshold.
        let mut keys: Vec<u32> = (0..n as u32).map(|i| 1000 + i).collect();
        for (i, samples) in sample_indices.chunks(warp_samples).enumerate() {
            keys[samples[0]] = i as u32 % 7;
        }
        check(stream, &keys, k, Best::Smallest);
        let wide: Vec<u64> = keys.iter().map(|&key| u64::from(key) << 20).collect();
        check(stream, &wide, k, Best::Smallest);
        // All samples are among the worst keys: all items reach the threshold.
        let mut keys: Vec<u32> = (0..n as u32).map(|i| i % 1000).collect();
        sample_indices.iter().for_each(|&index| keys[index] = 5000);
        check(stream, &keys, k, Best::Smallest);
    });
}

fn check_segments<K: RankKey>(stream: &Stream, keys: &[K], offsets: &[u64], k: usize, best: Best)
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    let gpu = stream.gpu();
    let mut workspace = Workspace::new(gpu);
    let device_keys = Buffer::from_slice(stream, keys, "keys").unwrap();
    let device_offsets = Buffer::from_slice(stream, offsets, "offsets").unwrap();
    let num_segments = offsets.len() - 1;
    let mut best_keys = Buffer::uninitialized(gpu, num_segments * k, "best keys").unwrap();
    let mut ids = Buffer::uninitialized(gpu, num_segments * k, "ids").unwrap();
    let (b, i) = (&mut best_keys, &mut ids);
    top_k::top_k_segmented(stream, &mut workspace, &device_keys, &device_offsets, k, best, b, i)
        .unwrap_or_else(|e| panic!("{k} of {}: {e}", keys.len()));
    assert_eq!(workspace.bytes(), top_k::plan_segmented(keys.len(), num_segments, k));
    let expected = cpu::top_k::top_k_segmented(keys, offsets, k, best);
    assert_eq!(ids.to_vec(stream).unwrap(), expected.1, "{k} of {num_segments} segments, {best:?}");
    assert_eq!(bits(&best_keys.to_vec(stream).unwrap()), bits(&expected.0));
}

#[test]
fn segments() {
    on_each_schedule_in_turn(4, |_, stream, turn| {
        let n = 3000;
        let x = noise(n, 97);
        let floats = floats(n, 50);
        if let Some(&longest) = [3, 70, 2500].get(turn) {
            let offsets = crate::partition::segments(n, longest);
            // Rows with more padding add little.
            for k in [1, 8, 32, 33, 100].into_iter().filter(|&k| k as u64 <= 12 * longest) {
                check_segments(stream, &floats, &offsets, k, Best::Largest);
            }
            check_segments(stream, &x, &offsets, 5, Best::Smallest);
            return;
        }
        let offsets = [0, 0, 1, 2800, 2800, n as u64];
        check_segments(stream, &x, &offsets, BLOCK_K, Best::Largest);
        check_segments(stream, &x, &offsets, BLOCK_K + 1, Best::Largest);
        check_segments(stream, &floats, &offsets, 2000, Best::Smallest);
        // One long segment: a block even for small k.
        check_segments(stream, &floats, &[0, n as u64], 7, Best::Smallest);
        check_segments(stream, &(0..n as u64).rev().collect::<Vec<_>>(), &[0, n as u64], 900, Best::Smallest);
        check_segments::<u32>(stream, &[], &[0, 0], 3, Best::Smallest);
        check_segments::<u32>(stream, &[], &[0], 3, Best::Smallest);
    });
}
