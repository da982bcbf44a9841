//! Copies through page-locked memory: some threads write or read pieces of it while other pieces are copied. The memory is kept for the next
//! copy, because to allocate it takes longer than many copies. The page of the suite `copies` has the measurements.
//!
//! Copies have threads of their own. If all threads of the caller's pool waited for copies, none would be left for the copies. And a thread of
//! a pool that waits may run another task of the caller, which may need a lock that the caller holds.

use super::{CudaDriver, raw};
use crate::device::driver::{Driver, Memory, PieceReader, PieceWriter, RawEvent, RawStream, Transfer};
use crate::device::pieces::{LARGE_BYTES, in_vectors};
use crate::error::{Error, Result};
use crate::memory::Parts;
use crate::parallel::Ranges;
use crate::threads::{each_number, lock};
use std::mem::MaybeUninit;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::{slice, thread};

/// Maximum number of threads of a copy. Each has two pieces: it handles one while the other is copied. (`copies`: with 16 in place of 8, a
/// copy of 1 GB to a new vector takes 59 ms, not 101; copies of memory in use take the same time.)
const MAX_THREADS: usize = 16;
/// The bytes of a piece (`copies`: 512 KiB are slower).
const PIECE: usize = 1 << 20;
/// Maximum number of copies whose memory is kept.
const MAX_IDLE: usize = 4;

/// The copies in progress on all devices. They share the CPU. (`quadtree-host`: with 16 threads for each of them, a build of 80M points out of
/// core takes 297 ms, not 258.)
static NUM_RUNNING: AtomicUsize = AtomicUsize::new(0);

/// The page-locked memory that no copy uses.
#[derive(Default)]
pub(super) struct IdleMemory(Mutex<Vec<Staging>>);

fn num_cpu_threads() -> usize {
    static NUM: OnceLock<usize> = OnceLock::new();
    *NUM.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Page-locked memory of a copy, and for each piece the event after its last copy.
#[derive(Default)]
struct Staging {
    address: u64,
    copied: Vec<RawEvent>,
}

/// The page-locked memory of a copy in progress.
struct Running<'a> {
    driver: &'a CudaDriver,
    stream: RawStream,
    staging: Staging,
}

/// A piece of a copy in progress.
struct Piece {
    address: u64,
    copied: RawEvent,
}

/// Returns true for many bytes of host memory that no library has page-locked.
fn is_large_and_pageable(host: *const u8, bytes: usize) -> bool {
    if bytes < LARGE_BYTES {
        return false;
    }
    let mut memory = 0u32;
    // SAFETY: writes one number. The context is current.
    let code = unsafe {
        raw::cuPointerGetAttribute((&raw mut memory).cast(), raw::POINTER_MEMORY_TYPE, host as u64)
    };
    code != raw::SUCCESS || memory == 0
}

/// Returns false for a copy that has not begun, because page-locked memory is exhausted.
fn unless_exhausted(copied: Result<()>) -> Result<bool> {
    match copied {
        Err(Error::OutOfMemory { memory: "pinned host", .. }) => Ok(false),
        copied => copied.map(|()| true),
    }
}

/// The ranges that no thread has taken.
struct Rest {
    ranges: Ranges,
    next: AtomicUsize,
}

impl Rest {
    fn take(&self) -> Option<Range<usize>> {
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        (i < self.ranges.num()).then(|| self.ranges.get(i))
    }

    fn end(&self) {
        self.next.store(self.ranges.num(), Ordering::Relaxed);
    }
}

