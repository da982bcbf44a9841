//! The conversion of integers to the floats of a tree.

use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::{Coord, Float};
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Converts integers to floats. One thread per number.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f64])]
pub unsafe fn balanced_widen<C: Float>(integers: Slice<i32>, floats: SliceMut<C>) {
    let Some(i) = own_item(floats.len()) else { return };
    floats.store(i, C::from_f64(integers.load(i).to_f64()));
}
