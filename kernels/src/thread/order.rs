//! Orders of items, as types: what merges and merge sorts compare by.

use super::coord::Coord;
use super::ranked::Ranked;
use super::words::{Bits128, Words};
use cuda_std::float::{f32_to_key, f64_to_key};
use cuda_std::mem::Slice;
use cuda_std::shared::SharedElement;

/// What moves with a key: nothing, or a number of 32 bits.
pub trait Carried: SharedElement + cust_core::DeviceCopy + Send + Sync + 'static {
    /// False if there is nothing to move.
    const IS_CARRIED: bool;
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
    const IS_CARRIED: bool = false;
    const ANY: Self = NoValue;
}

impl Carried for u32 {
    const IS_CARRIED: bool = true;
    const ANY: Self = 0;
}

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

/// Orders that look up nothing.
pub trait ByKey {}
impl ByKey for Ascending {}
impl ByKey for Descending {}

/// Points by the super key (Robinson, after Brown 2015): the key is the coordinate on the first axis and the value is the
/// point's id. Only where two keys are equal the points are looked up and compared on the axes behind it, around to the one
/// before it; equal points by id. -0.0 equals 0.0.
#[derive(Clone, Copy, Debug)]
pub struct SuperKey;

macro_rules! orders {
    ($($t:ty: $less:expr;)*) => { $(
        impl<V: Carried> Order<$t, V> for Ascending {
            const COMPARES_VALUES: bool = false;

            #[inline(always)]
            unsafe fn is_before(_: &Lookup<'_, $t>, a: ($t, V), b: ($t, V)) -> bool {
                $less(a.0, b.0)
            }
        }
        impl<V: Carried> Order<$t, V> for Descending {
            const COMPARES_VALUES: bool = false;

            #[inline(always)]
            unsafe fn is_before(_: &Lookup<'_, $t>, a: ($t, V), b: ($t, V)) -> bool {
                $less(b.0, a.0)
            }
        }
    )* };
}
orders! {
    u32: |a, b| a < b;
    i32: |a, b| a < b;
    u64: |a, b| a < b;
    i64: |a, b| a < b;
    f32: |a, b| f32_to_key(a) < f32_to_key(b);
    f64: |a, b| f64_to_key(a) < f64_to_key(b);
    Bits128: |a: Bits128, b| a.is_before(b);
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
