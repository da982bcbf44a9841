//! The thread's index in the launch; barriers and fences.

use crate::atomic::{Ordering, Scope, fence};
use crate::sys;

macro_rules! coordinates {
    ($($x:ident $y:ident $z:ident $f:ident $what:literal;)*) => { $(
        #[doc = concat!($what, ", x.")]
        #[inline(always)]
        #[track_caller]
        pub fn $x() -> u32 { sys::$f(0) }
        #[doc = concat!($what, ", y.")]
        #[inline(always)]
        #[track_caller]
        pub fn $y() -> u32 { sys::$f(1) }
        #[doc = concat!($what, ", z.")]
        #[inline(always)]
        #[track_caller]
        pub fn $z() -> u32 { sys::$f(2) }
        #[doc = concat!($what, ": x, y, z.")]
        #[inline(always)]
        #[track_caller]
        pub fn $f() -> [u32; 3] { [$x(), $y(), $z()] }
    )* };
}
coordinates! {
    thread_idx_x thread_idx_y thread_idx_z thread_idx "Index of the thread in its block";
    block_idx_x block_idx_y block_idx_z block_idx "Index of the block in the grid";
    block_dim_x block_dim_y block_dim_z block_dim "Threads of a block";
    grid_dim_x grid_dim_y grid_dim_z grid_dim "Blocks of the grid";
}

/// Index of the thread in a one-dimensional launch. The product is 32-bit: for larger launches use
/// [`index_1d_u64`].
#[inline(always)]
#[track_caller]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Index of the thread in a one-dimensional launch.
#[inline(always)]
#[track_caller]
pub fn index_1d_u64() -> u64 {
    u64::from(block_idx_x()) * u64::from(block_dim_x()) + u64::from(thread_idx_x())
}

/// Index of the thread in a two-dimensional launch: x, y.
#[inline(always)]
#[track_caller]
pub fn index_2d() -> [u32; 2] {
    [index_1d(), block_idx_y() * block_dim_y() + thread_idx_y()]
}

/// Index of the thread in a three-dimensional launch: x, y, z.
#[inline(always)]
#[track_caller]
pub fn index_3d() -> [u32; 3] {
    let [x, y] = index_2d();
    [x, y, block_idx_z() * block_dim_z() + thread_idx_z()]
}

/// Index of the thread among all threads of the launch, block by block. The products are 32-bit.
#[inline(always)]
#[track_caller]
pub fn index() -> u32 {
    let linear = |[x, y, z]: [u32; 3], [width, height, _]: [u32; 3]| x + width * (y + height * z);
    let [width, height, depth] = block_dim();
    linear(block_idx(), grid_dim()) * (width * height * depth) + linear(thread_idx(), block_dim())
}

/// True for the first thread of the first block.
#[inline(always)]
#[track_caller]
pub fn first() -> bool {
    block_idx() == [0; 3] && thread_idx() == [0; 3]
}

/// Lanes of a warp.
#[inline(always)]
pub const fn warp_size() -> u32 {
    32
}

/// Waits for all threads of the block and orders their memory accesses before and after.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    sys::barrier_sync()
}

/// [`sync_threads`], returning the number of threads whose predicate is not 0.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: u32) -> u32 {
    sys::barrier_count(predicate != 0)
}

/// [`sync_threads`], returning 1 if all predicates are not 0, else 0.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: u32) -> u32 {
    sys::barrier_and(predicate != 0).into()
}

/// [`sync_threads`], returning 1 if any predicate is not 0, else 0.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: u32) -> u32 {
    sys::barrier_or(predicate != 0).into()
}

/// Orders memory accesses for observers in the block.
#[inline(always)]
#[track_caller]
pub fn block_fence() {
    fence(Ordering::AcqRel, Scope::Block)
}

/// Orders memory accesses for observers in the grid; the same as [`device_fence`].
#[inline(always)]
#[track_caller]
pub fn grid_fence() {
    device_fence()
}

/// Orders memory accesses for observers on the device.
#[inline(always)]
#[track_caller]
pub fn device_fence() {
    fence(Ordering::AcqRel, Scope::Device)
}

/// Orders memory accesses for observers on all devices and the host.
#[inline(always)]
#[track_caller]
pub fn system_fence() {
    fence(Ordering::AcqRel, Scope::System)
}

/// Sleeps for about this time, at most 1 ms.
#[inline(always)]
#[track_caller]
pub fn nanosleep(nanoseconds: u32) {
    sys::nanosleep(nanoseconds)
}

/// Marks a spin loop that waits for another thread. Put it into every spin loop: it lets the simulator run the other
/// thread, and keeps the compiler from merging the loop's loads.
#[inline(always)]
#[track_caller]
pub fn spin_hint() {
    sys::spin_hint()
}
