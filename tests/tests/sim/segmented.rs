//! Segmented scan and reduce, compared with the CPU and with a loop.

use crate::partition::segments;
use crate::{bits, noise, on_each_schedule};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::item::Item;
use kauri::primitives::operator::{Max, Min, Sum};
use kauri::primitives::segmented::SegmentedOperator;
use kauri::primitives::{cpu, segmented};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::SEGMENTED_ROWS;
use kauri_kernels::primitives::segmented::reduce::shares;
use kauri_kernels::thread::words::Words;

fn check<T: Words + Item, O: SegmentedOperator<T>>(stream: &Stream, input: &[T], offsets: &[u64]) {
    let gpu = stream.gpu();
    let heads = cpu::segmented::heads(offsets, input.len());
    let mut workspace = Workspace::new(gpu);
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let device_heads = Buffer::from_slice(stream, &heads, "heads").unwrap();
    let device_offsets = Buffer::from_slice(stream, offsets, "offsets").unwrap();
    let mut out = Buffer::uninitialized(gpu, input.len(), "out").unwrap();
    let mut expected = input.to_vec();
    let what = || format!("{} items, {} segments", input.len(), offsets.len() - 1);

    cpu::segmented::inclusive::<T, O>(input, &heads, &mut expected);
    segmented::inclusive_by_heads::<T, O>(stream, &mut workspace, &items, &device_heads, &mut out).unwrap();
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "inclusive, {}", what());
    if O::EXACT {
        let mut looped = Vec::new();
        for (i, &item) in input.iter().enumerate() {
            let before = if heads[i] != 0 || i == 0 { O::IDENTITY } else { looped[i - 1] };
            looped.push(O::combine(before, item));
        }
        assert_eq!(bits(&expected), bits(&looped), "cpu, {}", what());
    }
    cpu::segmented::exclusive::<T, O>(input, &heads, &mut expected);
    segmented::exclusive::<T, O>(stream, &mut workspace, &items, &device_offsets, &mut out).unwrap();
    assert_eq!(bits(&out.to_vec(stream).unwrap()), bits(&expected), "exclusive, {}", what());

    check_reduce::<T, O>(stream, input, offsets);
}

fn check_reduce<T: Words + Item, O: SegmentedOperator<T>>(stream: &Stream, input: &[T], offsets: &[u64]) {
    let what = format!("{} items, {} segments", input.len(), offsets.len() - 1);
    let mut workspace = Workspace::new(stream.gpu());
    let expected = cpu::segmented::reduce::<T, O>(input, offsets);
    if O::EXACT {
        let segment = |ends: &[u64]| &input[ends[0] as usize..ends[1] as usize];
        let sum = |items: &[T]| items.iter().fold(O::IDENTITY, |sum, &item| O::combine(sum, item));
        let looped: Vec<_> = offsets.windows(2).map(|ends| sum(segment(ends))).collect();
        assert_eq!(bits(&expected), bits(&looped), "cpu, {what}");
    }
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let offsets = Buffer::from_slice(stream, offsets, "offsets").unwrap();
    let mut sums = Buffer::uninitialized(stream.gpu(), expected.len(), "sums").unwrap();
    segmented::reduce::<T, O>(stream, &mut workspace, &items, &offsets, &mut sums).unwrap();
    assert_eq!(bits(&sums.to_vec(stream).unwrap()), bits(&expected), "reduce, {what}");
    assert_eq!(workspace.bytes(), segmented::plan_reduce::<T, O>(input.len(), expected.len()));
}

