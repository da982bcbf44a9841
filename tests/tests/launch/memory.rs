//! Loads, stores and copies.

use crate::{noise, on_each_gpu, zeros};
use bytemuck::Pod;
use cust_core::DeviceCopy;
use kauri::Error;
use kauri::device::{Buffer, Event, Layout, PinnedBuffer, Stream, Workspace};
use kauri_test_kernels::memory::*;
use std::fmt::Debug;
use std::thread;

#[test]
fn every_kind_of_load_and_store() {
    fn check<T: DeviceCopy + Pod + PartialEq + Debug + Default + 'static>(stream: &Stream, items: &[T]) {
        let n = items.len();
        let input = Buffer::from_slice(stream, items, "input").unwrap();
        let mut out = zeros::<T>(stream, 4 * n);
        // SAFETY: four copies of the input.
        unsafe { stream.launch_items::<test_copies<T>>(n as u64, (input.slice(), out.slice_mut())) }.unwrap();
        // The fourth copy is made from the first.
        assert_eq!(out.to_vec(stream).unwrap(), [items, items, items, items].concat());
    }
    on_each_gpu(|_, stream| {
        let words = noise(1000, 23);
        check::<u32>(stream, &words);
        check::<u64>(stream, &words.iter().map(|&x| u64::from(x) << 17 | 3).collect::<Vec<_>>());

        let floats: Vec<f32> = words[..400].iter().map(|&x| x as f32).collect();
        let input = Buffer::from_slice(stream, &floats, "input").unwrap();
        let mut out = zeros::<f32>(stream, 400);
        // SAFETY: each thread moves four items, and buffers are aligned.
        unsafe { stream.launch_items::<test_copy_16>(100, (input.slice(), out.slice_mut())) }.unwrap();
        let expected: Vec<f32> = floats.chunks(4).flat_map(|c| c.iter().rev().copied()).collect();
        assert_eq!(out.to_vec(stream).unwrap(), expected);
    });
}

#[test]
fn structs_of_the_user() {
    on_each_gpu(|_, stream| {
        let at = |i: usize, time: f32| Particle {
            position: [i as f32 + time, 1.0, -2.0 * time],
            velocity: [1.0, 0.0, -2.0],
            id: (i as u64) << 33,
        };
        let particles: Vec<Particle> = (0..100).map(|i| at(i, 0.0)).collect();
        let mut buffer = Buffer::from_slice(stream, &particles, "particles").unwrap();
        // SAFETY: one thread for each particle.
        unsafe { stream.launch_items::<test_structs>(100, (buffer.slice_mut(), 3.0)) }.unwrap();
        assert_eq!(buffer.to_vec(stream).unwrap(), (0..100).map(|i| at(i, 3.0)).collect::<Vec<_>>());
    });
}

#[test]
fn pointers_know_their_address_space() {
    on_each_gpu(|_, stream| {
        let mut out = zeros::<u32>(stream, 6);
        // SAFETY: six words.
        unsafe { stream.launch::<test_pointers>(1, (out.slice_mut(),)) }.unwrap();
        assert_eq!(out.to_vec(stream).unwrap(), [1, 0, 0, 1, 1, 0]);
    });
}

#[test]
fn buffers_copy_fill_and_check_shapes() {
    on_each_gpu(|gpu, stream| {
        let items = noise(1001, 29);
        let a = Buffer::from_slice(stream, &items, "a").unwrap();
        let mut b = Buffer::<u32>::uninitialized(gpu, 1001, "b").unwrap();
        b.fill_bytes(stream, 0xA5).unwrap();
        assert_eq!(b.to_vec(stream).unwrap(), vec![0xA5A5_A5A5; 1001]);
        b.copy_from(stream, &a).unwrap();
        assert_eq!(b.to_vec(stream).unwrap(), items);

        let mut short = [0u32; 1000];
        let error = b.copy_to_slice(stream, &mut short).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 1001, got: 1000, .. }), "{error}");
        let error = b.copy_from_slice(stream, &short).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 1001, got: 1000, .. }), "{error}");
        let error = b.append_to(stream, &mut Vec::with_capacity(10)).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 1001, .. }), "{error}");
        assert_eq!(b.to_vec(stream).unwrap(), items);

        let empty = Buffer::<u32>::uninitialized(gpu, 0, "empty").unwrap();
        assert!(empty.is_empty() && empty.to_vec(stream).unwrap().is_empty());
    });
}

