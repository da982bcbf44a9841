//! A launch is unsafe.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_saxpy;

fn launch(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) {
    stream.launch::<test_saxpy>(1, (2.0, x.slice(), y.slice_mut())).unwrap();
}

fn main() {}
