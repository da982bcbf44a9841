//! Stable partition of many segments: the items of every segment ordered by class, first class 0, then class 1, then
//! all others. Segments may have any length.
//!
//! A class is a byte per item. The first pass turns the classes into bits with ranks; the second pass moves every item
//! independently by its rank. The passes read and write 2 n items, n bytes of classes and about n bytes of ranks.
//! Results are the same on every run. (For two separate outputs, [`select::partition`](super::select::partition) needs
//! only one pass.)

use super::item::Item;
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{PARTITION_ITEMS, TILE_THREADS};
use kauri_kernels::primitives::partition::{
    Mark, TILE_WORDS, primitives_partition_counts, primitives_partition_mark, primitives_partition_move,
};
use kauri_kernels::thread::operator::Counts;
use kauri_kernels::thread::ranks::num_words;
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::{Decoupled, LookBack};

/// The temporary memory of partitions of up to a number of items: the ranks of their classes, by which any number of
/// arrays can be moved.
pub(crate) struct Partition {
    /// Two bit planes, for the classes 0 and 1.
    bits: Region<u32>,
    before: Region<u64>,
    /// The ticket, then the words of the look-back.
    words: Region<u64>,
    num_tiles: usize,
}

impl Partition {
    /// Plans partitions of `len` items.
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        let num_tiles = num_words(len).div_ceil(TILE_WORDS);
        Self {
            bits: layout.reserve(2 * num_words(len)),
            before: layout.reserve(2 * num_words(len)),
            words: layout.reserve(1 + Decoupled::num_words::<Counts>(num_tiles)),
            num_tiles,
        }
    }

    /// Computes the ranks of as many classes as planned.
    ///
    /// # Safety
    /// Nothing else writes the classes until the stream has done the work.
    pub(crate) unsafe fn mark(&self, temp: &Temp<'_>, classes: Slice<'_, u8>) -> Result<()> {
        temp.clear(self.words)?;
        let [before, words] = [self.before, self.words].map(|array| temp.view(array));
        let mark = Mark { classes, bits: temp.view(self.bits), before, words };
        // SAFETY: passed on to the caller; the words are zeros, and the look-back needs no more.
        unsafe { temp.stream.launch::<primitives_partition_mark>(self.num_tiles as u64, (mark,)) }
    }

    /// Moves as many items as were ranked. Segments begin at `offsets`, the first one at 0.
    ///
    /// # Safety
    /// Input and output do not overlap, and nothing else uses them until the stream has done the work.
    pub(crate) unsafe fn move_items<T: Words>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        offsets: Slice<'_, u64>,
        output: SliceMut<'_, T>,
    ) -> Result<()> {
        let block_items = (TILE_THREADS * PARTITION_ITEMS) as u64;
        let num_blocks = (input.len() as u64).div_ceil(block_items);
        let (bits, before) = (temp.view(self.bits).read_only(), temp.view(self.before).read_only());
        // SAFETY: passed on to the caller.
        unsafe {
            temp.stream
                .launch::<primitives_partition_move<T>>(num_blocks, (input, bits, before, offsets, output))
        }
    }

    /// Writes the numbers of items of the classes 0 and 1 of every segment.
    ///
    /// # Safety
    /// `counts` has two entries per segment, and nothing else uses it until the stream has done the work.
    pub(crate) unsafe fn counts(
        &self,
        temp: &Temp<'_>,
        offsets: Slice<'_, u64>,
        counts: SliceMut<'_, u64>,
        num_items: usize,
    ) -> Result<()> {
        let (bits, before) = (temp.view(self.bits).read_only(), temp.view(self.before).read_only());
        let args = (bits, before, offsets, counts, num_items as u64);
        // SAFETY: passed on to the caller.
        unsafe { temp.stream.launch_items::<primitives_partition_counts>(offsets.len() as u64, args) }
    }
}

/// Returns the bytes of temporary memory for `len` items.
pub fn plan(len: usize) -> u64 {
    bytes_of(|layout| Partition::plan(layout, len))
}

/// Orders every segment by the classes of its items, and writes to `counts`, for each segment, how many items are of
/// class 0 and how many of class 1.
///
/// `offsets` has the begin of each segment and, at the end, the number of items; it ascends from 0. (With other offsets
/// the output is undefined.)
///
/// # Errors
/// [`Error::Shape`] unless there are as many classes and outputs as items, at least one offset, and two counts per
/// segment; [`Error::WrongDevice`], [`Error::OutOfMemory`], and errors of the driver.
pub fn by_class<T: Item>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    classes: &Buffer<u8>,
    offsets: &Buffer<u64>,
    output: &mut Buffer<T>,
    counts: &mut Buffer<u64>,
) -> Result<()> {
    input.check_device(stream)?;
    classes.check(stream, "classes of a partition", input.len())?;
    output.check(stream, "items of a partition's output", input.len())?;
    let starts = starts(stream, offsets)?;
    counts.check(stream, "counts of a partition", 2 * starts.len())?;
    if starts.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| Partition::plan(layout, input.len());
    let (partition, temp) = carve(stream, workspace, "partition", plan)?;
    let num_items = input.len();
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe {
        partition.mark(&temp, classes.slice())?;
        let (input, output) = (input.bits::<T::Bits>(), output.bits_mut());
        partition.move_items(&temp, input, starts, output)?;
        partition.counts(&temp, starts, counts.slice_mut(), num_items)
    }
}

/// Returns the begins of the segments: all offsets but the last.
pub(super) fn starts<'a>(stream: &Stream, offsets: &'a Buffer<u64>) -> Result<Slice<'a, u64>> {
    offsets.check_device(stream)?;
    match offsets.len().checked_sub(1) {
        // SAFETY: within the buffer.
        Some(num_segments) => Ok(unsafe { offsets.slice().part(0, num_segments) }),
        None => Err(Error::Shape { what: "offsets, one more than segments", expected: 1, got: 0 }),
    }
}
