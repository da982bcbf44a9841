//! Pipeline of batches on a GPU: the device produces one batch while the previous one is copied and the one before is in the callback.
//!
//! All kernels run on one stream, in order. Two slots alternate. Each slot has memory for a batch on the device and in pinned host
//! memory, and a stream for its copies. The device memory of a slot is free for the next batch after its copy, the pinned memory after
//! the callback.
//!
//! The size of a batch may be known only after its first kernels. In this case a kernel writes the size to pinned memory, which
//! overtakes both the kernels behind it and the copies of other batches.
//!
//! A [`BatchSource`] produces the batches, each of up to three arrays.

use crate::device::{Buffer, Event, Gpu, PinnedBuffer, Stream, Workspace};
use crate::error::Result;
use crate::parallel;
use crate::primitives::notify::notify_host;
use bytemuck::{NoUninit, Pod};
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Arrays of a batch.
pub(super) const NUM_ARRAYS: usize = 3;
/// Bytes that one task copies to pinned memory at a time.
const STAGED: usize = 1 << 20;

/// Produces batches.
pub(crate) trait BatchSource {
    /// The description of a batch for the host, besides its arrays.
    type Batch;

    /// Enqueues the kernels of the next batch without waiting for them. Returns false if there are no more batches.
    fn start(&mut self, context: BatchContext<'_>) -> Result<bool>;

    /// Determines the size of that batch from the word sent by [`HostNotification::send`]. If the arrays were too small, waits and
    /// enqueues the kernels again. The context is that of the same slot.
    fn finish(&mut self, word: u64, context: BatchContext<'_>) -> Result<FinishedBatch<Self::Batch>>;
}

/// A batch whose kernels are enqueued and whose size is known.
pub(crate) struct FinishedBatch<B> {
    /// Bytes of each array.
    pub(crate) bytes: [usize; NUM_ARRAYS],
    pub(crate) batch: B,
}

/// Stream and memory for one batch.
pub(crate) struct BatchContext<'a> {
    /// The stream of all kernels.
    pub(crate) stream: &'a Stream,
    /// Scratch memory of that stream.
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) input: InputBuffer<'a>,
    pub(crate) arrays: [ArrayBuffer<'a>; NUM_ARRAYS],
    pub(crate) notification: HostNotification<'a>,
}

/// Sends one word from a kernel to the host.
pub(crate) struct HostNotification<'a> {
    word: &'a mut PinnedBuffer<u64>,
    sent: &'a Event,
}

impl HostNotification<'_> {
    /// Sends `word` to the host as soon as all earlier work on `stream` is done.
    ///
    /// # Safety
    /// `word` is one word, which stays alive and unchanged until the batch is finished.
    pub(crate) unsafe fn send(self, stream: &Stream, word: Slice<'_, u64>) -> Result<()> {
        // SAFETY: passed on to the caller; the host reads the pinned word after the event.
        unsafe { notify_host(stream, word, self.word) }?;
        stream.record(self.sent)
    }
}

/// Device memory for the input of a batch.
pub(crate) struct InputBuffer<'a> {
    uploads: &'a Stream,
    kernels: &'a Stream,
    memory: &'a mut MirroredBuffer,
    /// The kernels that read the previous input.
    produced: &'a Event,
    /// The upload of the previous input.
    uploaded: &'a Event,
}

impl<'a> InputBuffer<'a> {
    /// Copies items to the device by way of pinned memory, while kernels of other batches run. Later kernels wait for the copy.
    pub(crate) fn upload<T: DeviceCopy + NoUninit + Sync>(
        self,
        items: &[T],
        label: &'static str,
    ) -> Result<Slice<'a, T>> {
        let Self { uploads, kernels, memory: MirroredBuffer { device, pinned }, produced, uploaded } = self;
        let to = ArrayBuffer { memory: device }.reserve::<T>(items.len(), usize::MAX, label)?;
        let bytes = size_of_val(items);
        uploaded.synchronize()?;
        // A quarter more: the next batch may have a few more queries.
        grow(pinned, bytes, bytes.saturating_add(bytes / 4), uploads.gpu())?;
        let staged = &mut pinned[..bytes];
        let piece = (STAGED / size_of::<T>()).max(1);
        let from: &[u8] = bytemuck::cast_slice(items);
        parallel::for_chunks(staged, piece * size_of::<T>(), |i, to| {
            let begin = i * piece * size_of::<T>();
            to.copy_from_slice(&from[begin..begin + to.len()]);
        });
        uploads.wait(produced)?;
        // SAFETY: `to` has the length of `staged`. The kernels that read the previous input have been waited for; the next upload and the
        // release of the memory wait for this upload.
        unsafe { uploads.start_writing(to, staged) }?;
        uploads.record(uploaded)?;
        kernels.wait(uploaded)?;
        Ok(to.read_only())
    }
}

/// Device memory for one array of a batch.
pub(crate) struct ArrayBuffer<'a> {
    memory: &'a mut Buffer<u8>,
}

