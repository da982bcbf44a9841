//! Prints.

use cuda_std::prelude::*;

/// Prints a line with an argument of each kind, and one without arguments.
#[kernel(block = 32)]
pub unsafe fn print_values(x: Slice<f32>) {
    let i = thread::index_1d();
    let value = x.load(i as usize);
    if value > 1.0 {
        cuda_std::println!("100% {{{}}} {:x} {} {} {}", i, u64::MAX, -7i8, value, f64::from(value) / 3.0);
        cuda_std::print!("done\n");
    }
}
