//! Communication between blocks.

use crate::{noise, on_each_gpu, zeros};
use kauri::device::Buffer;
use kauri_test_kernels::ordering::*;

#[test]
fn the_last_block_sees_the_sums_of_all_blocks() {
    on_each_gpu(|gpu, stream| {
        for blocks in if gpu.info().id == "sim" { [1, 2, 5, 20] } else { [1, 2, 33, 500] } {
            let input = noise(64 * blocks, 41);
            let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
            for _ in 0..if gpu.info().id == "sim" { 1 } else { 20 } {
                let (mut partial, mut done, mut out) =
                    (zeros::<u32>(stream, blocks), zeros::<u32>(stream, 1), zeros::<u32>(stream, 1));
                let args = (buffer.slice(), partial.slice_mut(), done.slice_mut(), out.slice_mut());
                // SAFETY: 64 items for each block.
                unsafe { stream.launch::<test_last_block>(blocks as u64, args) }.unwrap();
                let expected = input.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
                assert_eq!(out.to_vec(stream).unwrap(), [expected]);
            }
        }
    });
}

/// On hardware the sum is mostly right, and tools that watch only shared memory report nothing.
#[test]
fn a_missing_order_between_blocks_is_a_race() {
    on_each_gpu(|gpu, stream| {
        let input = Buffer::from_slice(stream, &noise(64 * 8, 47), "input").unwrap();
        let mut partial = Buffer::from_slice(stream, &[0u32; 8], "partial sums").unwrap();
        let (mut done, mut out) = (zeros::<u32>(stream, 1), zeros::<u32>(stream, 1));
        let args = (input.slice(), partial.slice_mut(), done.slice_mut(), out.slice_mut());
        // SAFETY: 64 items for each block.
        let launched = unsafe { stream.launch::<test_last_block_unordered>(8, args) };
        if gpu.info().id == "sim" {
            let report = launched.unwrap_err().to_string();
            println!("{report}");
            assert!(report.contains("data race") && report.contains("of partial sums"), "{report}");
        } else {
            launched.and_then(|()| stream.synchronize()).unwrap();
        }
    });
}

#[test]
fn a_chain_of_blocks_adds_up() {
    on_each_gpu(|gpu, stream| {
        let blocks = if gpu.info().id == "sim" { 30 } else { 2000 };
        let input = noise(blocks, 43);
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let (mut ticket, mut values, mut flags) =
            (zeros::<u32>(stream, 1), zeros::<u32>(stream, blocks), zeros::<u32>(stream, blocks));
        let args = (buffer.slice(), ticket.slice_mut(), values.slice_mut(), flags.slice_mut());
        // SAFETY: one item, one value and one flag for each block.
        unsafe { stream.launch::<test_chain>(blocks as u64, args) }.unwrap();
        let sums = input.iter().scan(0u32, |sum, &x| {
            *sum = sum.wrapping_add(x);
            Some(*sum)
        });
        assert_eq!(values.to_vec(stream).unwrap(), sums.collect::<Vec<_>>());
    });
}
