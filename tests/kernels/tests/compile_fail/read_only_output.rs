//! A buffer that may only be read, where the kernel writes.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_saxpy;

fn launch(stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>) {
    unsafe { stream.launch::<test_saxpy>(1, (2.0, x.slice(), y.slice())) }.unwrap();
}

fn main() {}
