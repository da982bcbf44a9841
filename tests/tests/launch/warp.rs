//! Warp collectives against their definitions.

use crate::{noise, on_each_gpu, zeros};
use bytemuck::Pod;
use cuda_std::warp::WarpShuffleValue;
use cust_core::DeviceCopy;
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::warp::*;
use std::fmt::Debug;

const THREADS: usize = 64;

#[test]
fn votes_and_lane_masks() {
    on_each_gpu(|_, stream| {
        for mask in [u32::MAX, 0x0000_FFFF, 0x8000_0001, 0x5555_5555] {
            for input in
                [vec![0; THREADS], vec![1; THREADS], noise(THREADS, 7).iter().map(|x| x & 1).collect()]
            {
                let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
                let mut out = zeros::<u32>(stream, 8 * THREADS);
                // SAFETY: eight words for each thread.
                unsafe { stream.launch::<test_votes>(1, (buffer.slice(), out.slice_mut(), mask)) }.unwrap();
                let out = out.to_vec(stream).unwrap();
                for (i, words) in out.chunks(8).enumerate() {
                    let lane = i as u32 % 32;
                    if mask >> lane & 1 == 0 {
                        assert_eq!(words, [0; 8]);
                        continue;
                    }
                    let warp = &input[i / 32 * 32..][..32];
                    let set = (0..32).filter(|&l| warp[l] != 0).fold(0u32, |m, l| m | 1 << l) & mask;
                    let below = (1u32 << lane) - 1;
                    let expected = [
                        set,
                        (set != 0).into(),
                        (set == mask).into(),
                        lane,
                        below,
                        below | 1 << lane,
                        !(below | 1 << lane),
                        !below,
                    ];
                    assert_eq!(words, expected, "mask {mask:08x} thread {i}");
                }
            }
        }
    });
}

/// Returns the source lane of a shuffle, and whether it is within the segment.
fn source(kind: usize, lane: usize, by: usize, width: usize) -> (usize, bool) {
    let begin = lane / width * width;
    match kind {
        0 => (begin + by % width, by < width),
        1 if lane >= begin + by => (lane - by, true),
        2 if lane + by < begin + width => (lane + by, true),
        3 if lane ^ by < begin + width => (lane ^ by, true),
        _ => (lane, false),
    }
}

