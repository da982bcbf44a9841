//! Small roots: splits of up to 64 references by bit masks.

use super::references::Reference;
use crate::sah::host_tree::Subtree;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::sah::candidates::{Choice, SideMasks, decode, encode, plane_of};
use kauri_kernels::sah::cost::{SplitCost, leaf_cost};
use kauri_kernels::sah::node::MAX_DEPTH;

/// A small root with its split candidates.
pub(super) struct SmallRoot<'a> {
    /// In the order of triangle ids.
    references: &'a [Reference],
    /// Six for each reference: both ends on each axis.
    candidates: Vec<Candidate>,
}

/// A split candidate: its number, its plane, and the references on both sides.
#[derive(Clone, Copy)]
struct Candidate {
    number: u32,
    plane: f32,
    sides: SideMasks,
}

impl<'a> SmallRoot<'a> {
    /// Evaluates the candidates of at most 64 references.
    pub(super) fn new(references: &'a [Reference]) -> Self {
        let ends = |triangle: u32| (0..6).map(move |i| encode(i / 2, triangle, i % 2));
        let with_sides = |number: u32| {
            let (axis, triangle, _) = decode(number);
            let plane = plane_of(number, references[triangle as usize].bounds);
            let mut sides = SideMasks::NONE;
            for (i, Reference { bounds, .. }) in references.iter().enumerate() {
                sides.add(i as u32, bounds.low[axis as usize], bounds.high[axis as usize], plane);
            }
            Candidate { number, plane, sides }
        };
        let candidates = (0..references.len() as u32).flat_map(ends).map(with_sides).collect();
        Self { references, candidates }
    }

    /// Builds the subtree of the root, which is in this box.
    pub(super) fn subtree(&self, bounds: Aabb, depth: u32, step_cost: f32) -> Subtree {
        let all = u64::MAX.checked_shr(64 - self.references.len() as u32).unwrap_or(0);
        self.node(all, bounds, depth, step_cost)
    }

    /// Builds the subtree of a node, whose references `mask` has.
    fn node(&self, mask: u64, bounds: Aabb, depth: u32, step_cost: f32) -> Subtree {
        let leaf = || Subtree::Leaf(members(mask).map(|i| self.references[i].triangle).collect());
        let cost_as_leaf = leaf_cost(mask.count_ones());
        // A split costs at least a traversal step.
        if cost_as_leaf <= step_cost || depth >= MAX_DEPTH {
            return leaf();
        }
        let model = SplitCost::new(bounds, step_cost);
        let candidates = members(mask).flat_map(|i| &self.candidates[6 * i..6 * i + 6]);
        let choices = candidates.map(|it| Choice::evaluate(it.number, it.plane, it.sides, mask, &model));
        let best = choices.fold(Choice::NONE, Choice::better);
        if best.cost >= cost_as_leaf {
            return leaf();
        }
        let (axis, triangle, end) = decode(best.candidate);
        let Candidate { plane, sides, .. } = self.candidates[(6 * triangle + 2 * axis + end) as usize];
        let (boxes, sides) = (bounds.split_at(axis, plane), sides.within(mask));
        let below = self.node(sides.below, boxes[0], depth + 1, step_cost);
        Subtree::inner(axis, plane, below, self.node(sides.above, boxes[1], depth + 1, step_cost))
    }
}

/// Iterates over the bits of a mask, from the lowest on.
fn members(mask: u64) -> impl Iterator<Item = usize> {
    let mut remaining = mask;
    std::iter::from_fn(move || {
        let first = remaining.trailing_zeros();
        remaining &= remaining.wrapping_sub(1);
        (first < u64::BITS).then_some(first as usize)
    })
}
