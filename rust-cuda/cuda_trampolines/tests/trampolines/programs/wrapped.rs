//! A program that uses a library that uses `cust`, and does not know `cuda_trampolines`.

fn main() {
    println!("{:?}", wrapper::init());
}
