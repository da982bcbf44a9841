//! Prints.

use cuda_std::prelude::*;

/// Prints a line for each item above the limit.
#[kernel(family = "test", block = 32)]
pub unsafe fn test_prints(items: Slice<f32>, limit: f32) {
    let i = thread::index_1d();
    let item = items.load(i as usize);
    if item > limit {
        cuda_std::println!(
            "item {}: {} has bits {:x}, {} of 100%",
            i,
            item,
            item.to_bits(),
            i64::from(i) - 50
        );
    }
}
