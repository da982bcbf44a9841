//! Arrays in device memory.

use super::driver::Memory;
use super::gpu::Gpu;
use super::stream::Stream;
use crate::error::{Error, Result, check_len};
use bytemuck::{AnyBitPattern, NoUninit};
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// The alignment of device memory, in bytes, which every driver guarantees.
pub(super) const ALIGNMENT: usize = 256;

/// An array of `T` in the memory of a GPU. Dropping it waits for all work that may use it, then frees the memory.
///
/// Items without padding can be copied to the device ([`NoUninit`]); items for which all bits are valid can be copied
/// back ([`AnyBitPattern`]). Your own structs derive both, and [`DeviceCopy`] for kernels:
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
    /// Number of items that the memory has room for.
    capacity: usize,
    /// False if the memory belongs to the caller or to another library.
    owned: bool,
    _items: PhantomData<T>,
}

impl<T: DeviceCopy> Buffer<T> {
    /// Allocates `len` items with undefined contents. `label` names the purpose in errors.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and errors of the driver.
    pub fn uninitialized(gpu: &Gpu, len: usize, label: &'static str) -> Result<Self> {
        const { assert!(size_of::<T>() > 0, "items of a buffer have a size") };
        let bytes = checked_bytes::<T>(len, Memory::Device, label)?;
        let address = if bytes == 0 { 0 } else { gpu.driver.alloc(Memory::Device, bytes, label)? };
        Ok(Self { gpu: gpu.clone(), address, len, capacity: len, owned: true, _items: PhantomData })
    }

    /// Allocates `len` items, and fills them with a byte.
    pub(crate) fn of_bytes(stream: &Stream, len: usize, byte: u8, label: &'static str) -> Result<Self> {
        let mut buffer = Self::uninitialized(stream.gpu(), len, label)?;
        buffer.fill_bytes(stream, byte)?;
        Ok(buffer)
    }

    /// Changes the number of items, and with it the memory, whose contents are then undefined. After an error the buffer is empty.
    pub(crate) fn resize(&mut self, len: usize, label: &'static str) -> Result<()> {
        if self.len != len {
            let gpu = self.gpu.clone();
            // The old memory is freed first, so that growing never holds both.
            *self = Self::uninitialized(&gpu, 0, label)?;
            *self = Self::uninitialized(&gpu, len, label)?;
        }
        Ok(())
    }

