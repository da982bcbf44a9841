//! Parameters of launches, and coordinates of threads.

use cuda_std::prelude::*;

/// Computes y = a x + y.
#[kernel(family = "test", block = 128)]
pub unsafe fn test_saxpy(a: f32, x: Slice<f32>, y: SliceMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < y.len() {
        y.store(i, a * x.load(i) + y.load(i));
    }
}

/// Writes four words for each thread: the indices of thread and block, the sizes of block and grid.
#[kernel(family = "test")]
pub unsafe fn test_coordinates(out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    out.store(4 * i, thread::thread_idx_x());
    out.store(4 * i + 1, thread::block_idx_x());
    out.store(4 * i + 2, thread::block_dim_x());
    out.store(4 * i + 3, thread::grid_dim_x());
}

/// Writes a scalar of every type as a 64-bit word.
#[kernel(family = "test", block = 32)]
pub unsafe fn test_scalars(
    a: u8,
    b: i8,
    c: u16,
    d: i16,
    e: u32,
    f: i32,
    g: u64,
    h: i64,
    i: f32,
    j: f64,
    out: SliceMut<u64>,
) {
    if thread::first() {
        let words = [
            a as u64,
            b as u64,
            c as u64,
            d as u64,
            e as u64,
            f as u64,
            g,
            h as u64,
            i.to_bits() as u64,
            j.to_bits(),
        ];
        let mut w = 0;
        while w < 10 {
            out.store(w, words[w]);
            w += 1;
        }
    }
}

/// Takes the other forms of parameters: a Rust slice and raw pointers.
#[kernel(family = "test", block = 64)]
pub unsafe fn test_plain_parameters(x: &[u32], y: *const u32, out: *mut u32) {
    let i = thread::index_1d() as usize;
    if i < x.len() {
        *out.add(i) = x[i] + *y.add(i);
    }
}

/// A line of the plane, as kernels take it.
#[derive(Clone, Copy, KernelArgs)]
pub struct Line {
    /// The height at 0.
    pub offset: f32,
    /// The rise of a step of 1.
    pub slope: f64,
}

/// Items, and a line with their heights.
#[derive(Clone, Copy, KernelArgs)]
pub struct OnLine<'a, T> {
    /// The first item that is used.
    pub first: u32,
    /// The line.
    pub line: crate::launch::Line,
    /// The items.
    pub x: Slice<'a, T>,
}

/// Writes the heights of items on a line: a struct with a struct in it, between other parameters.
#[kernel(family = "test", block = 64, hot)]
#[instances(T = [u32, f32])]
pub unsafe fn test_struct_parameters<T: Copy + Into<f64> + 'static>(
    scale: f64,
    items: OnLine<'_, T>,
    heights: SliceMut<f64>,
) {
    let (i, Line { offset, slope }) = (thread::index_1d() as usize, items.line);
    if i < heights.len() {
        let x: f64 = items.x.load(items.first as usize + i).into();
        heights.store(i, scale * (slope * x + f64::from(offset)));
    }
}

/// Adds `N` to each item; generic over a type and a number.
#[kernel(family = "test", block = 64)]
#[instances(T = [u32], N = [1, 7])]
#[instance(u64, 7)]
pub unsafe fn test_add_const<T: From<u8> + Copy + core::ops::Add<Output = T> + 'static, const N: u8>(
    items: SliceMut<T>,
) {
    let i = thread::index_1d() as usize;
    if i < items.len() {
        items.store(i, items.load(i) + T::from(N));
    }
}

/// Reads one item beyond the end: a checked build reports it.
#[kernel(family = "test", block = 32)]
pub unsafe fn test_out_of_bounds(x: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < out.len() {
        out.store(i, x.load(i + 1));
    }
}
