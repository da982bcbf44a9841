//! The values that a sort carries along with its keys, by size.

use crate::plain::plain;
use cuda_std::shared::SharedElement;

/// A value that a sort moves along with a key: nothing, or 4, 8 or 16 bytes.
///
/// # Safety
/// The type has one of these sizes, and is aligned to it.
pub unsafe trait Carried: bytemuck::Pod + Send + Sync + SharedElement + cust_core::DeviceCopy {
    /// False for sorts of keys alone.
    const IS_CARRIED: bool = size_of::<Self>() > 0;
    /// A placeholder; its value does not matter.
    const ANY: Self;
}

/// The carried value of a sort of keys alone: no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoValue;

plain! { NoValue {} }
impl SharedElement for NoValue {}

// SAFETY: the type has no bytes.
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
