//! Items of a tile in registers, in warp-striped order: a warp's items are consecutive, and a lane has every 32nd of them.

use super::radix_rank::TileRanks;
use cuda_std::prelude::*;

/// The index in the tile of the caller's first item; the others follow at a distance of 32.
#[inline(always)]
pub fn warp_striped_first<const ITEMS: usize>() -> u32 {
    let t = thread::thread_idx_x();
    t / 32 * 32 * ITEMS as u32 + t % 32
}

/// The caller's items of a tile that begins at `begin` and has `len` items; beyond, padding. With `FULL` there is no beyond.
///
/// # Safety
/// The tile lies within `items`.
#[inline(always)]
pub unsafe fn load_warp_striped<T: Copy, const ITEMS: usize, const FULL: bool>(
    items: Slice<'_, T>,
    begin: usize,
    len: u32,
    padding: T,
) -> [T; ITEMS] {
    let first = warp_striped_first::<ITEMS>();
    let (begin, left) = (begin + first as usize, len.saturating_sub(first));
    let mut loaded = [padding; ITEMS];
    let mut item = 0;
    while item < ITEMS {
        if FULL || 32 * (item as u32) < left {
            loaded[item] = items.load(begin + 32 * item);
        }
        item += 1;
    }
    loaded
}

/// Puts items to their ranks.
///
/// # Safety
/// Ranks are those of the tile, each once in the block.
#[inline(always)]
pub unsafe fn scatter<T: Copy, const ITEMS: usize>(
    to: SharedSlice<'_, T>,
    ranks: &TileRanks<ITEMS>,
    items: &[T; ITEMS],
) {
    let mut item = 0;
    while item < ITEMS {
        to.store(ranks.get(item) as usize, items[item]);
        item += 1;
    }
}

/// The items at the caller's places of the tile.
///
/// # Safety
/// All of the tile has been stored.
#[inline(always)]
pub unsafe fn gather_warp_striped<T: Copy, const ITEMS: usize>(
    from: SharedSlice<'_, T>,
    default: T,
) -> [T; ITEMS] {
    let first = warp_striped_first::<ITEMS>() as usize;
    let mut items = [default; ITEMS];
    let mut item = 0;
    while item < ITEMS {
        items[item] = from.load(first + 32 * item);
        item += 1;
    }
    items
}