#[test]
fn segments_of_every_kind() {
    const TILE: usize = tile_items::<u32, SEGMENTED_ROWS>();
    on_each_schedule(|_, stream| {
        for n in [0, 1, 33, 129, TILE - 1, TILE, TILE + 1] {
            let items: Vec<u32> = noise(n, 3).iter().map(|&x| x as u32).collect();
            check::<u32, Sum>(stream, &items, &segments(n, 5));
            check::<u32, Sum>(stream, &items, &segments(n, 3000));
        }
        let n = TILE + 100;
        let floats: Vec<f32> = noise(n, 5).iter().map(|&x| (x % 1000) as f32 * 0.37 - 100.0).collect();
        check::<f32, Sum>(stream, &floats, &segments(n, 300));
        check::<f32, Sum>(stream, &floats, &[0, n as u64]);
        check::<f32, Min>(stream, &floats, &segments(n, 30));
        let n = tile_items::<f64, SEGMENTED_ROWS>() + 3;
        let floats: Vec<f64> = noise(n, 7).iter().map(|&x| x as f64 * 1e-3).collect();
        check::<f64, Sum>(stream, &floats, &segments(n, 100));
        check::<u64, Max>(stream, &noise(n, 9), &segments(n, 1));
    });
}

/// Segments longer than several tiles, so that look-back carries sums and stops at heads.
#[test]
fn segments_of_several_tiles() {
    on_each_schedule(|_, stream| {
        let n = 5 * tile_items::<f64, SEGMENTED_ROWS>();
        let floats: Vec<f64> = noise(n, 11).iter().map(|&x| x as f64 * 1e-3).collect();
        check::<f64, Sum>(
            stream,
            &floats,
            &[0, 1, 1, 3 * tile_items::<f64, SEGMENTED_ROWS>() as u64 + 7, n as u64],
        );
        check::<u64, Sum>(
            stream,
            &noise(n, 13),
            &[0, 2 * tile_items::<u64, SEGMENTED_ROWS>() as u64, n as u64],
        );
    });
}

/// Reductions by several blocks, whose warps begin anywhere in segments and among the ends of empty ones.
#[test]
fn reductions_by_several_blocks() {
    on_each_schedule(|_, stream| {
        let (share, num_blocks) = shares(17_000, 0);
        assert!(num_blocks > 2 && share < 5000);
        let n = 17_000;
        let floats: Vec<f32> = noise(n, 5).iter().map(|&x| (x % 1000) as f32 * 0.37 - 100.0).collect();
        check_reduce::<f32, Sum>(stream, &floats, &[0, n as u64]);
        for longest in [20, 100, 5000] {
            check_reduce::<f32, Sum>(stream, &floats, &segments(n, longest));
        }
        let items: Vec<u32> = noise(n, 3).iter().map(|&x| x as u32).collect();
        let mut offsets = vec![0; 3000];
        offsets.extend([1, 2, 5000]);
        offsets.extend([9000; 4000]);
        offsets.extend([n as u64; 40]);
        check_reduce::<u32, Max>(stream, &items, &offsets);
    });
}

/// Runs of empty segments within a tile of a scan.
#[test]
fn scans_skip_empty_segments() {
    on_each_schedule(|_, stream| {
        let mut offsets = vec![0; 100];
        offsets.extend((1..200).map(|i| 3 * i));
        offsets.extend([1000; 333]);
        offsets.push(1200);
        check::<u64, Sum>(stream, &noise(1200, 3), &offsets);
    });
}

#[test]
fn offsets_that_do_not_ascend_have_no_effect_beyond_the_result() {
    on_each_schedule(|gpu, stream| {
        let mut workspace = Workspace::new(gpu);
        let items = Buffer::from_slice(stream, &noise(9000, 3), "items").unwrap();
        let offsets: Vec<u64> = noise(500, 7).iter().map(|&x| x % 20_000).collect();
        let offsets = Buffer::from_slice(stream, &offsets, "offsets").unwrap();
        let (mut sums, mut out) =
            (kauri_test::zeros::<u64>(stream, 499), kauri_test::zeros::<u64>(stream, 9000));
        segmented::reduce::<u64, Sum>(stream, &mut workspace, &items, &offsets, &mut sums).unwrap();
        segmented::inclusive::<u64, Sum>(stream, &mut workspace, &items, &offsets, &mut out).unwrap();
        stream.synchronize().unwrap();
    });
}
