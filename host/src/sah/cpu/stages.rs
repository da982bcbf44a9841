//! Large nodes and small ones, as on a GPU (Zhou et al. 2008; Chang, Seo, Ihm): the same tree, to the last bit.

use super::super::host::Subtree;
use super::{Input, Item, around};
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::large::{Large, Outcome, Plan, SMALL_TRIANGLES, most_listed, num_listed};
use kauri_kernels::sah::model::{Splits, leaf_cost};
use kauri_kernels::sah::node::MAX_DEPTH;
use kauri_kernels::sah::small::{Choice, Sides, candidate, origin, plane};
use rayon::prelude::*;

/// A large node with its triangles.
struct Node {
    large: Large,
    items: Vec<Item>,
}

/// A large node that has been looked at.
struct Step {
    node: Node,
    plan: Plan,
    /// Its triangles below and above the plane.
    halves: [Vec<Item>; 2],
}

/// What becomes of what a large node leaves.
enum Child {
    /// It is on the next level.
    Large(Node),
    /// A tree over so many triangles.
    Tree(Subtree, u64),
}

/// What is left of a large node where empty space is cut off.
enum Rest<C> {
    Split(C, C),
    Same(C),
}

impl<C> Rest<C> {
    fn map<D>(self, mut f: impl FnMut(C) -> D) -> Rest<D> {
        match self {
            Rest::Split(below, above) => Rest::Split(f(below), f(above)),
            Rest::Same(child) => Rest::Same(f(child)),
        }
    }
}

/// A subtree, or the number of a node on the next level.
enum Pending {
    Tree(Subtree),
    Large(usize),
}

/// The tree over triangles.
pub(super) fn build(input: &Input<'_>, items: Vec<Item>, bounds: Aabb) -> Subtree {
    let most = most_listed(items.len() as u64);
    let root = Large { bounds, depth: 0, tried: 0, len: items.len() as u32, chunk: 0, begin: 0 };
    let mut nodes = match input.child(root, items) {
        Child::Tree(tree, _) => return tree,
        Child::Large(root) => vec![root],
    };
    let (mut levels, mut num_settled) = (Vec::new(), 0);
    while !nodes.is_empty() {
        let steps: Vec<_> = nodes.into_par_iter().map(|node| input.step(node)).collect();
        let listed: u64 = steps.iter().map(|step| step.num_listed(input)).sum();
        let is_full = num_settled + listed > most;
        let rests: Vec<_> = steps.into_par_iter().map(|step| input.rest(step, is_full)).collect();
        let (mut next, mut level) = (Vec::new(), Vec::new());
        for (plan, rest) in rests {
            let pending = |child| match child {
                Child::Tree(tree, len) => {
                    num_settled += len;
                    Pending::Tree(tree)
                }
                Child::Large(node) => {
                    next.push(node);
                    Pending::Large(next.len() - 1)
                }
            };
            level.push((plan, rest.map(pending)));
        }
        levels.push(level);
        nodes = next;
    }
    // From the last level on, which has subtrees alone.
    let mut below: Vec<Option<Subtree>> = Vec::new();
    for level in levels.into_iter().rev() {
        let mut tree = |pending| match pending {
            Pending::Tree(tree) => tree,
            Pending::Large(i) => below[i].take().expect("a node has one parent"),
        };
        let with_cuts = |(plan, rest): (Plan, Rest<Pending>)| {
            Some(cut_off(
                &plan,
                match rest.map(&mut tree) {
                    Rest::Split(below, above) => Subtree::inner(plan.axis, plan.plane, below, above),
                    Rest::Same(tree) => tree,
                },
            ))
        };
        below = level.into_iter().map(with_cuts).collect();
    }
    below[0].take().expect("the root is on the first level")
}

/// A tree with the empty space that a plan cuts off.
fn cut_off(plan: &Plan, rest: Subtree) -> Subtree {
    (0..6).rev().filter(|side| plan.sides >> side & 1 == 1).fold(rest, |rest, side| {
        let axis = side / 2;
        if side % 2 == 0 {
            Subtree::inner(axis, plan.rest.low[axis as usize], Subtree::empty(), rest)
        } else {
            Subtree::inner(axis, plan.rest.high[axis as usize], rest, Subtree::empty())
        }
    })
}

impl Step {
    fn outcome(&self, input: &Input<'_>, is_full: bool) -> Outcome {
        let [below, above] = [0, 1].map(|side: usize| self.halves[side].len() as u32);
        self.plan.outcome(&self.node.large, below, above, input.options.step_cost, is_full)
    }

    /// Places for what it leaves, if it may split.
    fn num_listed(&self, input: &Input<'_>) -> u64 {
        match self.outcome(input, false) {
            Outcome::Split => self.halves.iter().map(|half| num_listed(half.len() as u64)).sum(),
            Outcome::Again => num_listed(self.node.items.len() as u64),
            Outcome::Leaf => self.node.items.len() as u64,
        }
    }
}