impl CudaDriver {
    /// Copies large pageable memory by way of page-locked memory. Returns false, and has copied nothing, if the driver's copy is as fast, or
    /// page-locked memory is exhausted.
    ///
    /// # Safety
    /// Like [`Driver::transfer`].
    pub(super) unsafe fn copy_pageable(
        &self,
        transfer: Transfer<'_>,
        bytes: usize,
        stream: RawStream,
    ) -> Result<bool> {
        let copied = match transfer {
            Transfer::ToDevice { to, from } if is_large_and_pageable(from, bytes) => {
                // SAFETY: passed on to the caller.
                let from = unsafe { slice::from_raw_parts(from, bytes) };
                let write = |begin: usize, piece: &mut [MaybeUninit<u8>]| {
                    piece.write_copy_of_slice(&from[begin..][..piece.len()]);
                    Ok(())
                };
                // SAFETY: passed on to the caller.
                unsafe { self.write_staged(to, bytes, 1, &write, stream) }
            }
            Transfer::ToHost { to, from } if is_large_and_pageable(to, bytes) => {
                // SAFETY: passed on to the caller.
                let to = Parts::new(unsafe { slice::from_raw_parts_mut(to.cast(), bytes) });
                let read = |begin: usize, piece: &[u8]| {
                    // SAFETY: pieces are disjoint.
                    unsafe { to.part(begin..begin + piece.len()) }.write_copy_of_slice(piece);
                    Ok(())
                };
                // SAFETY: passed on to the caller.
                unsafe { self.read_staged(from, bytes, 1, &read, stream) }
            }
            _ => return Ok(false),
        };
        unless_exhausted(copied)
    }

    /// Carries out [`Transfer::ToDeviceBy`].
    ///
    /// # Safety
    /// Like [`Driver::transfer`].
    pub(super) unsafe fn write_by(
        &self,
        to: u64,
        bytes: usize,
        unit: usize,
        write: &PieceWriter<'_>,
        stream: RawStream,
    ) -> Result<()> {
        let staged = || {
            // SAFETY: passed on to the caller.
            unsafe { self.write_staged(to, bytes, unit, write, stream) }
        };
        if bytes >= LARGE_BYTES && unless_exhausted(staged())? {
            return Ok(());
        }
        in_vectors(bytes, unit, &mut |begin, piece| {
            // SAFETY: initialized bytes.
            write(begin, unsafe { slice::from_raw_parts_mut(piece.as_mut_ptr().cast(), piece.len()) })?;
            let copy = Transfer::ToDevice { to: to + begin as u64, from: piece.as_ptr() };
            // SAFETY: passed on to the caller; the copy is waited for.
            let copied = unsafe { self.transfer(copy, piece.len(), stream) };
            self.synchronize(stream).and(copied)
        })
    }

    /// Carries out [`Transfer::ToHostBy`].
    ///
    /// # Safety
    /// Like [`Driver::transfer`].
    pub(super) unsafe fn read_by(
        &self,
        from: u64,
        bytes: usize,
        unit: usize,
        read: &PieceReader<'_>,
        stream: RawStream,
    ) -> Result<()> {
        let staged = || {
            // SAFETY: passed on to the caller.
            unsafe { self.read_staged(from, bytes, unit, read, stream) }
        };
        if bytes >= LARGE_BYTES && unless_exhausted(staged())? {
            return Ok(());
        }
        in_vectors(bytes, unit, &mut |begin, piece| {
            let copy = Transfer::ToHost { to: piece.as_mut_ptr(), from: from + begin as u64 };
            // SAFETY: passed on to the caller; the copy is waited for.
            let copied = unsafe { self.transfer(copy, piece.len(), stream) };
            self.synchronize(stream).and(copied)?;
            read(begin, piece)
        })
    }

    /// Copies to the device by way of page-locked memory.
    ///
    /// # Safety
    /// Like [`Driver::transfer`].
    unsafe fn write_staged(
        &self,
        to: u64,
        bytes: usize,
        unit: usize,
        write: &PieceWriter<'_>,
        stream: RawStream,
    ) -> Result<()> {
        self.copy_staged(bytes, unit, stream, &|rest, pieces| {
            for Piece { address, copied } in pieces.iter().cycle() {
                let Some(range) = rest.take() else { break };
                self.synchronize_event(*copied)?;
                // SAFETY: the piece is as long, and its last copy is done.
                let piece =
                    unsafe { slice::from_raw_parts_mut(*address as *mut MaybeUninit<u8>, range.len()) };
                write(range.start, piece)?;
                let copy = Transfer::ToDevice { to: to + range.start as u64, from: piece.as_ptr().cast() };
                // SAFETY: passed on to the caller; the piece is written again only after the copy.
                unsafe { self.transfer(copy, range.len(), stream)? };
                self.record(*copied, stream)?;
            }
            Ok(())
        })
    }