impl<'a> ArrayBuffer<'a> {
    /// Borrows the array for a shorter time.
    pub(crate) fn reborrow(&mut self) -> ArrayBuffer<'_> {
        ArrayBuffer { memory: self.memory }
    }

    /// Returns the array with `len` items; other batches need at most `max_len`. The contents stay unless the array has to grow.
    pub(crate) fn reserve<T: DeviceCopy>(
        self,
        len: usize,
        max_len: usize,
        label: &'static str,
    ) -> Result<SliceMut<'a, T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        if self.memory.len() < bytes {
            // A quarter more, so that the next batch fits too. The old memory is freed first, after all work that uses it.
            let new_len = bytes.saturating_add(bytes / 4).min(max_len.saturating_mul(size_of::<T>()));
            *self.memory = Buffer::uninitialized(self.memory.gpu(), 0, label)?;
            *self.memory = Buffer::uninitialized(self.memory.gpu(), new_len.max(bytes), label)?;
        }
        // SAFETY: the memory has at least `bytes` bytes, is aligned for any item, and stays borrowed for 'a.
        Ok(unsafe { SliceMut::from_raw_parts(self.memory.as_raw() as *mut T, len) })
    }
}

/// The streams, and the memory of two batches.
#[derive(Debug)]
pub(crate) struct Pipeline {
    gpu: Gpu,
    kernels: Stream,
    /// For uploads of inputs.
    uploads: Stream,
    workspace: Workspace,
    slots: [Slot; 2],
    /// True while work may be in progress on the streams.
    is_busy: bool,
}

#[derive(Debug)]
struct Slot {
    input: MirroredBuffer,
    uploaded: Event,
    arrays: [MirroredBuffer; NUM_ARRAYS],
    /// The word that kernels send to the host, and the event after it.
    word: PinnedBuffer<u64>,
    sent: Event,
    /// For copies to pinned memory.
    copies: Stream,
    /// The kernels of the batch are done.
    produced: Event,
    /// The batch is in pinned memory.
    copied: Event,
}

/// An array on the device and in pinned host memory.
#[derive(Debug)]
struct MirroredBuffer {
    device: Buffer<u8>,
    pinned: PinnedBuffer<u8>,
}

impl Pipeline {
    /// Creates the streams and slots; allocates no memory yet.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let (kernels, uploads) = (Stream::new(gpu)?, Stream::new(gpu)?);
        let slots = [Slot::new(gpu)?, Slot::new(gpu)?];
        Ok(Self { gpu: gpu.clone(), kernels, uploads, workspace: Workspace::new(gpu), slots, is_busy: false })
    }

    /// True if the pipeline belongs to this GPU.
    pub(crate) fn is_of(&self, gpu: &Gpu) -> bool {
        self.gpu.same(gpu)
    }

    /// Returns the bytes held, on the device and pinned.
    pub(crate) fn bytes(&self) -> u64 {
        let of_slots: usize = self.slots.iter().map(Slot::bytes).sum();
        self.workspace.bytes() + of_slots as u64
    }

    /// Produces all batches, after the earlier work of a stream, and calls `visit` with each in order, until there are no more or the
    /// callback stops. No work is in progress when it returns. Also returns how long it waited for copies. If a batch fails, the batches
    /// before it are visited first, then the error is returned.
    pub(crate) fn run<S: BatchSource>(
        &mut self,
        after: &Stream,
        source: &mut S,
        visit: impl FnMut(S::Batch, [&mut [u8]; NUM_ARRAYS]) -> ControlFlow<()>,
    ) -> Result<(ControlFlow<()>, Duration)> {
        let mut waited = Duration::ZERO;
        // Once, and not with each batch: an event of a stream that has copied is queued behind the copies of others.
        self.kernels.wait_for(after)?;
        self.is_busy = true;
        let flow = self.alternate_slots(source, visit, &mut waited);
        let finished = self.wait();
        let flow = flow?;
        finished.map(|()| (flow, waited))
    }

    fn alternate_slots<S: BatchSource>(
        &mut self,
        source: &mut S,
        mut visit: impl FnMut(S::Batch, [&mut [u8]; NUM_ARRAYS]) -> ControlFlow<()>,
        waited: &mut Duration,
    ) -> Result<ControlFlow<()>> {
        let (mut slot, mut copied, mut failed) = (0, None, Ok(()));
        let mut is_started = self.start(source, slot);
        loop {
            let batch = match is_started.and_then(|is| is.then(|| self.copy(source, slot)).transpose()) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            };
            // The next batch takes the device memory of the other slot while the callback reads that slot's pinned memory.
            slot = 1 - slot;
            is_started = self.start(source, slot);
            if let Some(previous) = copied.replace(batch)
                && self.visit(previous, &mut visit, waited)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        if let Some(last) = copied
            && self.visit(last, &mut visit, waited)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        failed.map(|()| ControlFlow::Continue(()))
    }

    /// Enqueues the kernels of the next batch in a slot, after the copy of the slot's previous batch. Returns false if there are no more
    /// batches.
    fn start<S: BatchSource>(&mut self, source: &mut S, slot: usize) -> Result<bool> {
        self.kernels.wait(&self.slots[slot].copied)?;
        source.start(self.context(slot))
    }

    /// Starts the copy of a slot's batch to pinned memory as soon as the size of the batch is known. Returns the slot and the batch.
    fn copy<S: BatchSource>(
        &mut self,
        source: &mut S,
        slot: usize,
    ) -> Result<(usize, FinishedBatch<S::Batch>)> {
        self.slots[slot].sent.synchronize()?;
        let word = self.slots[slot].word[0];
        let batch = source.finish(word, self.context(slot))?;
        self.kernels.record(&self.slots[slot].produced)?;
        self.slots[slot].copy(batch.bytes)?;
        Ok((slot, batch))
    }

    fn context(&mut self, slot: usize) -> BatchContext<'_> {
        let Self { kernels, uploads, workspace, slots, .. } = self;
        let Slot { input, uploaded, arrays, word, sent, produced, .. } = &mut slots[slot];
        BatchContext {
            stream: kernels,
            workspace,
            input: InputBuffer { uploads, kernels, memory: input, produced, uploaded },
            arrays: arrays.each_mut().map(|array| ArrayBuffer { memory: &mut array.device }),
            notification: HostNotification { word, sent },
        }
    }

    /// Waits until a batch is in pinned memory, and calls `visit` with it.
    fn visit<B>(
        &mut self,
        (slot, FinishedBatch { bytes, batch }): (usize, FinishedBatch<B>),
        visit: &mut impl FnMut(B, [&mut [u8]; NUM_ARRAYS]) -> ControlFlow<()>,
        waited: &mut Duration,
    ) -> Result<ControlFlow<()>> {
        let Slot { arrays, copied, .. } = &mut self.slots[slot];
        let begin = Instant::now();
        copied.synchronize()?;
        *waited += begin.elapsed();
        let mut sizes = bytes.into_iter();
        let arrays = arrays.each_mut().map(|array| &mut array.pinned[..sizes.next().unwrap_or(0)]);
        Ok(visit(batch, arrays))
    }

    /// Waits for all work in progress, and returns the first error.
    fn wait(&mut self) -> Result<()> {
        self.is_busy = false;
        let [a, b] = &self.slots;
        let all = [&self.uploads, &self.kernels, &a.copies, &b.copies].map(Stream::synchronize);
        all.into_iter().collect()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // After a panic of the callback, copies to pinned memory may be in progress. Their errors no longer matter.
        if self.is_busy {
            let _ = self.wait();
        }
    }
}

