//! Devices that keep freed memory: buffers, and trees on two of them.
//!
//! Each test opens its own devices, so that other tests use memory from the driver. These tests are not in the program of those that capture
//! work for a graph: to free kept memory waits for the whole context.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, SimOptions, Stream};
use kauri::{Device, Error};
use kauri_test::noise_u32 as noise;

/// Returns a simulated device, and the first GPU if there is one.
fn devices() -> impl Iterator<Item = Device> {
    [Device::sim(SimOptions::default()).unwrap()].into_iter().chain(Device::cuda(0).ok())
}

#[test]
fn memory_is_allocated_again() {
    for device in devices() {
        let gpu = device.gpu().unwrap();
        let (stream, other_stream) = (Stream::new(gpu).unwrap(), Stream::new(gpu).unwrap());
        gpu.keep_memory(1 << 30).unwrap();
        let items = noise(8_000_000, 97);
        let first = Buffer::from_slice(&stream, &items, "first").unwrap();
        for len in [items.len(), 1, items.len() / 2, items.len()] {
            let mut copy = Buffer::<u32>::uninitialized(gpu, len, "copy").unwrap();
            let other = Buffer::from_slice(&stream, &items[..len], "other").unwrap();
            copy.copy_from(&stream, &other).unwrap();
            // The copy may still be running. A fill on another stream must not reach its source, which was freed.
            drop(other);
            let mut zeros = Buffer::<u32>::uninitialized(gpu, len, "zeros").unwrap();
            zeros.fill_bytes(&other_stream, 0).unwrap();
            assert!(zeros.to_vec(&other_stream).unwrap().iter().all(|&x| x == 0));
            assert!(copy.to_vec(&stream).unwrap() == items[..len]);
        }
        assert!(gpu.free_memory().unwrap() <= gpu.info().memory_bytes);
        // Memory in use stays valid, and too large an allocation is the usual error.
        for kept in [1 << 30, 0] {
            gpu.keep_memory(kept).unwrap();
            let error = Buffer::<u8>::uninitialized(gpu, 1 << 45, "too large").unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { memory: "device", .. }), "{error}");
            assert!(first.to_vec(&stream).unwrap() == items);
        }
    }
}

#[test]
fn trees_on_two_devices_are_equal() {
    // The first two GPUs, or the first one twice.
    let two_gpus =
        Device::cuda(0).ok().map(|first| [Device::cuda(1).or_else(|_| Device::cuda(0)).unwrap(), first]);
    let two_simulated = [0, 1].map(|_| Device::sim(SimOptions::default()).unwrap());
    let points: Vec<[f32; 2]> =
        noise(40_000, 53).chunks(2).map(|c| [(c[0] >> 8) as f32, (c[1] >> 8) as f32]).collect();
    let expected = BalancedKdTree::build(&Device::cpu(), &points, &BalancedOptions::default()).unwrap();
    for devices in [two_simulated].into_iter().chain(two_gpus) {
        for bytes in [1 << 30, 1 << 20, 0] {
            for device in &devices {
                device.gpu().unwrap().keep_memory(bytes).unwrap();
            }
            let tree = BalancedKdTree::build_over(&devices, &points, &BalancedOptions::default()).unwrap();
            tree.verify().unwrap();
            assert!(tree.medians().unwrap() == expected.medians().unwrap(), "{bytes}");
        }
        assert!(devices.iter().all(|device| device.gpu().unwrap().memory_use().live_bytes == 0));
    }
}
