//! Barriers and shared memory.

use crate::{noise, on_each_gpu, zeros};
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::block::*;

const BLOCK: usize = 128;

#[test]
fn barriers_count_and_combine_predicates() {
    on_each_gpu(|_, stream| {
        // Blocks with no, all, one and some predicates set.
        let mut input = vec![0u32; 4 * BLOCK];
        input[BLOCK..2 * BLOCK].fill(1);
        input[2 * BLOCK + 77] = 9;
        for (i, x) in input[3 * BLOCK..].iter_mut().enumerate() {
            *x = (i % 3 == 0).into();
        }
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let mut out = zeros::<u32>(stream, 3 * input.len());
        // SAFETY: one thread for each item, with three words.
        unsafe { stream.launch::<test_barriers>(4, (buffer.slice(), out.slice_mut())) }.unwrap();
        let out = out.to_vec(stream).unwrap();
        for (block, items) in input.chunks(BLOCK).enumerate() {
            let count = items.iter().filter(|&&x| x != 0).count();
            let expected = [count as u32, (count == BLOCK).into(), (count > 0).into()];
            for thread in out[3 * BLOCK * block..3 * BLOCK * (block + 1)].chunks(3) {
                assert_eq!(thread, expected, "block {block}");
            }
        }
    });
}

#[test]
fn shared_memory_of_three_kinds() {
    on_each_gpu(|_, stream| {
        let input: Vec<u32> = noise(5 * BLOCK, 3).iter().map(|x| x >> 8).collect();
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let mut out = zeros::<u32>(stream, input.len());
        // SAFETY: one thread for each item.
        unsafe { stream.launch::<test_shared>(5, (buffer.slice(), out.slice_mut())) }.unwrap();
        let expected: Vec<u32> =
            input.chunks(BLOCK).flat_map(|block| block.iter().rev().map(|x| 3 * x + 1000)).collect();
        assert_eq!(out.to_vec(stream).unwrap(), expected);
    });
}

/// Upstream's idiom for tiles. With its barrier the sum is right under all schedules; without it, all schedules report a race.
#[test]
fn missing_barrier_around_a_static_array() {
    let input: Vec<u32> = noise(2 * BLOCK, 7).iter().map(|x| x >> 8).collect();
    let run = |stream: &Stream, with_barrier: u32| {
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let mut sums = zeros::<u32>(stream, 2);
        // SAFETY: one thread for each item.
        unsafe { stream.launch::<test_block_sum>(2, (buffer.slice(), sums.slice_mut(), with_barrier)) }?;
        sums.to_vec(stream)
    };
    let expected: Vec<u32> = input.chunks(BLOCK).map(|block| block.iter().sum()).collect();
    on_each_gpu(|_, stream| assert_eq!(run(stream, 1).unwrap(), expected));
    for device in kauri_tests::simulated() {
        let stream = Stream::new(device.gpu().unwrap()).unwrap();
        let error = run(&stream, 0).unwrap_err().to_string();
        assert!(error.contains("data race") && error.contains("of static shared array 1"), "{error}");
        assert!(error.contains("tests/kernels/src/block.rs"), "{error}");
    }
}

#[test]
fn launch_sized_memory_as_one_view() {
    on_each_gpu(|_, stream| {
        let input = noise(2 * BLOCK, 9);
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let mut out = zeros::<u32>(stream, input.len());
        // SAFETY: one thread for each item.
        unsafe { stream.launch::<test_dynamic_shared>(2, (buffer.slice(), out.slice_mut())) }.unwrap();
        let rotated = |block: &[u32]| [&block[1..], &block[..1]].concat();
        assert_eq!(out.to_vec(stream).unwrap(), input.chunks(BLOCK).flat_map(rotated).collect::<Vec<_>>());
    });
}

#[test]
fn barrier_after_a_divergent_branch() {
    on_each_gpu(|_, stream| {
        let input: Vec<u32> = noise(4 * BLOCK, 5).iter().map(|x| x % 1000).collect();
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let mut out = zeros::<u32>(stream, input.len());
        // SAFETY: one thread for each item.
        unsafe { stream.launch::<test_divergent_then_barrier>(4, (buffer.slice(), out.slice_mut(), 500)) }
            .unwrap();
        let double = |x: u32| if x < 500 { 2 * x } else { 1 };
        let expected: Vec<u32> = (0..input.len())
            .map(|i| {
                let neighbor = i / BLOCK * BLOCK + (i + 1) % BLOCK;
                if input[i] < 500 { double(input[neighbor]) } else { 0 }
            })
            .collect();
        assert_eq!(out.to_vec(stream).unwrap(), expected);
    });
}
