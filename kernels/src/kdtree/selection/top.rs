//! The top nodes, which are kept apart until all runs have their final order.

use super::{Points, PointsMut};
use crate::policy::PER_ITEM_THREADS;
use crate::query::left_balanced::in_order_rank;
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Writes each top node to its in-order rank; only its id if `nodes` has no coordinates. One thread per node.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_place_top<C: Coord>(
    top_coords: Slice<C>,
    top_ids: Slice<u32>,
    dims: u32,
    nodes: PointsMut<'_, C>,
) {
    let dims = dims as usize;
    let Some(node) = own_item(top_ids.len()) else { return };
    let top = Points { coords: top_coords, ids: top_ids, dims, by_id: false };
    let rank = in_order_rank(node as u32, nodes.ids.len() as u32) as usize;
    nodes.set(rank, top, node);
}
