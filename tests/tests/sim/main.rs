//! Every kernel of the project in the simulator, under the standard schedules: results are right, and the simulator
//! reports no error. `SIM_SEED` and `SIM_ORDER`, as printed in a report, replay a schedule.

mod balanced;
mod balanced_multi_gpu;
mod building_blocks;
mod demo;
mod join;
mod kdtree;
mod kdtree_batches;
mod kdtree_within;
mod merge;
mod moves;
mod partition;
mod quadtree;
mod query;
mod radix_sort;
mod render;
mod sah;
mod scan;
mod search;
mod segmented;
mod segmented_sort;
mod select;
mod top_k;

use bytemuck::NoUninit;
use cust_core::DeviceCopy;
use kauri::device::{Buffer, Gpu, Stream};

/// Runs a test on each simulated device.
fn on_each_schedule(test: impl Fn(&Gpu, &Stream)) {
    on_each_schedule_in_turn(1, |gpu, stream, _| test(gpu, stream));
}

/// Like [`on_each_schedule`], but each device runs one of `cases` in turn: for slow cases. With fewer devices than
/// cases, as in a replay of one schedule, a device runs several.
fn on_each_schedule_in_turn(cases: usize, test: impl Fn(&Gpu, &Stream, usize)) {
    let devices: Vec<_> = kauri_tests::simulated().collect();
    for (i, device) in devices.iter().cycle().take(devices.len().max(cases)).enumerate() {
        let gpu = device.gpu().unwrap();
        test(gpu, &Stream::new(gpu).unwrap(), i % cases);
    }
}

/// Returns a buffer with these items.
fn upload<T: DeviceCopy + NoUninit>(stream: &Stream, items: &[T]) -> Buffer<T> {
    Buffer::from_slice(stream, items, "items").unwrap()
}

/// Returns a buffer with undefined contents.
fn uninitialized<T: DeviceCopy>(stream: &Stream, len: usize) -> Buffer<T> {
    Buffer::uninitialized(stream.gpu(), len, "test buffer").unwrap()
}

/// Returns reproducible pseudorandom numbers.
fn noise(len: usize, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len).map(|_| next()).collect()
}

/// Returns the words of values, so that floats are compared to the bit.
fn bits<T: kauri_kernels::thread::words::Words>(values: &[T]) -> Vec<[u32; 4]> {
    values.iter().map(|value| value.to_words()).collect()
}
