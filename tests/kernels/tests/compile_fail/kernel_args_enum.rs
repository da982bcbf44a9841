//! Kernel arguments that are not a struct.
use cuda_std::prelude::*;

#[derive(Clone, Copy, KernelArgs)]
pub enum Shape {
    Ball,
    Cube,
}

fn main() {}
