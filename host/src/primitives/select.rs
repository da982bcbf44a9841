//! Stable selection of the items that satisfy a flag or a predicate; together with the other items, a stable partition.
//!
//! Any number of items, including 0. The number of selected items stays on the device, in a buffer of one `u64`, so the
//! host does not wait. The output must have capacity for all items; entries behind the selected items are undefined.
//! The order of the input is kept, so results are the same on every run.
//!
//! Each item is read and written once (look-back between tiles: Merrill, Garland 2016).

use super::item::Item;
use super::pairs::empty_view;
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SELECT_ROWS;
pub use kauri_kernels::primitives::select::SelectPredicate;
pub(crate) use kauri_kernels::primitives::select::Selected;
use kauri_kernels::primitives::select::{
    Select as SelectArgs, primitives_select_flagged, primitives_select_if,
};
use kauri_kernels::thread::operator::Count;
use kauri_kernels::thread::words::{Words, join};
use kauri_kernels::warp::look_back::{Decoupled, LookBack};

/// The temporary memory of selections of up to a number of items.
pub(crate) struct Select {
    /// The ticket, then the words of the look-back.
    words: Region<u64>,
}

impl Select {
    /// Plans selections of `len` items of type `T`.
    pub(crate) fn plan<T: Words>(layout: &mut Layout, len: usize) -> Self {
        let num_tiles = len.div_ceil(tile_items::<T, SELECT_ROWS>());
        Self { words: layout.reserve(1 + Decoupled::num_words::<Count>(num_tiles)) }
    }

    /// Clears the words of the look-back, and returns the number of tiles and the arguments of a selection.
    pub(crate) fn prepare<'a, T: Words>(
        &self,
        temp: &Temp<'a>,
        input: Slice<'a, T>,
        to: Selected<'a, T>,
    ) -> Result<(u64, SelectArgs<'a, T>)> {
        temp.clear(self.words)?;
        let num_tiles = input.len().div_ceil(tile_items::<T, SELECT_ROWS>()) as u64;
        Ok((num_tiles, SelectArgs { input, to, words: temp.view(self.words) }))
    }

    /// Selects the items whose flag is not 0.
    ///
    /// # Safety
    /// All arrays have the planned length and do not overlap. Nothing else uses them until the stream has done the
    /// work.
    pub(crate) unsafe fn run_flagged<T: Words>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        flags: Slice<'_, u8>,
        to: Selected<'_, T>,
    ) -> Result<()> {
        let (num_tiles, select) = self.prepare(temp, input, to)?;
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe { temp.stream.launch::<primitives_select_flagged<T>>(num_tiles, (select, flags)) }
    }

    /// Selects the items that satisfy predicate `P`.
    ///
    /// # Safety
    /// Like [`run_flagged`](Self::run_flagged).
    pub(crate) unsafe fn run_if<T: Words, P: SelectPredicate<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        bound: T,
        to: Selected<'_, T>,
    ) -> Result<()> {
        let (num_tiles, select) = self.prepare(temp, input, to)?;
        let args = (select, join(bound.to_words()));
        // SAFETY: as above.
        unsafe { temp.stream.launch::<primitives_select_if<T, P>>(num_tiles, args) }
    }
}

/// Returns the bytes of temporary memory of a selection of `len` items.
pub fn plan<T: Item>(len: usize) -> u64 {
    bytes_of(|layout| Select::plan::<T::Bits>(layout, len))
}

/// Writes the items whose flag is not 0 to the front of `kept`, and their number to `count`.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless there are as many flags and outputs as items, and one count;
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of
/// the driver.
pub fn flagged<T: Item>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    flags: &Buffer<u8>,
    kept: &mut Buffer<T>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    select_flagged(stream, workspace, input, flags, kept, None, count)
}

/// Like [`flagged`]; also writes the items whose flag is 0 to the front of `others`, in input order.
///
/// # Errors
/// Like [`flagged`].
pub fn partition_flagged<T: Item>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    flags: &Buffer<u8>,
    kept: &mut Buffer<T>,
    others: &mut Buffer<T>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    select_flagged(stream, workspace, input, flags, kept, Some(others), count)
}

/// Writes the items that satisfy predicate `P` ([`Below`](super::predicate::Below) or
/// [`AtLeast`](super::predicate::AtLeast) the bound) to the front of `kept`, and their number to `count`.
///
/// # Errors
/// Like [`flagged`].
pub fn matching<T: Words, P: SelectPredicate<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    bound: T,
    kept: &mut Buffer<T>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    select_if::<T, P>(stream, workspace, input, bound, kept, None, count)
}

/// Like [`matching`]; also writes the other items to the front of `others`, in input order.
///
/// # Errors
/// Like [`flagged`].
pub fn partition<T: Words, P: SelectPredicate<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    bound: T,
    kept: &mut Buffer<T>,
    others: &mut Buffer<T>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    select_if::<T, P>(stream, workspace, input, bound, kept, Some(others), count)
}

fn select_flagged<T: Item>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    flags: &Buffer<u8>,
    kept: &mut Buffer<T>,
    others: Option<&mut Buffer<T>>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    flags.check(stream, "flags of a selection", input.len())?;
    if !has_items(stream, input, kept, others.as_deref(), count)? {
        return Ok(());
    }
    let plan = |layout: &mut _| Select::plan::<T::Bits>(layout, input.len());
    let (select, temp) = carve(stream, workspace, "select", plan)?;
    let to = Selected {
        kept: kept.bits_mut::<T::Bits>(),
        others: others.map_or(empty_view(), Buffer::bits_mut),
        count: count.slice_mut(),
    };
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { select.run_flagged(&temp, input.bits(), flags.slice(), to) }
}

fn select_if<T: Words, P: SelectPredicate<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    bound: T,
    kept: &mut Buffer<T>,
    others: Option<&mut Buffer<T>>,
    count: &mut Buffer<u64>,
) -> Result<()> {
    if !has_items(stream, input, kept, others.as_deref(), count)? {
        return Ok(());
    }
    let plan = |layout: &mut _| Select::plan::<T>(layout, input.len());
    let (select, temp) = carve(stream, workspace, "select", plan)?;
    let others = others.map_or(empty_view(), Buffer::slice_mut);
    let to = Selected { kept: kept.slice_mut(), others, count: count.slice_mut() };
    // SAFETY: as in `select_flagged`.
    unsafe { select.run_if::<T, P>(&temp, input.slice(), bound, to) }
}

/// Checks the lengths and devices of a selection's buffers. Returns false, and clears the count, if there are no items.
pub(super) fn has_items<T: cust_core::DeviceCopy>(
    stream: &Stream,
    input: &Buffer<T>,
    kept: &Buffer<T>,
    others: Option<&Buffer<T>>,
    count: &mut Buffer<u64>,
) -> Result<bool> {
    input.check_device(stream)?;
    kept.check(stream, "capacity for selected items", input.len())?;
    count.check(stream, "counts of a selection", 1)?;
    others.map_or(Ok(()), |others| others.check(stream, "capacity for the other items", input.len()))?;
    if input.is_empty() {
        count.fill_bytes(stream, 0)?;
    }
    Ok(!input.is_empty())
}
