//! Axes that are not the generic parameters.
use cuda_std::prelude::*;

#[kernel]
#[instances(N = [1, 2], T = [u32])]
pub unsafe fn fill<T: Copy + 'static, const N: usize>(out: SliceMut<T>) {}

fn main() {}
