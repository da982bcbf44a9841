//! Input whose order is known without sorting, for more items than a host would like to hold.

use cuda_std::prelude::*;

/// Key `i` is `i` modulo `modulus`, value `i` is `i` modulo 2^32.
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

/// Counts the items that are not those of [`test_keys_modulo()`] in stable order.
#[kernel(family = "test", block = 256)]
pub unsafe fn test_sorted_modulo(keys: Slice<u32>, values: Slice<u32>, wrong: SliceMut<u64>, modulus: u64) {
    let i = thread::index_1d_u64();
    let n = keys.len() as u64;
    if i < n {
        // The first `longer` keys are there once more than the others.
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
