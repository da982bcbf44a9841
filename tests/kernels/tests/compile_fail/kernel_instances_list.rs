//! An axis without a list of values.
use cuda_std::prelude::*;

#[kernel]
#[instances(T = u32)]
pub unsafe fn fill<T: Copy + 'static>(out: SliceMut<T>) {}

fn main() {}
