//! Items that primitives only move: any plain type of 4, 8 or 16 bytes, as the bits that the kernels know.

use cust_core::DeviceCopy;
use kauri_kernels::thread::operator::Affine;
pub use kauri_kernels::thread::words::Bits128;
use kauri_kernels::thread::words::Words;

/// A plain item of 4, 8 or 16 bytes.
///
/// # Safety
/// `Bits` has the size of the item, and the item has no padding.
pub unsafe trait Item: DeviceCopy + Send + Sync + 'static {
    /// What the kernels take it for.
    type Bits: Words;
}

macro_rules! items {
    ($($bits:ty: $($t:ty),*;)*) => { $($(
        // SAFETY: plain numbers and arrays of them, of the same size.
        unsafe impl Item for $t {
            type Bits = $bits;
        }
        const _: () = assert!(size_of::<$t>() == size_of::<$bits>());
    )*)* };
}
items! {
    u32: u32, i32, f32;
    u64: u64, i64, f64, [u32; 2], [i32; 2], [f32; 2];
    Bits128: Bits128, Affine, [u32; 4], [i32; 4], [f32; 4], [u64; 2], [i64; 2], [f64; 2];
}
