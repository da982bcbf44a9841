//! Host memory instead of a buffer.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_saxpy;

fn launch(stream: &Stream, x: &[f32], y: &mut Buffer<f32>) {
    unsafe { stream.launch::<test_saxpy>(1, (2.0, x, y.slice_mut())) }.unwrap();
}

fn main() {}
