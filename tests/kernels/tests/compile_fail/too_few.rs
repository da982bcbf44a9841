//! An argument too few.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_saxpy;

fn launch(stream: &Stream, y: &mut Buffer<f32>) {
    unsafe { stream.launch::<test_saxpy>(1, (2.0, y.slice_mut())) }.unwrap();
}

fn main() {}
