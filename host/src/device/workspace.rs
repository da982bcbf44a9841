//! Temporary memory: one reusable allocation, carved by a plan.

use super::buffer::Buffer;
use super::gpu::Gpu;
use super::stream::Stream;
use crate::error::Result;
use bytemuck::NoUninit;
use cuda_std::mem::SliceMut;
use std::marker::PhantomData;

/// The alignment of regions, which equals that of fresh allocations.
const ALIGNMENT: u64 = super::buffer::ALIGNMENT as u64;

/// A plan of temporary memory: the arrays to carve from one allocation, and its size. [`Workspace`] has an example.
///
/// ```
/// use kauri::device::Layout;
///
/// let mut layout = Layout::new();
/// layout.reserve::<u32>(1000);
/// layout.reserve::<u64>(3);
/// // Every array begins at a multiple of 256 bytes.
/// assert_eq!(layout.bytes(), 4096 + 256);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Layout {
    bytes: u64,
    /// The offset and exact size of each region.
    regions: Vec<(u64, u64)>,
}

/// An array of a [`Layout`]: its position in the plan, which [`Temp::view`] turns into memory. [`Workspace`] has an example.
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
    /// Reinterprets the memory for the same number of items of another type, which must not be larger; bytes become as
    /// many items as fit.
    ///
    /// # Panics
    /// Panics if the items are larger.
    pub fn of_type<U>(self) -> Region<U> {
        const { assert!(size_of::<U>() > 0, "items of a region have a size") };
        let len = if size_of::<T>() == 1 { self.len / size_of::<U>() } else { self.len };
        let fits = size_of::<T>() == 1 || size_of::<U>() <= size_of::<T>() || len == 0;
        assert!(fits, "the items do not fit in the region");
        Region { offset: self.offset, len, _items: PhantomData }
    }
}

impl Layout {
    /// Creates an empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an array of `len` items.
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

    /// Returns the bytes of the whole plan.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reusable temporary memory of a GPU. It grows to the largest plan, so a second run of the same size allocates
/// nothing. When another stream uses it, that stream waits for the last one: use one workspace per stream for
/// concurrent work.
///
/// If the environment variable `KAURI_ALLOC` is `paranoid`, every region of every plan is a separate allocation of its
/// exact size, so that memory checkers see an access beyond a region.
///
/// This example shows the plan of an algorithm; with a GPU, `carve` and `view` give its memory:
///
/// ```
/// use kauri::device::{Gpu, Layout, Stream, Workspace};
///
/// fn histogram(gpu: &Gpu, stream: &Stream, len: usize) -> kauri::Result<()> {
///     let mut layout = Layout::new();
///     let keys = layout.reserve::<u32>(len);
///     let counts = layout.reserve::<u64>(256);
///     let mut workspace = Workspace::new(gpu);
///     let temp = workspace.carve(stream, &layout, "histogram")?;
///     let (keys, counts) = (temp.view(keys), temp.view(counts));
///     // Launch kernels with these views.
///     assert_eq!((keys.len(), counts.len()), (len, 256));
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Workspace {
    gpu: Gpu,
    memory: Option<Buffer<u8>>,
    /// In paranoid mode, the regions of the current plan in order.
    separate: Vec<Buffer<u8>>,
    /// The stream that last used the memory.
    last: Option<Stream>,
}

/// The memory of a plan, borrowed from a [`Workspace`], which has an example.
#[derive(Debug)]
pub struct Temp<'a> {
    /// The stream that works with the memory.
    pub(crate) stream: Stream,
    /// The offset, size and address of each region.
    regions: Vec<(u64, u64, u64)>,
    _workspace: PhantomData<&'a mut Workspace>,
}

impl Workspace {
    /// Creates an empty workspace.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), memory: None, separate: Vec::new(), last: None }
    }

    /// Carves the memory of a plan, with undefined contents, for work of `stream` only. `label` names the purpose in
    /// errors.
    ///
    /// # Errors
    /// [`WrongDevice`](crate::Error::WrongDevice), [`OutOfMemory`](crate::Error::OutOfMemory), after which the
    /// workspace is empty, and errors of the driver.
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
        Ok(Temp { stream: stream.clone(), regions, _workspace: PhantomData })
    }

    /// Makes the stream wait for the work of the last stream, if that was another one.
    fn hand_over(&mut self, stream: &Stream) -> Result<()> {
        self.gpu.check_same(stream.gpu())?;
        if let Some(last) = &self.last {
            stream.wait_for(last)?;
        }
        self.last = Some(stream.clone());
        Ok(())
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> u64 {
        let held = self.memory.iter().chain(&self.separate);
        held.map(|buffer| buffer.len() as u64).sum()
    }

    /// Returns the address of at least `bytes` bytes.
    fn grow(&mut self, bytes: u64, label: &'static str) -> Result<u64> {
        match &self.memory {
            Some(memory) if memory.len() as u64 >= bytes => Ok(memory.as_raw()),
            _ => {
                // The old memory is freed first, so that growing never holds both.
                self.memory = None;
                let memory = Buffer::uninitialized(&self.gpu, as_len(bytes), label)?;
                Ok(self.memory.insert(memory).as_raw())
            }
        }
    }
}

/// Converts a size to a length. A size that does not fit cannot be allocated anyway.
fn as_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl<'a> Temp<'a> {
    /// Carves a plan from other memory, which keeps its contents.
    ///
    /// # Safety
    /// The memory is as large as the plan, aligned like an allocation, and used for nothing else.
    pub(crate) unsafe fn over<T>(stream: &Stream, memory: SliceMut<'a, T>, layout: &Layout) -> Self {
        let begin = memory.as_ptr() as u64;
        let regions = layout.regions.iter().map(|&(offset, bytes)| (offset, bytes, begin + offset)).collect();
        Self { stream: stream.clone(), regions, _workspace: PhantomData }
    }

    /// Returns the memory for work of another stream.
    pub(crate) fn on(&self, stream: &Stream) -> Self {
        Self { stream: stream.clone(), regions: self.regions.clone(), _workspace: PhantomData }
    }

    /// Copies `items` to an array of this plan; returns when the copy is done.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the lengths differ, and errors of the driver.
    pub(crate) fn upload<T: NoUninit>(&self, to: SliceMut<'_, T>, items: &[T]) -> Result<()> {
        // SAFETY: the view is of memory of this plan.
        unsafe { self.stream.upload(to, items) }
    }

    /// Fills a planned array with zero bytes, in stream order: a kernel with a look-back starts from zeros.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn clear<T>(&self, region: Region<T>) -> Result<()> {
        // SAFETY: the workspace's memory waits for the device before it is freed.
        unsafe { self.stream.fill_bytes(self.view(region), 0) }
    }

    /// Returns a view of a planned array, an argument of kernels. Arrays of a plan do not overlap.
    ///
    /// # Panics
    /// Panics if the region is not from this plan.
    pub fn view<T>(&self, region: Region<T>) -> SliceMut<'a, T> {
        // An empty region shares its offset with the next one, so the offset alone does not identify a region.
        let bytes = (region.len as u64).saturating_mul(size_of::<T>() as u64);
        let found = self.regions.iter().find(|(offset, size, _)| *offset == region.offset && bytes <= *size);
        let &(_, _, address) = found.expect("the region belongs to another plan");
        // SAFETY: within the workspace's memory, which stays borrowed for 'a.
        unsafe { SliceMut::from_raw_parts(address as *mut T, region.len) }
    }
}
