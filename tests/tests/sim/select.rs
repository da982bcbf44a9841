//! Select, partition and unique compared with the CPU: every length and share, both algorithms
//! (`select` and `select_two_pass`).

use crate::{noise, on_each_schedule};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::item::{Bits128, Item};
use kauri::primitives::predicate::{AtLeast, Below, EqualBits, EqualHigh};
use kauri::primitives::select::SelectPredicate;
use kauri::primitives::unique::UniqueRun;
use kauri::primitives::{cpu, select, unique};
use kauri::research::primitives::flagged_two_pass;
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SELECT_ROWS;
use kauri_kernels::primitives::select::{Select, Selected, primitives_select_flagged};
use kauri_kernels::thread::words::Words;
use std::fmt::Debug;

/// The outputs of a selection.
struct Out<T> {
    kept: Buffer<T>,
    others: Buffer<T>,
    count: Buffer<u64>,
}

impl<T: cust_core::DeviceCopy + bytemuck::Pod + PartialEq + Debug> Out<T> {
    fn new(stream: &Stream, len: usize) -> Self {
        let uninitialized = || Buffer::uninitialized(stream.gpu(), len, "test buffer").unwrap();
        Self {
            kept: uninitialized(),
            others: uninitialized(),
            count: Buffer::uninitialized(stream.gpu(), 1, "count").unwrap(),
        }
    }

    /// Compares the number of kept items and the items. Entries behind them were never written.
    fn expect_kept(&mut self, stream: &Stream, expected: &[T]) {
        assert_eq!(self.count.to_vec(stream).unwrap(), [expected.len() as u64]);
        assert_eq!(self.kept.front_to_vec(stream, expected.len()).unwrap(), expected);
    }
}

fn check_flagged<T: Item + PartialEq + Debug>(stream: &Stream, input: &[T], flags: &[u8]) {
    let mut workspace = Workspace::new(stream.gpu());
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let device_flags = Buffer::from_slice(stream, flags, "flags").unwrap();
    let (kept, others) = cpu::select::partition_flagged(input, flags);
    assert_eq!(kept, cpu::select::flagged(input, flags));

    let mut out = Out::new(stream, input.len());
    let Out { kept: to, others: rest, count } = &mut out;
    select::partition_flagged(stream, &mut workspace, &items, &device_flags, to, rest, count).unwrap();
    out.expect_kept(stream, &kept);
    assert_eq!(out.others.front_to_vec(stream, others.len()).unwrap(), others);

    let mut out = Out::new(stream, input.len());
    select::flagged(stream, &mut workspace, &items, &device_flags, &mut out.kept, &mut out.count).unwrap();
    out.expect_kept(stream, &kept);

    let mut out = Out::new(stream, input.len());
    flagged_two_pass(stream, &mut workspace, &items, &device_flags, &mut out.kept, &mut out.count).unwrap();
    out.expect_kept(stream, &kept);
}

/// Returns flags, `tenths` of ten of which are set.
fn flags(len: usize, tenths: u64) -> Vec<u8> {
    noise(len, 21).iter().map(|x| if x % 10 < tenths { (x >> 8) as u8 | 1 } else { 0 }).collect()
}

#[test]
fn flagged_items_of_every_length() {
    const TILE: usize = tile_items::<u32, SELECT_ROWS>();
    on_each_schedule(|_, stream| {
        for n in [0, 1, 2, 31, 32, 33, TILE - 1, TILE, TILE + 1, 2 * TILE - 1] {
            let items: Vec<u32> = (0..n as u32).collect();
            check_flagged(stream, &items, &flags(n, 5));
        }
    });
}

#[test]
fn flagged_shares_and_types() {
    on_each_schedule(|_, stream| {
        let n = tile_items::<u64, SELECT_ROWS>() + 40;
        for tenths in [0, 1, 9, 10] {
            check_flagged(stream, &noise(n, 3), &flags(n, tenths));
        }
        let n = 3 * tile_items::<Bits128, SELECT_ROWS>() + 1;
        let items: Vec<[f32; 4]> = (0..n).map(|i| [i as f32, 1.0, -1.0, 0.5]).collect();
        check_flagged(stream, &items, &flags(n, 5));
    });
}

fn check_matching<T: Words + PartialEq + Debug, P: SelectPredicate<T>>(
    stream: &Stream,
    input: &[T],
    bound: T,
) {
    let mut workspace = Workspace::new(stream.gpu());
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let (kept, others) = cpu::select::partition::<T, P>(input, bound);
    let mut out = Out::new(stream, input.len());
    let Out { kept: to, others: rest, count } = &mut out;
    select::partition::<T, P>(stream, &mut workspace, &items, bound, to, rest, count).unwrap();
    out.expect_kept(stream, &kept);
    assert_eq!(crate::bits(&out.others.front_to_vec(stream, others.len()).unwrap()), crate::bits(&others));
    let mut out = Out::new(stream, input.len());
    select::matching::<T, P>(stream, &mut workspace, &items, bound, &mut out.kept, &mut out.count).unwrap();
    out.expect_kept(stream, &kept);
}

