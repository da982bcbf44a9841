//! What moves with a key.

use crate::plain::plain;
use cuda_std::shared::SharedElement;

/// What moves with a key: nothing, or 4, 8 or 16 bytes.
///
/// # Safety
/// It has one of these sizes, and is aligned to it.
pub unsafe trait Carried: bytemuck::Pod + Send + Sync + SharedElement + cust_core::DeviceCopy {
    /// False if there is nothing to move.
    const IS_CARRIED: bool = size_of::<Self>() > 0;
    /// Any value.
    const ANY: Self;
}

/// No value: keys alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoValue;

plain! { NoValue {} }
impl SharedElement for NoValue {}

// SAFETY: nothing.
unsafe impl Carried for NoValue {
    const ANY: Self = NoValue;
}
// SAFETY: 4 bytes.
unsafe impl Carried for u32 {
    const ANY: Self = 0;
}
// SAFETY: 8 bytes.
unsafe impl Carried for u64 {
    const ANY: Self = 0;
}
// SAFETY: 16 bytes.
unsafe impl Carried for u128 {
    const ANY: Self = 0;
}
