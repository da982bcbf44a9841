//! Host memory: allocation that can fail, and what is free.

use crate::error::{Error, Result};

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
    if !fits(requested) || vec.try_reserve_exact(len).is_err() {
        return Err(Error::OutOfMemory { memory: "host", requested, free: available().unwrap_or(0), label });
    }
    Ok(())
}

/// False if `bytes` are certainly more than this machine can give.
pub(crate) fn fits(bytes: u64) -> bool {
    bytes < LARGE || available().is_none_or(|free| bytes <= free)
}

/// Bytes that can be allocated without swapping, where the system tells.
fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
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
