//! Pipelined copies of large arrays to and from the device through page-locked memory: one piece is written or read by
//! the CPU while another is copied.

use super::buffer::Buffer;
use super::driver::Transfer;
use super::event::Event;
use super::gpu::Gpu;
use super::pinned::PinnedBuffer;
use super::stream::Stream;
use crate::error::{Result, check_len};
use crate::memory::{self, Parts};
use crate::parallel::{self, Ranges};
use bytemuck::{NoUninit, Pod};
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use std::mem::MaybeUninit;
use std::slice;

/// The bytes of a piece, if memory allows.
const PIECE: usize = 16 << 20;
/// The smallest size of a piece, of which every size is a multiple.
const SMALLEST: usize = 4 << 10;
/// The bytes of a piece that one thread handles at a time.
const SHARE: usize = 256 << 10;

/// Arrays of at least this many bytes are copied through page-locked memory of `STAGED_BYTES`: with 32 MiB of it, 80 MB took 12 ms more
/// than without (`quadtree-gluck-h200`).
const STAGED_FROM: usize = 128_000_000;
pub(super) const STAGED_BYTES: u64 = 16 << 20;

/// Copies items in whole rows to a new buffer on the device of `stream`, large arrays through page-locked memory. Returns when the copy is
/// done.
pub(crate) fn upload<T: DeviceCopy + NoUninit + Send + Sync>(
    stream: &Stream,
    items: &[T],
    width: usize,
    label: &'static str,
) -> Result<Buffer<T>> {
    match size_of_val(items) {
        STAGED_FROM.. => Staging::within(stream.gpu(), STAGED_BYTES)?.upload_slice(items, width, label),
        _ => Buffer::from_slice(stream, items, label),
    }
}

/// Returns the items of a view after all earlier work of the stream, large arrays through page-locked memory.
///
/// # Safety
/// The view is in device memory that earlier work has written.
pub(crate) unsafe fn download<T: Pod + Send + Sync>(stream: &Stream, from: Slice<'_, T>) -> Result<Vec<T>> {
    // SAFETY: passed on to the caller.
    unsafe { download_by(stream, from, STAGED_FROM) }
}

/// # Safety
/// Like [`download`].
unsafe fn download_by<T: Pod + Send + Sync>(
    stream: &Stream,
    from: Slice<'_, T>,
    staged_from: usize,
) -> Result<Vec<T>> {
    if from.len() * size_of::<T>() < staged_from {
        // SAFETY: passed on to the caller.
        return unsafe { stream.read(from) };
    }
    let mut items = memory::vec_with_capacity(from.len(), "a copy of device memory")?;
    let parts = Parts::new(&mut items.spare_capacity_mut()[..from.len()]);
    // SAFETY: passed on to the caller. Each item is in one part, and is written before the call returns.
    unsafe {
        Staging::within(stream.gpu(), STAGED_BYTES)?.download(stream, from, 1, |first, copied| {
            parts.part(first..first + copied.len()).write_copy_of_slice(copied);
        })?;
        items.set_len(from.len());
    }
    Ok(items)
}

/// A stream with page-locked memory for two pieces.
#[derive(Debug)]
pub(crate) struct Staging {
    stream: Stream,
    pieces: [(PinnedBuffer<u8>, Event); 2],
}

