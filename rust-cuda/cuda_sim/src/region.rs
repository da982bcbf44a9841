//! A region of simulated memory: poisoned host memory between red zones, a bit for each written byte, and a shadow for the
//! race check.

use crate::shadow::Shadow;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Fill byte of fresh memory: a large value as an integer, a small negative one as a float.
pub(crate) const POISON: u8 = 0xA5;
/// Alignment of allocations, as on a device.
pub(crate) const ALIGN: usize = 256;
const RED_ZONE: usize = 2 * ALIGN;

pub(crate) struct Region {
    pub(crate) label: String,
    pub(crate) shadow: Shadow,
    pub(crate) written: Written,
    /// True for host memory that kernels can access; it takes no device memory.
    pub(crate) is_host: bool,
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is owned.
unsafe impl Send for Region {}

impl Region {
    pub(crate) fn new(bytes: usize, label: String) -> Self {
        let layout = Self::layout(bytes).expect("a simulated device has less memory than the host");
        // SAFETY: the layout is not empty.
        let Some(whole) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        Self::of(whole, bytes, label)
    }

    /// Creates a region of zeroed host memory, which counts as written; `None` if the host has too little memory.
    pub(crate) fn of_host(bytes: usize, label: String) -> Option<Self> {
        let layout = Self::layout(bytes)?;
        // SAFETY: the layout is not empty.
        let whole = NonNull::new(unsafe { alloc(layout) })?;
        let mut region = Self::of(whole, bytes, label);
        region.is_host = true;
        region.contents_mut().fill(0);
        region.written.set(0, bytes);
        Some(region)
    }

    /// Creates a region in memory of its layout.
    fn of(whole: NonNull<u8>, bytes: usize, label: String) -> Self {
        let size = Self::size(bytes);
        // SAFETY: of the size allocated; the red zone before the base is part of it.
        let base = unsafe {
            whole.write_bytes(POISON, size);
            whole.add(RED_ZONE)
        };
        // Kernels and host access the memory by its address.
        base.expose_provenance();
        Self { label, shadow: Shadow::default(), written: Written::new(bytes), is_host: false, base, bytes }
    }

    /// Bytes with the red zones.
    fn size(bytes: usize) -> usize {
        bytes.next_multiple_of(ALIGN) + 2 * RED_ZONE
    }

    fn layout(bytes: usize) -> Option<Layout> {
        let size = bytes.checked_next_multiple_of(ALIGN)?.checked_add(2 * RED_ZONE)?;
        Layout::from_size_align(size, ALIGN).ok()
    }

    pub(crate) fn base(&self) -> usize {
        self.base.addr().get()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the offset of an address in the region, if it is inside.
    pub(crate) fn offset_of(&self, address: usize) -> Option<usize> {
        address.checked_sub(self.base()).filter(|&offset| offset < self.bytes)
    }

    /// Pointer to `len` bytes from `offset`.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.bytes && len <= self.bytes - offset, "checked by the caller");
        // SAFETY: within the allocation.
        unsafe { self.base.add(offset).as_ptr() }
    }

    /// Returns all bytes. Kernels change them through pointers only between calls.
    pub(crate) fn contents(&self) -> &[u8] {
        // SAFETY: initialized when allocated, and nothing writes while the launch's thread is here.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }

    pub(crate) fn contents_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }

    /// Returns the offset of the first unwritten byte of a range.
    #[inline]
    pub(crate) fn first_unwritten(&mut self, offset: usize, len: usize) -> Option<usize> {
        self.written.first_missing(offset, len)?;
        self.notice_raw_writes(offset, len);
        self.written.first_missing(offset, len)
    }

    /// Detects writes through raw pointers by their effect: an unwritten byte that is not poison. The rest of its word
    /// then counts as written, too.
    #[cold]
    pub(crate) fn notice_raw_writes(&mut self, offset: usize, len: usize) {
        let mut from = offset;
        while let Some(missing) = self.written.first_missing(from, offset + len - from) {
            let word = missing / 4 * 4;
            let end = (word + 4).min(self.bytes);
            let changed =
                |at: usize| self.contents()[at] != POISON && self.written.first_missing(at, 1).is_some();
            if (word..end).any(changed) {
                self.written.set(word, end - word);
            }
            from = end.min(offset + len);
        }
    }

    /// Resets the region to its state after [`new`](Self::new).
    pub(crate) fn reset(&mut self) {
        self.contents_mut().fill(POISON);
        self.written.clear();
    }

    /// Returns the offset from the base of the first changed byte of a red zone.
    pub(crate) fn broken_red_zone(&self) -> Option<i64> {
        let size = Self::size(self.bytes);
        // SAFETY: the whole allocation.
        let whole = unsafe { std::slice::from_raw_parts(self.base.sub(RED_ZONE).as_ptr(), size) };
        let changed = |zone: &[u8]| zone.iter().position(|&b| b != POISON);
        let before = changed(&whole[..RED_ZONE]).map(|i| i as i64 - RED_ZONE as i64);
        before.or_else(|| changed(&whole[RED_ZONE + self.bytes..]).map(|i| (self.bytes + i) as i64))
    }

