//! Large nodes level by level, then small roots (Zhou et al. 2008; Chang, Seo, Ihm). The tree equals the GPU's, to the last bit.

use super::cheapest_planes::cheapest_planes;
use super::references::{BuildInput, Reference, bounding_box};
use super::small_roots::SmallRoot;
use crate::parallel;
use crate::sah::host_tree::Subtree;
use crate::sah::options::{Quality, SahOptions};
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::sah::cost::SplitCost;
use kauri_kernels::sah::large_nodes::{
    LargeNode, Outcome, SMALL_TRIANGLES, SplitPlan, max_references, reference_slots,
};

/// A large node with its references.
struct Node {
    large: LargeNode,
    references: Vec<Reference>,
}

/// A large node with its split plan.
struct PlannedNode {
    node: Node,
    plan: SplitPlan,
    /// The references below and above the plane.
    halves: [Vec<Reference>; 2],
}

/// A child of a large node.
enum Child {
    /// A large node of the next level.
    Large(Node),
    /// A finished subtree, and the number of references of its root.
    Subtree(Subtree, u64),
}

/// A child of a processed node: a finished subtree, or the index of a processed node.
enum Pending {
    Subtree(Subtree),
    Large(usize),
}

/// A processed node: its split plan, and its children. A node that does not split has one.
type TopNode<C> = (SplitPlan, Vec<C>);

/// Builds the tree over references with this bounding box.
pub(super) fn build(input: &BuildInput<'_>, references: Vec<Reference>, bounds: Aabb) -> Subtree {
    let max_references = max_references(references.len() as u64);
    let len = references.len() as u32;
    let root = LargeNode { bounds, depth: 0, tried_axes: 0, len, first_chunk: 0, begin_chunk: 0 };
    let mut nodes = match input.child(root, references) {
        Child::Subtree(subtree, _) => return subtree,
        Child::Large(root) => vec![root],
    };
    let (mut top_nodes, mut num_finished) = (Vec::<TopNode<Pending>>::new(), 0);
    while !nodes.is_empty() {
        let planned = parallel::map_into(nodes, |node| input.plan(node));
        let num_slots: u64 = planned.iter().map(|node| node.reference_slots(input)).sum();
        let is_full = num_finished + num_slots > max_references;
        let processed = parallel::map_into(planned, |node| input.process(node, is_full));
        let first_next = top_nodes.len() + processed.len();
        nodes = Vec::new();
        for (plan, children) in processed {
            let pending = |child| match child {
                Child::Subtree(subtree, len) => {
                    num_finished += len;
                    Pending::Subtree(subtree)
                }
                Child::Large(node) => {
                    nodes.push(node);
                    Pending::Large(first_next + nodes.len() - 1)
                }
            };
            top_nodes.push((plan, children.into_iter().map(pending).collect()));
        }
    }
    assemble(top_nodes)
}

/// Assembles the tree from its top nodes. Children are behind their parents.
fn assemble(top_nodes: Vec<TopNode<Pending>>) -> Subtree {
    let mut subtrees: Vec<Option<Subtree>> = top_nodes.iter().map(|_| None).collect();
    for (i, (plan, children)) in top_nodes.into_iter().enumerate().rev() {
        let mut children = children.into_iter().map(|child| match child {
            Pending::Subtree(subtree) => subtree,
            Pending::Large(child) => subtrees[child].take().expect("a node has one parent"),
        });
        let below = children.next().expect("a node has a child");
        let remainder = match children.next() {
            Some(above) => Subtree::inner(plan.axis, plan.plane, below, above),
            None => below,
        };
        subtrees[i] = Some(with_cuts(&plan, remainder));
    }
    subtrees[0].take().expect("the root has no parent")
}

/// Adds the nodes of a plan's empty-space cuts above a subtree.
fn with_cuts(plan: &SplitPlan, remainder: Subtree) -> Subtree {
    let cut_sides = (0..6).rev().filter(|side| plan.cut_sides >> side & 1 == 1);
    cut_sides.fold(remainder, |subtree, side| {
        let axis = side / 2;
        if side % 2 == 0 {
            Subtree::inner(axis, plan.remainder.low[axis as usize], Subtree::empty(), subtree)
        } else {
            Subtree::inner(axis, plan.remainder.high[axis as usize], subtree, Subtree::empty())
        }
    })
}

impl PlannedNode {
    fn outcome(&self, input: &BuildInput<'_>, is_full: bool) -> Outcome {
        let counts = self.halves.each_ref().map(|half| half.len() as u32);
        let SahOptions { quality, step_cost, .. } = *input.options;
        self.plan.outcome(&self.node.large, counts, step_cost, quality == Quality::Exact, is_full)
    }

    /// Returns the reference slots that the node's children take if it may split.
    fn reference_slots(&self, input: &BuildInput<'_>) -> u64 {
        let len = self.node.references.len() as u64;
        match self.outcome(input, false) {
            Outcome::Split => self.halves.iter().map(|half| reference_slots(half.len() as u64)).sum(),
            Outcome::NextAxis => reference_slots(len),
            Outcome::Leaf => len,
        }
    }
}

impl BuildInput<'_> {
    fn plan(&self, node: Node) -> PlannedNode {
        let plan = match self.options.quality {
            Quality::Fast => {
                SplitPlan::new(&node.large, bounding_box(&node.references), self.options.empty_space)
            }
            Quality::Exact => {
                let model = SplitCost::new(node.large.bounds, self.options.step_cost);
                SplitPlan::cheapest(&node.large, cheapest_planes(&model, &node.references))
            }
        };
        let halves = if plan.has_plane() {
            self.partition(&node.references, plan.axis, plan.plane)
        } else {
            Default::default()
        };
        PlannedNode { node, plan, halves }
    }

    fn process(&self, planned: PlannedNode, is_full: bool) -> TopNode<Child> {
        let outcome = planned.outcome(self, is_full);
        let PlannedNode { node: Node { large, references }, plan, halves } = planned;
        let depth = plan.depth(&large);
        let children = match outcome {
            Outcome::Split => {
                let boxes = plan.remainder.split_at(plan.axis, plan.plane);
                let child = |(bounds, references): (Aabb, Vec<Reference>)| {
                    let len = references.len() as u32;
                    let large = LargeNode { bounds, depth: depth + 1, tried_axes: 0, len, ..large };
                    self.child(large, references)
                };
                boxes.into_iter().zip(halves).map(child).collect()
            }
            Outcome::NextAxis => {
                let tried_axes = large.tried_axes + 1;
                let large = LargeNode { bounds: plan.remainder, depth, tried_axes, ..large };
                vec![Child::Large(Node { large, references })]
            }
            Outcome::Leaf => {
                let mut triangles: Vec<u32> = references.iter().map(|reference| reference.triangle).collect();
                triangles.sort_unstable();
                let len = triangles.len() as u64;
                vec![Child::Subtree(Subtree::Leaf(triangles), len)]
            }
        };
        (plan, children)
    }

    /// Returns a large node, or the subtree of a small root.
    fn child(&self, large: LargeNode, mut references: Vec<Reference>) -> Child {
        if references.len() as u32 > SMALL_TRIANGLES {
            return Child::Large(Node { large, references });
        }
        references.sort_unstable_by_key(|reference| reference.triangle);
        let root = SmallRoot::new(&references);
        let subtree = root.subtree(large.bounds, large.depth, self.options.step_cost);
        Child::Subtree(subtree, references.len() as u64)
    }
}
