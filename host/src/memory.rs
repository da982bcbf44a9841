//! Host memory: allocation that can fail, and what is free.

#[cfg(feature = "io")]
pub(crate) mod bytes;
mod items;
mod parts;

pub(crate) use items::Items;
#[cfg(feature = "io")]
pub(crate) use items::OfFile;
pub(crate) use parts::Parts;

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Read;

/// Bytes that a build takes, beside its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// The finished tree.
    pub tree_bytes: u64,
    /// Temporary memory during the build, at its highest.
    pub temp_bytes: u64,
}

/// Allocations from this size on are compared with the memory that is free, since a system that overcommits grants them
/// and kills the process when they are filled.
const LARGE: u64 = 1 << 30;

/// An empty vector with room for `len` values, or [`Error::OutOfMemory`].
pub(crate) fn vec_with_capacity<T>(len: usize, label: &'static str) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    reserve(&mut vec, len, label)?;
    Ok(vec)
}

/// Room for `len` more values, or [`Error::OutOfMemory`].
pub(crate) fn reserve<T>(vec: &mut Vec<T>, len: usize, label: &'static str) -> Result<()> {
    let requested = (len as u64).saturating_mul(size_of::<T>() as u64);
    check(requested, label)?;
    vec.try_reserve_exact(len).map_err(|_| out_of_memory(requested, label))
}

/// Room for `len` more values, and more of it where more and more are added; or [`Error::OutOfMemory`].
pub(crate) fn reserve_more<T>(vec: &mut Vec<T>, len: usize, label: &'static str) -> Result<()> {
    if vec.capacity() - vec.len() >= len {
        return Ok(());
    }
    let requested = ((vec.len() + len) as u64).saturating_mul(size_of::<T>() as u64);
    check(requested, label)?;
    vec.try_reserve(len).map_err(|_| out_of_memory(requested, label))
}

/// A copy of a text, or [`Error::OutOfMemory`].
#[cfg(feature = "io")]
pub(crate) fn copy_of_text(text: &str, label: &'static str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| out_of_memory(text.len() as u64, label))?;
    copy.push_str(text);
    Ok(copy)
}

/// [`Error::OutOfMemory`] if `bytes`, of all that is wanted now, are certainly more than this machine can give.
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

impl Error {
    /// [`Error::OutOfMemory`] for an allocation of host memory that failed. `label` says what it was for.
    pub fn host_memory(requested: u64, label: &'static str) -> Self {
        out_of_memory(requested, label)
    }
}

/// [`Error::OutOfMemory`] of host memory.
pub(crate) fn out_of_memory(requested: u64, label: &'static str) -> Error {
    Error::OutOfMemory { memory: "host", requested, free: available().unwrap_or(0), label }
}

#[cfg(test)]
thread_local! {
    /// More bytes than this are refused to this thread at one time.
    pub(crate) static LIMIT: std::cell::Cell<u64> = const { std::cell::Cell::new(u64::MAX) };
}

/// Bytes that can be allocated without swapping, where the system tells.
fn available() -> Option<u64> {
    // On the stack, since the heap may be what is full. The line is one of the first.
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
