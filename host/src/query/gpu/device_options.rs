//! Query options and queries in device memory.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::query::gpu::BucketIndex;
use crate::query::gpu::order::QueryOrder;
use crate::query::on_device::DeviceQueries;
use crate::query::options::{Traversal, ValidatedOptions};
use cuda_std::mem::Slice;
use kauri_kernels::policy::QUERIES;
use kauri_kernels::query::queries::{Queries, flags};
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::MAX_DIMS;
use std::ops::Range;

/// Validated options, with the mask and the periods in device memory.
pub(crate) struct DeviceOptions<C> {
    pub(crate) validated: ValidatedOptions<C>,
    /// A bit for each id; empty if all points are accepted.
    pub(super) mask: Buffer<u32>,
    periods: Buffer<C>,
}

impl<C: Float> DeviceOptions<C> {
    pub(crate) fn new(stream: &Stream, validated: ValidatedOptions<C>) -> Result<Self> {
        let words = validated.mask.as_ref().map_or(&[][..], |mask| &mask.words);
        let mask = Buffer::from_slice(stream, words, "mask of points")?;
        let periods = Buffer::from_slice(stream, &validated.periods, "periods of the axes")?;
        Ok(Self { validated, mask, periods })
    }

    /// Checks that the options are on the stream's device.
    pub(crate) fn check_device(&self, stream: &Stream) -> Result<()> {
        self.mask.check_device(stream)
    }

    /// True if queries for `k` points ([`ALL`](super::within::ALL) in a range query) are compared with each of `num_points` points.
    pub(crate) fn is_brute_force(&self, num_points: usize, k: usize) -> bool {
        let [by_lanes, by_warps] = QUERIES.brute_force_up_to;
        match self.validated.traversal {
            Traversal::BruteForce => true,
            Traversal::Auto => num_points <= if by_warps_alone(k) { by_warps } else { by_lanes },
            _ => false,
        }
    }

    /// True if such queries need no sort by start bucket.
    pub(crate) fn is_in_order(&self, num_points: usize, k: usize) -> bool {
        self.validated.coherent || self.is_brute_force(num_points, k)
    }

    /// The `D` of the kernels to launch: the dimensions of the tree, or [`MAX_DIMS`] for the general kernel, which takes any number of
    /// dimensions, any norm and periods. Kernels have these numbers in their `#[instances]`.
    pub(crate) fn kernel_dims(&self, dims: usize) -> usize {
        match dims {
            2 | 3 if self.validated.is_euclidean() => dims,
            4 if self.validated.is_euclidean() && size_of::<C>() == 4 => dims,
            _ => MAX_DIMS,
        }
    }
}

/// True if the kernels for `k` neighbors use a warp per query in any case.
fn by_warps_alone(k: usize) -> bool {
    (33..=256).contains(&k)
}

/// Queries in device memory.
#[derive(Clone, Copy)]
pub(crate) struct QueryView<'a, C> {
    /// The coordinates, query after query.
    pub(crate) coords: Slice<'a, C>,
    /// The result row of each query; empty if that is the order of the queries.
    pub(crate) rows: Slice<'a, u32>,
    /// The id of the point that each query excludes; empty if none does.
    pub(crate) excluded: Slice<'a, u32>,
    /// Query `i` excludes the point with this id plus `i`; used in place of `excluded`.
    pub(crate) first_excluded: Option<u32>,
    /// The queries are points of the tree, in its order.
    pub(crate) are_in_order: bool,
    /// The queries are all points of the tree.
    pub(crate) is_self_query: bool,
}

impl<'a, C: Coord> QueryView<'a, C> {
    /// Returns all queries of a call.
    pub(crate) fn all(
        tree: &'a BucketIndex<C>,
        stream: &Stream,
        queries: DeviceQueries<'a, C>,
    ) -> Result<Self> {
        match queries {
            DeviceQueries::Coordinates(coords) => Ok(Self::of_points(coords.slice())),
            // SAFETY: the range covers all points.
            DeviceQueries::SelfQuery { include_self } => unsafe {
                Self::self_query(tree, stream, 0..tree.num_points(), include_self)
            },
        }
    }

    /// Makes queries of points, in the order of their rows.
    pub(crate) fn of_points(coords: Slice<'a, C>) -> Self {
        let none = empty_view().read_only();
        let (rows, excluded, first_excluded) = (none, none, None);
        Self { coords, rows, excluded, first_excluded, are_in_order: false, is_self_query: false }
    }

    /// Query `i` excludes point `first + before + i`.
    pub(crate) fn excluding(self, first: Option<u32>, before: usize) -> Self {
        Self { first_excluded: first.map(|first| first + before as u32), ..self }
    }

    /// Makes queries of a range of the tree's points, in its order, or by id if the tree does not hold all input points. If the range
    /// covers all points, their rows are the tree's `own_rows`; otherwise rows are in the order of the queries.
    ///
    /// # Safety
    /// The range is within the points.
    pub(crate) unsafe fn self_query(
        tree: &'a BucketIndex<C>,
        stream: &Stream,
        range: Range<usize>,
        include_self: bool,
    ) -> Result<Self> {
        if let Some(coords) = &tree.input_coords {
            // SAFETY: passed on to the caller.
            let coords = unsafe { coords.slice().part(range.start * tree.dims, range.len() * tree.dims) };
            return Ok(Self::of_points(coords).excluding((!include_self).then_some(0), range.start));
        }
        // SAFETY: passed on to the caller.
        let (coords, ids) = unsafe {
            let coords = tree.coords().part(range.start * tree.dims, range.len() * tree.dims);
            (coords, tree.ids.slice().part(range.start, range.len()))
        };
        let (none, is_self_query) = (empty_view().read_only(), range.len() == tree.num_points());
        Ok(Self {
            coords,
            rows: if is_self_query { tree.own_rows(stream)? } else { none },
            excluded: if include_self { none } else { ids },
            first_excluded: None,
            are_in_order: true,
            is_self_query,
        })
    }

    /// Number of queries with `dims` dimensions.
    pub(crate) fn len(&self, dims: usize) -> usize {
        self.coords.len() / dims
    }
}

impl<C: Coord> BucketIndex<C> {
    /// Returns the queries as a kernel argument, for `k` results each.
    pub(crate) fn kernel_queries<'a>(
        &self,
        options: &'a DeviceOptions<C::Distance>,
        queries: QueryView<'a, C>,
        k: usize,
        QueryOrder { order, excluded }: QueryOrder<'a>,
    ) -> Queries<'a, C> {
        let in_order = if order.is_none() { flags::IN_ORDER } else { 0 };
        let self_query = if queries.is_self_query { flags::SELF_QUERY } else { 0 };
        let brute_force = if options.is_brute_force(self.num_points(), k) { flags::BRUTE_FORCE } else { 0 };
        Queries {
            coords: queries.coords,
            rows: order.map_or(queries.rows, |order| order.values),
            start_buckets: order.map_or(empty_view().read_only(), |order| order.keys),
            excluded,
            mask: options.mask.slice(),
            periods: options.periods.slice(),
            flags: in_order | self_query | brute_force | (options.validated.norm as u32) << flags::NORM_SHIFT,
            bound: options.validated.bound.to_f64(),
        }
    }
}
