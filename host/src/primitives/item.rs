//! Items that primitives only move: plain types of 4, 8 or 16 bytes, passed to the kernels as bits.

use bytemuck::Pod;
use cust_core::DeviceCopy;
use kauri_kernels::thread::operator::Affine;
pub use kauri_kernels::thread::words::Bits128;
use kauri_kernels::thread::words::Words;

/// A plain item of 4, 8 or 16 bytes.
pub trait Item: DeviceCopy + Pod + Send + Sync {
    /// The type that the kernels use, of the item's size; otherwise calls do not compile.
    type Bits: Words;
}

macro_rules! items {
    ($($bits:ty: $($t:ty),*;)*) => { $($(
        impl Item for $t {
            type Bits = $bits;
        }
    )*)* };
}
items! {
    u32: u32, i32, f32;
    u64: u64, i64, f64, [u32; 2], [i32; 2], [f32; 2];
    Bits128: Bits128, Affine, [u32; 4], [i32; 4], [f32; 4], [u64; 2], [i64; 2], [f64; 2];
}
