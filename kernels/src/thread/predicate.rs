//! Predicates of one item, and comparisons of adjacent items, as types.

use super::radix_key::RadixKey;
use super::words::{Bits128, Words};

/// Decides whether an item is selected, given a bound.
pub trait Predicate<T: Words>: 'static {
    /// Returns true to select the item.
    fn holds(item: T, bound: T) -> bool;
}

/// Selects items less than the bound, and no NaN.
#[derive(Clone, Copy, Debug)]
pub struct Below;

/// Selects items not less than the bound, and no NaN.
#[derive(Clone, Copy, Debug)]
pub struct AtLeast;

impl<T: Words + PartialOrd> Predicate<T> for Below {
    #[inline(always)]
    fn holds(item: T, bound: T) -> bool {
        item < bound
    }
}

impl<T: Words + PartialOrd> Predicate<T> for AtLeast {
    #[inline(always)]
    fn holds(item: T, bound: T) -> bool {
        item >= bound
    }
}

/// Decides whether two adjacent items belong to the same run.
pub trait SameRun<T: Words>: 'static {
    /// Returns true if `item` continues the run of `before`.
    fn same(before: T, item: T) -> bool;
}

/// Runs of items whose bits are all equal. (-0.0 and 0.0 differ.)
#[derive(Clone, Copy, Debug)]
pub struct EqualBits;

/// Runs of items whose upper 32 bits are equal: (key, id) pairs in one word, by key.
#[derive(Clone, Copy, Debug)]
pub struct EqualHigh;

impl<T: RadixKey> SameRun<T> for EqualBits {
    #[inline(always)]
    fn same(before: T, item: T) -> bool {
        before == item
    }
}

impl SameRun<Bits128> for EqualBits {
    #[inline(always)]
    fn same(before: Bits128, item: Bits128) -> bool {
        // One test at the end is cheaper than a branch in between.
        (before.0 ^ item.0) | (before.1 ^ item.1) == 0
    }
}

impl SameRun<u64> for EqualHigh {
    #[inline(always)]
    fn same(before: u64, item: u64) -> bool {
        before >> 32 == item >> 32
    }
}
