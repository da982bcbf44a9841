//! Stable radix sort of keys, alone or with values, by onesweep: one pass over the keys counts all digits of 8 bits,
//! then one pass per digit reads and writes every item once (Adinets, Merrill 2022, *Onesweep: A Faster Least
//! Significant Digit Radix Sort for GPUs*). Results have the same bits on every run.
//!
//! | | |
//! |---|---|
//! | keys | `u32`, `u64`, `i32`, `i64`, `f32`, `f64` ([`SortKey`]); floats in IEEE 754's total order |
//! | values | none, or plain types of 4, 8 or 16 bytes ([`SortValue`]) |
//! | items | any number; up to 2^30 a little faster |
//! | temporary memory | one copy of the items, unless one digit suffices, and at most one byte per item (two for up to 2^17 items) |
//! | traffic | one read of the keys, then one read and one write of every item per 8 bits |
//!
//! To sort by a wider key, sort by its parts, the least significant part first: the sort is stable.

mod pair_sort;
mod passes;

pub(crate) use kauri_kernels::thread::radix_key::SortBy;
pub use kauri_kernels::thread::radix_key::{SortKey, SortValue};
pub(crate) use pair_sort::PairSort;
pub(crate) use passes::{RadixSort, Shape};

use super::pairs::{Pairs, Source, keys_to_sort, pairs_to_sort};
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Workspace};
use crate::error::{Error, Result};
use kauri_kernels::policy::RadixSortPolicy;
use kauri_kernels::thread::carried::{Carried, NoValue};
use kauri_kernels::thread::radix_key::{KeyOrder, RadixKey};
use std::ops::Range;

/// Options of the radix sort: the bits and the order of keys.
///
/// ```
/// use kauri::primitives::cpu;
/// use kauri::primitives::radix_sort::RadixSortOptions;
///
/// let (keys, mut sorted) = ([3.0f32, -1.0, 2.0], [0.0; 3]);
/// cpu::radix_sort::sort_keys(&keys, &mut sorted, &RadixSortOptions::default().descending(true))?;
/// assert_eq!(sorted, [3.0, 2.0, -1.0]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RadixSortOptions {
    /// The range of bits to sort by, counted from the lowest bit of the unsigned integer of the same order; all bits by
    /// default. Fewer bits need fewer passes. An empty range keeps the order of the items.
    pub bits: Option<Range<u32>>,
    /// Sorts in descending order. Equal keys keep the order of the input.
    pub descending: bool,
    /// Treats -0.0 and 0.0 as equal. By default -0.0 precedes 0.0. No effect on integers.
    pub equal_zeros: bool,
    /// The tile shape; by default the best known one.
    pub(crate) policy: Option<RadixSortPolicy>,
    /// Counts items in 64 bits even if they are few.
    pub(crate) wide: bool,
}

impl RadixSortOptions {
    setters! {
        /// Sets the range of bits.
        bits: Range<u32> = Some(bits);

        /// Sets whether the order is descending.
        descending: bool;

        /// Sets whether -0.0 equals 0.0.
        equal_zeros: bool;

        /// Sets the tile shape. Sorts return [`Error::InvalidLaunch`] for a shape without a kernel; see
        /// [`research::primitives`](crate::research::primitives) for the shapes that have one. Segmented sorts ignore it.
        #[cfg(feature = "research")]
        policy: RadixSortPolicy = Some(policy);

        /// Counts items in 64 bits even if they are few, as sorts of more than 2^30 items do. Segmented sorts ignore it.
        #[cfg(feature = "research")]
        wide: bool;
    }

    /// Returns the bits and the order by which keys of type `K` are sorted.
    pub(super) fn sort_by<K: SortKey>(&self) -> Result<SortBy> {
        let bits = K::Bits::BITS;
        let Range { start: begin_bit, end: end_bit } = self.bits.clone().unwrap_or(0..bits);
        if begin_bit > end_bit || end_bit > bits {
            return Err(Error::InvalidBits { begin: begin_bit, end: end_bit, bits });
        }
        let mut order = K::ORDER;
        if self.descending {
            order = order.with(KeyOrder::DESCENDING);
        }
        if self.equal_zeros && order.has(KeyOrder::FLOAT) {
            order = order.with(KeyOrder::EQUAL_ZEROS);
        }
        Ok(SortBy { begin_bit, end_bit, order })
    }

    fn shape<K, V>(&self, len: usize) -> Shape {
        let best = Shape::of::<K, V>(if self.wide { usize::MAX } else { len });
        Shape { policy: self.policy.unwrap_or(best.policy), wide: self.wide || best.wide }
    }
}

