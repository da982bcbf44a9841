//! An instance that is there twice.
use cuda_std::prelude::*;

#[kernel]
#[instances(T = [u32, f32])]
#[instance(u32)]
pub unsafe fn fill<T: Copy + 'static>(out: SliceMut<T>) {}

fn main() {}