#[test]
fn predicates_of_every_type() {
    on_each_schedule(|_, stream| {
        let n = tile_items::<u64, SELECT_ROWS>() + 9;
        let words = noise(n, 23);
        macro_rules! each {
            ($($t:ty, $bound:expr;)*) => { $( {
                let items: Vec<$t> = words.iter().map(|&x| (x % 1000) as $t - 400 as $t).collect();
                check_matching::<$t, Below>(stream, &items, $bound);
                check_matching::<$t, AtLeast>(stream, &items, $bound);
            } )* };
        }
        each! { i32, -3; i64, 0; f64, 0.5; }
        check_matching::<u64, Below>(stream, &words, 1 << 63);
        let narrow: Vec<u32> = words.iter().map(|&x| x as u32).collect();
        check_matching::<u32, AtLeast>(stream, &narrow, 1 << 30);
        let floats: Vec<f32> =
            words.iter().map(|&x| if x % 9 == 0 { f32::NAN } else { (x % 100) as f32 }).collect();
        check_matching::<f32, AtLeast>(stream, &floats, 10.0);
    });
}

/// A bound of NaN selects nothing, whatever the predicate.
#[test]
fn nothing_compares_with_nan() {
    on_each_schedule(|_, stream| check_matching::<f32, Below>(stream, &[1.0, -1.0, 0.0], f32::NAN));
}

fn check_unique<T: Words + PartialEq + Debug, R: UniqueRun<T>>(stream: &Stream, input: &[T]) {
    let mut workspace = Workspace::new(stream.gpu());
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let mut out = Out::new(stream, input.len());
    unique::unique::<T, R>(stream, &mut workspace, &items, &mut out.kept, &mut out.count).unwrap();
    out.expect_kept(stream, &cpu::unique::unique::<T, R>(input));
}

#[test]
fn heads_of_runs() {
    const TILE: usize = tile_items::<u32, SELECT_ROWS>();
    on_each_schedule(|_, stream| {
        for n in [0, 1, 33, TILE - 1, TILE, TILE + 1] {
            let mut items: Vec<u32> = noise(n, 29).iter().map(|&x| (x % 50) as u32).collect();
            check_unique::<u32, EqualBits>(stream, &items);
            items.sort_unstable();
            check_unique::<u32, EqualBits>(stream, &items);
        }
        let pairs: Vec<u64> =
            (0..tile_items::<u64, SELECT_ROWS>() as u64 + 70).map(|i| (i / 3) << 32 | i).collect();
        check_unique::<u64, EqualHigh>(stream, &pairs);
        check_unique::<u64, EqualBits>(stream, &pairs);
        let n = 2 * tile_items::<Bits128, SELECT_ROWS>();
        let wide: Vec<Bits128> = (0..n as u64).map(|i| Bits128(7, i / 5)).collect();
        check_unique::<Bits128, EqualBits>(stream, &wide);
    });
}

#[test]
fn parts_that_begin_anywhere() {
    on_each_schedule(|_, stream| {
        let n = tile_items::<u32, SELECT_ROWS>() + 50;
        let input: Vec<u32> = (0..n as u32).collect();
        let chosen = flags(n, 5);
        for offset in 1..4 {
            let items = Buffer::from_slice(stream, &input, "items").unwrap();
            let device_flags = Buffer::from_slice(stream, &chosen, "flags").unwrap();
            let mut out = Out::<u32>::new(stream, n);
            let mut words = Buffer::<u64>::uninitialized(stream.gpu(), 1 + 2 * 2, "words").unwrap();
            words.fill_bytes(stream, 0).unwrap();
            let len = n - offset;
            // SAFETY: the sizes that the kernel requires: two tiles of two words.
            unsafe {
                let (input, flags) =
                    (items.slice().part(offset, len), device_flags.slice().part(offset, len));
                let (kept, others) = (out.kept.slice_mut(), out.others.slice_mut());
                let to = Selected { kept, others, count: out.count.slice_mut() };
                let args = (Select { input, to, words: words.slice_mut() }, flags);
                stream.launch::<primitives_select_flagged<u32>>(2, args).unwrap();
            }
            out.expect_kept(stream, &cpu::select::flagged(&input[offset..], &chosen[offset..]));
        }
    });
}
