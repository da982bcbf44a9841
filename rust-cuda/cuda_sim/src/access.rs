//! Loads, stores and atomic operations: bounds, races, initialization, then the bytes.

use crate::clock::releases;
use crate::error::{AccessInfo, BadAddress, Mode};
use crate::region::Region;
use crate::shadow::{Class, Conflict, Stamp};
use crate::state::{At, State, Watch};
use cuda_std::atomic::Scope;
use cuda_std::simt::{Access, AccessKind, Space};

/// Largest number of delayed stores of a block; beyond it some are written to memory.
const MAX_DELAYED: usize = 64;

/// Why an access is not performed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    OutOfBounds,
    BadAddress(BadAddress),
    Conflict(Stamp, Conflict),
}

/// Findings about an access that was performed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notice {
    /// The access read bytes that were never written.
    pub(crate) unwritten: bool,
    /// The access is the one that the second run searches.
    pub(crate) watched: bool,
}

/// Index of a region in global memory, or of a region in the block's shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RegionIndex {
    Global(usize),
    Shared(usize),
}

/// A checked access: where its bytes are.
#[derive(Clone, Copy)]
struct CheckedAccess {
    index: RegionIndex,
    offset: usize,
    notice: Notice,
}

impl State<'_> {
    /// Performs a load.
    ///
    /// # Safety
    /// `to` must be valid for writes of the access's bytes.
    pub(crate) unsafe fn load(&mut self, at: At, access: &Access, to: *mut u8) -> Result<Notice, Fault> {
        let checked = self.check(at, access, Mode::Load)?;
        let from = self.region(at, checked.index).at(checked.offset, access.bytes);
        // SAFETY: `from` is checked, `to` is the caller's, and they do not overlap.
        unsafe { copy(from, to, access.bytes) };
        if self.options.delay_stores && matches!(checked.index, RegionIndex::Global(_)) {
            // SAFETY: initialized by the copy.
            let to = unsafe { std::slice::from_raw_parts_mut(to, access.bytes) };
            self.blocks[at.block].delayed.overlay(access.address, to);
        }
        Ok(checked.notice)
    }

    /// Performs a store.
    ///
    /// # Safety
    /// `from` must be valid for reads of the access's bytes.
    pub(crate) unsafe fn store(&mut self, at: At, access: &Access, from: *const u8) -> Result<Notice, Fault> {
        let checked = self.check(at, access, Mode::Store)?;
        let is_global = matches!(checked.index, RegionIndex::Global(_));
        if self.options.delay_stores && is_global {
            if !releases_to_device(access.kind) {
                // SAFETY: of the caller.
                let bytes = unsafe { std::slice::from_raw_parts(from, access.bytes) };
                self.delay_store(at, access.address, bytes);
                return Ok(checked.notice);
            }
            self.flush_block(at.block);
        }
        let to = self.region(at, checked.index).at(checked.offset, access.bytes);
        // SAFETY: `to` is checked, `from` is the caller's, and they do not overlap.
        let changed = unsafe {
            let changed = !same(from, to, access.bytes);
            copy(from, to, access.bytes);
            changed
        };
        self.version += u64::from(changed);
        self.region(at, checked.index).written.set(checked.offset, access.bytes);
        Ok(checked.notice)
    }

    /// Performs an atomic read-modify-write.
    pub(crate) fn update(
        &mut self,
        at: At,
        access: &Access,
        op: &mut dyn FnMut(*mut u8),
    ) -> Result<Notice, Fault> {
        let checked = self.check(at, access, Mode::Update)?;
        if self.options.delay_stores && matches!(checked.index, RegionIndex::Global(_)) {
            for (key, chunk) in self.blocks[at.block].delayed.take_range(access.address, access.bytes) {
                self.write_to_memory(key, &chunk);
            }
            if releases_to_device(access.kind) {
                self.flush_block(at.block);
            }
        }
        let target = self.region(at, checked.index).at(checked.offset, access.bytes);
        let mut before = [0u8; 16];
        let kept = access.bytes.min(16);
        // SAFETY: `target` is checked; `op` touches no more than the access's bytes, says its maker.
        let changed = unsafe {
            copy(target, before.as_mut_ptr(), kept);
            op(target);
            !same(target, before.as_ptr(), kept)
        };
        self.version += u64::from(changed);
        self.region(at, checked.index).written.set(checked.offset, access.bytes);
        Ok(checked.notice)
    }

    fn delay_store(&mut self, at: At, address: usize, bytes: &[u8]) {
        let delayed = &mut self.blocks[at.block].delayed;
        delayed.store(address, bytes);
        let full = delayed.len() > MAX_DELAYED;
        self.version += 1;
        if full || self.random.one_in(4) {
            self.flush_any(at.block);
        }
    }

    #[inline]
    fn region(&mut self, at: At, index: RegionIndex) -> &mut Region {
        match index {
            RegionIndex::Global(index) => self.memory.region(index),
            RegionIndex::Shared(index) => &mut self.blocks[at.block].shared.regions[index],
        }
    }

    /// Finds the bytes of an access and makes all checks.
    #[inline]
    fn check(&mut self, at: At, access: &Access, mode: Mode) -> Result<CheckedAccess, Fault> {
        let (index, offset) = self.locate(at, access)?;
        let block = &mut self.blocks[at.block];
        block.threads[at.thread as usize].time += 1;
        let mut notice = Notice::default();
        if self.options.checks.races {
            if let Some(watch) = self.watch {
                let time = block.threads[at.thread as usize].time;
                notice.watched = watch == Watch { block: block.number, thread: at.thread, time };
            }
            self.check_race(at, access, mode, index, offset)?;
        }
        if self.options.checks.uninitialized && mode != Mode::Store {
            notice.unwritten = self.reads_unwritten(at, access, index, offset);
        }
        Ok(CheckedAccess { index, offset, notice })
    }

    #[inline]
    fn locate(&mut self, at: At, access: &Access) -> Result<(RegionIndex, usize), Fault> {
        if access.index >= access.len {
            return Err(Fault::OutOfBounds);
        }
        let (address, bytes) = (access.address, access.bytes);
        let index = match access.space {
            Space::Global => self.memory.find(address).map(RegionIndex::Global),
            Space::Shared => self.blocks[at.block].shared.find(address).map(RegionIndex::Shared),
        };
        let Some(index) = index else { return Err(Fault::BadAddress(self.why_bad(access))) };
        let region = self.region(at, index);
        let offset = address - region.base();
        if bytes > region.bytes() - offset {
            return Err(Fault::BadAddress(BadAddress::CrossesEnd));
        }
        if !address.is_multiple_of(access.align) {
            return Err(Fault::BadAddress(BadAddress::Misaligned { align: access.align }));
        }
        Ok((index, offset))
    }

    #[cold]
    fn why_bad(&mut self, access: &Access) -> BadAddress {
        let in_other_space = match access.space {
            Space::Global => self.blocks.iter().any(|b| b.shared.find(access.address).is_some()),
            Space::Shared => {
                self.memory.find(access.address).is_some()
                    || self.blocks.iter().any(|b| b.shared.find(access.address).is_some())
            }
        };
        if in_other_space {
            BadAddress::OtherSpace
        } else if self.memory.find_freed(access.address).is_some() {
            BadAddress::Freed
        } else {
            BadAddress::Unallocated
        }
    }

    /// Searches an unordered earlier access, then applies the ordering effect of an atomic access.
    #[inline]
    fn check_race(
        &mut self,
        at: At,
        access: &Access,
        mode: Mode,
        index: RegionIndex,
        offset: usize,
    ) -> Result<(), Fault> {
        let Self { blocks, memory, samples, released, tag, .. } = self;
        let block = &mut blocks[at.block];
        let (here, block_tag) = (block.here(at.thread), block.tag());
        let clock = &mut block.clocks[at.thread as usize];
        let (region, tag, released) = match index {
            RegionIndex::Global(index) => (memory.region(index), *tag, released),
            RegionIndex::Shared(index) => {
                (&mut block.shared.regions[index], block_tag, &mut block.shared.released)
            }
        };
        let class = match access.kind {
            AccessKind::Plain => Class::Plain,
            AccessKind::ReadOnly => Class::ReadOnly,
            AccessKind::Atomic(_, Scope::Block) => Class::Narrow,
            AccessKind::Atomic(..) => Class::Wide,
        };
        let stamp = Stamp::new(here, class, mode != Mode::Load);
        let knows = |s: &Stamp| clock.knows(here, s.block, s.thread.into(), s.barriers, s.time);
        let conflict = region.shadow.access((offset, access.bytes), tag, stamp, samples, knows);
        if let Some((earlier, conflict)) = conflict {
            // After a read of unwritten bytes only the access that explains the read matters.
            let explains = words(access).any(|word| self.unwritten_words.contains_key(&word));
            if explains || self.unwritten_read.is_none() {
                self.explains_unwritten = explains;
                return Err(Fault::Conflict(earlier, conflict));
            }
        }

        let AccessKind::Atomic(order, scope) = access.kind else {
            if mode == Mode::Store && !released.is_empty() {
                released.remove(&access.address);
            }
            return Ok(());
        };
        if mode != Mode::Store
            && !released.is_empty()
            && let Some(known) = released.get(&access.address)
        {
            clock.atomic_read(here, order, scope, known);
        }
        if mode != Mode::Load {
            let more = clock.atomic_write(here, order, scope);
            let releases = more.iter().any(Option::is_some);
            if mode == Mode::Store && !released.is_empty() {
                released.remove(&access.address);
            }
            if releases {
                released.entry(access.address).or_default().add(here.block, more);
            }
        }
        Ok(())
    }

    /// Describes the access for reports.
    #[cold]
    pub(crate) fn describe(&mut self, at: At, access: &Access, mode: Mode) -> AccessInfo {
        let in_region = |r: &Region| r.offset_of(access.address).map(|offset| (r.label.clone(), offset));
        let in_global = self.memory.find(access.address).and_then(|i| in_region(self.memory.region(i)));
        let allocation = in_global.or_else(|| self.blocks[at.block].shared.describe(access.address));
        AccessInfo {
            space: access.space,
            kind: access.kind,
            mode,
            index: access.index,
            len: access.len,
            bytes: access.bytes,
            allocation,
        }
    }

    fn reads_unwritten(&mut self, at: At, access: &Access, index: RegionIndex, offset: usize) -> bool {
        let delay = self.options.delay_stores && matches!(index, RegionIndex::Global(_));
        let region = self.region(at, index);
        let Some(first) = region.first_unwritten(offset, access.bytes) else { return false };
        if !delay {
            return true;
        }
        let end = offset + access.bytes;
        let base = region.base();
        let missing: Vec<usize> =
            (first..end).filter(|&o| region.written.first_missing(o, 1).is_some()).collect();
        let delayed = &self.blocks[at.block].delayed;
        missing.iter().any(|o| !delayed.holds(base + o))
    }
}

