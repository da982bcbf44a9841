//! Building blocks in legal uses that no kernel of the project has yet.

use crate::{noise, on_each_schedule};
use cuda_std::prelude::*;
use kauri::device::Buffer;
use kauri_kernels::block::scan::{ScanSmem, exclusive_sum};

const THREADS: usize = 96;

/// Two consecutive scans over the block in the same shared memory.
#[kernel(block = THREADS, shared = ScanSmem)]
unsafe fn sum_twice(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let (before, _) = exclusive_sum(input.load(i), shared_mem::<ScanSmem>());
    let (_, total) = exclusive_sum(before, shared_mem::<ScanSmem>());
    out.store(2 * i, before);
    out.store(2 * i + 1, total);
}

#[test]
fn block_scans_follow_each_other() {
    on_each_schedule(|_, stream| {
        let input: Vec<u32> = noise(3 * THREADS, 11).iter().map(|&x| x as u32 % 100).collect();
        let buffer = Buffer::from_slice(stream, &input, "input").unwrap();
        let mut out = Buffer::<u32>::uninitialized(stream.gpu(), 2 * input.len(), "out").unwrap();
        // SAFETY: one item and two results per thread.
        unsafe { stream.launch::<sum_twice>(3, (buffer.slice(), out.slice_mut())) }.unwrap();
        let out = out.to_vec(stream).unwrap();
        for (input, out) in input.chunks(THREADS).zip(out.chunks(2 * THREADS)) {
            let before: Vec<u32> = (0..THREADS).map(|i| input[..i].iter().sum()).collect();
            let total: u32 = before.iter().sum();
            assert!(out.chunks(2).zip(before).all(|(out, before)| out == [before, total]));
        }
    });
}
