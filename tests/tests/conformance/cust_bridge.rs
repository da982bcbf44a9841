//! One program of kauri and `cust`: contexts, streams, events and buffers of each are used by the other.

use cust::event::EventFlags;
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer, DeviceSliceIndex};
use cust::module::Module;
use cust::stream::{StreamFlags, StreamWaitEventFlags};
use kauri::device::{Buffer, Event, Gpu, SimOptions, Stream, Workspace, cust_bridge};
use kauri::primitives::generate;
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
use kauri::{Device, Error, KdTree, KdTreeOptions, SpatialIndex};
use kauri_kernels::primitives::reduce::{MAX_BLOCKS, primitives_reduce, shape};
use kauri_kernels::thread::operator::Sum;
use kauri_tests::generate::{Shape, queries};
use std::sync::Arc;

/// Runs a test on the first GPU, if there is one, opened from a context of `cust`.
fn on_cuda(test: impl FnOnce(&Gpu)) {
    if kauri_tests::device_names().contains(&"cuda") {
        let context = cust::quick_init().unwrap();
        let device = Device::from_cust(&context).unwrap();
        test(device.gpu().unwrap());
    }
}

fn cust_stream() -> Arc<cust::stream::Stream> {
    Arc::new(cust::stream::Stream::new(StreamFlags::DEFAULT, None).unwrap())
}

#[test]
fn a_tree_on_a_stream_and_buffers_of_cust_answers_as_on_the_cpu() {
    const K: usize = 5;
    on_cuda(|gpu| {
        let points = Shape::Uniform.points::<f32, 3>(3000, 1);
        let queries = queries(&points, 500, 2);
        let coords = DeviceBuffer::from_slice(points.as_flattened()).unwrap();
        let others = DeviceBuffer::from_slice(queries.as_flattened()).unwrap();
        let ids = DeviceBuffer::<u32>::zeroed(queries.len() * K).unwrap();
        let dist2 = DeviceBuffer::<f32>::zeroed(queries.len() * K).unwrap();

        let stream = Stream::from_cust(gpu, cust_stream()).unwrap();
        let coords = Buffer::borrow_cust(gpu, &coords).unwrap();
        let others = Buffer::borrow_cust(gpu, &others).unwrap();
        let (mut ids, mut dist2) =
            (Buffer::from_cust(gpu, ids).unwrap(), Buffer::from_cust(gpu, dist2).unwrap());
        let options = KdTreeOptions::default();
        let mut workspace = Workspace::new(gpu);
        let tree = KdTree::<[f32; 3]>::build_on(&stream, &mut workspace, &coords, &options).unwrap();
        let prepared = tree.prepare(&stream, &QueryOptions::default()).unwrap();
        let device_queries = DeviceQueries::Coordinates(&others);
        tree.nearest_on(&stream, &mut workspace, device_queries, K, &prepared, &mut ids, &mut dist2).unwrap();

        let expected =
            KdTree::build(&Device::cpu(), &points, &options).unwrap().nearest(&queries, K).unwrap();
        let (ids, dist2) = (ids.into_cust().unwrap(), dist2.into_cust().unwrap());
        assert_eq!(ids.as_host_vec().unwrap(), expected.ids());
        assert_eq!(dist2.as_host_vec().unwrap(), expected.dist2());
    });
}