/// Addresses of the words that an access touches.
pub(crate) fn words(access: &Access) -> impl Iterator<Item = usize> + use<> {
    access.address / 4..(access.address + access.bytes).div_ceil(4)
}

/// True if the store makes earlier stores of the block visible on the device.
fn releases_to_device(kind: AccessKind) -> bool {
    matches!(kind, AccessKind::Atomic(order, scope) if releases(order) && scope != Scope::Block)
}

/// Copies bytes; inlines the usual sizes.
///
/// # Safety
/// `from` must be valid for reads of `bytes` bytes, `to` for writes, and they must not overlap.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: of the caller; arrays of bytes have no alignment.
    unsafe {
        match bytes {
            4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            _ => from.copy_to_nonoverlapping(to, bytes),
        }
    }
}

/// True if two ranges of memory hold equal bytes.
///
/// # Safety
/// Both must be valid for reads.
#[inline]
unsafe fn same(a: *const u8, b: *const u8, bytes: usize) -> bool {
    // SAFETY: of the caller.
    unsafe {
        match bytes {
            4 => a.cast::<[u8; 4]>().read() == b.cast::<[u8; 4]>().read(),
            8 => a.cast::<[u8; 8]>().read() == b.cast::<[u8; 8]>().read(),
            _ => std::slice::from_raw_parts(a, bytes) == std::slice::from_raw_parts(b, bytes),
        }
    }
}
