//! A view in place of a struct of arguments.
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::launch::test_struct_parameters;

fn launch(stream: &Stream, x: &Buffer<u32>, y: &mut Buffer<f64>) {
    unsafe { stream.launch::<test_struct_parameters<u32>>(1, (2.0, x.slice(), y.slice_mut())) }.unwrap();
}

fn main() {}
