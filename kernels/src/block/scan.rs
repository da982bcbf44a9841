//! Prefix sums over a block.

use crate::thread::operator::Operator;
use crate::thread::words::Words;
use crate::warp;
use cuda_std::prelude::*;

/// Shared memory of [`exclusive_sum`]: one partial sum per warp.
#[repr(C)]
pub struct ScanSmem {
    warp_sums: [u32; 32],
}

/// Returns the exclusive prefix sum of the thread, and the sum over the block.
///
/// Ends with a barrier, so that `smem` can be reused.
///
/// # Safety
/// All threads of the block call; their number is a multiple of 32.
#[inline(always)]
pub unsafe fn exclusive_sum(value: u32, smem: *mut ScanSmem) -> (u32, u32) {
    let warp_sums = shared_field!(smem, warp_sums);
    let lane = cuda_std::warp::lane_id();
    let thread = thread::thread_idx_x();
    let (warp, num_warps) = (thread / 32, thread::block_dim_x() / 32);

    let inclusive = warp::scan::inclusive_sum(value);
    if lane == 31 {
        warp_sums.store(warp as usize, inclusive);
    }
    thread::sync_threads();
    // Every warp scans the partial sums itself: one barrier less than a second pass by one warp.
    let partial = if lane < num_warps { warp_sums.load(lane as usize) } else { 0 };
    let partial = warp::scan::inclusive_sum(partial);
    let total = cuda_std::warp::shuffle_idx(cuda_std::warp::FULL_MASK, partial, 31);
    let before = cuda_std::warp::shuffle_idx(cuda_std::warp::FULL_MASK, partial, warp.wrapping_sub(1) & 31);
    thread::sync_threads();
    (inclusive.wrapping_sub(value).wrapping_add(if warp > 0 { before } else { 0 }), total)
}

/// Returns the exclusive scan of the warps' sums, and the sum over the block.
///
/// Executes one barrier. Another one must follow before `warp_sums` is reused.
///
/// # Safety
/// All threads of the block call; the lanes of a warp pass the same value. `warp_sums` holds one value per warp.
#[inline(always)]
pub unsafe fn exclusive_over_warps<T: Words, O: Operator<T>>(
    warp_sum: T,
    warp_sums: SharedSlice<'_, T>,
) -> (T, T) {
    let lane = cuda_std::warp::lane_id();
    let warp = thread::thread_idx_x() / 32;
    if lane == 0 {
        warp_sums.store(warp as usize, warp_sum);
    }
    thread::sync_threads();
    // Every warp scans the warps' sums itself: one barrier less than a scan by one warp.
    let sum = if (lane as usize) < warp_sums.len() { warp_sums.load(lane as usize) } else { O::IDENTITY };
    let inclusive = warp::scan::inclusive::<T, O>(sum);
    let total = warp::shuffle::shuffle_idx(inclusive, 31);
    let before = warp::shuffle::shuffle_idx(inclusive, warp.wrapping_sub(1) & 31);
    (if warp > 0 { before } else { O::IDENTITY }, total)
}
