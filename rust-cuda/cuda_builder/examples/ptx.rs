//! Compiles the kernel crate in a folder for an architecture; prints its kernels and the lint's findings.

use cuda_builder::{CudaBuilder, CudaBuilderError, lint};

fn main() -> Result<(), CudaBuilderError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(arch)) = (arguments.next(), arguments.next()) else {
        println!("usage: ptx <folder of the crate> <architecture, such as sm_90>");
        return Ok(());
    };
    let ptx = CudaBuilder::new(folder).arch(arch.parse()?).build_one()?;
    println!("{}", ptx.path.display());
    for kernel in &ptx.kernels {
        println!(
            "{}: {} threads of a block, parameters of {:?} bytes",
            kernel.name, kernel.block, kernel.params
        );
    }
    for finding in lint::check_built(&ptx)? {
        println!("lint: {finding}");
    }
    Ok(())
}
