//! Compiles the kernels to PTX, which the program takes along.

use cuda_builder::{Arch, CudaBuilder};
use std::env;

fn main() {
    let to = env::var("OUT_DIR").expect("cargo sets it");
    let ptx = CudaBuilder::new("kernels")
        .arch(Arch::SM_75)
        // The family of the kernels, whose entries are not part of the PTX otherwise.
        .features(["entries-own"])
        .copy_to(format!("{to}/own.ptx"))
        .build_one()
        .unwrap_or_else(|error| panic!("{error}"));
    for source in ptx.sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
}
