//! A kernel that returns something.
use cuda_std::prelude::*;

#[kernel]
pub unsafe fn fill(out: SliceMut<u32>) -> u32 {
    0
}

fn main() {}