    /// Copies from the device by way of page-locked memory.
    ///
    /// # Safety
    /// Like [`Driver::transfer`].
    unsafe fn read_staged(
        &self,
        from: u64,
        bytes: usize,
        unit: usize,
        read: &PieceReader<'_>,
        stream: RawStream,
    ) -> Result<()> {
        self.copy_staged(bytes, unit, stream, &|rest, pieces| {
            let mut before: Option<(&Piece, Range<usize>)> = None;
            for piece in pieces.iter().cycle() {
                let range = rest.take();
                if let Some(range) = &range {
                    let copy =
                        Transfer::ToHost { to: piece.address as *mut u8, from: from + range.start as u64 };
                    // SAFETY: passed on to the caller; the piece has been read, and is read again after the copy.
                    unsafe { self.transfer(copy, range.len(), stream)? };
                    self.record(piece.copied, stream)?;
                }
                if let Some((Piece { address, copied }, range)) = before {
                    self.synchronize_event(*copied)?;
                    // SAFETY: the copy has written the bytes.
                    read(range.start, unsafe { slice::from_raw_parts(*address as *const u8, range.len()) })?;
                }
                let Some(range) = range else { break };
                before = Some((piece, range));
            }
            Ok(())
        })
    }

    /// Calls `work` on several threads, each with two pieces of its own, which takes ranges of at most a piece in whole units. Returns when
    /// all copies are done; after an error threads take no more ranges.
    fn copy_staged(
        &self,
        bytes: usize,
        unit: usize,
        stream: RawStream,
        work: &(dyn Fn(&Rest, &[Piece]) -> Result<()> + Sync),
    ) -> Result<()> {
        let running = Running { driver: self, stream, staging: self.staging()? };
        let Staging { address, copied } = &running.staging;
        let max_threads = num_cpu_threads() / (NUM_RUNNING.fetch_add(1, Ordering::Relaxed) + 1);
        let rest = Rest { ranges: Ranges::new(bytes, PIECE / unit * unit), next: AtomicUsize::new(0) };
        // Each thread has two pieces at least, and the staging has two for each.
        let num_threads = (rest.ranges.num() / 2).min(max_threads).clamp(1, copied.len() / 2);
        each_number(num_threads, &|thread| {
            let piece = |i: usize| Piece { address: address + (i * PIECE) as u64, copied: copied[i] };
            work(&rest, &[2 * thread, 2 * thread + 1].map(piece)).inspect_err(|_| rest.end())
        })?;
        self.synchronize(stream)
    }

    /// Takes page-locked memory that no copy uses, or allocates some.
    fn staging(&self) -> Result<Staging> {
        if let Some(idle) = lock(&self.idle_memory.0).pop() {
            return Ok(idle);
        }
        let num_pieces = 2 * num_cpu_threads().min(MAX_THREADS);
        let bytes = num_pieces * PIECE;
        let address = self.alloc(Memory::PinnedHost, bytes, "arrays on their way to or from the device")?;
        let mut staging = Staging { address, copied: Vec::with_capacity(num_pieces) };
        for _ in 0..num_pieces {
            match self.create_event() {
                Ok(event) => staging.copied.push(event),
                Err(error) => {
                    self.free_staging(staging);
                    return Err(error);
                }
            }
        }
        Ok(staging)
    }

    fn free_staging(&self, staging: Staging) {
        staging.copied.into_iter().for_each(|event| self.destroy_event(event));
        // SAFETY: allocated by `staging`, and no copy uses it.
        unsafe { self.free(Memory::PinnedHost, staging.address) };
    }

    /// Frees the memory that no copy uses.
    pub(super) fn free_idle_memory(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle_memory.0));
        idle.into_iter().for_each(|staging| self.free_staging(staging));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // After an error or a panic, copies may still be running. Their errors are irrelevant then.
        let _ = self.driver.synchronize(self.stream);
        NUM_RUNNING.fetch_sub(1, Ordering::Relaxed);
        let staging = std::mem::take(&mut self.staging);
        let mut idle = lock(&self.driver.idle_memory.0);
        if idle.len() < MAX_IDLE {
            idle.push(staging);
        } else {
            drop(idle);
            self.driver.free_staging(staging);
        }
    }
}
