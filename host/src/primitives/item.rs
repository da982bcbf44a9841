//! Items that primitives only move: any plain type of 4, 8 or 16 bytes, as the bits that the kernels know.

use cuda_std::mem::{Slice, SliceMut};
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

/// The same memory as bits. Buffers and planned arrays begin at multiples of 256 bytes.
pub(crate) fn as_bits<T: Item>(items: Slice<'_, T>) -> Slice<'_, T::Bits> {
    // SAFETY: of the same size, and plain.
    unsafe { Slice::from_raw_parts(items.as_ptr().cast(), items.len()) }
}

/// The same memory as bits, to be written.
pub(crate) fn as_bits_mut<T: Item>(items: SliceMut<'_, T>) -> SliceMut<'_, T::Bits> {
    // SAFETY: as above.
    unsafe { SliceMut::from_raw_parts(items.as_ptr().cast(), items.len()) }
}
