//! An argument too many.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_saxpy;

fn launch(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) {
    unsafe { stream.launch::<test_saxpy>(1, (2.0, x.slice(), y.slice_mut(), 1u32)) }.unwrap();
}

fn main() {}
