//! Large arrays on their way to the device and back by way of page-locked memory, piece after piece: one is made, or taken, while another
//! is copied.

use super::buffer::Buffer;
use super::event::Event;
use super::gpu::Gpu;
use super::pinned::PinnedBuffer;
use super::stream::Stream;
use crate::error::Result;
use bytemuck::{NoUninit, Pod};
use cuda_std::mem::Slice;
use cust_core::DeviceCopy;
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::slice;

/// Bytes of a piece, where there is room.
const PIECE: usize = 16 << 20;
/// A piece has a multiple of that.
const SMALLEST: usize = 4 << 10;
/// Bytes of it that one thread makes at a time.
const SHARE: usize = 256 << 10;

/// A stream, and page-locked memory for two pieces.
#[derive(Debug)]
pub(crate) struct Staging {
    stream: Stream,
    pieces: [(PinnedBuffer<u8>, Event); 2],
}

impl Staging {
    /// Locks memory, which takes as long as copying some hundred megabytes.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        Self::within(gpu, u64::MAX)
    }

    /// The same with no more bytes locked than that, at least 8192.
    pub(crate) fn within(gpu: &Gpu, bytes: u64) -> Result<Self> {
        let len = (bytes as usize / 2 / SMALLEST * SMALLEST).clamp(SMALLEST, PIECE);
        let piece =
            || Ok((PinnedBuffer::zeroed(gpu, len, "arrays on their way to the device")?, Event::new(gpu)?));
        Ok(Self { stream: Stream::new(gpu)?, pieces: [piece()?, piece()?] })
    }

    /// `num_rows` rows of `width` items on the device, of which `make` writes all of some from one on; returns when they are there.
    pub(crate) fn upload<T: DeviceCopy + NoUninit + Send>(
        &mut self,
        num_rows: usize,
        width: usize,
        label: &'static str,
        make: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) -> Result<Buffer<T>> {
        let mut buffer = Buffer::<T>::uninitialized(self.stream.gpu(), num_rows * width, label)?;
        let copied = self.copy(&mut buffer, width, make);
        // In any case: pieces are free again then, and so is the buffer.
        self.stream.synchronize()?;
        copied.map(|()| buffer)
    }

    /// Items on the device, copied there in whole rows; returns when they are there.
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

    /// Shows `num_rows` rows of `width` items of the device, after the work of `stream` so far: `take` is given all of some from one on.
    /// Returns when all have been taken.
    ///
    /// # Safety
    /// The view is of device memory that has been written.
    pub(crate) unsafe fn download<T: Pod + Sync>(
        &mut self,
        stream: &Stream,
        from: Slice<'_, T>,
        width: usize,
        take: impl Fn(usize, &[T]) + Sync,
    ) -> Result<()> {
        self.stream.wait_for(stream)?;
        // SAFETY: passed on to the caller.
        let taken = unsafe { self.take_pieces(from, width, take) };
        // In any case: behind an error a copy to a piece may be under way.
        self.stream.synchronize()?;
        taken
    }

    /// # Safety
    /// As [`download`](Self::download); behind an error the stream is waited for before the pieces are used again or freed.
    unsafe fn take_pieces<T: Pod + Sync>(
        &mut self,
        from: Slice<'_, T>,
        width: usize,
        take: impl Fn(usize, &[T]) + Sync,
    ) -> Result<()> {
        let [len, share] = self.lens::<T>(width);
        let num_pieces = from.len().div_ceil(len);
        // One more turn, in which the last piece is taken.
        for turn in 0..=num_pieces {
            if turn < num_pieces {
                let begin = turn * len;
                let (piece, copied) = &mut self.pieces[turn % 2];
                let len = len.min(from.len() - begin);
                // SAFETY: passed on to the caller; the piece was taken two turns ago, and is looked at when it has been copied.
                unsafe { self.stream.start_reading(from.part(begin, len), items(piece, len))? };
                self.stream.record(copied)?;
            }
            if let Some(before) = turn.checked_sub(1) {
                let (piece, copied) = &mut self.pieces[before % 2];
                copied.synchronize()?;
                let begin = before * len;
                items::<T>(piece, len.min(from.len() - begin))
                    .par_chunks(share)
                    .enumerate()
                    .for_each(|(i, items)| take((begin + i * share) / width, items));
            }
        }
        Ok(())
    }

    /// Items of a piece, and of a thread's share of it: whole rows.
    fn lens<T>(&self, width: usize) -> [usize; 2] {
        [self.pieces[0].0.len(), SHARE].map(|bytes| bytes / size_of::<T>() / width * width)
    }

    fn copy<T: DeviceCopy + NoUninit + Send>(
        &mut self,
        to: &mut Buffer<T>,
        width: usize,
        make: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) -> Result<()> {
        let [len, share] = self.lens::<T>(width);
        let to = to.slice_mut();
        for (turn, begin) in (0..to.len()).step_by(len).enumerate() {
            let len = len.min(to.len() - begin);
            let (piece, copied) = &mut self.pieces[turn % 2];
            copied.synchronize()?;
            let bytes = &mut piece[..len * size_of::<T>()];
            // SAFETY: the slice has `len * size_of::<T>()` bytes and pinned memory is aligned for every item. Items have no padding, so
            // the bytes stay initialized when items are written over them.
            let items =
                unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<MaybeUninit<T>>(), len) };
            items.par_chunks_mut(share).enumerate().for_each(|(i, items)| {
                make((begin + i * share) / width, items);
            });
            // SAFETY: within the buffer; the piece is written again, and freed, when it has been copied.
            unsafe { self.stream.start_writing(to.part(begin, len), bytes) }?;
            self.stream.record(copied)?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // If what takes items panics, a copy to a piece may be under way. Its error is of no interest any more.
        let _ = self.stream.synchronize();
    }
}

/// The first items of a piece, which begins where any item may.
fn items<T: Pod>(piece: &mut PinnedBuffer<u8>, len: usize) -> &mut [T] {
    bytemuck::cast_slice_mut(&mut piece[..len * size_of::<T>()])
}