    /// Number of items that the memory has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Changes the number of items within the capacity. The contents of further items are undefined.
    pub(crate) fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity, "a buffer has no room for {len} items");
        self.len = len;
    }

    /// Allocates a result of `len` items, each with `item_bytes` bytes in all its arrays.
    ///
    /// # Errors
    /// [`Error::ResultTooLarge`], and errors of the driver.
    pub(crate) fn of_result(gpu: &Gpu, len: u64, item_bytes: u64, label: &'static str) -> Result<Self> {
        Self::uninitialized(gpu, usize::try_from(len).unwrap_or(usize::MAX), label)
            .map_err(|error| error.of_result(len, item_bytes))
    }

    /// Borrows `len` items of the caller's device memory at `address`, which is not freed here.
    ///
    /// # Errors
    /// [`Error::Unaligned`] unless the address is a multiple of 256, as the start of an allocation is.
    ///
    /// # Safety
    /// The memory belongs to `gpu` and holds `len` items, of which those that are read are initialized. It stays alive and
    /// nothing else writes it until the result is dropped and all work that uses it is done.
    pub unsafe fn from_raw(gpu: &Gpu, address: u64, len: usize) -> Result<Self> {
        const { assert!(size_of::<T>() > 0, "items of a buffer have a size") };
        if !address.is_multiple_of(ALIGNMENT as u64) {
            return Err(Error::Unaligned { address, alignment: ALIGNMENT });
        }
        Ok(Self { gpu: gpu.clone(), address, len, capacity: len, owned: false, _items: PhantomData })
    }

    /// Takes the ownership of memory that [`from_raw`](Self::from_raw) borrows, which `cuMemAlloc` has returned.
    #[cfg(feature = "cust")]
    pub(super) fn adopt(mut self) -> Self {
        if self.address != 0 {
            self.gpu.driver.adopt(Memory::Device, self.address, (self.capacity * size_of::<T>()) as u64);
        }
        self.owned = true;
        self
    }

    /// Gives up the ownership of the memory, and returns its address.
    ///
    /// # Errors
    /// [`Error::NotOwned`] if the memory is borrowed.
    #[cfg(feature = "cust")]
    pub(super) fn into_raw(mut self) -> Result<u64> {
        if !self.owned {
            return Err(Error::NotOwned);
        }
        self.owned = false;
        self.gpu.driver.disown(Memory::Device, self.address);
        Ok(self.address)
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the device address of the first item, for other libraries; 0 for an empty buffer.
    pub fn as_raw(&self) -> u64 {
        self.address
    }

    /// Returns a read-only view, an argument of kernels.
    pub fn slice(&self) -> Slice<'_, T> {
        // SAFETY: the view keeps this buffer borrowed; launches, which are unsafe, state the other conditions.
        unsafe { Slice::from_raw_parts(self.address as *const T, self.len) }
    }

    /// Returns a writable view, an argument of kernels.
    pub fn slice_mut(&mut self) -> SliceMut<'_, T> {
        // SAFETY: as in `slice`.
        unsafe { SliceMut::from_raw_parts(self.address as *mut T, self.len) }
    }

    /// Returns the items as integers of the same size.
    pub(crate) fn bits<B>(&self) -> Slice<'_, B> {
        const { assert!(size_of::<B>() == size_of::<T>()) };
        // SAFETY: as in `slice`; allocations are aligned for any item.
        unsafe { Slice::from_raw_parts(self.address as *const B, self.len) }
    }

    /// Returns the items as writable integers of the same size.
    pub(crate) fn bits_mut<B>(&mut self) -> SliceMut<'_, B> {
        const { assert!(size_of::<B>() == size_of::<T>()) };
        // SAFETY: as in `bits`.
        unsafe { SliceMut::from_raw_parts(self.address as *mut B, self.len) }
    }

    /// Checks that the buffer belongs to the stream's device and has `expected` items, for functions that launch kernels of your own.
    /// `what` names the checked size in the error.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], [`Error::Shape`].
    pub fn check(&self, stream: &Stream, what: &'static str, expected: usize) -> Result<()> {
        self.check_device(stream)?;
        self.check_items(what, expected)
    }

    /// Copies the items of another buffer of the same device and length, in stream order.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::WrongDevice`], and errors of the driver.
    pub fn copy_from(&mut self, stream: &Stream, other: &Buffer<T>) -> Result<()> {
        other.check(stream, "items copied between buffers", self.len)?;
        self.check_device(stream)?;
        // SAFETY: the lengths agree, and buffers wait for the device before they are freed.
        unsafe { stream.copy(self.slice_mut(), other.slice()) }
    }

    /// Sets every byte to `byte`, in stream order.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and errors of the driver.
    pub fn fill_bytes(&mut self, stream: &Stream, byte: u8) -> Result<()> {
        self.check_device(stream)?;
        // SAFETY: the buffer waits for the device before it is freed.
        unsafe { stream.fill_bytes(self.slice_mut(), byte) }
    }

    /// Checks that buffer and stream belong to the same device.
    ///
    /// # Errors
    /// [`Error::WrongDevice`].
    pub fn check_device(&self, stream: &Stream) -> Result<()> {
        self.gpu.check_same(stream.gpu())
    }

    /// Returns [`Error::Shape`] unless the buffer has `expected` items.
    pub(crate) fn check_items(&self, what: &'static str, expected: usize) -> Result<()> {
        check_len(what, expected, self.len)
    }
}

