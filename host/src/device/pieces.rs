//! Copies in pieces: several threads write or read some of them while others are on their way.

use super::driver::{MAX_UNIT, Transfer};
use super::stream::Stream;
use crate::error::Result;
use crate::memory;
use crate::parallel::Ranges;
use bytemuck::{NoUninit, Pod};
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use std::mem::MaybeUninit;
use std::slice;

/// The fewest bytes of a copy that several threads carry out (`copies`: the driver alone copies up to 4 MB about as fast).
pub(crate) const LARGE_BYTES: usize = 8 << 20;
/// The bytes of a piece of pageable memory.
const PIECE: usize = 256 << 10;

/// Calls `copy` for one piece of whole units after another, in pageable memory that is aligned for every item.
pub(super) fn in_vectors(
    bytes: usize,
    unit: usize,
    copy: &mut dyn FnMut(usize, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let len = bytes.min(PIECE).div_ceil(size_of::<u128>());
    let mut memory = memory::filled(len, 0u128, "a piece of a copy")?;
    let piece: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    Ranges::new(bytes, PIECE / unit * unit)
        .iter()
        .try_for_each(|range| copy(range.start, &mut piece[..range.len()]))
}

impl Stream {
    /// Copies rows of `width` items to a view, after all earlier work of the stream. `write(first_row, items)` writes complete rows from
    /// `first_row` on, and runs on several threads. Returns when the copy is done; after the first error of `write` it ends early.
    ///
    /// # Safety
    /// The view is of whole rows, in live device memory that no other work uses. `write` writes all items.
    pub(crate) unsafe fn upload_by<T: DeviceCopy + NoUninit>(
        &self,
        to: SliceMut<'_, T>,
        width: usize,
        write: impl Fn(usize, &mut [MaybeUninit<T>]) -> Result<()> + Sync,
    ) -> Result<()> {
        let unit = width * size_of::<T>();
        assert!(unit <= MAX_UNIT, "rows of {unit} bytes");
        let write = |begin: usize, piece: &mut [MaybeUninit<u8>]| {
            let len = piece.len() / size_of::<T>();
            // SAFETY: the bytes of the items; pieces are aligned for every item.
            write(begin / unit, unsafe { slice::from_raw_parts_mut(piece.as_mut_ptr().cast(), len) })
        };
        let (bytes, to) = (to.len() * size_of::<T>(), to.as_ptr() as u64);
        // SAFETY: passed on to the caller. Items have no padding, so all bytes are written.
        unsafe { self.transfer(Transfer::ToDeviceBy { to, unit, write: &write }, bytes) }
    }

    /// Copies rows of `width` items from a view, after all earlier work of the stream. `read(first_row, items)` gets complete rows from
    /// `first_row` on, and runs on several threads. Returns when all rows have been read; after the first error of `read` it ends early.
    ///
    /// # Safety
    /// The view is of whole rows, in device memory that earlier work has written.
    pub(crate) unsafe fn download_by<T: Pod>(
        &self,
        from: Slice<'_, T>,
        width: usize,
        read: impl Fn(usize, &[T]) -> Result<()> + Sync,
    ) -> Result<()> {
        let unit = width * size_of::<T>();
        assert!(unit <= MAX_UNIT, "rows of {unit} bytes");
        let read = |begin: usize, piece: &[u8]| read(begin / unit, bytemuck::cast_slice(piece));
        let (bytes, from) = (from.len() * size_of::<T>(), from.as_ptr() as u64);
        // SAFETY: passed on to the caller.
        unsafe { self.transfer(Transfer::ToHostBy { from, unit, read: &read }, bytes) }
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use crate::device::{Buffer, Device, SimOptions, Stream};
    use crate::error::{Error, Result};
    use crate::memory::Parts;

    #[test]
    fn copies_in_pieces_are_whole() -> Result<()> {
        let device = Device::sim(SimOptions::default())?;
        let stream = Stream::new(device.gpu().expect("the device is a GPU"))?;
        const ROWS: usize = 100_003;
        for rows in [0, 1, ROWS] {
            let items: Vec<u32> = (0..3 * rows as u32).collect();
            let mut buffer = Buffer::uninitialized(stream.gpu(), items.len(), "numbers")?;
            let mut copied = vec![0; items.len()];
            let parts = Parts::of_initialized(&mut copied);
            // SAFETY: the closures get each row once.
            unsafe {
                stream.upload_by(buffer.slice_mut(), 3, |first, to| {
                    to.write_copy_of_slice(&items[3 * first..][..to.len()]);
                    Ok(())
                })?;
                stream.download_by(buffer.slice(), 3, |first, from| {
                    parts.part(3 * first..3 * first + from.len()).write_copy_of_slice(from);
                    Ok(())
                })?;
            }
            assert!(copied == items && buffer.to_vec(&stream)? == items, "{rows}");
        }
        Ok(())
    }

    #[test]
    fn an_error_ends_the_copy() -> Result<()> {
        let device = Device::sim(SimOptions::default())?;
        let stream = Stream::new(device.gpu().expect("the device is a GPU"))?;
        let mut buffer = Buffer::<u64>::of_bytes(&stream, 1 << 20, 0, "numbers")?;
        // SAFETY: a failed writer need not write.
        let (written, read) = unsafe {
            let written = stream.upload_by(buffer.slice_mut(), 1, |_, _| Err(Error::NoDevice));
            (written, stream.download_by(buffer.slice(), 1, |_, _| Err(Error::NoDevice)))
        };
        assert!(matches!((written, read), (Err(Error::NoDevice), Err(Error::NoDevice))));
        Ok(())
    }
}
