//! Kernel arguments without names.
use cuda_std::prelude::*;

#[derive(Clone, Copy, KernelArgs)]
pub struct Pair<'a>(Slice<'a, u32>, u32);

fn main() {}
