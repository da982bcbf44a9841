//! What moves with a key.

use cuda_std::shared::SharedElement;

/// What moves with a key: nothing, or 4, 8 or 16 bytes.
pub trait Carried: Copy + Send + Sync + SharedElement + cust_core::DeviceCopy + 'static {
    /// False if there is nothing to move.
    const IS_CARRIED: bool = size_of::<Self>() > 0;
    /// Any value.
    const ANY: Self;
}

/// No value: keys alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoValue;

// SAFETY: there is nothing to copy.
unsafe impl cust_core::DeviceCopy for NoValue {}
impl SharedElement for NoValue {}

impl Carried for NoValue {
    const ANY: Self = NoValue;
}
impl Carried for u32 {
    const ANY: Self = 0;
}
impl Carried for u64 {
    const ANY: Self = 0;
}
impl Carried for u128 {
    const ANY: Self = 0;
}
