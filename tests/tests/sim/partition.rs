//! Segmented partition compared with the CPU: two and three classes, one segment and many, empty segments.

use crate::{noise, on_each_schedule};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::item::Item;
use kauri::primitives::{cpu, partition};
use kauri_kernels::policy::{PARTITION_ITEMS, TILE_THREADS};
use std::fmt::Debug;

fn check<T: Item + PartialEq + Debug>(stream: &Stream, input: &[T], classes: &[u8], offsets: &[u64]) {
    let gpu = stream.gpu();
    let num_segments = offsets.len() - 1;
    let mut workspace = Workspace::new(gpu);
    let items = Buffer::from_slice(stream, input, "items").unwrap();
    let device_classes = Buffer::from_slice(stream, classes, "classes").unwrap();
    let device_offsets = Buffer::from_slice(stream, offsets, "offsets").unwrap();
    let mut out = Buffer::uninitialized(gpu, input.len(), "out").unwrap();
    let mut counts = Buffer::uninitialized(gpu, 2 * num_segments, "counts").unwrap();
    let (d_c, d_o) = (&device_classes, &device_offsets);
    partition::by_class(stream, &mut workspace, &items, d_c, d_o, &mut out, &mut counts).unwrap();
    let (expected, expected_counts) = cpu::partition::by_class(input, classes, offsets);
    assert_eq!(out.to_vec(stream).unwrap(), expected, "{} items, {num_segments} segments", input.len());
    assert_eq!(counts.to_vec(stream).unwrap(), expected_counts.concat());
}

/// Returns offsets of segments of up to `longest` items, some of them empty.
pub(crate) fn segments(num_items: usize, longest: u64) -> Vec<u64> {
    let mut offsets = vec![0];
    for x in noise(4 * num_items + 4, 31) {
        let begin = offsets[offsets.len() - 1];
        if begin == num_items as u64 {
            break;
        }
        offsets.push((begin + x % (longest + 1)).min(num_items as u64));
    }
    offsets.push(num_items as u64);
    offsets
}

fn classes(num_items: usize, num_classes: u64) -> Vec<u8> {
    noise(num_items, 37).iter().map(|x| (x % num_classes) as u8).collect()
}

#[test]
fn one_segment_of_every_length() {
    const BLOCK: usize = TILE_THREADS * PARTITION_ITEMS;
    on_each_schedule(|_, stream| {
        for n in [0, 1, 2, 31, 32, 33, BLOCK - 1, BLOCK, BLOCK + 1, 8191, 8192, 8193] {
            let items: Vec<u32> = (0..n as u32).collect();
            check(stream, &items, &classes(n, 2), &[0, n as u64]);
        }
    });
}

#[test]
fn many_segments_of_three_classes() {
    on_each_schedule(|_, stream| {
        let n = 3000;
        for longest in [1, 3, 40, 1500] {
            check(stream, &noise(n, 3), &classes(n, 3), &segments(n, longest));
        }
        let wide: Vec<[f32; 4]> = (0..700).map(|i| [i as f32; 4]).collect();
        check(stream, &wide, &classes(700, 4), &segments(700, 30));
        check::<u32>(stream, &[], &[], &[0]);
        check::<u32>(stream, &[], &[], &[0, 0, 0]);
    });
}
