//! The nodes above the short subtrees, kept aside until no run is moved any more.

use super::{Points, PointsMut};
use crate::policy::PER_ITEM_THREADS;
use crate::query::left_balanced::in_order_rank;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// Puts each of the first nodes where a walk in order meets it, without room for coordinates its id; a thread a node.
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
        let place = in_order_rank(node as u32, node_ids.len() as u32) as usize;
        PointsMut { coords: node_coords, ids: node_ids }.set(place, top, node);
    }
}
