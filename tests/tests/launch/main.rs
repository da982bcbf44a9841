//! Kernels launched by their types: every function of `cuda_std` against its definition; buffers, streams, errors.

mod atomics;
mod block;
mod errors;
mod faults;
mod faults_multi_gpu;
mod graphs;
mod memory;
mod ordering;
mod parameters;
mod sorting;
mod wald_rounds;
mod warp;

use kauri::device::{Buffer, Gpu, Stream};

/// Runs a test on the GPU, if there is one, and on simulated GPUs.
fn on_each_gpu(test: impl Fn(&Gpu, &Stream)) {
    on_cuda(&test);
    for device in kauri_tests::simulated() {
        let gpu = device.gpu().unwrap();
        test(gpu, &Stream::new(gpu).unwrap());
    }
}

/// Runs a test that needs CUDA: the simulator loads no modules and calls no driver.
fn on_cuda(test: impl Fn(&Gpu, &Stream)) {
    for device in kauri_tests::devices() {
        if let Some(gpu) = device.gpu() {
            test(gpu, &Stream::new(gpu).unwrap());
        }
    }
}

/// Returns a zeroed buffer.
fn zeros<T: cust_core::DeviceCopy + bytemuck::NoUninit + Default>(stream: &Stream, len: usize) -> Buffer<T> {
    Buffer::from_slice(stream, &vec![T::default(); len], "zeros").unwrap()
}

/// Returns pseudorandom numbers, which depend only on the seed.
fn noise(len: usize, seed: u32) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..len).map(|_| next()).collect()
}
