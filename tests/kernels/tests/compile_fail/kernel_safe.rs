//! A kernel that is not unsafe.
use cuda_std::prelude::*;

#[kernel]
pub fn fill(out: SliceMut<u32>) {}

fn main() {}
