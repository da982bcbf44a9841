//! Splits of small nodes by threads: a thread splits a whole node.

use super::children::LevelSplit;
use super::counts::{MAX_CHILDREN, count_child};
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Splits nodes: sorts their points by child and writes the children. One thread per node.
#[kernel(family = "research-quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_by_thread<const D: usize>(level: LevelSplit<'_>) {
    let LevelSplit { points, to, children } = level;
    let Some(k) = own_item(children.parents.len()) else { return };
    let parent = children.parent(k);
    let node = parent.node;
    let (mut counts, mut i) = ([0; MAX_CHILDREN], node.start);
    while i < node.end {
        count_child::<D>(&mut counts, points, points.codes.load(i as usize));
        i += 1;
    }
    let (mut next, mut splits, mut begin, mut child) = ([0; MAX_CHILDREN], 0, node.start, 0);
    while child < 1 << D {
        let end = begin + counts[child];
        children.write::<D>(&parent, child, begin, end);
        splits |= u32::from(counts[child] >= children.splits_from) << child;
        next[child] = begin;
        begin = end;
        child += 1;
    }
    children.write_parent::<D>(&parent);
    let mut i = node.start;
    while i < node.end {
        let (code, id) = (points.codes.load(i as usize), points.ids.load(i as usize));
        let point_child = points.child::<D>(code);
        // `next` is in registers, which cannot be indexed by a variable.
        let (mut index, mut child) = (0, 0);
        while child < 1 << D {
            index = if point_child == child as u32 { next[child] } else { index };
            next[child] += u32::from(point_child == child as u32);
            child += 1;
        }
        to.store(splits >> point_child & 1 == 1, index, code, id);
        i += 1;
    }
}
