//! Orders of (key, value) pairs, as types: the comparisons of merges and merge sorts.

pub use super::carried::{Carried, NoValue};
use super::coord::Float;
use super::radix_key::{Fold, SortKey};
use super::ranked::Ranked;
use super::words::{Bits128, Words};
use cuda_std::prelude::*;

/// Data that an order looks up while it compares: the coordinates of points. Most orders look up nothing.
#[derive(Clone, Copy, KernelArgs)]
pub struct Lookup<'a, K> {
    /// The coordinates, `dims` per point.
    pub coords: Slice<'a, K>,
    /// Coordinates of a point.
    pub dims: u32,
    /// The first axis of the comparison.
    pub axis: u32,
}

/// A strict weak order of (key, value) pairs. Merges and sorts are stable: pairs that compare equal keep their order.
pub trait Order<K: Words, V: Carried>: 'static {
    /// False if the order ignores values. They are then not loaded for comparisons.
    const COMPARES_VALUES: bool = true;

    /// Converts a loaded key to its compared form. The default returns it unchanged.
    #[inline(always)]
    fn loaded(_fold: Fold, key: K) -> K {
        key
    }

    /// Converts a compared key back to its stored form. The default returns it unchanged.
    #[inline(always)]
    fn stored(_fold: Fold, key: K) -> K {
        key
    }

    /// Returns true if `a` has to come before `b`.
    ///
    /// # Safety
    /// `lookup` has the data that the pairs refer to.
    unsafe fn is_before(lookup: &Lookup<'_, K>, a: (K, V), b: (K, V)) -> bool;
}

/// The smallest key first; floats in IEEE 754's total order.
#[derive(Clone, Copy, Debug)]
pub struct Ascending;

/// The largest key first; floats in IEEE 754's total order.
#[derive(Clone, Copy, Debug)]
pub struct Descending;

/// [`Ranked`] items, the best first.
#[derive(Clone, Copy, Debug)]
pub struct ByRank;

/// Marks orders that look up nothing. Implementing it for your own order is unsafe:
///
/// ```compile_fail,E0200
/// struct Own;
/// impl kauri_kernels::thread::order::ByKey for Own {}
/// ```
///
/// # Safety
/// [`Order::is_before`] does not read its `lookup` argument, which may be empty.
pub unsafe trait ByKey {}
// SAFETY: the order compares keys only.
unsafe impl ByKey for Ascending {}
// SAFETY: as above.
unsafe impl ByKey for Descending {}

/// Points by the super key (Robinson, after Brown 2015). The key is the coordinate on the first axis and the value is
/// the point's id. Points whose keys are equal are compared on the following axes, cyclically, then by id. -0.0 equals
/// 0.0.
#[derive(Clone, Copy, Debug)]
pub struct SuperKey;

impl<K: SortKey, V: Carried> Order<K, V> for Ascending {
    const COMPARES_VALUES: bool = false;

    #[inline(always)]
    fn loaded(fold: Fold, key: K) -> K {
        K::from_bits(fold.fold(key.to_bits()))
    }
    #[inline(always)]
    fn stored(fold: Fold, key: K) -> K {
        K::from_bits(fold.unfold(key.to_bits()))
    }
    #[inline(always)]
    unsafe fn is_before(_: &Lookup<'_, K>, a: (K, V), b: (K, V)) -> bool {
        a.0.folded() < b.0.folded()
    }
}

impl<V: Carried> Order<Bits128, V> for Ascending {
    const COMPARES_VALUES: bool = false;

    #[inline(always)]
    unsafe fn is_before(_: &Lookup<'_, Bits128>, a: (Bits128, V), b: (Bits128, V)) -> bool {
        a.0.is_before(b.0)
    }
}

impl<R: Ranked, V: Carried> Order<R, V> for ByRank {
    const COMPARES_VALUES: bool = false;

    #[inline(always)]
    unsafe fn is_before(_: &Lookup<'_, R>, a: (R, V), b: (R, V)) -> bool {
        a.0.is_before(b.0)
    }
}

impl<K: Words, V: Carried> Order<K, V> for Descending
where
    Ascending: Order<K, V>,
{
    const COMPARES_VALUES: bool = false;

    #[inline(always)]
    unsafe fn is_before(lookup: &Lookup<'_, K>, a: (K, V), b: (K, V)) -> bool {
        Ascending::is_before(lookup, b, a)
    }
}

impl<C: Float + Words> Order<C, u32> for SuperKey {
    #[inline(always)]
    unsafe fn is_before(lookup: &Lookup<'_, C>, a: (C, u32), b: (C, u32)) -> bool {
        let (key_a, key_b) = (a.0.key(), b.0.key());
        if key_a != key_b { key_a < key_b } else { is_before_on_other_axes(lookup, a.1, b.1) }
    }
}

/// Returns true if point `a` precedes point `b`, given that their coordinates on the first axis are equal.
#[inline(always)]
unsafe fn is_before_on_other_axes<C: Float>(lookup: &Lookup<'_, C>, a: u32, b: u32) -> bool {
    let Lookup { coords, dims, axis } = *lookup;
    let mut offset = 1;
    while offset < dims {
        let other_axis = if axis + offset < dims { axis + offset } else { axis + offset - dims } as usize;
        let key_a = coords.load(a as usize * dims as usize + other_axis).key();
        let key_b = coords.load(b as usize * dims as usize + other_axis).key();
        if key_a != key_b {
            return key_a < key_b;
        }
        offset += 1;
    }
    a < b
}