#[test]
fn cust_launches_a_kernel_of_kauri() {
    const LEN: usize = 1000;
    on_cuda(|gpu| {
        let image = cust_bridge::kernel_image::<primitives_reduce<u32, Sum>>(gpu).unwrap();
        assert_eq!(image.family, "primitives-scan");
        assert!(image.shared_bytes > 0);
        let machine_code = image.machine_code.as_ref().map(|code| Module::from_cubin(code, &[]).unwrap());
        for module in [Module::from_ptx(&image.ptx, &[]).unwrap()].into_iter().chain(machine_code) {
            let reduce = image.function(&module).unwrap();

            // One stream for the writes of kauri and the launch of cust, so nothing has to wait between them.
            let kauri_stream = Stream::new(gpu).unwrap();
            let stream = kauri_stream.as_cust().unwrap();
            let mut numbers = Buffer::<u32>::uninitialized(gpu, LEN, "numbers").unwrap();
            generate::iota(&kauri_stream, 0, 1, &mut numbers).unwrap();
            let sum = DeviceBuffer::<u32>::zeroed(1).unwrap();
            let (warp_rows, num_blocks) = shape::<u32>(LEN, MAX_BLOCKS);
            assert_eq!(num_blocks, 1);
            // SAFETY: the parameters have the kernel's types and order, and the buffers live until the stream has done the work.
            unsafe {
                launch!(reduce<<<1, image.block_threads, image.shared_bytes, stream>>>(
                    numbers.as_cust().unwrap().as_device_ptr(),
                    LEN,
                    sum.as_device_ptr(),
                    1usize,
                    warp_rows as u64
                ))
                .unwrap();
            }
            stream.synchronize().unwrap();
            assert_eq!(sum.as_host_vec().unwrap(), [(LEN * (LEN - 1) / 2) as u32]);
        }
    });
}

#[test]
fn buffers_move_and_are_counted_by_their_owner() {
    on_cuda(|gpu| {
        let stream = Stream::new(gpu).unwrap();
        let before = gpu.memory_use().live_bytes;
        let buffer = Buffer::from_slice(&stream, &[1u32, 2, 3], "numbers").unwrap();
        let address = buffer.as_raw();
        assert_eq!(gpu.memory_use().live_bytes, before + 12);
        assert_eq!(buffer.as_cust().unwrap().as_host_vec().unwrap(), [1, 2, 3]);

        let mut moved = buffer.into_cust().unwrap();
        assert_eq!(gpu.memory_use().live_bytes, before);
        assert_eq!(moved.as_device_ptr().as_raw(), address);
        moved.copy_from(&[4, 5, 6]).unwrap();
        {
            let borrowed = Buffer::borrow_cust(gpu, &moved).unwrap();
            assert_eq!(borrowed.to_vec(&stream).unwrap(), [4, 5, 6]);
            assert_eq!(gpu.memory_use().live_bytes, before);
        }

        let back = Buffer::from_cust(gpu, moved).unwrap();
        assert_eq!((back.as_raw(), gpu.memory_use().live_bytes), (address, before + 12));
        assert_eq!(back.to_vec(&stream).unwrap(), [4, 5, 6]);
        drop(back);
        assert_eq!(gpu.memory_use().live_bytes, before);

        // Empty buffers have no memory.
        let empty = Buffer::from_cust(gpu, DeviceBuffer::<u32>::zeroed(0).unwrap()).unwrap();
        assert!(empty.into_cust().unwrap().is_empty());

        // The second item does not begin as an allocation does.
        let numbers = DeviceBuffer::from_slice(&[1u32, 2, 3]).unwrap();
        let part = (1..).index(&numbers);
        assert!(matches!(Buffer::borrow_cust(gpu, &part), Err(Error::Unaligned { .. })));
    });
}

#[test]
fn events_of_one_library_order_streams_of_the_other() {
    on_cuda(|gpu| {
        let context = gpu.cust_context().unwrap();
        let (theirs, ours) = (cust_stream(), Stream::new(gpu).unwrap());
        let shared = Stream::from_cust(gpu, theirs.clone()).unwrap();
        let mut numbers = Buffer::<u32>::uninitialized(gpu, 1 << 20, "numbers").unwrap();

        // An event of kauri, for which a stream of cust waits.
        let event = Event::new(gpu).unwrap();
        generate::iota(&ours, 0, 1, &mut numbers).unwrap();
        event.as_cust().unwrap().record(&ours.as_cust().unwrap()).unwrap();
        theirs.wait_event(event.into_cust().unwrap(), StreamWaitEventFlags::DEFAULT).unwrap();
        let doubled = numbers.to_vec(&shared).unwrap();
        assert!(doubled.iter().zip(0..).all(|(&number, i)| number == i));

        // An event of cust, for which a stream of kauri waits.
        let event = Event::from_cust(gpu, cust::event::Event::new(EventFlags::DEFAULT).unwrap()).unwrap();
        generate::iota(&shared, 7, 0, &mut numbers).unwrap();
        shared.record(&event).unwrap();
        ours.wait(&event).unwrap();
        assert!(numbers.to_vec(&ours).unwrap().iter().all(|&number| number == 7));
        event.synchronize().unwrap();

        // kauri keeps the stream of cust alive, and the device its context.
        drop((theirs, context));
        generate::iota(&shared, 8, 0, &mut numbers).unwrap();
        assert_eq!(numbers.front_to_vec(&shared, 2).unwrap(), [8, 8]);
    });
}

