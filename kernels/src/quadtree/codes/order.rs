//! Input order within leaves: a leaf above the last level of a round has its points in the order of their codes.

use super::super::node::Node;
use crate::policy::{PER_ITEM_THREADS, QUADTREE_COUNTED_POINTS, SEGMENT_SHORT_ITEMS};
use crate::thread::items::strided;
use crate::thread::words::Bits128;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

/// Writes the ids of leaves of up to `leaf_points` points in ascending order. The rank of an id in a small leaf is the number of lesser ids;
/// larger leaves are listed for a segmented sort. A warp takes 32 nodes.
///
/// Two kinds of leaves are in order already and are not written: leaves on a level with a bit in `in_order`, whose points share one key,
/// and leaves with more than `leaf_points` points, whose points share one unit.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
pub unsafe fn quadtree_order(
    nodes: Slice<Bits128>,
    leaf_points: u32,
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
        let is_unordered = node.is_leaf() && node.len() <= leaf_points && in_order >> node.level & 1 == 0;
        if is_unordered && node.len() > QUADTREE_COUNTED_POINTS {
            let is_long = node.len() as usize > SEGMENT_SHORT_ITEMS;
            let (list, begin) = if is_long { (long, short.len()) } else { (short, 0) };
            let at = num_listed.atomic_add(is_long.into(), 1, Ordering::Relaxed, Scope::Device) as usize;
            let entry = 2 * (begin + at);
            offsets.store(entry, node.start.into());
            offsets.store(entry + 1, node.end.into());
            list.store(at, entry as u64);
        } else if is_unordered {
            len = node.len();
        }
    }
    // The small leaves of the warp, concatenated: lane `i` takes points `i`, `i + 32`, …
    let end = inclusive_sum(len);
    let total = warp::shuffle_idx(warp::FULL_MASK, end, 31);
    for first in strided(0, total, 32) {
        let at = first + warp::lane_id();
        // Binary search for the lane whose leaf has the point.
        let (mut leaf, mut step) = (0, 16);
        while step > 0 {
            let end = warp::shuffle_idx(warp::FULL_MASK, end, leaf + step - 1);
            leaf += if end <= at { step } else { 0 };
            step /= 2;
        }
        let [start, len, end] =
            [start, len, end].map(|value| warp::shuffle_idx(warp::FULL_MASK, value, leaf));
        if at < total {
            let points = ids.part(start as usize, len as usize);
            let id = points.load((at + len - end) as usize);
            let mut rank = 0;
            for other in 0..len as usize {
                rank += u32::from(points.load(other) < id);
            }
            sorted.store((start + rank) as usize, id);
        }
    }
}
