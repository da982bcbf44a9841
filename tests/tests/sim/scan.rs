//! Scan and reduce compared with the CPU: every operator and type, tile edges, unaligned parts, look-back.

use crate::{bits, noise, on_each_schedule, on_each_schedule_in_turn};
use cuda_std::prelude::*;
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::operator::{Affine, Compose, Max, Min, Sum};
use kauri::primitives::scan::ScanOperator;
use kauri::primitives::{cpu, reduce, scan};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SCAN_ROWS;
use kauri_kernels::primitives::scan::primitives_scan;
use kauri_kernels::thread::operator::{Count, Operator};
use kauri_kernels::thread::words::Words;
use kauri_kernels::warp::look_back::{Decoupled, FixedOrder, LookBack, Ticket};
use std::fmt::Debug;

/// Scans and reduces `input` with the library. Both results must equal the CPU's, which must equal a loop's if the
/// operator is exact.
fn check<T: Words, O: ScanOperator<T>>(stream: &Stream, input: &[T]) {
    let gpu = stream.gpu();
    let mut workspace = Workspace::new(gpu);
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let mut out = Buffer::uninitialized(gpu, input.len(), "out").unwrap();
    let mut sum = Buffer::uninitialized(gpu, 1, "sum").unwrap();
    let mut expected = input.to_vec();

    scan::inclusive::<T, O>(stream, &mut workspace, &items, &mut out).unwrap();
    cpu::scan::inclusive::<T, O>(input, &mut expected);
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "inclusive, {} items", input.len());
    if O::EXACT {
        let looped = running(O::IDENTITY, input, O::combine);
        assert_eq!(bits(&expected), bits(&looped[1..]), "cpu, {} items", input.len());
    }

    scan::exclusive::<T, O>(stream, &mut workspace, &items, &mut out).unwrap();
    cpu::scan::exclusive::<T, O>(input, &mut expected);
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "exclusive, {} items", input.len());
    assert!(workspace.bytes() >= scan::plan::<T, O>(input.len()));

    reduce::reduce::<T, O>(stream, &mut workspace, &items, &mut sum).unwrap();
    let expected = cpu::reduce::reduce::<T, O>(input);
    assert_eq!(bits(&sum.to_vec(stream).unwrap()), bits(&[expected]), "sum of {} items", input.len());
    if O::EXACT {
        let looped = running(O::IDENTITY, input, O::combine);
        assert_eq!(bits(&[expected]), bits(&looped[input.len()..]));
    }
}

/// Returns the identity, then the inclusive scan.
fn running<T: Copy>(identity: T, input: &[T], combine: impl Fn(T, T) -> T) -> Vec<T> {
    let sums = input.iter().scan(identity, |sum, &item| {
        *sum = combine(*sum, item);
        Some(*sum)
    });
    std::iter::once(identity).chain(sums).collect()
}

#[test]
fn sums_of_every_length() {
    const TILE: usize = tile_items::<u32, SCAN_ROWS>();
    on_each_schedule(|_, stream| {
        for n in [0, 1, 2, 31, 32, 33, 127, 129, TILE - 1, TILE, TILE + 1, 2 * TILE - 1] {
            let items: Vec<u32> = noise(n, 3).iter().map(|&x| x as u32).collect();
            check::<u32, Sum>(stream, &items);
        }
        for n in [0, 1, tile_items::<f64, SCAN_ROWS>() - 1, tile_items::<f64, SCAN_ROWS>() + 2] {
            let items: Vec<f64> = noise(n, 4).iter().map(|&x| x as f64 * 1e-9).collect();
            check::<f64, Sum>(stream, &items);
        }
    });
}

#[test]
fn every_type_and_operator() {
    on_each_schedule(|_, stream| {
        let n = tile_items::<u64, SCAN_ROWS>() + 77;
        let words = noise(n, 5);
        let narrow: Vec<u32> = words.iter().map(|&x| x as u32).collect();
        macro_rules! each {
            ($($t:ty, $items:expr;)*) => { $( {
                let items: Vec<$t> = $items;
                check::<$t, Sum>(stream, &items);
                check::<$t, Min>(stream, &items);
                check::<$t, Max>(stream, &items);
            } )* };
        }
        each! {
            i32, narrow.iter().map(|&x| x as i32).collect();
            u64, words.clone();
            i64, words.iter().map(|&x| x as i64).collect();
            f32, narrow.iter().map(|&x| (x as i32) as f32 * 1e-5).collect();
            f64, words.iter().map(|&x| (x as i64) as f64 * 1e-5).collect();
        }
        check::<u32, Min>(stream, &narrow);
        check::<u32, Max>(stream, &narrow);
    });
}

#[test]
fn an_operator_that_does_not_commute() {
    on_each_schedule(|_, stream| {
        const TILE: usize = tile_items::<Affine, SCAN_ROWS>();
        for n in [1, 33, TILE - 1, TILE, 3 * TILE + 5] {
            let maps: Vec<Affine> =
                noise(2 * n, 7).chunks(2).map(|w| Affine { scale: w[0], offset: w[1] }).collect();
            check::<Affine, Compose>(stream, &maps);
        }
    });
}

