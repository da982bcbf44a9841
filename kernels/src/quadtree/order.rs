//! The points of a leaf in the order of the input: a leaf above the last level of a round has them in the order of their codes.

use super::node::Node;
use crate::policy::{PER_ITEM_THREADS, QUADTREE_COUNTED_POINTS, SEGMENT_SHORT_ITEMS};
use crate::thread::words::Bits128;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

/// Writes the ids of each leaf of up to `most` points in ascending order, each to the place that as many lesser ones have before it; a warp
/// 32 nodes. Leaves of the levels that `in_order` has a bit of are those of one key, and in order, as are leaves with more points, all of
/// one unit: these are not written.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
pub unsafe fn quadtree_order(
    nodes: Slice<Bits128>,
    most: u32,
    in_order: u64,
    ids: Slice<u32>,
    sorted: SliceMut<u32>,
    offsets: SliceMut<u64>,
    short: SliceMut<u64>,
    long: SliceMut<u64>,
    num_listed: SliceMut<u64>,
) {
    let i = thread::index_1d_u64() as usize;
    let (mut start, mut len) = (0, 0);
    if i < nodes.len() {
        let node = Node::from_bits(nodes.load(i));
        start = node.start;
        let is_mixed = node.is_leaf() && node.len() <= most && in_order >> node.level & 1 == 0;
        if is_mixed && node.len() > QUADTREE_COUNTED_POINTS {
            let is_long = node.len() as usize > SEGMENT_SHORT_ITEMS;
            let (list, begin) = if is_long { (long, short.len()) } else { (short, 0) };
            let at = num_listed.atomic_add(is_long.into(), 1, Ordering::Relaxed, Scope::Device) as usize;
            let entry = 2 * (begin + at);
            offsets.store(entry, node.start.into());
            offsets.store(entry + 1, node.end.into());
            list.store(at, entry as u64);
        } else if is_mixed {
            len = node.len();
        }
    }
    // The leaves of a warp, one after the other.
    let end = inclusive_sum(len);
    let total = warp::shuffle_idx(warp::FULL_MASK, end, 31);
    let mut first = 0;
    while first < total {
        let at = first + warp::lane_id();
        // The lanes whose leaves end before.
        let (mut leaf, mut step) = (0, 16);
        while step > 0 {
            let end = warp::shuffle_idx(warp::FULL_MASK, end, leaf + step - 1);
            leaf += if end <= at { step } else { 0 };
            step /= 2;
        }
        let [start, len, end] = [start, len, end].map(|of| warp::shuffle_idx(warp::FULL_MASK, of, leaf));
        if at < total {
            let points = ids.part(start as usize, len as usize);
            let id = points.load((at + len - end) as usize);
            let (mut rank, mut other) = (0, 0);
            while other < len as usize {
                rank += u32::from(points.load(other) < id);
                other += 1;
            }
            sorted.store((start + rank) as usize, id);
        }
        first += 32;
    }
}
