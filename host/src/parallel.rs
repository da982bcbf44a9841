//! Loops on the threads of the current rayon pool.
//!
//! rayon's iterators compile their scheduling again for every loop, and most loops here are compiled for every number of dimensions and
//! both coordinate types. These functions compile the scheduling once: it calls a task through `dyn`, and the loop inside a task is
//! compiled for its items. A loop of one task runs on the calling thread, and starts no pool.

#[cfg(feature = "las")]
mod in_order;

#[cfg(feature = "las")]
pub(crate) use in_order::in_order;

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::threads::lock;
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;

/// Number of items of a task, where an item takes some nanoseconds.
pub(crate) const TASK_ITEMS: usize = 4096;

/// Calls `task` for all numbers below `num`.
#[inline(never)]
pub(crate) fn for_each(num: usize, task: &(dyn Fn(usize) + Sync)) {
    if num <= 1 {
        return (0..num).for_each(task);
    }
    (0..num).into_par_iter().for_each(task);
}

/// Calls `task` for all numbers below `num`, until one returns an error. Returns one of the errors.
#[inline(never)]
pub(crate) fn try_for_each(num: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    if num <= 1 {
        return (0..num).try_for_each(task);
    }
    (0..num).into_par_iter().try_for_each(task)
}

/// Returns the first result, in the order of the numbers below `num`, that is not `None`.
#[inline(never)]
pub(crate) fn find_first(num: usize, task: &(dyn Fn(usize) -> Option<usize> + Sync)) -> Option<usize> {
    if num <= 1 {
        return (0..num).find_map(task);
    }
    (0..num).into_par_iter().find_map_first(task)
}

/// Returns true if `task` returns true for any number below `num`.
#[inline(never)]
pub(crate) fn any(num: usize, task: &(dyn Fn(usize) -> bool + Sync)) -> bool {
    if num <= 1 {
        return (0..num).any(task);
    }
    (0..num).into_par_iter().any(task)
}

/// Returns `find(i)` for the first number `i` below `len` for which it is not `None`. A task covers `step` numbers. `find` may be called
/// twice for a number.
pub(crate) fn find_some<T>(len: usize, step: usize, find: impl Fn(usize) -> Option<T> + Sync) -> Option<T> {
    let ranges = Ranges::new(len, step);
    let find_in = |task: usize| ranges.get(task).find_map(&find);
    find_first(ranges.num(), &|task| find_in(task).map(|_| task)).and_then(find_in)
}

/// Runs two closures, perhaps concurrently.
pub(crate) fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut a, mut b) = (Some(a), Some(b));
    let (mut a_result, mut b_result) = (None, None);
    join_dyn(&mut || a_result = a.take().map(|a| a()), &mut || b_result = b.take().map(|b| b()));
    match (a_result, b_result) {
        (Some(a), Some(b)) => (a, b),
        _ => unreachable!("both closures have run"),
    }
}

#[inline(never)]
fn join_dyn(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    rayon::join(a, b);
}

/// The numbers below `len` in ranges of `step`, the last of which may be shorter.
#[derive(Clone, Copy)]
pub(crate) struct Ranges {
    len: usize,
    step: usize,
}

impl Ranges {
    pub(crate) fn new(len: usize, step: usize) -> Self {
        Self { len, step }
    }

    /// Returns ranges of at most `max` numbers, several for every thread.
    pub(crate) fn even(len: usize, max: usize) -> Self {
        Self::new(len, (len / (8 * rayon::current_num_threads())).clamp(1, max))
    }

    /// Returns the number of ranges.
    pub(crate) fn num(self) -> usize {
        self.len.div_ceil(self.step)
    }

    /// Returns a range by its number.
    pub(crate) fn get(self, i: usize) -> Range<usize> {
        i * self.step..self.len.min((i + 1) * self.step)
    }

    /// Returns the ranges in order.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = Range<usize>> {
        (0..self.num()).map(move |i| self.get(i))
    }

    /// Returns true if `task` returns true for any range.
    pub(crate) fn any(self, task: &(dyn Fn(Range<usize>) -> bool + Sync)) -> bool {
        any(self.num(), &|i| task(self.get(i)))
    }

    /// Calls `task` for each range.
    pub(crate) fn for_each(self, task: &(dyn Fn(Range<usize>) + Sync)) {
        for_each(self.num(), &|i| task(self.get(i)));
    }

    /// Returns the results of `task` for each range, in order.
    pub(crate) fn map<T: Send>(self, task: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        map(self.num(), 1, |i| task(self.get(i)))
    }
}

/// Calls `task` for each chunk of `chunk` items with its number. The last chunk may be shorter.
pub(crate) fn for_chunks<T: Send>(items: &mut [T], chunk: usize, task: impl Fn(usize, &mut [T]) + Sync) {
    let len = items.len();
    let parts = Parts::of_initialized(items);
    Ranges::new(len, chunk).for_each(&|range| {
        let number = range.start / chunk;
        // SAFETY: ranges do not overlap.
        task(number, unsafe { parts.part(range).assume_init_mut() });
    });
}

/// Writes `item(i)` to each item `i` of a slice. A task writes `step` items.
pub(crate) fn fill<T: Send>(items: &mut [MaybeUninit<T>], step: usize, item: impl Fn(usize) -> T + Sync) {
    let len = items.len();
    let parts = Parts::new(items);
    Ranges::new(len, step).for_each(&|range| {
        // SAFETY: ranges do not overlap.
        for (slot, i) in unsafe { parts.part(range.clone()) }.iter_mut().zip(range) {
            slot.write(item(i));
        }
    });
}

