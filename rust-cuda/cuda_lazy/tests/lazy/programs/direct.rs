//! A program that uses `cust` and names `cuda_lazy` itself.

use cuda_lazy as _;

fn main() {
    println!("{:?}", cust::quick_init().map(drop));
}
