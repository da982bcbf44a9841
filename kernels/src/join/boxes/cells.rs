//! Sorts the boxes of a set by level and cell: the key of each box.

use super::geometry::{Aabb, Shape};
use super::levels::LevelGrid;
use crate::join::cells::NOWHERE;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Float;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Writes the key of each box, [`NOWHERE`] for a box without pairs, and its id; a thread per box. Adds the levels of the boxes to
/// `levels`, a bit for each level, which is 0 before. Also writes zeros to the padding after the last box.
#[kernel(family = "join-boxes", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_keys<C: Float, const D: usize>(
    corners: Slice<C>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    keys: SliceMut<u64>,
    ids: SliceMut<u32>,
    levels: SliceMut<u32>,
    behind: SliceMut<C>,
) {
    let (i, dims) = (thread::index_1d_u64() as usize, dims as usize);
    let mut own_level = 0;
    if i < keys.len() {
        let grid = LevelGrid::<D>::load(grid, dims, Shape::from_word(shape).bits);
        let key = match grid.level_and_key(&Aabb::load(corners, i, dims)) {
            Some((level, key)) => {
                own_level = 1 << level;
                key
            }
            None => NOWHERE,
        };
        keys.store(i, key);
        ids.store(i, i as u32);
    }
    if i < behind.len() {
        behind.store(i, C::ZERO);
    }
    let all = warp::warp_reduce(warp::FULL_MASK, own_level, WarpReductionOp::Or);
    // The load spares most warps an atomic operation on a contended word.
    if warp::lane_id() == 0 && all & !levels.atomic_load(0, Ordering::Relaxed, Scope::Device) != 0 {
        levels.atomic_or(0, all, Ordering::Relaxed, Scope::Device);
    }
}