fn shuffles<T>(stream: &Stream, values: &[T])
where
    T: WarpShuffleValue + DeviceCopy + Pod + PartialEq + Debug + Default + 'static,
{
    let input = Buffer::from_slice(stream, values, "input").unwrap();
    for width in [2, 8, 32] {
        for by in [0, 1, 3, 7, 16, 31] {
            let mut out = zeros::<T>(stream, 4 * THREADS);
            let mut flags = zeros::<u32>(stream, 4 * THREADS);
            let args = (input.slice(), out.slice_mut(), flags.slice_mut(), by, width);
            // SAFETY: four values and flags for each thread.
            unsafe { stream.launch::<test_shuffles<T>>(1, args) }.unwrap();
            let (out, flags) = (out.to_vec(stream).unwrap(), flags.to_vec(stream).unwrap());
            for i in 0..THREADS {
                for kind in 0..4 {
                    let (lane, in_range) = source(kind, i % 32, by as usize, width as usize);
                    let place = 4 * i + kind;
                    // An index beyond the segment wraps around in it.
                    assert_eq!(
                        out[place],
                        values[i / 32 * 32 + lane],
                        "kind {kind} thread {i} by {by} of {width}"
                    );
                    if kind != 0 {
                        assert_eq!(
                            flags[place],
                            u32::from(in_range),
                            "kind {kind} thread {i} by {by} of {width}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn shuffles_of_each_size() {
    on_each_gpu(|_, stream| {
        let words = noise(THREADS, 11);
        shuffles::<u32>(stream, &words);
        shuffles::<i32>(stream, &words.iter().map(|&x| x as i32).collect::<Vec<_>>());
        shuffles::<f32>(stream, &words.iter().map(|&x| x as f32 - 2e9).collect::<Vec<_>>());
        shuffles::<u64>(stream, &words.iter().map(|&x| u64::from(x) << 20 | 5).collect::<Vec<_>>());
        shuffles::<u128>(
            stream,
            &words.iter().map(|&x| u128::from(x) * 0x1_0000_0001_0000_0001).collect::<Vec<_>>(),
        );
        shuffles::<f64>(stream, &words.iter().map(|&x| f64::from(x) / 3.0).collect::<Vec<_>>());
    });
}

#[test]
fn matches_of_32_and_64_bits() {
    fn check<T>(stream: &Stream, values: &[T])
    where
        T: cuda_std::warp::WarpMatchValue + DeviceCopy + Pod + PartialEq + 'static,
    {
        let input = Buffer::from_slice(stream, values, "input").unwrap();
        let mut out = zeros::<u32>(stream, 2 * THREADS);
        // SAFETY: two words for each thread.
        unsafe { stream.launch::<test_matches<T>>(1, (input.slice(), out.slice_mut())) }.unwrap();
        for (i, words) in out.to_vec(stream).unwrap().chunks(2).enumerate() {
            let warp = &values[i / 32 * 32..][..32];
            let same = (0..32).filter(|&l| warp[l] == values[i]).fold(0u32, |m, l| m | 1 << l);
            let all = if same == u32::MAX { u32::MAX } else { 0 };
            assert_eq!(words, [same, all], "thread {i}");
        }
    }
    on_each_gpu(|_, stream| {
        // All lanes of the second warp have one value.
        let values: Vec<u32> = (0..THREADS).map(|i| if i < 32 { noise(32, 13)[i] % 5 } else { 4 }).collect();
        check::<u32>(stream, &values);
        check::<u64>(stream, &values.iter().map(|&x| u64::from(x) << 40).collect::<Vec<_>>());
        check::<f32>(stream, &values.iter().map(|&x| x as f32 / 4.0).collect::<Vec<_>>());
        check::<i64>(stream, &values.iter().map(|&x| -i64::from(x) << 40).collect::<Vec<_>>());
    });
}

#[test]
fn reductions_over_full_and_partial_masks() {
    on_each_gpu(|_, stream| {
        let unsigned = noise(THREADS, 17);
        let signed: Vec<i32> = unsigned.iter().map(|&x| x as i32).collect();
        for mask in [u32::MAX, 0x000F_FFFF, 0x8000_0000, 0xAAAA_AAAA] {
            let lanes = |i: usize| (0..32).filter(move |l| mask >> l & 1 != 0).map(move |l| i / 32 * 32 + l);
            let input = Buffer::from_slice(stream, &unsigned, "input").unwrap();
            let mut out = zeros::<u32>(stream, 6 * THREADS);
            // SAFETY: six words for each thread.
            unsafe { stream.launch::<test_reductions<u32>>(1, (input.slice(), out.slice_mut(), mask)) }
                .unwrap();
            let out = out.to_vec(stream).unwrap();
            for i in (0..THREADS).filter(|i| mask >> (i % 32) & 1 != 0) {
                let of = |f: fn(u32, u32) -> u32| lanes(i).map(|j| unsigned[j]).reduce(f).unwrap();
                let expected = [
                    of(u32::wrapping_add),
                    of(u32::min),
                    of(u32::max),
                    of(|a, b| a & b),
                    of(|a, b| a | b),
                    of(|a, b| a ^ b),
                ];
                assert_eq!(out[6 * i..6 * i + 6], expected, "mask {mask:08x} thread {i}");
            }

            let input = Buffer::from_slice(stream, &signed, "input").unwrap();
            let mut out = zeros::<i32>(stream, 6 * THREADS);
            // SAFETY: six words for each thread.
            unsafe { stream.launch::<test_reductions<i32>>(1, (input.slice(), out.slice_mut(), mask)) }
                .unwrap();
            let out = out.to_vec(stream).unwrap();
            for i in (0..THREADS).filter(|i| mask >> (i % 32) & 1 != 0) {
                let of = |f: fn(i32, i32) -> i32| lanes(i).map(|j| signed[j]).reduce(f).unwrap();
                let expected = [of(i32::wrapping_add), of(i32::min), of(i32::max)];
                assert_eq!(out[6 * i..6 * i + 3], expected, "mask {mask:08x} thread {i}");
            }
        }
    });
}