    /// Poisons the red zones again.
    pub(crate) fn restore_red_zones(&mut self) {
        let size = Self::size(self.bytes);
        // SAFETY: the two red zones lie within the allocation.
        unsafe {
            self.base.sub(RED_ZONE).write_bytes(POISON, RED_ZONE);
            self.base.add(self.bytes).write_bytes(POISON, size - RED_ZONE - self.bytes);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let layout = Self::layout(self.bytes).expect("there was one");
        // SAFETY: allocated so.
        unsafe { dealloc(self.base.sub(RED_ZONE).as_ptr(), layout) }
    }
}

/// One bit for each byte: whether it was written.
#[derive(Default)]
pub(crate) struct Written {
    words: Vec<u64>,
    bytes: usize,
    missing: usize,
}

impl Written {
    fn new(bytes: usize) -> Self {
        Self { words: vec![0; bytes.div_ceil(64)], bytes, missing: bytes }
    }

    /// Copies `other`, reusing the buffer.
    pub(crate) fn clone_from(&mut self, other: &Self) {
        self.words.clone_from(&other.words);
        (self.bytes, self.missing) = (other.bytes, other.missing);
    }

    fn clear(&mut self) {
        if self.missing < self.bytes {
            self.words.fill(0);
            self.missing = self.bytes;
        }
    }

    /// Calls `f` with each word and its bits inside the range, until `f` returns a value.
    #[inline]
    fn words_of<R>(offset: usize, len: usize, mut f: impl FnMut(usize, u64) -> Option<R>) -> Option<R> {
        let mut at = offset;
        let end = offset + len;
        while at < end {
            let count = (64 - at % 64).min(end - at);
            let bits = (u64::MAX >> (64 - count)) << (at % 64);
            if let Some(result) = f(at / 64, bits) {
                return Some(result);
            }
            at += count;
        }
        None
    }

    #[inline]
    pub(crate) fn set(&mut self, offset: usize, len: usize) {
        if self.missing == 0 {
            return;
        }
        Self::words_of::<()>(offset, len, |word, bits| {
            let word = &mut self.words[word];
            self.missing -= (bits & !*word).count_ones() as usize;
            *word |= bits;
            None
        });
    }

    fn unset(&mut self, offset: usize) {
        let bit = 1 << (offset % 64);
        let word = &mut self.words[offset / 64];
        self.missing += usize::from(*word & bit != 0);
        *word &= !bit;
    }

    #[inline]
    pub(crate) fn first_missing(&self, offset: usize, len: usize) -> Option<usize> {
        if self.missing == 0 {
            return None;
        }
        Self::words_of(offset, len, |word, bits| {
            let missing = bits & !self.words[word];
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        })
    }

    /// Copies the bits of a range.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Self {
        let mut part = Self { words: vec![], bytes: len, missing: 0 };
        if self.missing > 0 {
            part = Self::new(len);
            for i in (0..len).filter(|i| self.first_missing(offset + i, 1).is_none()) {
                part.set(i, 1);
            }
        }
        part
    }

    /// Sets the bits at `offset` to those of copied bytes.
    pub(crate) fn copy_from(&mut self, offset: usize, copied: &Self) {
        self.set(offset, copied.bytes);
        if copied.missing > 0 {
            for i in (0..copied.bytes).filter(|&i| copied.first_missing(i, 1).is_some()) {
                self.unset(offset + i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_missing_until_written() {
        let mut w = Written::new(300);
        assert_eq!(w.first_missing(0, 300), Some(0));
        w.set(0, 70);
        w.set(60, 100);
        assert_eq!((w.first_missing(0, 160), w.first_missing(10, 200)), (None, Some(160)));
        w.set(160, 140);
        assert_eq!((w.missing, w.first_missing(0, 300)), (0, None));
        let empty = Written::new(10);
        w.copy_from(100, &empty.part(0, 10));
        assert_eq!((w.missing, w.first_missing(0, 300)), (10, Some(100)));
    }

    #[test]
    fn raw_writes_and_broken_red_zones_are_seen() {
        let mut region = Region::new(10, "r".into());
        assert_eq!(region.first_unwritten(0, 10), Some(0));
        region.contents_mut()[1] = 7;
        assert_eq!((region.first_unwritten(0, 4), region.first_unwritten(0, 10)), (None, Some(4)));
        assert_eq!(region.broken_red_zone(), None);
        // SAFETY: within the red zone.
        unsafe { *region.base.as_ptr().add(10) = 0 };
        assert_eq!(region.broken_red_zone(), Some(10));
        region.restore_red_zones();
        assert_eq!(region.broken_red_zone(), None);
    }
}