/// Returns the bytes of temporary memory that [`sort_keys`] takes for `len` keys.
///
/// # Errors
/// [`InvalidBits`](Error::InvalidBits).
pub fn plan_keys<K: SortKey>(len: usize, options: &RadixSortOptions) -> Result<u64> {
    let by = options.sort_by::<K>()?;
    Ok(bytes_of(|layout| Plan::<K::Bits, NoValue>::new(layout, len, by, options)))
}

/// Returns the bytes of temporary memory that [`sort_pairs`] takes for `len` pairs.
///
/// # Errors
/// [`InvalidBits`](Error::InvalidBits).
pub fn plan_pairs<K: SortKey, V: SortValue>(len: usize, options: &RadixSortOptions) -> Result<u64> {
    let by = options.sort_by::<K>()?;
    Ok(bytes_of(|layout| Plan::<K::Bits, V::Bits>::new(layout, len, by, options)))
}

/// Sorts `keys` into `sorted`. Enqueues the work on the stream and returns.
///
/// # Errors
/// [`Shape`](Error::Shape) if the lengths differ, [`InvalidBits`](Error::InvalidBits), [`WrongDevice`](Error::WrongDevice),
/// [`OutOfMemory`](Error::OutOfMemory), and errors of the driver.
pub fn sort_keys<K: SortKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    sorted: &mut Buffer<K>,
    options: &RadixSortOptions,
) -> Result<()> {
    let (from, to) = keys_to_sort(stream, keys, sorted)?;
    // SAFETY: the buffers are of one length and borrowed, and wait for the device before they are freed.
    unsafe { sort::<K::Bits, NoValue>(stream, workspace, from, to, options.sort_by::<K>()?, options) }
}

/// Sorts (key, value) pairs by their keys into `sorted_keys` and `sorted_values`. Enqueues the work on the stream and
/// returns.
///
/// # Errors
/// Like [`sort_keys`].
pub fn sort_pairs<K: SortKey, V: SortValue>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    values: &Buffer<V>,
    sorted_keys: &mut Buffer<K>,
    sorted_values: &mut Buffer<V>,
    options: &RadixSortOptions,
) -> Result<()> {
    let (from, to) = pairs_to_sort(stream, (keys, values), (sorted_keys, sorted_values))?;
    // SAFETY: as in `sort_keys`.
    unsafe { sort::<K::Bits, V::Bits>(stream, workspace, from, to, options.sort_by::<K>()?, options) }
}

/// The temporary memory of a sort between buffers.
struct Plan<K, V> {
    sort: RadixSort,
    /// The target of the passes that do not write to the output.
    keys: Region<K>,
    values: Region<V>,
}

impl<K: RadixKey, V: Carried> Plan<K, V> {
    fn new(layout: &mut Layout, len: usize, by: SortBy, options: &RadixSortOptions) -> Self {
        let passes = by.num_passes();
        let scratch_len = |needed: bool| if needed && passes > 1 { len } else { 0 };
        let len = if passes > 0 { len } else { 0 };
        let [sort] = RadixSort::plan(layout, len, [options.shape::<K, V>(len)]);
        let (keys, values) = (layout.reserve(scratch_len(true)), layout.reserve(scratch_len(V::IS_CARRIED)));
        Self { sort, keys, values }
    }
}

/// # Safety
/// Like [`RadixSort::run`].
unsafe fn sort<K: RadixKey, V: Carried>(
    stream: &Stream,
    workspace: &mut Workspace,
    from: Source<'_, K, V>,
    to: Pairs<'_, K, V>,
    by: SortBy,
    options: &RadixSortOptions,
) -> Result<()> {
    let (len, passes) = (from.keys.len(), by.num_passes());
    if len == 0 || passes == 0 {
        // SAFETY: passed on to the caller.
        return unsafe {
            stream.copy(to.keys, from.keys)?;
            stream.copy(to.values, from.values)
        };
    }
    let plan = |layout: &mut _| Plan::<K, V>::new(layout, len, by, options);
    let (plan, temp) = carve(stream, workspace, "radix sort", plan)?;
    let scratch = Pairs { keys: temp.view(plan.keys), values: temp.view(plan.values) };
    // The last pass writes to the output.
    let targets = if passes % 2 == 1 { [to, scratch] } else { [scratch, to] };
    // SAFETY: passed on to the caller; only this plan uses the scratch memory.
    unsafe { plan.sort.run(&temp, by, from, targets)? };
    Ok(())
}
