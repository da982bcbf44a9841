//! Batches on a GPU: one is made while the one before it is copied, and the one before that is looked at.
//!
//! Kernels are on one stream, in order. Two slots take turns: each has memory for a batch on the device and in pinned host memory, and
//! a stream for its copies. A slot's device memory is free for the next batch once it has been copied, its pinned memory once the
//! batch has been looked at.
//!
//! How large a batch is may be known only when some of its kernels have run. Then a kernel tells the host as soon as that is there, past
//! the kernels behind it, which need not wait for the host, and past the copies of other batches.
//!
//! It knows nothing of what batches are: a [`Work`] makes them, of up to three arrays.

use crate::device::{Buffer, Event, Gpu, PinnedBuffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::notify::notify_host;
use bytemuck::{NoUninit, Pod};
use cuda_std::mem::{Slice, SliceMut};
use cust_core::DeviceCopy;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Arrays of a batch.
const PARTS: usize = 3;
/// Bytes that a thread puts in pinned memory at a time.
const STAGED: usize = 1 << 20;

/// Makes batches.
pub(crate) trait Work {
    /// What the host knows of a batch, beside its arrays.
    type Batch;

    /// Puts the work for the next batch on the stream, and does not wait for it; false if there is no other.
    fn make(&mut self, place: Place<'_>) -> Result<bool>;

    /// How large that batch is, in the same place, by the word that was [told](Telling::tell). Waits, and puts more work on the stream,
    /// if there was too little room.
    fn settle(&mut self, word: u64, place: Place<'_>) -> Result<Made<Self::Batch>>;
}

/// A batch that is made, or will be when the stream has done the work.
pub(crate) struct Made<B> {
    /// Bytes of each array, from its begin.
    pub(crate) bytes: [usize; PARTS],
    pub(crate) batch: B,
}

/// Where a batch is made.
pub(crate) struct Place<'a> {
    /// The stream of all kernels.
    pub(crate) stream: &'a Stream,
    /// Of that stream.
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) input: Input<'a>,
    pub(crate) parts: [Room<'a>; PARTS],
    pub(crate) telling: Telling<'a>,
}

/// The way of a word to the host.
pub(crate) struct Telling<'a> {
    word: &'a mut PinnedBuffer<u64>,
    told: &'a Event,
}

impl Telling<'_> {
    /// Tells the host a word, as soon as the work of a stream so far is done.
    ///
    /// # Safety
    /// It is one word, which stays alive and is not changed before the batch is settled.
    pub(crate) unsafe fn tell(self, stream: &Stream, from: Slice<'_, u64>) -> Result<()> {
        let Self { word, told } = self;
        // SAFETY: passed on to the caller; it is looked at when the event has come.
        unsafe { notify_host(stream, from, word) }?;
        stream.record(told)
    }
}

/// Room for what a batch is made of.
pub(crate) struct Input<'a> {
    uploads: &'a Stream,
    kernels: &'a Stream,
    memory: &'a mut Part,
    /// The kernels that read what was there before.
    made: &'a Event,
    /// The copy of what is in pinned memory.
    uploaded: &'a Event,
}

impl<'a> Input<'a> {
    /// Brings items to the device, by way of pinned memory, while kernels of other batches run; those to come wait for them.
    pub(crate) fn upload<T: DeviceCopy + NoUninit + Sync>(
        self,
        items: &[T],
        label: &'static str,
    ) -> Result<Slice<'a, T>> {
        let Self { uploads, kernels, memory: Part { device, pinned }, made, uploaded } = self;
        // With room for some more: the next batch may have a few queries more than this one.
        let to = Room { memory: device }.of::<T>(items.len(), usize::MAX, label)?;
        let bytes = size_of_val(items);
        uploaded.synchronize()?;
        grow(pinned, bytes, bytes.saturating_add(bytes / 4), uploads.gpu())?;
        let staged = &mut pinned[..bytes];
        let piece = (STAGED / size_of::<T>()).max(1);
        let pieces = staged.par_chunks_mut(piece * size_of::<T>()).zip(items.par_chunks(piece));
        pieces.for_each(|(to, from)| to.copy_from_slice(bytemuck::cast_slice(from)));
        uploads.wait(made)?;
        // SAFETY: there is room, the kernels that read what was there before are waited for, and the next upload waits for this one, as
        // does whoever frees.
        unsafe { uploads.start_writing(to, staged) }?;
        uploads.record(uploaded)?;
        kernels.wait(uploaded)?;
        Ok(to.read_only())
    }
}

/// Room for an array of a batch.
pub(crate) struct Room<'a> {
    memory: &'a mut Buffer<u8>,
}

