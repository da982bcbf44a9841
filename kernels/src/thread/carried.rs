//! Keys of sorts and merges, with the values that they carry along.

use crate::plain::plain;
use cuda_std::prelude::*;
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

/// Keys and their values. Without values, for [`NoValue`], that view is empty.
#[derive(Clone, Copy, KernelArgs)]
pub struct Source<'a, K, V> {
    /// The keys.
    pub keys: Slice<'a, K>,
    /// A value per key.
    pub values: Slice<'a, V>,
}

/// Writable keys and values.
#[derive(Clone, Copy, KernelArgs)]
pub struct Pairs<'a, K, V> {
    /// The keys.
    pub keys: SliceMut<'a, K>,
    /// A value per key.
    pub values: SliceMut<'a, V>,
}

impl<'a, K> Source<'a, K, NoValue> {
    /// Returns keys alone.
    pub fn of_keys(keys: Slice<'a, K>) -> Self {
        // SAFETY: no value is ever accessed.
        Self { keys, values: unsafe { Slice::from_raw_parts(core::ptr::dangling(), 0) } }
    }
}

impl<'a, K> Pairs<'a, K, NoValue> {
    /// Returns an output for keys alone.
    pub fn of_keys(keys: SliceMut<'a, K>) -> Self {
        // SAFETY: no value is ever accessed.
        Self { keys, values: unsafe { SliceMut::from_raw_parts(core::ptr::dangling_mut(), 0) } }
    }
}

impl<K: Copy, V: Carried> Source<'_, K, V> {
    /// Returns `len` pairs from `begin` on.
    ///
    /// # Safety
    /// They are within the views.
    #[inline(always)]
    pub unsafe fn part(&self, begin: usize, len: usize) -> Self {
        let values = if V::IS_CARRIED { self.values.part(begin, len) } else { self.values };
        Self { keys: self.keys.part(begin, len), values }
    }

    /// Loads value `i`.
    ///
    /// # Safety
    /// There is a pair `i`.
    #[inline(always)]
    pub unsafe fn value(&self, i: usize) -> V {
        if V::IS_CARRIED { self.values.load(i) } else { V::ANY }
    }
}

impl<'a, K: Copy, V: Carried> Pairs<'a, K, V> {
    /// Returns the read-only views.
    #[inline(always)]
    pub fn read_only(&self) -> Source<'a, K, V> {
        Source { keys: self.keys.read_only(), values: self.values.read_only() }
    }

    /// Returns `len` pairs from `begin` on.
    ///
    /// # Safety
    /// They are within the views.
    #[inline(always)]
    pub unsafe fn part(&self, begin: usize, len: usize) -> Self {
        let values = if V::IS_CARRIED { self.values.part(begin, len) } else { self.values };
        Self { keys: self.keys.part(begin, len), values }
    }

    /// Stores pair `i`.
    ///
    /// # Safety
    /// There is a pair `i`, and no other thread accesses it.
    #[inline(always)]
    pub unsafe fn store(&self, i: usize, key: K, value: V) {
        self.keys.store(i, key);
        if V::IS_CARRIED {
            self.values.store(i, value);
        }
    }
}