impl Slot {
    fn new(gpu: &Gpu) -> Result<Self> {
        let label = "a batch";
        let buffer = || {
            let device = Buffer::uninitialized(gpu, 0, label)?;
            Ok(MirroredBuffer { device, pinned: PinnedBuffer::zeroed(gpu, 0, label)? })
        };
        Ok(Self {
            input: buffer()?,
            uploaded: Event::new(gpu)?,
            arrays: [buffer()?, buffer()?, buffer()?],
            word: PinnedBuffer::zeroed(gpu, 1, label)?,
            sent: Event::new(gpu)?,
            copies: Stream::new(gpu)?,
            produced: Event::new(gpu)?,
            copied: Event::new(gpu)?,
        })
    }

    fn bytes(&self) -> usize {
        let buffers = self.arrays.iter().chain([&self.input]);
        size_of_val(&*self.word) + buffers.map(|array| array.device.len() + array.pinned.len()).sum::<usize>()
    }

    /// Starts the copy of the batch to pinned memory, whose previous contents are no longer in use.
    fn copy(&mut self, bytes: [usize; NUM_ARRAYS]) -> Result<()> {
        self.copies.wait(&self.produced)?;
        for (MirroredBuffer { device, pinned }, bytes) in self.arrays.iter_mut().zip(bytes) {
            grow(pinned, bytes, device.len(), device.gpu())?;
            // SAFETY: both sides have at least `bytes` bytes; the next batch, the callback and the release of the memory wait for the
            // copy.
            unsafe { self.copies.start_reading(device.slice().part(0, bytes), &mut pinned[..bytes]) }?;
        }
        self.copies.record(&self.copied)
    }
}

/// Makes sure that pinned memory has `bytes` bytes. If it has to grow, it gets `new_len` bytes and loses its contents.
fn grow(pinned: &mut PinnedBuffer<u8>, bytes: usize, new_len: usize, gpu: &Gpu) -> Result<()> {
    if pinned.len() < bytes {
        // The old memory is freed first.
        *pinned = PinnedBuffer::zeroed(gpu, 0, "a batch")?;
        *pinned = PinnedBuffer::zeroed(gpu, new_len, "a batch")?;
    }
    Ok(())
}

/// Casts the bytes of an array in pinned memory to its items.
pub(crate) fn items<T: Pod>(bytes: &mut [u8]) -> &mut [T] {
    // Pinned memory is aligned for any item; an empty array has no alignment.
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}
