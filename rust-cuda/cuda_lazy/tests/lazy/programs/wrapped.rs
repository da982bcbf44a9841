//! A program that uses a library that uses `cust`, and does not know `cuda_lazy`.

fn main() {
    println!("{:?}", wrapper::init());
}