/// Appends `item(i)` for all numbers `i` below `len` to a vector that has the capacity. A task appends `step` items.
pub(crate) fn extend<T: Send>(items: &mut Vec<T>, len: usize, step: usize, item: impl Fn(usize) -> T + Sync) {
    fill(&mut items.spare_capacity_mut()[..len], step, item);
    // SAFETY: `fill` has written the items, and the slice above shows that the capacity is there.
    unsafe { items.set_len(items.len() + len) };
}

/// Returns `item(i)` for all numbers `i` below `len`. A task makes `step` items.
///
/// # Errors
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory) with this label.
pub(crate) fn collect<T: Send>(
    len: usize,
    step: usize,
    label: &'static str,
    item: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>> {
    let mut items = memory::vec_with_capacity(len, label)?;
    extend(&mut items, len, step, item);
    Ok(items)
}

/// Returns `item(i)` for all numbers `i` below `len`. A task makes `step` items.
pub(crate) fn map<T: Send>(len: usize, step: usize, item: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut items = Vec::with_capacity(len);
    extend(&mut items, len, step, item);
    items
}

/// Returns `map(item)` for all items, one item a task.
pub(crate) fn map_into<T: Send, R: Send>(items: Vec<T>, map: impl Fn(T) -> R + Sync) -> Vec<R> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let results = self::map(items.len(), 1, |i| {
        let item = lock(&items[i]).take();
        item.map(&map)
    });
    results.into_iter().flatten().collect()
}

/// Returns the items that `task` makes of each range of `step` numbers below `len`, one after another.
pub(crate) fn concat<T: Send>(
    len: usize,
    step: usize,
    task: impl Fn(Range<usize>) -> Vec<T> + Sync,
) -> Vec<T> {
    let mut parts = Ranges::new(len, step).map(task);
    let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    parts.iter_mut().for_each(|part| all.append(part));
    all
}

/// Joins parts in order. Each part is freed once it is copied.
pub(crate) fn joined<T: Copy + Send>(parts: Vec<Vec<T>>, label: &'static str) -> Result<Vec<T>> {
    let len = parts.iter().map(Vec::len).sum();
    let mut all = memory::vec_with_capacity(len, label)?;
    let to = Parts::new(&mut all.spare_capacity_mut()[..len]);
    let mut end = 0;
    let placed: Vec<_> = parts
        .into_iter()
        .map(|part| {
            (end, {
                end += part.len();
                part
            })
        })
        .collect();
    map_into(placed, |(begin, part): (usize, Vec<T>)| {
        // SAFETY: the parts follow each other.
        unsafe { to.part(begin..begin + part.len()) }.write_copy_of_slice(&part);
    });
    // SAFETY: the lengths of the parts, all of which are written, add up to `len`.
    unsafe { all.set_len(len) };
    Ok(all)
}

/// Returns the results of `task` for each range of `step` numbers below `len`, combined in order; `None` if there are none.
pub(crate) fn reduce<T: Send>(
    len: usize,
    step: usize,
    task: impl Fn(Range<usize>) -> T + Sync,
    combine: impl Fn(T, T) -> T,
) -> Option<T> {
    Ranges::new(len, step).map(task).into_iter().reduce(combine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_item_once_and_in_order() {
        for (len, step) in [(0, 3), (1, 3), (3, 3), (10, 3), (1000, 7)] {
            let mut items = vec![9];
            items.reserve(len);
            extend(&mut items, len, step, |i| i);
            assert!(items[0] == 9 && items[1..].iter().copied().eq(0..len));
            for_chunks(&mut items[1..], step, |number, chunk| {
                assert_eq!(chunk[0], number * step);
                chunk.fill(number);
            });
            assert!(items[1..].iter().enumerate().all(|(i, &number)| number == i / step));
            assert_eq!(
                map(len, step, |i| i.to_string()).concat(),
                (0..len).map(|i| i.to_string()).collect::<String>()
            );
            assert!(
                concat(len, step, |range| range.filter(|i| i % 2 == 0).collect())
                    .into_iter()
                    .eq((0..len).step_by(2))
            );
            assert_eq!(reduce(len, step, Range::sum, |a, b| a + b), (0..len).reduce(|a, b| a + b));
        }
    }

    #[test]
    fn the_first_of_several() {
        assert_eq!(find_first(1000, &|i| (i % 100 == 37).then_some(2 * i)), Some(74));
        assert_eq!(find_first(30, &|i| (i % 100 == 37).then_some(i)), None);
        assert_eq!(find_some(1000, 64, |i| (i % 100 == 99).then(|| i.to_string())), Some("99".into()));
        assert_eq!(find_some(99, 64, |i| (i == 99).then_some(i)), None);
        assert!(any(1000, &|i| i == 999) && !any(1000, &|i| i == 1000));
    }

    #[test]
    fn both_closures_run() {
        let calls = AtomicUsize::new(0);
        let count = |by| calls.fetch_add(by, Ordering::Relaxed);
        let (a, b) = join(
            || {
                count(1);
                "a"
            },
            || {
                count(2);
                String::from("b")
            },
        );
        assert_eq!((a, b.as_str(), calls.into_inner()), ("a", "b", 3));
    }

    #[test]
    fn an_error_ends_the_loop() {
        use crate::error::Error;
        let result = try_for_each(100, &|i| if i == 50 { Err(Error::NoDevice) } else { Ok(()) });
        assert!(matches!(result, Err(Error::NoDevice)));
        assert!(try_for_each(100, &|_| Ok(())).is_ok());
    }
}
