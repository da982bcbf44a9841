//! Input whose sorted order has a closed form, for more items than fit in host memory.

use cuda_std::prelude::*;

/// Writes key `i` as `i` modulo `modulus`, and value `i` as `i` modulo 2^32.
#[kernel(family = "test", block = 256)]
pub unsafe fn test_keys_modulo(keys: SliceMut<u32>, values: SliceMut<u32>, modulus: u64) {
    let i = thread::index_1d_u64();
    if (i as usize) < keys.len() {
        keys.store(i as usize, (i % modulus) as u32);
        if (i as usize) < values.len() {
            values.store(i as usize, i as u32);
        }
    }
}

/// Counts the items that differ from the stably sorted items of [`test_keys_modulo()`].
#[kernel(family = "test", block = 256)]
pub unsafe fn test_sorted_modulo(keys: Slice<u32>, values: Slice<u32>, wrong: SliceMut<u64>, modulus: u64) {
    let i = thread::index_1d_u64();
    let n = keys.len() as u64;
    if i < n {
        // Each of the first `longer` keys occurs once more than the others.
        let (count, longer) = (n / modulus, n % modulus);
        let of_longer = longer * (count + 1);
        let (key, nth) = if i < of_longer {
            (i / (count + 1), i % (count + 1))
        } else {
            (longer + (i - of_longer) / count, (i - of_longer) % count)
        };
        let value = (key + nth * modulus) as u32;
        let is_right = keys.load(i as usize) == key as u32
            && ((i as usize) >= values.len() || values.load(i as usize) == value);
        if !is_right {
            wrong.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
        }
    }
}
