//! Index rules of a left-balanced complete binary tree in level order (Wald 2022, section 3).
//!
//! Node 0 is the root, node `s` has the children `2s + 1` and `2s + 2`. In a tree over `n` points every level but the
//! last is full, and the last is filled from the left. All functions are defined for `n` up to 2^32 - 1.

/// Level of node `s`; the root is on level 0.
#[inline(always)]
pub const fn level(s: u32) -> u32 {
    if s == u32::MAX { 32 } else { 31 - (s + 1).leading_zeros() }
}

/// Number of levels of a tree over `n` points; 0 for an empty one.
#[inline(always)]
pub const fn num_levels(n: u32) -> u32 {
    32 - n.leading_zeros()
}

/// Number of nodes of a full tree of `levels` levels, which is also the first node of level `levels`.
///
/// `levels` may be 0..=32.
#[inline(always)]
pub const fn full_tree(levels: u32) -> u32 {
    ((1u64 << levels) - 1) as u32
}

/// Parent of node `s`, which must not be the root.
#[inline(always)]
pub const fn parent(s: u32) -> u32 {
    (s - 1) / 2
}

/// Number of levels below node `s` that hold nodes of a tree over `n` points, the last one counted even if `s` has no
/// descendant there. `s` must be a node of the tree.
#[inline(always)]
const fn height_below(s: u32, n: u32) -> u32 {
    num_levels(n) - 1 - level(s)
}

/// Number of nodes of the subtree of `s` in a tree over `n` points; 0 if `s` is not a node of it.
#[inline(always)]
pub const fn subtree_size(s: u32, n: u32) -> u32 {
    if s >= n {
        return 0;
    }
    let h = height_below(s, n);
    // Leftmost possible descendant on the lowest level: s with h one-bits appended. It may lie far beyond n.
    let leftmost = !(!(s as u64) << h) as u32;
    let lowest = n.saturating_sub(leftmost);
    let width = 1u32 << h;
    (width - 1) + if lowest < width { lowest } else { width }
}

/// First array index of the run of subtree `s` when the points are sorted by their tags on the level of `s`: after the
/// finished nodes of the levels above and after all subtrees to the left.
#[inline(always)]
pub const fn subtree_begin(s: u32, n: u32) -> u32 {
    let h = height_below(s, n);
    let above = full_tree(level(s));
    let left_subtrees = s - above;
    let lowest_level = n - full_tree(num_levels(n) - 1);
    let left_lowest = (left_subtrees as u64) << h;
    let filled = if left_lowest < lowest_level as u64 { left_lowest as u32 } else { lowest_level };
    above + left_subtrees * ((1u32 << h) - 1) + filled
}

/// Array index, within the run of subtree `s`, of the point that becomes node `s`: as many points before it as the left
/// subtree has nodes.
#[inline(always)]
pub const fn pivot(s: u32, n: u32) -> u32 {
    let left = 2 * s as u64 + 1;
    let left_size = if left < n as u64 { subtree_size(left as u32, n) } else { 0 };
    subtree_begin(s, n) + left_size
}

/// Number of nodes of the left subtree of node `s`.
#[inline(always)]
pub const fn left_size(s: u32, n: u32) -> u32 {
    pivot(s, n) - subtree_begin(s, n)
}

/// Number of nodes before node `s` in in-order sequence (left subtree, node, right subtree): the slot of its point.
#[inline(always)]
pub const fn in_order_rank(s: u32, n: u32) -> u32 {
    let height = height_below(s, n);
    // In the full tree of as many levels; its lowest level has the even ranks.
    let full_rank = ((s - full_tree(level(s))) as u64) << (height + 1) | ((1 << height) - 1);
    let lowest_before = full_rank.div_ceil(2);
    let lowest = (n - full_tree(num_levels(n) - 1)) as u64;
    (full_rank - lowest_before.saturating_sub(lowest)) as u32
}

/// Number of nodes before the subtree of `s` in in-order sequence: each subtree to its left on its level is followed by one node of a level
/// above.
#[inline(always)]
pub const fn in_order_begin(s: u32, n: u32) -> u32 {
    let above = full_tree(level(s));
    subtree_begin(s, n) - above + (s - above)
}