impl Input<'_> {
    fn step(&self, node: Node) -> Step {
        let plan = Plan::new(&node.large, around(&node.items), self.options.empty_space);
        let halves = if plan.has_plane() {
            self.halves(&node.items, plan.axis, plan.plane)
        } else {
            Default::default()
        };
        Step { node, plan, halves }
    }

    fn rest(&self, step: Step, is_full: bool) -> (Plan, Rest<Child>) {
        let (outcome, Step { node: Node { large, items }, plan, halves }) =
            (step.outcome(self, is_full), step);
        let depth = plan.depth(&large);
        let rest = match outcome {
            Outcome::Split => {
                let boxes = plan.rest.halves(plan.axis, plan.plane);
                let child = |(bounds, items): (Aabb, Vec<Item>)| {
                    let len = items.len() as u32;
                    self.child(Large { bounds, depth: depth + 1, tried: 0, len, ..large }, items)
                };
                let [below, above] = halves;
                Rest::Split(child((boxes[0], below)), child((boxes[1], above)))
            }
            Outcome::Again => {
                let large = Large { bounds: plan.rest, depth, tried: large.tried + 1, ..large };
                Rest::Same(Child::Large(Node { large, items }))
            }
            Outcome::Leaf => {
                let mut triangles: Vec<u32> = items.iter().map(|item| item.triangle).collect();
                triangles.sort_unstable();
                Rest::Same(Child::Tree(Subtree::Leaf(triangles), items.len() as u64))
            }
        };
        (plan, rest)
    }

    /// A node that splits, or is small.
    fn child(&self, large: Large, mut items: Vec<Item>) -> Child {
        if items.len() as u32 > SMALL_TRIANGLES {
            return Child::Large(Node { large, items });
        }
        items.sort_unstable_by_key(|item| item.triangle);
        Child::Tree(SmallRoot::new(&items).subtree(&large, self.options.step_cost), items.len() as u64)
    }
}

/// A small node with what its candidates do.
struct SmallRoot<'a> {
    items: &'a [Item],
    /// Six for each triangle: both ends on each axis.
    candidates: Vec<Candidate>,
}

/// A candidate: its number, its plane, and the triangles on both sides.
#[derive(Clone, Copy)]
struct Candidate {
    number: u32,
    plane: f32,
    sides: Sides,
}

impl<'a> SmallRoot<'a> {
    fn new(items: &'a [Item]) -> Self {
        let ends = |triangle: u32| (0..6).map(move |i| candidate(i / 2, triangle, i % 2));
        let with_sides = |number: u32| {
            let (axis, triangle, _) = origin(number);
            let plane = plane(number, items[triangle as usize].bounds);
            let mut sides = Sides::NONE;
            for (i, Item { bounds, .. }) in items.iter().enumerate() {
                sides.add(i as u32, bounds.low[axis as usize], bounds.high[axis as usize], plane);
            }
            Candidate { number, plane, sides }
        };
        Self { items, candidates: (0..items.len() as u32).flat_map(ends).map(with_sides).collect() }
    }

    fn subtree(&self, root: &Large, step_cost: f32) -> Subtree {
        let all = u64::MAX.checked_shr(64 - self.items.len() as u32).unwrap_or(0);
        self.node(all, root.bounds, root.depth, step_cost)
    }

    fn node(&self, node: u64, bounds: Aabb, depth: u32, step_cost: f32) -> Subtree {
        let leaf = || Subtree::Leaf(members(node).map(|i| self.items[i].triangle).collect());
        let cost_of_leaf = leaf_cost(node.count_ones());
        // A split costs a step at least.
        if cost_of_leaf <= step_cost || depth >= MAX_DEPTH {
            return leaf();
        }
        let splits = Splits::new(bounds, step_cost);
        let own = members(node).flat_map(|i| &self.candidates[6 * i..6 * i + 6]);
        let choices = own.map(|own| Choice::of(own.number, own.plane, own.sides, node, &splits));
        let best = choices.fold(Choice::NONE, Choice::or);
        if best.cost >= cost_of_leaf {
            return leaf();
        }
        let (axis, triangle, end) = origin(best.candidate);
        let Candidate { plane, sides, .. } = self.candidates[(6 * triangle + 2 * axis + end) as usize];
        let (boxes, sides) = (bounds.halves(axis, plane), sides.of(node));
        let below = self.node(sides.below, boxes[0], depth + 1, step_cost);
        Subtree::inner(axis, plane, below, self.node(sides.above, boxes[1], depth + 1, step_cost))
    }
}

/// The triangles of a node.
fn members(node: u64) -> impl Iterator<Item = usize> {
    let mut left = node;
    std::iter::from_fn(move || {
        let first = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (first < u64::BITS).then_some(first as usize)
    })
}