impl Staging {
    /// Allocates page-locked memory, which takes as long as copying some hundred megabytes.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        Self::within(gpu, u64::MAX)
    }

    /// Like [`new`](Self::new), with at most `bytes` of page-locked memory, but at least 8192.
    pub(crate) fn within(gpu: &Gpu, bytes: u64) -> Result<Self> {
        let len = (bytes as usize / 2 / SMALLEST * SMALLEST).clamp(SMALLEST, PIECE);
        let piece =
            || Ok((PinnedBuffer::zeroed(gpu, len, "arrays on their way to the device")?, Event::new(gpu)?));
        Ok(Self { stream: Stream::new(gpu)?, pieces: [piece()?, piece()?] })
    }

    /// Returns the device.
    pub(crate) fn gpu(&self) -> &Gpu {
        self.stream.gpu()
    }

    /// Returns what copies of this many bytes go through; `None` for few bytes.
    pub(crate) fn for_bytes(gpu: &Gpu, bytes: usize) -> Result<Option<Self>> {
        (bytes >= STAGED_FROM).then(|| Self::within(gpu, STAGED_BYTES)).transpose()
    }

    /// Copies memory of another device to this one, piece by piece: one is written while the next is read. Returns when the copy is done.
    ///
    /// # Safety
    /// Both addresses are of live device memory, which no other work uses; `from` is on the device of `source`.
    pub(super) unsafe fn copy_from_device(
        &mut self,
        to: u64,
        source: &Gpu,
        from: u64,
        bytes: usize,
    ) -> Result<()> {
        // A separate stream, because other streams may copy from that device at the same time.
        let reading = Stream::new(source)?;
        // SAFETY: passed on to the caller; a piece is read into after its copy to the device, and freed after all copies.
        let copied =
            (0..bytes).step_by(self.pieces[0].0.len()).enumerate().try_for_each(|(round, begin)| unsafe {
                let (piece, copied) = &mut self.pieces[round % 2];
                let (len, at) = (piece.len().min(bytes - begin), piece.as_mut_ptr());
                copied.synchronize()?;
                let read = reading.transfer(Transfer::ToHost { to: at, from: from + begin as u64 }, len);
                reading.synchronize().and(read)?;
                self.stream.transfer(Transfer::ToDevice { to: to + begin as u64, from: at }, len)?;
                self.stream.record(copied)
            });
        // Also after an error, as in `upload`.
        self.stream.synchronize().and(copied)
    }

    /// Uploads `num_rows` rows of `width` items. `write(first_row, items)` writes complete rows from `first_row` on,
    /// and runs on several threads. Returns when the copy is done.
    pub(crate) fn upload<T: DeviceCopy + NoUninit + Send>(
        &mut self,
        num_rows: usize,
        width: usize,
        label: &'static str,
        write: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) -> Result<Buffer<T>> {
        let mut buffer = Buffer::<T>::uninitialized(self.stream.gpu(), num_rows * width, label)?;
        let copied = self.copy(buffer.slice_mut(), width, write);
        // Also after an error: the pieces and the buffer may be reused or freed afterwards.
        self.stream.synchronize()?;
        copied.map(|()| buffer)
    }

    /// Uploads items in whole rows; returns when the copy is done.
    pub(crate) fn upload_slice<T: DeviceCopy + NoUninit + Send + Sync>(
        &mut self,
        items: &[T],
        width: usize,
        label: &'static str,
    ) -> Result<Buffer<T>> {
        self.upload(items.len() / width, width, label, |first, to| {
            to.write_copy_of_slice(&items[first * width..][..to.len()]);
        })
    }

    /// Uploads items in whole rows to a view of the same length; returns when the copy is done.
    ///
    /// # Safety
    /// The view is in live device memory, which no other work uses.
    pub(crate) unsafe fn upload_to<T: DeviceCopy + NoUninit + Send + Sync>(
        &mut self,
        to: SliceMut<'_, T>,
        items: &[T],
        width: usize,
    ) -> Result<()> {
        check_len("items copied to device memory", to.len(), items.len())?;
        let copied = self.copy(to, width, |first, to| {
            to.write_copy_of_slice(&items[first * width..][..to.len()]);
        });
        // As in `upload`.
        self.stream.synchronize()?;
        copied
    }

    /// Downloads rows of `width` items, after all earlier work of `stream`. `read(first_row, items)` gets complete rows
    /// from `first_row` on, and runs on several threads. Returns when all rows have been read.
    ///
    /// # Safety
    /// The view is in device memory that has been written.
    pub(crate) unsafe fn download<T: Pod + Sync>(
        &mut self,
        stream: &Stream,
        from: Slice<'_, T>,
        width: usize,
        read: impl Fn(usize, &[T]) + Sync,
    ) -> Result<()> {
        self.stream.wait_for(stream)?;
        // SAFETY: passed on to the caller.
        let result = unsafe { self.read_pieces(from, width, read) };
        // Also after an error: a copy to a piece may still be running.
        self.stream.synchronize()?;
        result
    }

    /// # Safety
    /// Like [`download`](Self::download); after an error the caller waits for the stream before the pieces are reused
    /// or freed.
    unsafe fn read_pieces<T: Pod + Sync>(
        &mut self,
        from: Slice<'_, T>,
        width: usize,
        read: impl Fn(usize, &[T]) + Sync,
    ) -> Result<()> {
        let [len, share] = self.lens::<T>(width);
        let num_pieces = from.len().div_ceil(len);
        // One more round, in which the last piece is read.
        for round in 0..=num_pieces {
            if round < num_pieces {
                let begin = round * len;
                let (piece, copied) = &mut self.pieces[round % 2];
                let len = len.min(from.len() - begin);
                // SAFETY: passed on to the caller; the piece was read two rounds ago, and is read again after the copy.
                unsafe { self.stream.start_reading(from.part(begin, len), items(piece, len))? };
                self.stream.record(copied)?;
            }
            if let Some(before) = round.checked_sub(1) {
                let (piece, copied) = &mut self.pieces[before % 2];
                copied.synchronize()?;
                let begin = before * len;
                let items = &*items::<T>(piece, len.min(from.len() - begin));
                Ranges::new(items.len(), share).for_each(&|range| {
                    read((begin + range.start) / width, &items[range]);
                });
            }
        }
        Ok(())
    }

    /// Returns the number of items of a piece, and of a thread's share of it, in whole rows.
    fn lens<T>(&self, width: usize) -> [usize; 2] {
        [self.pieces[0].0.len(), SHARE].map(|bytes| bytes / size_of::<T>() / width * width)
    }

    fn copy<T: DeviceCopy + NoUninit + Send>(
        &mut self,
        to: SliceMut<'_, T>,
        width: usize,
        write: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) -> Result<()> {
        let [len, share] = self.lens::<T>(width);
        for (round, begin) in (0..to.len()).step_by(len).enumerate() {
            let len = len.min(to.len() - begin);
            let (piece, copied) = &mut self.pieces[round % 2];
            copied.synchronize()?;
            let bytes = &mut piece[..len * size_of::<T>()];
            // SAFETY: the slice has `len * size_of::<T>()` bytes and pinned memory is aligned for every item. Items have no padding, so
            // the bytes stay initialized when items are written over them.
            let items =
                unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<MaybeUninit<T>>(), len) };
            parallel::for_chunks(items, share, |i, items| write((begin + i * share) / width, items));
            // SAFETY: within the buffer; the piece is reused and freed only after the copy.
            unsafe { self.stream.start_writing(to.part(begin, len), bytes) }?;
            self.stream.record(copied)?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // If a callback panics, a copy to a piece may still be running. Its error is irrelevant then.
        let _ = self.stream.synchronize();
    }
}

/// Returns the first items of a piece, which is aligned for any item.
fn items<T: Pod>(piece: &mut PinnedBuffer<u8>, len: usize) -> &mut [T] {
    bytemuck::cast_slice_mut(&mut piece[..len * size_of::<T>()])
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::device::{Device, SimOptions};

    #[test]
    fn staged_copies_are_whole() -> Result<()> {
        let device = Device::sim(SimOptions::default())?;
        let stream = Stream::new(device.gpu().expect("the device is a GPU"))?;
        // More than one piece.
        let items: Vec<u32> = (0..(PIECE as u32 / 4 * 3 + 77)).collect();
        let buffer = Staging::within(stream.gpu(), STAGED_BYTES)?.upload_slice(&items, 1, "numbers")?;
        for staged_from in [0, usize::MAX] {
            // SAFETY: the buffer has been written.
            assert!(unsafe { download_by(&stream, buffer.slice(), staged_from)? } == items, "{staged_from}");
        }
        // SAFETY: there is nothing to read.
        assert!(unsafe { download_by(&stream, buffer.slice().part(0, 0), 0)? }.is_empty());
        Ok(())
    }
}
