//! Where an out-of-core build keeps its points: in host memory or in a file.

use crate::device::Buffer;
use crate::error::Result;
#[cfg(feature = "io")]
use crate::memory::file_part::FilePart;
use crate::memory::{self, Parts};
use crate::quadtree::gpu::streamed::lanes::{LABEL, Lane};
use bytemuck::Pod;
use cust_core::DeviceCopy;
use std::ops::Range;

/// Items to read.
#[derive(Clone, Copy)]
pub(crate) enum InputColumn<'a, T> {
    Memory(&'a [T]),
    #[cfg(feature = "io")]
    File(FilePart<'a>),
}

impl<'a, T: DeviceCopy + Pod + Send + Sync> InputColumn<'a, T> {
    /// Copies a range of rows of `width` items to the device.
    pub(super) fn upload(&self, lane: &Lane, rows: Range<usize>, width: usize) -> Result<Buffer<T>> {
        match *self {
            Self::Memory(items) => {
                Buffer::from_slice(&lane.stream, &items[rows.start * width..rows.end * width], LABEL)
            }
            #[cfg(feature = "io")]
            Self::File(part) => {
                let mut buffer = Buffer::uninitialized(lane.stream.gpu(), rows.len() * width, LABEL)?;
                // SAFETY: nothing else uses the new memory.
                unsafe {
                    lane.stream.upload_by(buffer.slice_mut(), width, |first, to| {
                        let mut items = vec![T::zeroed(); to.len()];
                        part.read((rows.start + first) * width, &mut items)?;
                        to.write_copy_of_slice(&items);
                        Ok(())
                    })?;
                }
                Ok(buffer)
            }
        }
    }

    /// Copies the first `len` items.
    pub(super) fn to_vec(self, len: usize) -> Result<Vec<T>> {
        match self {
            Self::Memory(items) => memory::copy(&items[..len], LABEL),
            #[cfg(feature = "io")]
            Self::File(part) => {
                let mut items = memory::filled(len, T::zeroed(), LABEL)?;
                part.read(0, &mut items)?;
                Ok(items)
            }
        }
    }
}

/// Items that several threads write.
pub(crate) enum OutputColumn<'a, T> {
    Memory(Parts<'a, T>),
    #[cfg(feature = "io")]
    File(FilePart<'a>),
}

impl<'a, T: Pod> OutputColumn<'a, T> {
    /// Writes items from `first` on.
    ///
    /// # Safety
    /// Nothing else reads or writes these items.
    pub(super) unsafe fn write(&self, first: usize, items: &[T]) -> Result<()> {
        match self {
            Self::Memory(parts) => {
                // SAFETY: the caller's promise.
                unsafe { parts.part(first..first + items.len()) }.write_copy_of_slice(items);
                Ok(())
            }
            #[cfg(feature = "io")]
            Self::File(part) => part.write(first, items),
        }
    }

    /// Returns a range of items to read.
    ///
    /// # Safety
    /// They have been written, and nothing writes them while they are in use.
    pub(super) unsafe fn input(&self, range: Range<usize>) -> InputColumn<'a, T> {
        match self {
            // SAFETY: the caller's promise.
            Self::Memory(parts) => InputColumn::Memory(unsafe { parts.part(range).assume_init_ref() }),
            #[cfg(feature = "io")]
            Self::File(part) => {
                let begin = part.begin + range.start as u64 * size_of::<T>() as u64;
                InputColumn::File(FilePart { begin, ..*part })
            }
        }
    }
}