/// Copies from host memory. Items must have no padding, which is uninitialized memory.
///
/// ```compile_fail,E0277
/// # use kauri::device::{Buffer, Stream};
/// fn write(stream: &Stream, pairs: &[(u8, u32)]) -> kauri::Result<Buffer<(u8, u32)>> {
///     Buffer::from_slice(stream, pairs, "pairs")
/// }
/// ```
impl<T: DeviceCopy + NoUninit> Buffer<T> {
    /// Copies `items` to a new buffer on the device of `stream`; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and errors of the driver.
    pub fn from_slice(stream: &Stream, items: &[T], label: &'static str) -> Result<Self> {
        let mut buffer = Self::uninitialized(stream.gpu(), items.len(), label)?;
        buffer.copy_from_slice(stream, items)?;
        Ok(buffer)
    }

    /// Copies `items`, which has the buffer's length; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::WrongDevice`], and errors of the driver.
    pub fn copy_from_slice(&mut self, stream: &Stream, items: &[T]) -> Result<()> {
        self.check_device(stream)?;
        // SAFETY: the buffer waits for the device before it is freed.
        unsafe { stream.upload(self.slice_mut(), items) }
    }
}

/// Copies to host memory. All bits must be a valid item, because the buffer may hold any: uninitialized ones, those set
/// by [`fill_bytes`](Buffer::fill_bytes), or the output of a kernel. `bool`, `char`, references and enums cannot be
/// read back; read `u8` or `u32` and convert.
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
    /// Copies to `items`, which has the buffer's length, after all earlier work of the stream; returns when the copy is
    /// done.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::WrongDevice`], and errors of the driver.
    pub fn copy_to_slice(&self, stream: &Stream, items: &mut [T]) -> Result<()> {
        check_len("items copied from a buffer", self.len, items.len())?;
        self.check_device(stream)?;
        // SAFETY: the buffer is alive, and the copy is waited for while `items` is borrowed.
        unsafe { stream.start_reading(self.slice(), items) }?;
        stream.synchronize()
    }

    /// Appends all items to `items`, which must have the capacity; returns when the copy is done.
    ///
    /// # Errors
    /// [`Error::Shape`] if the capacity is too small, and errors of the driver; `items` is then unchanged.
    pub fn append_to(&self, stream: &Stream, items: &mut Vec<T>) -> Result<()> {
        let free = items.capacity() - items.len();
        if free < self.len {
            check_len("capacity for the items of a buffer", self.len, free)?;
        }
        self.check_device(stream)?;
        // SAFETY: the buffer is alive.
        unsafe { stream.read_to(self.slice(), items) }
    }

    /// Returns all items, after all earlier work of the stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and errors of the driver.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>> {
        self.part_to_vec(stream, 0..self.len)
    }

    /// Returns the first `len` items, after all earlier work of the stream: for results that do not fill their buffer.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are fewer items, [`Error::OutOfMemory`], and errors of the driver.
    pub fn front_to_vec(&self, stream: &Stream, len: usize) -> Result<Vec<T>> {
        self.part_to_vec(stream, 0..len)
    }

    /// Returns the items of a range, after all earlier work of the stream.
    ///
    /// # Errors
    /// [`Error::Shape`] if the range ends beyond the last item, [`Error::OutOfMemory`], and errors of the driver.
    pub fn part_to_vec(&self, stream: &Stream, range: Range<usize>) -> Result<Vec<T>> {
        if range.end > self.len {
            check_len("the end of a part of a buffer", self.len, range.end)?;
        }
        self.check_device(stream)?;
        // SAFETY: the buffer is alive.
        unsafe { stream.read(self.slice().part(range.start.min(range.end), range.len())) }
    }
}

/// Returns the bytes of `len` items, or [`Error::OutOfMemory`] if no memory is that large.
pub(super) fn checked_bytes<T>(len: usize, memory: Memory, label: &'static str) -> Result<usize> {
    const { assert!(align_of::<T>() <= ALIGNMENT, "items of a buffer are aligned to 256 bytes at most") };
    len.checked_mul(size_of::<T>()).ok_or_else(|| memory.exhausted(u64::MAX, 0, label))
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.owned && self.address != 0 {
            // SAFETY: the address comes from `alloc`, or from the `cuMemAlloc` of a library that gave it up; freed once.
            unsafe { self.gpu.driver.free(Memory::Device, self.address) };
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
