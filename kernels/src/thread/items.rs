//! The items of a thread: one, or every n-th.

use core::ops::Add;
use cuda_std::prelude::*;

/// Returns the index of the thread's item in a launch of a thread per item; none from item `len` on.
#[inline(always)]
#[track_caller]
pub fn own_item(len: usize) -> Option<usize> {
    let i = thread::index_1d_u64() as usize;
    (i < len).then_some(i)
}

/// Returns the numbers `first`, `first + step`, and so on below `end`. `end + step` must not overflow.
#[inline(always)]
pub fn strided<T>(first: T, end: T, step: T) -> Strided<T> {
    Strided { next: first, end, step }
}

/// The numbers from `next` in equal steps.
#[derive(Debug)]
pub struct Strided<T> {
    next: T,
    end: T,
    step: T,
}

impl<T: Copy + PartialOrd + Add<Output = T>> Iterator for Strided<T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        let i = self.next;
        if i < self.end {
            self.next = i + self.step;
            return Some(i);
        }
        None
    }
}
