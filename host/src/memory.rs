//! Host memory: fallible allocation, and the free memory of the system.

#[cfg(feature = "io")]
pub(crate) mod bytes;
#[cfg(feature = "io")]
pub(crate) mod file_part;
mod items;
mod parts;

#[cfg(feature = "io")]
pub(crate) use items::FileItems;
pub(crate) use items::Items;
pub(crate) use parts::Parts;

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Read;

/// The memory that a build takes beyond its input, known before the build.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions};
///
/// let plan = KdTree::<[f32; 3]>::plan(&Device::cpu(), 1_000_000, &KdTreeOptions::default());
/// println!("{} bytes, and {} during the build", plan.tree_bytes, plan.temp_bytes);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The bytes of the finished tree.
    pub tree_bytes: u64,
    /// The peak of temporary memory during the build, in bytes.
    pub temp_bytes: u64,
}

/// Allocations from this size on are compared with the free memory: a system that overcommits grants them, and kills
/// the process when they are filled.
const LARGE: u64 = 1 << 30;

/// Returns an empty vector with capacity for `len` values, or [`Error::OutOfMemory`].
pub(crate) fn vec_with_capacity<T>(len: usize, label: &'static str) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    reserve(&mut vec, len, label)?;
    Ok(vec)
}

/// Collects values, or returns [`Error::OutOfMemory`].
pub(crate) fn collect<T>(values: impl ExactSizeIterator<Item = T>, label: &'static str) -> Result<Vec<T>> {
    let mut vec = vec_with_capacity(values.len(), label)?;
    vec.extend(values);
    Ok(vec)
}

/// Copies values, or returns [`Error::OutOfMemory`].
pub(crate) fn copy<T: Copy>(values: &[T], label: &'static str) -> Result<Vec<T>> {
    let mut copy = vec_with_capacity(values.len(), label)?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Returns `len` copies of a value, or [`Error::OutOfMemory`].
pub(crate) fn filled<T: Clone>(len: usize, value: T, label: &'static str) -> Result<Vec<T>> {
    let mut vec = vec_with_capacity(len, label)?;
    vec.resize(len, value);
    Ok(vec)
}

/// Reserves exactly `len` more values, or returns [`Error::OutOfMemory`].
pub(crate) fn reserve<T>(vec: &mut Vec<T>, len: usize, label: &'static str) -> Result<()> {
    let requested = (len as u64).saturating_mul(size_of::<T>() as u64);
    check(requested, label)?;
    vec.try_reserve_exact(len).map_err(|_| out_of_memory(requested, label))
}

/// Reserves at least `len` more values, with amortized growth, or returns [`Error::OutOfMemory`].
pub(crate) fn reserve_more<T>(vec: &mut Vec<T>, len: usize, label: &'static str) -> Result<()> {
    if vec.capacity() - vec.len() >= len {
        return Ok(());
    }
    let requested = ((vec.len() + len) as u64).saturating_mul(size_of::<T>() as u64);
    check(requested, label)?;
    vec.try_reserve(len).map_err(|_| out_of_memory(requested, label))
}

/// Copies a text, or returns [`Error::OutOfMemory`].
#[cfg(feature = "io")]
pub(crate) fn copy_text(text: &str, label: &'static str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| out_of_memory(text.len() as u64, label))?;
    copy.push_str(text);
    Ok(copy)
}

/// Returns [`Error::OutOfMemory`] if this machine certainly cannot provide `bytes` at once.
pub(crate) fn check(bytes: u64, label: &'static str) -> Result<()> {
    #[cfg(test)]
    if bytes > LIMIT.get() {
        return Err(out_of_memory(bytes, label));
    }
    if bytes < LARGE || available().is_none_or(|free| bytes <= free) {
        return Ok(());
    }
    Err(out_of_memory(bytes, label))
}

/// Returns [`Error::ResultTooLarge`] if this machine certainly cannot provide a result of `count` items.
pub(crate) fn check_result(count: u64, item_bytes: u64, label: &'static str) -> Result<()> {
    check(count.saturating_mul(item_bytes), label).map_err(|error| error.of_result(count, item_bytes))
}

impl Error {
    /// Returns [`Error::OutOfMemory`] for a failed allocation of host memory; `label` names its purpose.
    pub fn host_memory(requested: u64, label: &'static str) -> Self {
        out_of_memory(requested, label)
    }
}

/// Returns [`Error::OutOfMemory`] for host memory.
pub(crate) fn out_of_memory(requested: u64, label: &'static str) -> Error {
    Error::OutOfMemory { memory: "host", requested, free: available().unwrap_or(0), label }
}

#[cfg(test)]
thread_local! {
    /// The largest allocation that this thread may make.
    pub(crate) static LIMIT: std::cell::Cell<u64> = const { std::cell::Cell::new(u64::MAX) };
}

/// Returns the bytes that can be allocated without swapping, if the system reports them.
pub(crate) fn available() -> Option<u64> {
    // Read into the stack, because the heap may be full. The line is one of the first.
    let mut info = [0; 4096];
    let len = File::open("/proc/meminfo").and_then(|mut file| file.read(&mut info)).ok()?;
    let line =
        str::from_utf8(&info[..len]).ok()?.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_errors() {
        assert!(vec_with_capacity::<u64>(usize::MAX, "test").is_err());
        assert!(vec_with_capacity::<u64>(1 << 50, "test").is_err());
        assert_eq!(vec_with_capacity::<u64>(10, "test").unwrap().capacity(), 10);
    }
}
