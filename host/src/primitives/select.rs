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
use cust_core::DeviceCopy;
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
    select_flagged(stream, workspace, input, flags, Output { kept, others: None, count })
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
    select_flagged(stream, workspace, input, flags, Output { kept, others: Some(others), count })
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
    select_if::<T, P>(stream, workspace, input, bound, Output { kept, others: None, count })
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
    select_if::<T, P>(stream, workspace, input, bound, Output { kept, others: Some(others), count })
}

/// The buffers that a selection writes.
pub(super) struct Output<'a, T: DeviceCopy> {
    pub(super) kept: &'a mut Buffer<T>,
    pub(super) others: Option<&'a mut Buffer<T>>,
    pub(super) count: &'a mut Buffer<u64>,
}

fn select_flagged<T: Item>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    flags: &Buffer<u8>,
    output: Output<'_, T>,
) -> Result<()> {
    flags.check(stream, "flags of a selection", input.len())?;
    select::<T, T::Bits>(stream, workspace, "select", input, output, |num_tiles, select| {
        // SAFETY: there is a flag per item; otherwise as stated in `select`.
        unsafe { stream.launch::<primitives_select_flagged<T::Bits>>(num_tiles, (select, flags.slice())) }
    })
}

fn select_if<T: Words, P: SelectPredicate<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    bound: T,
    output: Output<'_, T>,
) -> Result<()> {
    select::<T, T>(stream, workspace, "select", input, output, |num_tiles, select| {
        let args = (select, join(bound.to_words()));
        // SAFETY: as stated in `select`.
        unsafe { stream.launch::<primitives_select_if<T, P>>(num_tiles, args) }
    })
}

/// Checks the buffers of a selection, and passes the number of tiles and the arguments of its kernel to `launch`, unless there are no items.
///
/// The lengths agree, the borrows keep buffers apart, buffers wait for the device before they are freed, and the words of the look-back are
/// zeros.
pub(super) fn select<T: DeviceCopy, B: Words>(
    stream: &Stream,
    workspace: &mut Workspace,
    label: &'static str,
    input: &Buffer<T>,
    Output { kept, others, count }: Output<'_, T>,
    launch: impl FnOnce(u64, SelectArgs<'_, B>) -> Result<()>,
) -> Result<()> {
    if !has_items(stream, input, kept, others.as_deref(), count)? {
        return Ok(());
    }
    let plan = |layout: &mut _| Select::plan::<B>(layout, input.len());
    let (select, temp) = carve(stream, workspace, label, plan)?;
    let others = others.map_or(empty_view(), Buffer::bits_mut);
    let to = Selected { kept: kept.bits_mut(), others, count: count.slice_mut() };
    let (num_tiles, select) = select.prepare(&temp, input.bits(), to)?;
    launch(num_tiles, select)
}

/// Checks the lengths and devices of a selection's buffers. Returns false, and clears the count, if there are no items.
pub(super) fn has_items<T: DeviceCopy>(
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
