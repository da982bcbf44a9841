//! Search of a hierarchy for the items that a query asks for, near ones first.

use super::leaf::Leaf;
use super::scene::Scene;
use super::stack::{nearest_child, next};
use super::subtree::Subtree;
use crate::rays::aabb::Aabb;
use crate::rays::stack::{Stack, StackSmem, ThreadStack};
use cuda_std::prelude::*;

/// A query of a hierarchy.
pub trait Query<L> {
    /// Returns how near the items in a box can be; not negative; infinity if none of them counts.
    fn near(&self, bounds: Aabb) -> f32;
    /// Returns how near an item has to be.
    fn limit(&self) -> f32;
    /// Takes an item, which may be one that does not count.
    unsafe fn item(&mut self, item: L);
}

/// Gives a query each item that may count.
///
/// # Safety
/// The scene is a valid hierarchy, and the stack has room for as many entries as [`stack_len`](super::stack::stack_len) says.
#[inline(always)]
pub unsafe fn search<S: Scene>(scene: &S, stack: &mut impl Stack, query: &mut impl Query<S::Leaf>) {
    stack.clear();
    let mut at = scene.root();
    loop {
        if at == Subtree::NONE {
            at = next(stack, query.limit());
        }
        if at == Subtree::ENDED {
            return;
        }
        if at.is_node() {
            let node = scene.node(at.index());
            let near = |child: usize| match node.children[child] {
                Subtree::NONE => f32::INFINITY,
                _ => query.near(node.bounds(child)),
            };
            at = nearest_child(node.children, [near(0), near(1), near(2), near(3)], stack);
        } else {
            let mut i = 0;
            while i < at.num_few().unwrap_or(0) {
                query.item(scene.item(at.index() + i));
                i += 1;
            }
            at = Subtree::NONE;
        }
    }
}

/// A hierarchy in device memory, and the stacks of the threads that search it.
#[derive(Clone, Copy, KernelArgs)]
pub struct Searches<'a, L: Leaf> {
    /// The hierarchy.
    pub bvh: crate::bvh::scene::DeviceBvh<'a, L>,
    /// Memory for stacks of more than [`RAY_STACK`](crate::policy::RAY_STACK) entries: further entries of all threads, then the next ones.
    pub deep: SliceMut<'a, u64>,
}

impl<L: Leaf> Searches<'_, L> {
    /// Answers all queries. Each thread takes every n-th one, where n is the number of threads: it calls `answer` with the number of the query and
    /// its stack.
    #[inline(always)]
    pub(super) unsafe fn each_with_stack(
        &self,
        smem: *mut StackSmem,
        num_queries: usize,
        answer: impl Fn(usize, &mut ThreadStack<'_>),
    ) {
        let mut stack = ThreadStack::new(smem, self.deep);
        let step = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
        let mut i = thread::index_1d_u64() as usize;
        while i < num_queries {
            answer(i, &mut stack);
            i += step;
        }
    }

    /// As [`each_with_stack`](Self::each_with_stack), by one search each: `begin` makes a query of its number, and `end` takes it after its
    /// last item.
    #[inline(always)]
    pub(super) unsafe fn each<Q: Query<L>>(
        &self,
        smem: *mut StackSmem,
        num_queries: usize,
        begin: impl Fn(usize) -> Q,
        end: impl Fn(usize, Q),
    ) {
        self.each_with_stack(smem, num_queries, |i, stack| {
            let mut query = begin(i);
            search(&self.bvh, stack, &mut query);
            end(i, query);
        });
    }
}
