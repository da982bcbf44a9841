//! A field that is neither a view nor a number.
use cuda_std::prelude::*;

#[derive(Clone, Copy, KernelArgs)]
pub struct Corner<'a> {
    pub ids: Slice<'a, u32>,
    pub position: [f32; 3],
}

fn main() {}