impl<'a> Room<'a> {
    /// The same for a while.
    pub(crate) fn reborrow(&mut self) -> Room<'_> {
        Room { memory: self.memory }
    }

    /// For `len` items; of other batches it will be for `most` at most. What is there stays there unless it has to grow.
    pub(crate) fn of<T: DeviceCopy>(
        self,
        len: usize,
        most: usize,
        label: &'static str,
    ) -> Result<SliceMut<'a, T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        if self.memory.len() < bytes {
            // A little more than that, so that it need not grow with the next. The old memory goes first, after all work that uses it.
            let roomy = bytes.saturating_add(bytes / 4).min(most.saturating_mul(size_of::<T>()));
            *self.memory = Buffer::uninitialized(self.memory.gpu(), 0, label)?;
            *self.memory = Buffer::uninitialized(self.memory.gpu(), roomy.max(bytes), label)?;
        }
        // SAFETY: there are so many bytes, aligned for any item, which stay borrowed for 'a.
        Ok(unsafe { SliceMut::from_raw_parts(self.memory.as_raw() as *mut T, len) })
    }
}

/// The streams, and the memory of two batches.
#[derive(Debug)]
pub(crate) struct Pipeline {
    gpu: Gpu,
    kernels: Stream,
    /// For queries to the device.
    uploads: Stream,
    workspace: Workspace,
    slots: [Slot; 2],
    /// Something may be under way.
    is_busy: bool,
}

#[derive(Debug)]
struct Slot {
    input: Part,
    uploaded: Event,
    made_of: [Part; PARTS],
    /// What its kernels tell the host, and the event that it is there.
    word: PinnedBuffer<u64>,
    told: Event,
    /// For its copies.
    stream: Stream,
    /// Kernels have made its batch.
    made: Event,
    /// Its batch is in pinned memory.
    copied: Event,
}

/// An array of a slot.
#[derive(Debug)]
struct Part {
    device: Buffer<u8>,
    pinned: PinnedBuffer<u8>,
}

/// A batch in a slot.
struct InSlot<B> {
    slot: usize,
    made: Made<B>,
}

impl Pipeline {
    /// Streams, and no memory so far.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let (kernels, uploads) = (Stream::new(gpu)?, Stream::new(gpu)?);
        let slots = [Slot::new(gpu)?, Slot::new(gpu)?];
        Ok(Self { gpu: gpu.clone(), kernels, uploads, workspace: Workspace::new(gpu), slots, is_busy: false })
    }

    /// True if it is of that GPU.
    pub(crate) fn is_of(&self, gpu: &Gpu) -> bool {
        self.gpu.same(gpu)
    }

    /// Bytes held, on the device and pinned.
    pub(crate) fn bytes(&self) -> u64 {
        let of_slots: usize = self.slots.iter().map(Slot::bytes).sum();
        self.workspace.bytes() + of_slots as u64
    }

    /// Makes all batches, after all work of a stream so far, and shows each in its turn, until there is none or it is told to stop; then
    /// nothing is under way any more. Returns also how long it waited for copies. Batches that were made before one failed are shown, and
    /// then comes the error.
    pub(crate) fn run<W: Work>(
        &mut self,
        after: &Stream,
        work: &mut W,
        show: impl FnMut(W::Batch, [&mut [u8]; PARTS]) -> ControlFlow<()>,
    ) -> Result<(ControlFlow<()>, Duration)> {
        let mut waited = Duration::ZERO;
        // Once, and not with each batch: an event of a stream that has copied is queued behind the copies of others.
        self.kernels.wait_for(after)?;
        self.is_busy = true;
        let flow = self.take_turns(work, show, &mut waited);
        let over = self.wait();
        let flow = flow?;
        over.map(|()| (flow, waited))
    }

    fn take_turns<W: Work>(
        &mut self,
        work: &mut W,
        mut show: impl FnMut(W::Batch, [&mut [u8]; PARTS]) -> ControlFlow<()>,
        waited: &mut Duration,
    ) -> Result<ControlFlow<()>> {
        let (mut slot, mut copied, mut failed) = (0, None, Ok(()));
        let mut is_made = self.make(work, slot);
        loop {
            let batch = match is_made.and_then(|is_made| is_made.then(|| self.copy(work, slot)).transpose()) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            };
            // The next one takes the slot of the one before: its device memory, while the callback looks at the pinned one.
            slot = 1 - slot;
            is_made = self.make(work, slot);
            if let Some(before) = copied.replace(batch)
                && self.show(before, &mut show, waited)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        if let Some(last) = copied
            && self.show(last, &mut show, waited)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        failed.map(|()| ControlFlow::Continue(()))
    }

    /// Puts the next batch on the stream, in a slot whose batch before has been copied or is being copied; false if there is none.
    fn make<W: Work>(&mut self, work: &mut W, slot: usize) -> Result<bool> {
        self.kernels.wait(&self.slots[slot].copied)?;
        work.make(self.place(slot))
    }

    /// Sends the batch of a slot on its way to pinned memory, as soon as it is known how large it is.
    fn copy<W: Work>(&mut self, work: &mut W, slot: usize) -> Result<InSlot<W::Batch>> {
        self.slots[slot].told.synchronize()?;
        let word = self.slots[slot].word[0];
        let made = work.settle(word, self.place(slot))?;
        self.kernels.record(&self.slots[slot].made)?;
        self.slots[slot].copy(made.bytes)?;
        Ok(InSlot { slot, made })
    }

    fn place(&mut self, slot: usize) -> Place<'_> {
        let Self { kernels, uploads, workspace, slots, .. } = self;
        let Slot { input, uploaded, made_of, word, told, made, .. } = &mut slots[slot];
        Place {
            stream: kernels,
            workspace,
            input: Input { uploads, kernels, memory: input, made, uploaded },
            parts: made_of.each_mut().map(|part| Room { memory: &mut part.device }),
            telling: Telling { word, told },
        }
    }

    /// Waits for a batch to be in pinned memory, and shows it.
    fn show<B>(
        &mut self,
        InSlot { slot, made: Made { bytes, batch } }: InSlot<B>,
        show: &mut impl FnMut(B, [&mut [u8]; PARTS]) -> ControlFlow<()>,
        waited: &mut Duration,
    ) -> Result<ControlFlow<()>> {
        let Slot { made_of, copied, .. } = &mut self.slots[slot];
        let begin = Instant::now();
        copied.synchronize()?;
        *waited += begin.elapsed();
        let mut sizes = bytes.into_iter();
        let arrays = made_of.each_mut().map(|part| &mut part.pinned[..sizes.next().unwrap_or(0)]);
        Ok(show(batch, arrays))
    }

    /// Waits for all that is under way, whatever becomes of it.
    fn wait(&mut self) -> Result<()> {
        self.is_busy = false;
        let [a, b] = &self.slots;
        let all = [&self.uploads, &self.kernels, &a.stream, &b.stream].map(Stream::synchronize);
        all.into_iter().collect()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // If a callback panics, copies to pinned memory may be under way. Their errors are of no interest any more.
        if self.is_busy {
            let _ = self.wait();
        }
    }
}

