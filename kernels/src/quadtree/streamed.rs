//! Out-of-core builds: chunks of points are counted by cell, and ranked by the subtree that their cell belongs to.

use super::frame::Frame;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use crate::thread::point::load_point;
use cuda_std::prelude::*;

/// Counts the points of each cell `num_levels` below a node of level `level`. One thread per point. The points of a warp that share the
/// cell of its first lane are added at once, since in dense cells they are many.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_count_cells<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    level: u32,
    num_levels: u32,
    counts: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    let is_point = i < coords.len() / D;
    let mut cell = 0;
    if is_point {
        let frame = Frame::<D>::load(frame);
        cell = frame.code(frame.unit(load_point(coords, i, D)), level, num_levels);
    }
    let first = warp::shuffle_idx(warp::FULL_MASK, cell, 0);
    let same_cell = warp::warp_vote_ballot(warp::FULL_MASK, is_point && cell == first);
    if is_point && (cell != first || warp::lane_id() == 0) {
        let num = if cell == first { same_cell.count_ones() } else { 1 };
        counts.atomic_add(cell as usize, num, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the rank of each point's cell, and the index of the point. One thread per point. `cell_ranks` are the ranks of the cells
/// `num_levels` below a node of level `level`.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_ranks<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    level: u32,
    num_levels: u32,
    cell_ranks: Slice<u32>,
    ranks: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let Some(i) = own_item(ranks.len()) else { return };
    let frame = Frame::<D>::load(frame);
    let cell = frame.code(frame.unit(load_point(coords, i, D)), level, num_levels);
    ranks.store(i, cell_ranks.load(cell as usize));
    numbers.store(i, i as u32);
}
