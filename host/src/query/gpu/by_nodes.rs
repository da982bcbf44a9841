//! Nearest queries by node-by-node traversal: chooses and launches the kernels.

use crate::device::Stream;
use crate::error::Result;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::{BucketIndex, Locator};
use crate::query::options::Traversal;
use kauri_kernels::query::by_nodes::{
    NodeQueries, Nodes, query_nearest_closest_corner, query_nearest_stack, query_nearest_stack_free,
};
use kauri_kernels::query::nearest::ResultRows;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::MAX_DIMS;

/// True if the options choose a node-by-node traversal and it can answer the queries: for the nearest of all points of a left-balanced
/// tree of floats under the Euclidean norm.
pub(super) fn can_answer<C: Coord>(
    tree: &BucketIndex<C>,
    options: &DeviceOptions<C::Distance>,
    queries: QueryView<'_, C>,
) -> bool {
    use Traversal::{ClosestCorner, Stack, StackFree};
    let validated = &options.validated;
    matches!(validated.traversal, StackFree | Stack | ClosestCorner)
        && validated.is_euclidean()
        && validated.bound == C::Distance::INFINITY
        && validated.mask.is_none()
        && queries.excluded.is_empty()
        && queries.first_excluded.is_none()
        && tree.bucket_len == 0
        && tree.given.is_none()
        && matches!(tree.locator, Locator::Planes(_))
        // There are no kernels for integers.
        && C::NAME == C::Distance::NAME
}

/// Launches the traversal of the options.
///
/// # Safety
/// As [`BucketIndex::launch_nearest`].
pub(super) unsafe fn launch<C: Coord>(
    stream: &Stream,
    tree: &BucketIndex<C>,
    options: &DeviceOptions<C::Distance>,
    queries: QueryView<'_, C>,
    rows: ResultRows<'_, C::Distance>,
) -> Result<()> {
    let (num_queries, traversal) = (queries.len(tree.dims) as u64, options.validated.traversal);
    let nodes = Nodes { coords: tree.coords(), ids: tree.ids.slice(), axes: tree.split_axes() };
    let args = (NodeQueries { nodes, coords: queries.coords, rows: queries.rows, result: rows },);
    // SAFETY: passed on to the caller.
    unsafe {
        match (tree.dims, size_of::<C::Distance>()) {
            (2, 4) => launch_for::<C, 2>(stream, traversal, num_queries, args),
            (3, _) => launch_for::<C, 3>(stream, traversal, num_queries, args),
            _ => launch_for::<C, MAX_DIMS>(stream, traversal, num_queries, args),
        }
    }
}

/// Launches a traversal for up to `D` dimensions.
///
/// # Safety
/// As [`launch`], and the tree has no more dimensions.
unsafe fn launch_for<C: Coord, const D: usize>(
    stream: &Stream,
    traversal: Traversal,
    num_queries: u64,
    args: (NodeQueries<'_, C>,),
) -> Result<()> {
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
