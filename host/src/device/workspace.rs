//! Temporary memory: one allocation, carved by a plan, kept for the next time.

use super::buffer::Buffer;
use super::gpu::Gpu;
use super::stream::Stream;
use crate::error::Result;
use bytemuck::NoUninit;
use cuda_std::mem::SliceMut;
use std::marker::PhantomData;

/// Regions start at multiples of this, as fresh allocations do.
const ALIGNMENT: u64 = super::buffer::ALIGNMENT as u64;

/// A plan of temporary memory: what will be carved from one allocation, and how large that is.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    bytes: u64,
    /// Offset and exact size of each region.
    regions: Vec<(u64, u64)>,
}

/// A planned array.
#[derive(Debug)]
pub struct Region<T> {
    offset: u64,
    len: usize,
    _items: PhantomData<T>,
}

impl<T> Clone for Region<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Region<T> {}

impl<T> Region<T> {
    /// The same memory for as many items of another type, which must not be larger; from bytes, for as many as fit.
    ///
    /// # Panics
    /// If the items are larger.
    pub fn of_type<U>(self) -> Region<U> {
        const { assert!(size_of::<U>() > 0, "items of a region have a size") };
        let len = if size_of::<T>() == 1 { self.len / size_of::<U>() } else { self.len };
        let fits = size_of::<T>() == 1 || size_of::<U>() <= size_of::<T>() || len == 0;
        assert!(fits, "the items do not fit in the region");
        Region { offset: self.offset, len, _items: PhantomData }
    }
}

impl Layout {
    /// An empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans an array of `len` items.
    pub fn reserve<T>(&mut self, len: usize) -> Region<T> {
        const {
            assert!(
                align_of::<T>() <= ALIGNMENT as usize,
                "items of a region are aligned to 256 bytes at most"
            )
        };
        let offset = self.bytes;
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        self.regions.push((offset, bytes));
        self.bytes = offset.saturating_add(bytes.div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT));
        Region { offset, len, _items: PhantomData }
    }

    /// Bytes of the whole plan.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Temporary memory of a GPU that grows to the largest plan and is reused by the next ones: a second run of the same
/// size allocates nothing. Work of one stream after another's waits for the other, whose memory it takes over: for work
/// that is to run side by side have a workspace a stream.
///
/// With the environment variable `KAURI_ALLOC` set to `paranoid`, every region of every plan is an allocation of its own
/// and of its exact size instead, so that tools which watch allocations see an access beyond a region.
#[derive(Debug)]
pub struct Workspace {
    gpu: Gpu,
    memory: Option<Buffer<u8>>,
    /// In paranoid mode: the regions of the current plan, in its order.
    separate: Vec<Buffer<u8>>,
    /// The stream that the memory was last given to.
    last: Option<Stream>,
}

/// The memory of one plan, on loan from a [`Workspace`].
#[derive(Debug)]
pub struct Temp<'a> {
    /// Offset, size and address of each region.
    regions: Vec<(u64, u64, u64)>,
    _workspace: PhantomData<&'a mut Workspace>,
}

impl Workspace {
    /// An empty workspace.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), memory: None, separate: Vec::new(), last: None }
    }

    /// Memory for a plan, with undefined contents, for work of `stream` alone. `label` says in errors what it was for.
    ///
    /// # Errors
    /// [`WrongDevice`](crate::Error::WrongDevice), [`OutOfMemory`](crate::Error::OutOfMemory) after which the workspace is
    /// empty, or the driver's.
    pub fn carve(&mut self, stream: &Stream, layout: &Layout, label: &'static str) -> Result<Temp<'_>> {
        self.hand_over(stream)?;
        let regions = layout.regions.iter();
        let regions = if std::env::var_os("KAURI_ALLOC").is_some_and(|mode| mode == "paranoid") {
            self.separate.clear();
            for &(_, bytes) in regions.clone() {
                self.separate.push(Buffer::uninitialized(&self.gpu, as_len(bytes), label)?);
            }
            regions.zip(&self.separate).map(|(&(offset, bytes), own)| (offset, bytes, own.as_raw())).collect()
        } else {
            let begin = self.grow(layout.bytes, label)?;
            regions.map(|&(offset, bytes)| (offset, bytes, begin + offset)).collect()
        };
        Ok(Temp { regions, _workspace: PhantomData })
    }

    /// Lets the stream wait for the work of the last one, if that was another.
    fn hand_over(&mut self, stream: &Stream) -> Result<()> {
        self.gpu.check_same(stream.gpu())?;
        if let Some(last) = &self.last {
            stream.wait_for(last)?;
        }
        self.last = Some(stream.clone());
        Ok(())
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let held = self.memory.iter().chain(&self.separate);
        held.map(|buffer| buffer.len() as u64).sum()
    }

    /// Address of at least that many bytes.
    fn grow(&mut self, bytes: u64, label: &'static str) -> Result<u64> {
        match &self.memory {
            Some(memory) if memory.len() as u64 >= bytes => Ok(memory.as_raw()),
            _ => {
                // The old memory goes first, so that growing never holds both.
                self.memory = None;
                let memory = Buffer::uninitialized(&self.gpu, as_len(bytes), label)?;
                Ok(self.memory.insert(memory).as_raw())
            }
        }
    }
}

/// A size as a length; what does not fit will not be allocated either.
fn as_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl<'a> Temp<'a> {
    /// The arrays of a plan in other memory, which has what it has in it.
    ///
    /// # Safety
    /// The memory is as large as the plan, begins where an allocation does, and is used for nothing else.
    pub(crate) unsafe fn over<T>(memory: SliceMut<'a, T>, layout: &Layout) -> Self {
        let begin = memory.as_ptr() as u64;
        let regions = layout.regions.iter().map(|&(offset, bytes)| (offset, bytes, begin + offset)).collect();
        Self { regions, _workspace: PhantomData }
    }

    /// Copies `items` to an array of this plan; returns when the copy is done.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the lengths differ, or the driver's.
    pub(crate) fn upload<T: NoUninit>(
        &self,
        stream: &Stream,
        to: SliceMut<'_, T>,
        items: &[T],
    ) -> Result<()> {
        // SAFETY: the view is of memory of this plan.
        unsafe { stream.upload(to, items) }
    }

    /// Sets every byte of a planned array to 0, in the order of the stream.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn clear<T>(&self, stream: &Stream, region: Region<T>) -> Result<()> {
        // SAFETY: the workspace's memory waits for the device before it is freed.
        unsafe { stream.fill_bytes(self.view(region), 0) }
    }

    /// A planned array, as an argument of kernels. Arrays of one plan do not overlap.
    ///
    /// # Panics
    /// If the region is not from this plan.
    pub fn view<T>(&self, region: Region<T>) -> SliceMut<'a, T> {
        // An empty region begins where the next one does, so the offset alone does not tell them apart.
        let bytes = (region.len as u64).saturating_mul(size_of::<T>() as u64);
        let found = self.regions.iter().find(|(offset, size, _)| *offset == region.offset && bytes <= *size);
        let &(_, _, address) = found.expect("the region belongs to another plan");
        // SAFETY: within the workspace's memory, which stays borrowed for 'a.
        unsafe { SliceMut::from_raw_parts(address as *mut T, region.len) }
    }
}
