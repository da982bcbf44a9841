//! Predicates of one item, and comparisons of neighbors, as types.

use super::words::{Bits128, Words};

/// Says of an item whether it is taken, given a bound.
pub trait Predicate<T: Words>: 'static {
    /// True to take the item.
    fn holds(item: T, bound: T) -> bool;
}

/// Less than the bound; no NaN is.
#[derive(Clone, Copy, Debug)]
pub struct Below;

/// At least the bound; no NaN is.
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

/// Says whether an item belongs to the run of the item before it.
pub trait SameRun<T: Words>: 'static {
    /// True if `item` goes on with the run of `before`.
    fn same(before: T, item: T) -> bool;
}

/// All bits are equal. (So -0.0 and 0.0 differ.)
#[derive(Clone, Copy, Debug)]
pub struct EqualBits;

/// The upper 32 bits are equal: of (key, id) pairs in one word, the keys.
#[derive(Clone, Copy, Debug)]
pub struct EqualHigh;

impl SameRun<u32> for EqualBits {
    #[inline(always)]
    fn same(before: u32, item: u32) -> bool {
        before == item
    }
}

impl SameRun<u64> for EqualBits {
    #[inline(always)]
    fn same(before: u64, item: u64) -> bool {
        before == item
    }
}

impl SameRun<Bits128> for EqualBits {
    #[inline(always)]
    fn same(before: Bits128, item: Bits128) -> bool {
        // One test at the end: a branch between would cost more.
        (before.0 ^ item.0) | (before.1 ^ item.1) == 0
    }
}

impl SameRun<u64> for EqualHigh {
    #[inline(always)]
    fn same(before: u64, item: u64) -> bool {
        before >> 32 == item >> 32
    }
}
