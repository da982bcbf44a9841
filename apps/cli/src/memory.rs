//! Large vectors of the program.

use kauri::{Error, Result};

/// Allocates an empty vector with capacity for `len` values.
pub(crate) fn vec_with_capacity<T>(len: usize, label: &'static str) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    let requested = (len as u64).saturating_mul(size_of::<T>() as u64);
    vec.try_reserve_exact(len).map_err(|_| Error::host_memory(requested, label))?;
    Ok(vec)
}
