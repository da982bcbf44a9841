//! Builds on several GPUs: operations on the part of the points of one GPU.
//!
//! The columns of a part are rotated: the first column is the split axis of the level that the part is on. A level of the whole tree then
//! has the super keys of level 0 of the part.

pub mod cut;

use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Gathers the first coordinates of the points of a list of ids. One thread per position.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_first_coordinates<C: Float>(
    coords: Slice<C>,
    dims: u32,
    ids: Slice<u32>,
    keys: SliceMut<C>,
) {
    let Some(position) = own_item(ids.len()) else { return };
    keys.store(position, coords.load(ids.load(position) as usize * dims as usize));
}

/// Permutes points and their ids into an order, and rotates the columns so that column `rotation` becomes the first. One thread per
/// coordinate.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_lay_out_points<C: Float>(
    coords: Slice<C>,
    dims: u32,
    ids: Slice<u32>,
    order: Slice<u32>,
    rotation: u32,
    new_coords: SliceMut<C>,
    new_ids: SliceMut<u32>,
) {
    let i = thread::index_1d_u64();
    if i < new_coords.len() as u64 {
        let (position, column) = ((i / u64::from(dims)) as usize, (i % u64::from(dims)) as u32);
        let id = order.load(position) as usize;
        let from = if column + rotation < dims { column + rotation } else { column + rotation - dims };
        new_coords.store(i as usize, coords.load(id * dims as usize + from as usize));
        if column == 0 {
            new_ids.store(position, ids.load(id));
        }
    }
}

/// Checks that all points of a part are on the correct side of every ancestor, by the super key of the level of that ancestor. The root of
/// the part is at an address of a level. `ancestors` holds the coordinates of the ancestors in the columns of the part, root first. The
/// least id of a misplaced point is written to `finding`, which is initialized to `u64::MAX`. One thread per point.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_verify_sides<C: Float>(
    coords: Slice<C>,
    dims: u32,
    ancestors: Slice<C>,
    level: u32,
    address: u32,
    finding: SliceMut<u64>,
) {
    let Some(id) = own_item(coords.len() / dims as usize) else { return };
    let point = coords.part(id * dims as usize, dims as usize);
    let mut above = 0;
    while above < level {
        let ancestor = ancestors.part((above * dims) as usize, dims as usize);
        // The column of the split axis of the ancestor. Column 0 is the split axis of the part's level.
        let column = (above + dims - level % dims) % dims;
        let is_greater = address >> (level - 1 - above) & 1 == 1;
        let (first, last) = if is_greater { (ancestor, point) } else { (point, ancestor) };
        if compare(first, last, dims, column) >= 0 {
            finding.atomic_min(0, id as u64, Ordering::Relaxed, Scope::Device);
        }
        above += 1;
    }
}

/// Compares two points by the super key that begins with a column. Returns -1 if `a` comes first, 0 if they are equal, and 1 if `b` comes
/// first.
#[inline(always)]
unsafe fn compare<C: Float>(a: Slice<'_, C>, b: Slice<'_, C>, dims: u32, column: u32) -> i32 {
    let mut beyond = 0;
    while beyond < dims {
        let at = if column + beyond < dims { column + beyond } else { column + beyond - dims } as usize;
        let (key_a, key_b) = (a.load(at).key(), b.load(at).key());
        if key_a != key_b {
            return if key_a < key_b { -1 } else { 1 };
        }
        beyond += 1;
    }
    0
}
