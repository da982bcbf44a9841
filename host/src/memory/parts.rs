//! Disjoint mutable parts of a slice for several threads.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// A slice whose disjoint parts several threads write.
pub(crate) struct Parts<'a, T> {
    start: *mut MaybeUninit<T>,
    len: usize,
    slice: PhantomData<&'a mut [MaybeUninit<T>]>,
}

// SAFETY: a shared `Parts` gives access only through `part`, whose caller keeps threads to different parts.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(slice: &'a mut [MaybeUninit<T>]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    pub(crate) fn of_initialized(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr().cast(), len: slice.len(), slice: PhantomData }
    }

    /// # Safety
    /// The items of `of_initialized` stay initialized. The range is in the slice, and no other reference to any of its items is in use.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &'a mut [MaybeUninit<T>] {
        debug_assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range is inside the slice, which is borrowed for 'a, and the caller guarantees exclusive access.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Writes one item.
    ///
    /// # Safety
    /// Like [`part`](Self::part).
    pub(crate) unsafe fn write(&self, i: usize, item: T) {
        // SAFETY: passed on to the caller.
        let slot = unsafe { self.part(i..i + 1) };
        slot[0].write(item);
    }
}
