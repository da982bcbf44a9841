//! Orders of items, as types: what merges and merge sorts compare by.

pub use super::carried::{Carried, NoValue};
use super::coord::Coord;
use super::radix_key::{Fold, SortKey};
use super::ranked::Ranked;
use super::words::{Bits128, Words};
use cuda_std::mem::Slice;

/// What an order looks up: points, as the coordinates of one after the other. Most orders look up nothing.
#[derive(Clone, Copy)]
pub struct Lookup<'a, K> {
    /// `dims` coordinates a point.
    pub coords: Slice<'a, K>,
    /// Coordinates of a point.
    pub dims: u32,
    /// The coordinate that comes first.
    pub axis: u32,
}

/// A strict weak order of pairs of a key and a value. Merges and sorts keep the order of pairs of which neither is before
/// the other.
pub trait Order<K: Words, V: Carried>: 'static {
    /// False if values never decide: then nobody fetches them to compare.
    const COMPARES_VALUES: bool = true;

    /// The key as it is compared, of one that was loaded: as here, if the order does not care about the fold.
    #[inline(always)]
    fn loaded(_fold: Fold, key: K) -> K {
        key
    }

    /// The key as it is stored, of one that was compared.
    #[inline(always)]
    fn stored(_fold: Fold, key: K) -> K {
        key
    }

    /// True if `a` has to come before `b`.
    ///
    /// # Safety
    /// What the pairs refer to can be looked up.
    unsafe fn is_before(lookup: &Lookup<'_, K>, a: (K, V), b: (K, V)) -> bool;
}

/// The smallest key first; floats in IEEE 754's total order.
#[derive(Clone, Copy, Debug)]
pub struct Ascending;

/// The largest key first; floats in IEEE 754's total order.
#[derive(Clone, Copy, Debug)]
pub struct Descending;

/// Ranks with ids, the best first.
#[derive(Clone, Copy, Debug)]
pub struct ByRank;

/// Orders that look up nothing. To say so of one of your own is unsafe:
///
/// ```compile_fail,E0200
/// struct Own;
/// impl kauri_kernels::thread::order::ByKey for Own {}
/// ```
///
/// # Safety
/// [`Order::is_before`] does not read what it is given to look up: there is none.
pub unsafe trait ByKey {}
// SAFETY: it compares keys.
unsafe impl ByKey for Ascending {}
// SAFETY: as above.
unsafe impl ByKey for Descending {}

/// Points by the super key (Robinson, after Brown 2015): the key is the coordinate on the first axis and the value is the
/// point's id. Only where two keys are equal the points are looked up and compared on the axes behind it, around to the one
/// before it; equal points by id. -0.0 equals 0.0.
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

impl<C: Coord + Words> Order<C, u32> for SuperKey {
    #[inline(always)]
    unsafe fn is_before(lookup: &Lookup<'_, C>, a: (C, u32), b: (C, u32)) -> bool {
        let (key_a, key_b) = (a.0.key(), b.0.key());
        if key_a != key_b { key_a < key_b } else { is_before_beyond(lookup, a.1, b.1) }
    }
}

/// The order of points that agree on the first axis.
#[inline(always)]
unsafe fn is_before_beyond<C: Coord>(lookup: &Lookup<'_, C>, a: u32, b: u32) -> bool {
    let Lookup { coords, dims, axis } = *lookup;
    let mut other = 1;
    while other < dims {
        let at = if axis + other < dims { axis + other } else { axis + other - dims } as usize;
        let key_a = coords.load(a as usize * dims as usize + at).key();
        let key_b = coords.load(b as usize * dims as usize + at).key();
        if key_a != key_b {
            return key_a < key_b;
        }
        other += 1;
    }
    a < b
}
