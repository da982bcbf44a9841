//! An instance with too few arguments.
use cuda_std::prelude::*;

#[kernel]
#[instance(u32)]
pub unsafe fn fill<T: Copy + 'static, const N: usize>(out: SliceMut<T>) {}

fn main() {}
