//! One buffer to read and to write.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_saxpy;

fn launch(stream: &Stream, y: &mut Buffer<f32>) {
    unsafe { stream.launch::<test_saxpy>(1, (2.0, y.slice(), y.slice_mut())) }.unwrap();
}

fn main() {}
