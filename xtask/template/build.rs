//! Compiles the kernels to PTX, which the library embeds.

use cuda_builder::{Arch, CudaBuilder, lint};
use std::env;

fn main() {
    let to = env::var("OUT_DIR").expect("cargo sets it");
    let ptx = CudaBuilder::new("kernels")
        // Newer GPUs run it too.
        .arch(Arch::SM_75)
        .copy_to(format!("{to}/kernels.ptx"))
        .build_one()
        .unwrap_or_else(|error| panic!("{error}"));
    let findings = lint::check_built(&ptx).unwrap_or_else(|error| panic!("{error}"));
    for finding in findings {
        println!("cargo::warning={finding}");
    }
    for source in ptx.sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
}
