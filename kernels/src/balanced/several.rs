//! Trees that are built in parts, each on a device of its own: what is done to the points of a part.
//!
//! The coordinates of a part are rotated: the first column is the axis of the level that the part is on, so that the super keys of a level
//! of the whole tree are those of level 0 of the part's.

use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Writes the first coordinates of points beside their ids; a thread a place.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_first_coordinates<C: Coord>(
    coords: Slice<C>,
    dims: u32,
    ids: Slice<u32>,
    keys: SliceMut<C>,
) {
    let place = thread::index_1d_u64() as usize;
    if place < ids.len() {
        keys.store(place, coords.load(ids.load(place) as usize * dims as usize));
    }
}

/// Lays out points in an order of their ids, with their names, and their columns rotated so that number `rotation` becomes the first. A
/// thread a coordinate.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_lay_out_points<C: Coord>(
    coords: Slice<C>,
    dims: u32,
    names: Slice<u32>,
    order: Slice<u32>,
    rotation: u32,
    new_coords: SliceMut<C>,
    new_names: SliceMut<u32>,
) {
    let i = thread::index_1d_u64();
    if i < new_coords.len() as u64 {
        let (place, column) = ((i / u64::from(dims)) as usize, (i % u64::from(dims)) as u32);
        let id = order.load(place) as usize;
        let from = if column + rotation < dims { column + rotation } else { column + rotation - dims };
        new_coords.store(i as usize, coords.load(id * dims as usize + from as usize));
        if column == 0 {
            new_names.store(place, names.load(id));
        }
    }
}

/// Checks that the points of a part, which is at an address of a level, are on its side of every ancestor, by the super key of that one's
/// level. `ancestors` are the coordinates of those, the root's first, in the columns of the part. The smallest id of a point that is not
/// goes to `finding`, which starts at `u64::MAX`. A thread a point.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_verify_sides<C: Coord>(
    coords: Slice<C>,
    dims: u32,
    ancestors: Slice<C>,
    level: u32,
    address: u32,
    finding: SliceMut<u64>,
) {
    let id = thread::index_1d_u64() as usize;
    if id < coords.len() / dims as usize {
        let point = coords.part(id * dims as usize, dims as usize);
        let mut above = 0;
        while above < level {
            let ancestor = ancestors.part((above * dims) as usize, dims as usize);
            // The axis of the ancestor's level, of which the part's first column is that of its own.
            let column = (above + dims - level % dims) % dims;
            let is_greater = address >> (level - 1 - above) & 1 == 1;
            let (first, last) = if is_greater { (ancestor, point) } else { (point, ancestor) };
            if !is_less(first, last, dims, column) {
                finding.atomic_min(0, id as u64, Ordering::Relaxed, Scope::Device);
            }
            above += 1;
        }
    }
}

/// True if one point comes before another by the super key that begins with a column, and is not equal to it.
#[inline(always)]
unsafe fn is_less<C: Coord>(a: Slice<'_, C>, b: Slice<'_, C>, dims: u32, column: u32) -> bool {
    let mut beyond = 0;
    while beyond < dims {
        let at = if column + beyond < dims { column + beyond } else { column + beyond - dims } as usize;
        let (key_a, key_b) = (a.load(at).key(), b.load(at).key());
        if key_a != key_b {
            return key_a < key_b;
        }
        beyond += 1;
    }
    false
}
