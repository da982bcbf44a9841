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
mod prints;
mod sorting;
mod visits;
mod wald_rounds;
mod warp;

use kauri_test::{noise_u32 as noise, on_cuda, on_each_gpu, zeros};
