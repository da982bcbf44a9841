//! Large arrays on their way to the device by way of page-locked memory, piece after piece: one is made while another is copied.

use super::buffer::Buffer;
use super::event::Event;
use super::gpu::Gpu;
use super::pinned::PinnedBuffer;
use super::stream::Stream;
use crate::error::Result;
use cust_core::DeviceCopy;
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::slice;

/// Bytes of a piece.
const PIECE: usize = 16 << 20;
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
        let piece =
            || Ok((PinnedBuffer::zeroed(gpu, PIECE, "arrays on their way to the device")?, Event::new(gpu)?));
        Ok(Self { stream: Stream::new(gpu)?, pieces: [piece()?, piece()?] })
    }

    /// `num_rows` rows of `width` items on the device, of which `make` writes all of some from one on; returns when they are there.
    pub(crate) fn upload<T: DeviceCopy + Send>(
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

    fn copy<T: DeviceCopy + Send>(
        &mut self,
        to: &mut Buffer<T>,
        width: usize,
        make: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) -> Result<()> {
        let [len, share] = [PIECE, SHARE].map(|bytes| bytes / size_of::<T>() / width * width);
        let to = to.slice_mut();
        for (turn, begin) in (0..to.len()).step_by(len).enumerate() {
            let len = len.min(to.len() - begin);
            let (piece, copied) = &mut self.pieces[turn % 2];
            copied.synchronize()?;
            let bytes = &mut piece[..len * size_of::<T>()];
            // SAFETY: as many bytes, aligned for any item.
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