#[test]
fn pinned_memory_is_a_slice() {
    on_each_gpu(|gpu, stream| {
        let mut pinned = PinnedBuffer::<u32>::zeroed(gpu, 500, "pinned").unwrap();
        assert!(pinned.iter().all(|&x| x == 0));
        pinned.copy_from_slice(&noise(500, 31));
        let buffer = Buffer::from_slice(stream, &pinned, "buffer").unwrap();
        pinned.fill(0);
        buffer.copy_to_slice(stream, &mut pinned).unwrap();
        assert_eq!(pinned[..], noise(500, 31));
        assert!(PinnedBuffer::<u64>::zeroed(gpu, 0, "empty").unwrap().is_empty());
    });
}

#[test]
fn events_order_streams_and_measure() {
    on_each_gpu(|gpu, stream| {
        let (start, end) = (Event::new(gpu).unwrap(), Event::new(gpu).unwrap());
        let other = Stream::new(gpu).unwrap();
        let mut buffer = Buffer::<u32>::uninitialized(gpu, 1 << 20, "buffer").unwrap();
        stream.record(&start).unwrap();
        buffer.fill_bytes(stream, 1).unwrap();
        stream.record(&end).unwrap();
        other.wait(&end).unwrap();
        assert_eq!(buffer.to_vec(&other).unwrap()[1 << 19], 0x0101_0101);
        end.synchronize().unwrap();
        assert!(end.elapsed_since(&start).unwrap().as_nanos() > 0);
    });
}

#[test]
fn workspaces_grow_once_and_regions_are_disjoint() {
    on_each_gpu(|gpu, stream| {
        let mut layout = Layout::new();
        let (a, b) = (layout.reserve::<u8>(3), layout.reserve::<u64>(100));
        assert_eq!(layout.bytes(), 256 + 1024);
        let mut workspace = Workspace::new(gpu);
        let first = {
            let temp = workspace.carve(stream, &layout, "test").unwrap();
            let (a, b) = (temp.view(a), temp.view(b));
            assert!(
                b.as_ptr() as usize >= a.as_ptr() as usize + 256 && (b.as_ptr() as usize).is_multiple_of(256)
            );
            a.as_ptr() as usize
        };
        if std::env::var_os("KAURI_ALLOC").is_some_and(|mode| mode == "paranoid") {
            // Every region is a separate allocation of its exact size.
            assert_eq!(workspace.bytes(), 3 + 800);
        } else {
            assert_eq!(workspace.bytes(), layout.bytes());
            assert_eq!(workspace.carve(stream, &layout, "test").unwrap().view(a).as_ptr() as usize, first);
        }
        stream.synchronize().unwrap();
    });
}

#[test]
fn large_copies_of_several_threads() {
    let bytes: Vec<u8> = (0..33u32 << 20).map(|i| (i >> 8 ^ i) as u8).collect();
    on_each_gpu(|gpu, stream| {
        // From 8 MiB on, copies pass through page-locked memory in pieces of 1 MiB. The arrays are not aligned.
        let check = |stream: &Stream, len: usize| {
            let items = &bytes[1..1 + len];
            let buffer = Buffer::from_slice(stream, items, "bytes").unwrap();
            assert!(buffer.to_vec(stream).unwrap() == items, "{len}");
            let mut copied = vec![0; 1 + len];
            buffer.copy_to_slice(stream, &mut copied[1..]).unwrap();
            assert!(copied[1..] == *items, "{len}");
        };
        for len in [(8 << 20) - 1, 8 << 20, (8 << 20) + 1, (16 << 20) + 3, (33 << 20) - 1] {
            check(stream, len);
        }
        // More copies at once than have their memory kept, each in stream order behind other work.
        thread::scope(|scope| {
            for i in 0..6 {
                let check = &check;
                scope.spawn(move || check(&Stream::new(gpu).unwrap(), (9 << 20) + i));
            }
        });
        let mut pinned = PinnedBuffer::<u8>::zeroed(gpu, 10 << 20, "bytes").unwrap();
        pinned.copy_from_slice(&bytes[..10 << 20]);
        let buffer = Buffer::from_slice(stream, &pinned, "bytes").unwrap();
        assert!(buffer.to_vec(stream).unwrap() == bytes[..10 << 20]);
    });
}
