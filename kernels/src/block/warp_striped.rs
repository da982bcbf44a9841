//! Tiles in registers in warp-striped order: a warp's items are consecutive, and a lane has every 32nd of them. A thread holds up to `ITEMS`
//! items, and uses the first `num_items`, the same number in each thread.

use super::radix_rank::TileRanks;
use cuda_std::prelude::*;

/// Returns the index, within the tile, of the caller's first item. The others follow at a distance of 32.
#[inline(always)]
pub fn warp_striped_first(num_items: usize) -> u32 {
    let t = thread::thread_idx_x();
    t / 32 * 32 * num_items as u32 + t % 32
}

/// Loads the caller's items of a tile of `len` items that begins at `begin`; `padding` beyond. `FULL` says that the
/// tile is full.
///
/// # Safety
/// The tile lies within `items`.
#[inline(always)]
pub unsafe fn load_warp_striped<T: Copy, const ITEMS: usize, const FULL: bool>(
    items: Slice<'_, T>,
    begin: usize,
    len: u32,
    padding: T,
    num_items: usize,
) -> [T; ITEMS] {
    let first = warp_striped_first(num_items);
    let (begin, remaining) = (begin + first as usize, len.saturating_sub(first));
    let mut loaded = [padding; ITEMS];
    for item in 0..ITEMS {
        if item < num_items && (FULL || 32 * (item as u32) < remaining) {
            loaded[item] = items.load(begin + 32 * item);
        }
    }
    loaded
}

/// Stores items at their ranks.
///
/// # Safety
/// The ranks are distinct within the block and below the length of `to`.
#[inline(always)]
pub unsafe fn scatter<T: Copy, const ITEMS: usize>(
    to: SharedSlice<'_, T>,
    ranks: &TileRanks<ITEMS>,
    items: &[T; ITEMS],
    num_items: usize,
) {
    for item in 0..ITEMS {
        if item < num_items {
            to.store(ranks.get(item) as usize, items[item]);
        }
    }
}

/// Loads the caller's items of the tile, in warp-striped order.
///
/// # Safety
/// The whole tile was stored before the last barrier.
#[inline(always)]
pub unsafe fn gather_warp_striped<T: Copy, const ITEMS: usize>(
    from: SharedSlice<'_, T>,
    default: T,
    num_items: usize,
) -> [T; ITEMS] {
    let first = warp_striped_first(num_items) as usize;
    let mut items = [default; ITEMS];
    for item in 0..ITEMS {
        if item < num_items {
            items[item] = from.load(first + 32 * item);
        }
    }
    items
}
