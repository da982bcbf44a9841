//! The top nodes, which are kept apart until all runs have their final order.

use super::{Points, PointsMut};
use crate::policy::PER_ITEM_THREADS;
use crate::query::left_balanced::in_order_rank;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Writes each top node to its in-order rank; only its id if `node_coords` is empty. One thread per node.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn kdtree_place_top<C: Coord>(
    top_coords: Slice<C>,
    top_ids: Slice<u32>,
    dims: u32,
    node_coords: SliceMut<C>,
    node_ids: SliceMut<u32>,
) {
    let (node, dims) = (thread::index_1d_u64() as usize, dims as usize);
    if node < top_ids.len() {
        let top = Points { coords: top_coords, ids: top_ids, dims, by_id: false };
        let rank = in_order_rank(node as u32, node_ids.len() as u32) as usize;
        PointsMut { coords: node_coords, ids: node_ids }.set(rank, top, node);
    }
}