impl Slot {
    fn new(gpu: &Gpu) -> Result<Self> {
        let label = "a batch";
        let part = || {
            let device = Buffer::uninitialized(gpu, 0, label)?;
            Ok(Part { device, pinned: PinnedBuffer::zeroed(gpu, 0, label)? })
        };
        Ok(Self {
            input: part()?,
            uploaded: Event::new(gpu)?,
            made_of: [part()?, part()?, part()?],
            word: PinnedBuffer::zeroed(gpu, 1, label)?,
            told: Event::new(gpu)?,
            stream: Stream::new(gpu)?,
            made: Event::new(gpu)?,
            copied: Event::new(gpu)?,
        })
    }

    fn bytes(&self) -> usize {
        let parts = self.made_of.iter().chain([&self.input]);
        size_of_val(&*self.word) + parts.map(|part| part.device.len() + part.pinned.len()).sum::<usize>()
    }

    /// Copies its batch to pinned memory, of which nothing is looked at any more.
    fn copy(&mut self, bytes: [usize; PARTS]) -> Result<()> {
        self.stream.wait(&self.made)?;
        for (Part { device, pinned }, bytes) in self.made_of.iter_mut().zip(bytes) {
            // As much as there may be on the device.
            grow(pinned, bytes, device.len(), device.gpu())?;
            // SAFETY: there is room on both sides; the next batch waits for the copy, and so does whoever looks or frees.
            unsafe { self.stream.start_reading(device.slice().part(0, bytes), &mut pinned[..bytes]) }?;
        }
        self.stream.record(&self.copied)
    }
}

/// Pinned memory for so many bytes, and for more if it has to grow. What was there is not needed any more.
fn grow(pinned: &mut PinnedBuffer<u8>, bytes: usize, roomy: usize, gpu: &Gpu) -> Result<()> {
    if pinned.len() < bytes {
        // The old memory goes first.
        *pinned = PinnedBuffer::zeroed(gpu, 0, "a batch")?;
        *pinned = PinnedBuffer::zeroed(gpu, roomy, "a batch")?;
    }
    Ok(())
}

/// Bytes of pinned memory, from the begin of an array of a batch on, as the items that they are.
pub(crate) fn items<T: Pod>(bytes: &mut [u8]) -> &mut [T] {
    // Pinned memory begins where any item may; none at all begins anywhere.
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}
