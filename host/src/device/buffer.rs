//! Device memory.

use super::gpu::Gpu;
use super::stream::Stream;
use crate::error::{Error, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// Alignment of device memory, in bytes, that every driver guarantees.
pub(super) const ALIGNMENT: usize = 256;

/// An array of `T` in the memory of a GPU; freed when dropped, after all work that may use it.
///
/// Items without padding can be copied to it ([`NoUninit`]), and items that any bits are can be read back ([`AnyBitPattern`]). Your own
/// structs derive both, and [`DeviceCopy`] for kernels:
///
/// ```
/// use bytemuck::{AnyBitPattern, NoUninit};
/// use cust_core::DeviceCopy;
/// #[repr(C)]
/// #[derive(Clone, Copy, NoUninit, AnyBitPattern, DeviceCopy)]
/// struct Particle {
///     position: [f32; 3],
///     mass: f32,
/// }
/// ```
pub struct Buffer<T> {
    gpu: Gpu,
    /// 0 for an empty buffer.
    address: u64,
    len: usize,
    _items: PhantomData<T>,
}

impl<T: DeviceCopy> Buffer<T> {
    /// Memory for `len` items with undefined contents. `label` says in errors what it was for.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn uninitialized(gpu: &Gpu, len: usize, label: &'static str) -> Result<Self> {
        const { assert!(size_of::<T>() > 0, "items of a buffer have a size") };
        const { assert!(align_of::<T>() <= ALIGNMENT, "items of a buffer are aligned to 256 bytes at most") };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Error::OutOfMemory {
            memory: "device",
            requested: u64::MAX,
            free: 0,
            label,
        })?;
        let address = if bytes == 0 { 0 } else { gpu.driver().alloc(bytes, label)? };
        Ok(Self { gpu: gpu.clone(), address, len, _items: PhantomData })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Device address of the first item, for other libraries; 0 for an empty buffer.
    pub fn as_raw(&self) -> u64 {
        self.address
    }

    /// The items as an argument of a kernel that reads them.
    pub fn slice(&self) -> Slice<'_, T> {
        // SAFETY: the view keeps this buffer borrowed; launching with it is unsafe and says what else must hold.
        unsafe { Slice::from_raw_parts(self.address as *const T, self.len) }
    }

    /// The items as an argument of a kernel that writes them.
    pub fn slice_mut(&mut self) -> SliceMut<'_, T> {
        // SAFETY: as in `slice`.
        unsafe { SliceMut::from_raw_parts(self.address as *mut T, self.len) }
    }

    /// The items as integers of the same size.
    pub(crate) fn bits<B>(&self) -> Slice<'_, B> {
        const { assert!(size_of::<B>() == size_of::<T>()) };
        // SAFETY: as in `slice`; allocations are aligned for any item.
        unsafe { Slice::from_raw_parts(self.address as *const B, self.len) }
    }

    /// The items as integers of the same size, to be written.
    pub(crate) fn bits_mut<B>(&mut self) -> SliceMut<'_, B> {
        const { assert!(size_of::<B>() == size_of::<T>()) };
        // SAFETY: as in `bits`.
        unsafe { SliceMut::from_raw_parts(self.address as *mut B, self.len) }
    }

    /// Checks that the buffer is of the stream's device, and as long as it should be.
    pub(crate) fn check(&self, stream: &Stream, what: &'static str, expected: usize) -> Result<()> {
        self.check_device(stream)?;
        self.check_items(what, expected)
    }

    /// Copies the items of another buffer of this device and length, in the order of the stream.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::WrongDevice`], or the driver's.
    pub fn copy_from(&mut self, stream: &Stream, other: &Buffer<T>) -> Result<()> {
        self.check_len("items copied between buffers", other.len)?;
        let driver = self.checked_driver(stream)?;
        other.checked_driver(stream)?;
        if self.len > 0 {
            // SAFETY: the sizes agree, and buffers wait for the device before they are freed.
            unsafe {
                driver.copy_on_device(self.address, other.address, self.len * size_of::<T>(), stream.raw())
            }?;
        }
        Ok(())
    }

    /// Sets every byte, in the order of the stream.
    ///
    /// # Errors
    /// The driver's.
    pub fn fill_bytes(&mut self, stream: &Stream, byte: u8) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let driver = self.checked_driver(stream)?;
        // SAFETY: within the buffer, which waits for the device before it is freed.
        unsafe { driver.fill(self.address, byte, self.len * size_of::<T>(), stream.raw()) }
    }

    fn check_len(&self, what: &'static str, got: usize) -> Result<()> {
        if got == self.len {
            Ok(())
        } else {
            Err(Error::Shape { what, expected: self.len as u64, got: got as u64 })
        }
    }

    /// [`Error::WrongDevice`] unless buffer and stream belong to one device.
    pub(crate) fn check_device(&self, stream: &Stream) -> Result<()> {
        self.checked_driver(stream).map(|_| ())
    }

    /// [`Error::Shape`] unless the buffer has that many items.
    pub(crate) fn check_items(&self, what: &'static str, expected: usize) -> Result<()> {
        if self.len == expected {
            Ok(())
        } else {
            Err(Error::Shape { what, expected: expected as u64, got: self.len as u64 })
        }
    }

    /// The driver, if buffer and stream belong to one device.
    fn checked_driver(&self, stream: &Stream) -> Result<&dyn super::driver::Driver> {
        self.gpu.check_same(stream.gpu())?;
        Ok(self.gpu.driver())
    }
}