#[test]
fn patterns() {
    on_each_schedule(|_, stream| {
        let n = tile_items::<f32, SCAN_ROWS>() + 100;
        check::<u32, Sum>(stream, &vec![1; n]);
        check::<u32, Sum>(stream, &vec![u32::MAX; n]);
        check::<f32, Sum>(stream, &vec![-0.0; n]);
        let special = [f32::NEG_INFINITY, -0.0, 0.0, f32::NAN, -f32::NAN, f32::MAX, 1e-45];
        let items: Vec<f32> = noise(n, 9).iter().map(|&x| special[x as usize % special.len()]).collect();
        check::<f32, Min>(stream, &items);
        check::<f32, Max>(stream, &items);
    });
}

/// Scans the part from item `offset` on, so that accesses are not aligned to 16 bytes.
fn check_part<T: Words, O: Operator<T>, L: LookBack>(stream: &Stream, input: &[T], offset: usize) {
    let num_tiles = (input.len() - offset).div_ceil(tile_items::<T, SCAN_ROWS>());
    let mut words =
        Buffer::<u64>::uninitialized(stream.gpu(), 1 + L::num_words::<T>(num_tiles), "words").unwrap();
    words.fill_bytes(stream, 0).unwrap();
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let mut out = Buffer::from_slice(stream, input, "out").unwrap();
    let len = input.len() - offset;
    // SAFETY: the sizes that the kernel requires.
    unsafe {
        let args = (items.slice().part(offset, len), out.slice_mut().part(offset, len), words.slice_mut(), 0);
        stream.launch::<primitives_scan<T, O, L>>(num_tiles as u64, args).unwrap();
    }
    let mut expected = input.to_vec();
    cpu::scan::inclusive::<T, O>(&input[offset..], &mut expected[offset..]);
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "{len} items from {offset}");
}

#[test]
fn parts_that_begin_anywhere() {
    on_each_schedule(|_, stream| {
        let items: Vec<u32> =
            noise(tile_items::<u32, SCAN_ROWS>() + 70, 11).iter().map(|&x| x as u32).collect();
        for offset in 1..4 {
            check_part::<u32, Sum, Decoupled>(stream, &items, offset);
        }
        check_part::<u64, Max, Decoupled>(stream, &noise(tile_items::<u64, SCAN_ROWS>() + 70, 12), 1);
    });
}

/// More tiles than a warp reads at once: the widest type has the smallest tiles.
#[test]
fn look_back_over_many_tiles() {
    on_each_schedule_in_turn(2, |_, stream, turn| {
        if turn == 0 {
            let items: Vec<f64> =
                noise(5 * tile_items::<f64, SCAN_ROWS>() + 1, 13).iter().map(|&x| x as f64).collect();
            return check_part::<f64, Sum, FixedOrder>(stream, &items, 0);
        }
        let maps: Vec<Affine> = noise(40 * tile_items::<Affine, SCAN_ROWS>(), 7)
            .iter()
            .map(|&w| Affine { scale: w | 1, offset: w })
            .collect();
        check_part::<Affine, Compose, Decoupled>(stream, &maps, 0);
    });
}

#[repr(C)]
struct TicketSmem {
    ticket: [u64; 1],
}

/// Writes the exclusive prefix of each tile; a tile is one value.
#[kernel(block = 32, shared = TicketSmem)]
unsafe fn look_back<T: Words, L: LookBack>(sums: Slice<T>, words: SliceMut<u64>, before: SliceMut<T>)
where
    Sum: Operator<T>,
{
    let ticket = Ticket { counter: words.part(0, 1) };
    let tile = ticket.take(shared_field!(shared_mem::<TicketSmem>(), ticket));
    let words = words.part(1, words.len() - 1);
    if thread::thread_idx_x() == 0 {
        L::publish(words, sums.len(), tile, sums.load(tile));
    }
    let sum = L::exclusive_prefix::<T, Sum>(words, sums.len(), tile, sums.load(tile));
    if thread::thread_idx_x() == 0 {
        before.store(tile, sum);
    }
}

fn check_look_back<T: Words + PartialEq + Debug, L: LookBack>(
    stream: &Stream,
    num_tiles: usize,
    value: fn(u64) -> T,
) where
    Sum: Operator<T>,
{
    let sums: Vec<T> = noise(num_tiles, 17).into_iter().map(value).collect();
    let words = 1 + L::num_words::<T>(num_tiles);
    let mut words = Buffer::<u64>::uninitialized(stream.gpu(), words, "words").unwrap();
    words.fill_bytes(stream, 0).unwrap();
    let input = Buffer::from_slice(stream, &sums, "sums").unwrap();
    let mut before = Buffer::uninitialized(stream.gpu(), num_tiles, "before").unwrap();
    // SAFETY: the sizes that the kernel requires.
    unsafe {
        let args = (input.slice(), words.slice_mut(), before.slice_mut());
        stream.launch::<look_back<T, L>>(num_tiles as u64, args).unwrap();
    }
    let expected = running(T::ZEROS, &sums, Sum::combine);
    assert_eq!(before.to_vec(stream).unwrap(), expected[..num_tiles], "{num_tiles} tiles");
}

#[test]
fn look_back_over_groups_of_groups() {
    on_each_schedule(|_, stream| {
        for num_tiles in [1, 32, 33, 1025, 1100] {
            check_look_back::<u64, FixedOrder>(stream, num_tiles, |noise| noise);
            check_look_back::<u64, Decoupled>(stream, num_tiles, |noise| noise);
            check_look_back::<Count, Decoupled>(stream, num_tiles, |noise| Count(noise >> 16));
        }
    });
}
