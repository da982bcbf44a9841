//! The k nearest points: queries in the order of the tree's buckets, then a walk over these.

use crate::device::{Layout, Stream, Temp};
use crate::error::Result;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::order::QueryOrderPlan;
use crate::query::gpu::{BucketIndex, Locator};
use crate::query::options::Traversal;
use kauri_kernels::query::buckets::Index;
use kauri_kernels::query::by_nodes::{
    query_nearest_closest_corner, query_nearest_stack, query_nearest_stack_free,
};
use kauri_kernels::query::nearest::{
    ResultRows, query_nearest_heap, query_nearest_list, query_nearest_one, query_nearest_queue,
};
use kauri_kernels::query::queries::Queries;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;

/// Temporary memory of one call.
pub(crate) struct Nearest {
    going: QueryOrderPlan,
}

impl Nearest {
    /// Plans queries for the `k` nearest.
    pub(crate) fn plan<C: Coord>(
        layout: &mut Layout,
        tree: &BucketIndex<C>,
        asked: &DeviceOptions<C>,
        queries: QueryView<'_, C>,
        k: usize,
    ) -> Self {
        let are_ordered =
            queries.are_in_order || asked.is_in_order(tree.num_points(), k) || walks_alone(tree, asked);
        Self { going: QueryOrderPlan::plan(layout, tree, queries, are_ordered) }
    }

    /// Answers the queries of the plan.
    ///
    /// # Safety
    /// Queries and rows are apart, of one number, and used by nothing else until the stream has done the work.
    pub(crate) unsafe fn run<'a, C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        tree: &'a BucketIndex<C>,
        asked: &'a DeviceOptions<C>,
        queries: QueryView<'a, C>,
        rows: ResultRows<'_, C>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            if walks_alone(tree, asked) && queries.except.is_empty() && queries.first_left_out.is_none() {
                return walk_alone(stream, tree, asked.wanted.traversal, queries, rows);
            }
            let through = self.going.run(stream, temp, tree, queries)?;
            let queries = tree.kernel_queries(asked, queries, rows.k as usize, through);
            match asked.kernel_dims(tree.dims) {
                2 => launch::<C, 2>(stream, tree.view(), queries, rows),
                3 => launch::<C, 3>(stream, tree.view(), queries, rows),
                4 => launch::<C, 4>(stream, tree.view(), queries, rows),
                _ => launch::<C, MAX_DIMS>(stream, tree.view(), queries, rows),
            }
        }
    }
}

/// True if every query goes through the tree by itself, which is for left-balanced trees.
fn walks_alone<C: Coord>(tree: &BucketIndex<C>, asked: &DeviceOptions<C>) -> bool {
    use Traversal::{ClosestCorner, Stack, StackFree};
    let goes_by_nodes = matches!(asked.wanted.traversal, StackFree | Stack | ClosestCorner);
    goes_by_nodes
        && asked.wanted.is_plain()
        && tree.bucket_len == 0
        && matches!(tree.locator, Locator::Planes(_))
}

/// Answers every query by a traversal of its own.
///
/// # Safety
/// As [`Nearest::run`].
unsafe fn walk_alone<C: Coord>(
    stream: &Stream,
    tree: &BucketIndex<C>,
    traversal: Traversal,
    queries: QueryView<'_, C>,
    rows: ResultRows<'_, C>,
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        match (tree.dims, size_of::<C>()) {
            (2, 4) => walk_by_nodes::<C, 2>(stream, tree, traversal, queries, rows),
            (3, _) => walk_by_nodes::<C, 3>(stream, tree, traversal, queries, rows),
            _ => walk_by_nodes::<C, MAX_DIMS>(stream, tree, traversal, queries, rows),
        }
    }
}

/// The same by kernels for up to `D` dimensions.
///
/// # Safety
/// As [`Nearest::run`], and the tree has no more dimensions.
unsafe fn walk_by_nodes<C: Coord, const D: usize>(
    stream: &Stream,
    tree: &BucketIndex<C>,
    traversal: Traversal,
    queries: QueryView<'_, C>,
    rows: ResultRows<'_, C>,
) -> Result<()> {
    let num_queries = queries.len(tree.dims) as u64;
    let (coords, ids, axes) = (tree.coords(), tree.ids.slice(), tree.axes.slice());
    let args =
        (coords, ids, axes, queries.coords, queries.rows, rows.dist2, rows.ids, tree.dims as u32, rows.k);
    // SAFETY: passed on to the caller.
    unsafe {
        match traversal {
            Traversal::Stack => stream.launch_items::<query_nearest_stack<C, D>>(num_queries, args),
            Traversal::ClosestCorner => {
                stream.launch_items::<query_nearest_closest_corner<C, D>>(num_queries, args)
            }
            _ => stream.launch_items::<query_nearest_stack_free<C, D>>(num_queries, args),
        }
    }
}

/// Launches the kernel for `rows.k` neighbors.
///
/// # Safety
/// As [`Nearest::run`], and the tree has no more than `D` dimensions.
unsafe fn launch<C: Coord, const D: usize>(
    stream: &Stream,
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    rows: ResultRows<'_, C>,
) -> Result<()> {
    // Lists in registers are for few dimensions, and long ones for short coordinates; otherwise the lanes of a warp share them.
    let has_short_lists = D < MAX_DIMS;
    let has_lists = has_short_lists && size_of::<C>() == 4;
    let args = (index, queries, rows);
    let num_queries = queries.len(index.dims as usize) as u64;
    let (lanes, warps) = (num_queries, 32 * num_queries);
    // SAFETY: passed on to the caller.
    unsafe {
        match rows.k {
            1 => stream.launch_items::<query_nearest_one<C, D>>(lanes, args),
            2..=8 if has_short_lists => stream.launch_items::<query_nearest_list<C, D, 8, 8>>(lanes, args),
            9..=16 if has_lists => stream.launch_items::<query_nearest_list<C, D, 16, 8>>(lanes, args),
            17..=32 if has_lists => stream.launch_items::<query_nearest_list<C, D, 32, 16>>(lanes, args),
            2..=32 => stream.launch_items::<query_nearest_queue<C, D, 1>>(warps, args),
            33..=128 => stream.launch_items::<query_nearest_queue<C, D, 4>>(warps, args),
            129..=256 => stream.launch_items::<query_nearest_queue<C, D, 8>>(warps, args),
            _ => stream.launch_items::<query_nearest_heap<C, D>>(lanes, args),
        }
    }
}