/// Copies from host memory. An item may have no padding, which is uninitialized and would be copied as if it were not.
///
/// ```compile_fail,E0277
/// # use kauri::device::{Buffer, Stream};
/// fn write(stream: &Stream, pairs: &[(u8, u32)]) -> kauri::Result<Buffer<(u8, u32)>> {
///     Buffer::from_slice(stream, pairs, "pairs")
/// }
/// ```
impl<T: DeviceCopy + NoUninit> Buffer<T> {
    /// A copy of `items` on the device of `stream`; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn from_slice(stream: &Stream, items: &[T], label: &'static str) -> Result<Self> {
        let mut buffer = Self::uninitialized(stream.gpu(), items.len(), label)?;
        buffer.copy_from_slice(stream, items)?;
        Ok(buffer)
    }

    /// Copies `items`, as many as the buffer has; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`], or the driver's.
    pub fn copy_from_slice(&mut self, stream: &Stream, items: &[T]) -> Result<()> {
        self.check_len("items copied to a buffer", items.len())?;
        if !items.is_empty() {
            let driver = self.checked_driver(stream)?;
            // SAFETY: the sizes agree, and the copy is waited for while `items` is borrowed.
            unsafe {
                driver.copy_to_device(self.address, items.as_ptr().cast(), size_of_val(items), stream.raw())
            }?;
            stream.synchronize()?;
        }
        Ok(())
    }
}

/// Copies to host memory. Any bits must be an item, because the buffer may hold any: those that were there when it was allocated, those
/// that [`fill_bytes`](Buffer::fill_bytes) has set or a kernel has written. `bool`, `char`, references and enums cannot be read
/// back; read `u8` or `u32` and convert.
///
/// ```compile_fail,E0277
/// # use kauri::device::{Buffer, Stream};
/// fn read(stream: &Stream, flags: &Buffer<bool>) -> kauri::Result<Vec<bool>> {
///     flags.to_vec(stream)
/// }
/// ```
/// ```compile_fail,E0277
/// # use kauri::device::{Buffer, Stream};
/// fn read(stream: &Stream, letters: &Buffer<char>, to: &mut [char]) -> kauri::Result<()> {
///     letters.copy_to_slice(stream, to)
/// }
/// ```
/// ```compile_fail,E0277
/// # use kauri::device::{Buffer, Stream};
/// # use std::num::NonZeroU32;
/// fn read(stream: &Stream, numbers: &Buffer<NonZeroU32>, to: &mut Vec<NonZeroU32>) -> kauri::Result<()> {
///     numbers.append_to(stream, to)
/// }
/// ```
impl<T: DeviceCopy + AnyBitPattern> Buffer<T> {
    /// Copies to `items`, as many as the buffer has, after the stream's work so far; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`], or the driver's.
    pub fn copy_to_slice(&self, stream: &Stream, items: &mut [T]) -> Result<()> {
        self.check_len("items copied from a buffer", items.len())?;
        if !items.is_empty() {
            // SAFETY: the sizes agree, and the copy is waited for while `items` is borrowed.
            unsafe { self.read_into(stream, items.as_mut_ptr(), 0..self.len) }?;
        }
        Ok(())
    }

    /// Appends all items to `items`, which must have room for them; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no room, or the driver's; `items` is unchanged then.
    pub fn append_to(&self, stream: &Stream, items: &mut Vec<T>) -> Result<()> {
        let room = items.capacity() - items.len();
        if room < self.len {
            let (expected, got) = (self.len as u64, room as u64);
            return Err(Error::Shape { what: "room for the items of a buffer", expected, got });
        }
        if self.len > 0 {
            let len = items.len();
            // SAFETY: there is room behind the last item, and any bits are an item.
            unsafe {
                self.read_into(stream, items.as_mut_ptr().add(len), 0..self.len)?;
                items.set_len(len + self.len);
            }
        }
        Ok(())
    }

    /// All items, after the stream's work so far.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>> {
        let mut items = crate::memory::vec_with_capacity(self.len, "a copy of a buffer")?;
        self.append_to(stream, &mut items)?;
        Ok(items)
    }

    /// The first `len` items, after the stream's work so far: for results that do not fill their buffer.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not so many, [`Error::OutOfMemory`], or the driver's.
    pub fn front_to_vec(&self, stream: &Stream, len: usize) -> Result<Vec<T>> {
        self.part_to_vec(stream, 0..len)
    }

    /// The items of a range, after the stream's work so far.
    ///
    /// # Errors
    /// [`Error::Shape`] if the range goes beyond the last item, [`Error::OutOfMemory`], or the driver's.
    pub fn part_to_vec(&self, stream: &Stream, range: Range<usize>) -> Result<Vec<T>> {
        if range.end > self.len {
            let (expected, got) = (self.len as u64, range.end as u64);
            return Err(Error::Shape { what: "the end of a part of a buffer", expected, got });
        }
        let mut items = crate::memory::vec_with_capacity(range.len(), "a copy of a buffer")?;
        if !range.is_empty() {
            // SAFETY: there is room, and any bits are an item.
            unsafe {
                self.read_into(stream, items.as_mut_ptr(), range.clone())?;
                items.set_len(range.len());
            }
        }
        Ok(items)
    }

    /// # Safety
    /// `to` must be valid for the items of `range`, which is in the buffer and not empty.
    unsafe fn read_into(&self, stream: &Stream, to: *mut T, range: Range<usize>) -> Result<()> {
        let driver = self.checked_driver(stream)?;
        let from = self.address + (range.start * size_of::<T>()) as u64;
        // SAFETY: passed on to the caller; the copy is waited for.
        unsafe { driver.copy_to_host(to.cast(), from, range.len() * size_of::<T>(), stream.raw()) }?;
        stream.synchronize()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: the address comes from `alloc` and is freed once.
            unsafe { self.gpu.driver().free(self.address) };
        }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len)
            .field("gpu", &self.gpu.info().id)
            .finish_non_exhaustive()
    }
}
