//! A program that uses `cust` and names `cuda_trampolines` itself.

use cuda_trampolines as _;

fn main() {
    println!("{:?}", cust::quick_init().map(drop));
}
