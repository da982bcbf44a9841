//! The tree in preorder: sizes from the leaves up, places from the root down.

use super::large::Plan;
use super::levels::{Child, Upper};
use super::node::Node;
use super::subtrees::Size;
use crate::policy::PER_ITEM_THREADS;
use cuda_std::prelude::*;

/// Sides of empty space.
const SIDES: u32 = 6;

/// The size of a node that may be large, small or empty.
#[inline(always)]
unsafe fn size_of_child(child: Child, large: Slice<'_, Size>, small: Slice<'_, Size>) -> Size {
    match child {
        Child::NONE => Size { nodes: 0, listed: 0 },
        Child::EMPTY => Size { nodes: 1, listed: 0 },
        _ => match child.as_large() {
            Some(number) => large.load(number as usize),
            None => small.load(child.small_number() as usize),
        },
    }
}

/// Writes the sizes of the subtrees of large nodes from `begin` to `end`, given those of the level below and of small roots; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_upper_sizes(
    begin: u32,
    end: u32,
    uppers: Slice<Upper>,
    small_sizes: Slice<Size>,
    sizes: SliceMut<Size>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number < end as usize {
        let upper = uppers.load(number);
        let splits = u32::from(upper.above != Child::NONE);
        // A cut is a node and an empty leaf.
        let own = Size { nodes: 2 * upper.plan.sides.count_ones() + splits, listed: 0 };
        let child = |child| size_of_child(child, sizes.read_only(), small_sizes);
        sizes.store(number, own.plus(child(upper.below)).plus(child(upper.above)));
    }
}

/// The tree that is written.
#[derive(Clone, Copy)]
struct Output<'a> {
    nodes: SliceMut<'a, u64>,
    places: SliceMut<'a, Size>,
    small_places: SliceMut<'a, Size>,
}

impl Output<'_> {
    /// Tells a child where it is.
    #[inline(always)]
    unsafe fn put(&self, child: Child, place: Size) {
        if child == Child::EMPTY {
            self.nodes.store(place.nodes as usize, Node::leaf(place.listed, 0).0);
        } else if let Some(number) = child.as_large() {
            self.places.store(number as usize, place);
        } else if child != Child::NONE {
            self.small_places.store(child.small_number() as usize, place);
        }
    }

    /// Writes the cuts of a plan in a subtree; where what is left is.
    #[inline(always)]
    unsafe fn cut_off(&self, plan: &Plan, mut place: Size, size: Size) -> Size {
        // Empty leaves above their planes come behind everything that is left, the first cut's last.
        let (mut end, end_listed) = (place.nodes + size.nodes, place.listed + size.listed);
        let mut side = 0;
        while side < SIDES {
            if plan.sides >> side & 1 == 1 {
                let axis = side / 2;
                let words = plan.rest.to_words();
                let at = if side % 2 == 0 { axis } else { 3 + axis };
                let (mut plane, mut i) = (0.0, 0);
                while i < SIDES {
                    plane = if i == at { words[i as usize] } else { plane };
                    i += 1;
                }
                let own = place.nodes;
                if side % 2 == 0 {
                    self.nodes.store(own as usize, Node::inner(axis, plane, own + 2).0);
                    self.nodes.store(own as usize + 1, Node::leaf(place.listed, 0).0);
                    place.nodes += 2;
                } else {
                    end -= 1;
                    self.nodes.store(own as usize, Node::inner(axis, plane, end).0);
                    self.nodes.store(end as usize, Node::leaf(end_listed, 0).0);
                    place.nodes += 1;
                }
            }
            side += 1;
        }
        place
    }
}

/// Writes large nodes from `begin` to `end` to where they are in the tree, and tells their children where these are; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_upper_write(
    begin: u32,
    end: u32,
    uppers: Slice<Upper>,
    sizes: Slice<Size>,
    small_sizes: Slice<Size>,
    places: SliceMut<Size>,
    small_places: SliceMut<Size>,
    nodes: SliceMut<u64>,
) {
    let number = thread::index_1d_u64() as usize + begin as usize;
    if number >= end as usize {
        return;
    }
    let (upper, output) = (uppers.load(number), Output { nodes, places, small_places });
    let place = output.cut_off(&upper.plan, places.load(number), sizes.load(number));
    if upper.above == Child::NONE {
        output.put(upper.below, place);
        return;
    }
    let below = place.plus(Size { nodes: 1, listed: 0 });
    let above = below.plus(size_of_child(upper.below, sizes, small_sizes));
    output.put(upper.below, below);
    output.put(upper.above, above);
    nodes.store(place.nodes as usize, Node::inner(upper.plan.axis, upper.plan.plane, above.nodes).0);
}
