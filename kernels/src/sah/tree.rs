//! Writing the tree in preorder: subtree sizes from the leaves up, positions from the root down.

use super::large::Plan;
use super::levels::{Child, Upper};
use super::node::Node;
use super::subtrees::Size;
use crate::policy::PER_ITEM_THREADS;
use cuda_std::prelude::*;

/// Sides of a box.
const SIDES: u32 = 6;

/// Returns the subtree size of a child.
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

/// Writes the subtree sizes of the top nodes from `begin` to `end`, given those of the next level and of small roots; one
/// thread per node.
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
        // A cut adds an inner node and an empty leaf.
        let own = Size { nodes: 2 * upper.plan.sides.count_ones() + splits, listed: 0 };
        let child = |child| size_of_child(child, sizes.read_only(), small_sizes);
        sizes.store(number, own.plus(child(upper.below)).plus(child(upper.above)));
    }
}

/// The tree that is written, and the positions of the next level.
#[derive(Clone, Copy)]
struct Output<'a> {
    nodes: SliceMut<'a, u64>,
    places: SliceMut<'a, Size>,
    small_places: SliceMut<'a, Size>,
}

impl Output<'_> {
    /// Sets the position of a child.
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

    /// Writes the nodes of the empty-space cuts of a subtree that starts at `place`. Returns the position of the remainder.
    #[inline(always)]
    unsafe fn cut_off(&self, plan: &Plan, mut place: Size, size: Size) -> Size {
        // Empty leaves above their planes follow the remainder, the leaf of the first cut last.
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

/// Writes the top nodes from `begin` to `end` to the tree, and the positions of their children; one thread per node.
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
