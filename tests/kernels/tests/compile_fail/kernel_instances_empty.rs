//! An axis without values.
use cuda_std::prelude::*;

#[kernel]
#[instances(T = [])]
pub unsafe fn fill<T: Copy + 'static>(out: SliceMut<T>) {}

fn main() {}