#[test]
fn simulated_devices_are_refused() {
    let device = Device::sim(SimOptions::default()).unwrap();
    let gpu = device.gpu().unwrap();
    let not_cuda = |error: Error| assert!(matches!(error, Error::NotCuda { .. }), "{error}");
    not_cuda(gpu.cust_context().unwrap_err());
    not_cuda(cust_bridge::kernel_image::<primitives_reduce<u32, Sum>>(gpu).unwrap_err());
    let stream = Stream::new(gpu).unwrap();
    not_cuda(stream.as_cust().unwrap_err());
    let event = Event::new(gpu).unwrap();
    not_cuda(event.as_cust().unwrap_err());
    not_cuda(event.into_cust().unwrap_err());
    let buffer = Buffer::from_slice(&stream, &[1u32], "numbers").unwrap();
    not_cuda(buffer.as_cust().unwrap_err());
    not_cuda(buffer.into_cust().unwrap_err());
    assert_eq!(gpu.memory_use().live_bytes, 0);
}

#[test]
fn kept_memory_is_copied_for_cust() {
    on_cuda(|gpu| {
        // A device of its own: others do not keep memory.
        let device = Device::cuda(0).unwrap();
        let kept = device.gpu().unwrap();
        kept.keep_memory(1 << 20).unwrap();
        let stream = Stream::new(kept).unwrap();
        let buffer = Buffer::from_slice(&stream, &[1u32, 2, 3], "numbers").unwrap();
        let address = buffer.as_raw();
        let moved = buffer.into_cust().unwrap();
        assert_ne!(moved.as_device_ptr().as_raw(), address);
        assert_eq!(moved.as_host_vec().unwrap(), [1, 2, 3]);
        assert_eq!(kept.memory_use().live_bytes, 0);
        // The memory comes from the driver, and another device may take it.
        let taken = Buffer::from_cust(gpu, moved).unwrap();
        assert_eq!(taken.to_vec(&Stream::new(gpu).unwrap()).unwrap(), [1, 2, 3]);
    });
}

#[test]
fn borrowed_memory_is_neither_freed_nor_counted() {
    for device in kauri_tests::devices_for(1) {
        let Some(gpu) = device.gpu() else { continue };
        // Other tests use the device meanwhile: this handle counts alone.
        let gpu = &gpu.with_memory_limit(u64::MAX);
        let stream = Stream::new(gpu).unwrap();
        let owner = Buffer::from_slice(&stream, &[1u32, 2, 3], "numbers").unwrap();
        let before = gpu.memory_use().live_bytes;
        // SAFETY: the memory of `owner`, which outlives the borrows.
        let borrow = |offset| unsafe { Buffer::<u32>::from_raw(gpu, owner.as_raw() + offset, 2) };
        assert_eq!(borrow(0).unwrap().to_vec(&stream).unwrap(), [1, 2]);
        assert!(matches!(borrow(4), Err(Error::Unaligned { alignment: 256, .. })));
        assert_eq!(gpu.memory_use().live_bytes, before);
        assert_eq!(owner.to_vec(&stream).unwrap(), [1, 2, 3]);
    }
}
