//! An option that does not exist.
use cuda_std::prelude::*;

#[kernel(threads = 128)]
pub unsafe fn fill(out: SliceMut<u32>) {}

fn main() {}
