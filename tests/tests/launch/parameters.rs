//! Kernels receive the parameters that the host passes, and launches have the requested shape.

use crate::{noise, on_each_gpu, zeros};
use cuda_std::kernel::Kernel;
use kauri::device::Buffer;
use kauri_test_kernels::launch::*;

#[test]
fn saxpy_of_many_sizes() {
    on_each_gpu(|_, stream| {
        for n in [0usize, 1, 31, 32, 33, 127, 128, 129, 5000] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let x = Buffer::from_slice(stream, &x, "x").unwrap();
            let mut y = Buffer::from_slice(stream, &vec![1.0f32; n], "y").unwrap();
            // SAFETY: x and y have n items and live until the result is read.
            unsafe { stream.launch_items::<test_saxpy>(n as u64, (2.0, x.slice(), y.slice_mut())) }.unwrap();
            let expected: Vec<f32> = (0..n).map(|i| 2.0 * i as f32 + 1.0).collect();
            assert_eq!(y.to_vec(stream).unwrap(), expected);
        }
    });
}

#[test]
fn coordinates_and_launch_sized_blocks() {
    on_each_gpu(|_, stream| {
        let mut out = zeros::<u32>(stream, 4 * 3 * 96);
        // SAFETY: four words for each thread.
        unsafe { stream.launch_sized::<test_coordinates>(3, 96, (out.slice_mut(),)) }.unwrap();
        let words = out.to_vec(stream).unwrap();
        for (i, thread) in words.chunks(4).enumerate() {
            assert_eq!(thread, [i as u32 % 96, i as u32 / 96, 96, 3]);
        }
    });
}

#[test]
fn scalars_of_every_kind() {
    on_each_gpu(|_, stream| {
        let mut out = zeros::<u64>(stream, 10);
        let args = (
            200u8,
            -3i8,
            60000u16,
            -300i16,
            4_000_000_000u32,
            -5i32,
            u64::MAX - 1,
            i64::MIN,
            -0.5f32,
            1e300f64,
        );
        let (a, b, c, d, e, f, g, h, i, j) = args;
        // SAFETY: ten words.
        unsafe { stream.launch::<test_scalars>(1, (a, b, c, d, e, f, g, h, i, j, out.slice_mut())) }.unwrap();
        let expected = [
            200,
            -3i64 as u64,
            60000,
            -300i64 as u64,
            4_000_000_000,
            -5i64 as u64,
            g,
            h as u64,
            i.to_bits().into(),
            j.to_bits(),
        ];
        assert_eq!(out.to_vec(stream).unwrap(), expected);
    });
}

#[test]
fn slices_and_raw_pointers() {
    on_each_gpu(|_, stream| {
        let x = Buffer::from_slice(stream, &noise(100, 1), "x").unwrap();
        let y = Buffer::from_slice(stream, &[7u32; 100], "y").unwrap();
        let mut out = zeros::<u32>(stream, 100);
        let x_items: Vec<u32> = noise(100, 1).iter().map(|v| v >> 1).collect();
        let mut x = x;
        x.copy_from_slice(stream, &x_items).unwrap();
        // SAFETY: all have 100 items.
        unsafe { stream.launch_items::<test_plain_parameters>(100, (x.slice(), y.slice(), out.slice_mut())) }
            .unwrap();
        let expected: Vec<u32> = x_items.iter().map(|v| v + 7).collect();
        assert_eq!(out.to_vec(stream).unwrap(), expected);
    });
}

#[test]
fn structs_become_scalar_parameters() {
    on_each_gpu(|_, stream| {
        let x = Buffer::from_slice(stream, &[9u32, 1, 2, 3], "x").unwrap();
        let mut heights = zeros::<f64>(stream, 3);
        let items = OnLine { first: 1, line: Line { offset: 0.5, slope: 3.0 }, x: x.slice() };
        // SAFETY: of the four items, three follow the first index.
        unsafe { stream.launch_items::<test_struct_parameters<u32>>(3, (2.0, items, heights.slice_mut())) }
            .unwrap();
        assert_eq!(heights.to_vec(stream).unwrap(), [7.0, 13.0, 19.0]);
    });
}

#[test]
fn generic_kernels_are_named_by_their_arguments() {
    assert_eq!(test_add_const::<u32, 7>::name(), "test_add_const_u32_7");
    assert_eq!(<test_add_const<u32, 7> as Kernel>::BLOCK, 64);
    on_each_gpu(|_, stream| {
        let mut small = zeros::<u32>(stream, 70);
        let mut large = zeros::<u64>(stream, 70);
        // SAFETY: one thread for each item.
        unsafe {
            stream.launch_items::<test_add_const<u32, 1>>(70, (small.slice_mut(),)).unwrap();
            stream.launch_items::<test_add_const<u32, 7>>(70, (small.slice_mut(),)).unwrap();
            stream.launch_items::<test_add_const<u64, 7>>(70, (large.slice_mut(),)).unwrap();
        }
        assert_eq!(small.to_vec(stream).unwrap(), [8; 70]);
        assert_eq!(large.to_vec(stream).unwrap(), [7; 70]);
    });
}
