//! Query options and queries in device memory, as kernels take them.

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
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;
use std::ops::Range;

/// Validated options, with copies on the device of what kernels read.
pub(crate) struct DeviceOptions<C> {
    pub(crate) wanted: ValidatedOptions<C>,
    mask: Buffer<u32>,
    periods: Buffer<C>,
}

impl<C: Coord> DeviceOptions<C> {
    pub(crate) fn new(stream: &Stream, wanted: ValidatedOptions<C>) -> Result<Self> {
        let words = wanted.mask.as_ref().map_or(&[][..], |mask| mask.words());
        let mask = Buffer::from_slice(stream, words, "mask of points")?;
        let periods = Buffer::from_slice(stream, &wanted.periods, "periods of the axes")?;
        Ok(Self { wanted, mask, periods })
    }

    /// Checks that it is on the stream's device.
    pub(crate) fn check_device(&self, stream: &Stream) -> Result<()> {
        self.mask.check_device(stream)
    }

    /// True if queries for the `k` nearest, or for as many as there are, are compared with all of so many points.
    pub(crate) fn is_brute_force(&self, num_points: usize, k: usize) -> bool {
        let [by_lanes, by_warps] = QUERIES.brute_force_up_to;
        match self.wanted.traversal {
            Traversal::BruteForce => true,
            Traversal::Auto => num_points <= if by_warps_alone(k) { by_warps } else { by_lanes },
            _ => false,
        }
    }

    /// True if such queries need not be put in the order of a tree of so many points.
    pub(crate) fn is_in_order(&self, num_points: usize, k: usize) -> bool {
        self.wanted.coherent || self.is_brute_force(num_points, k)
    }

    /// A bit a point that may be taken, or nothing.
    pub(crate) fn mask(&self) -> Slice<'_, u32> {
        self.mask.slice()
    }

    /// The dimensions of the kernels that do it: exactly those of the tree, or up to [`MAX_DIMS`].
    pub(crate) fn kernel_dims(&self, dims: usize) -> usize {
        match dims {
            2 | 3 if self.wanted.is_euclidean() => dims,
            4 if self.wanted.is_euclidean() && size_of::<C>() == 4 => dims,
            _ => MAX_DIMS,
        }
    }
}

/// True if the `k` nearest are always looked for by warps.
fn by_warps_alone(k: usize) -> bool {
    (33..=256).contains(&k)
}

/// Queries in device memory.
#[derive(Clone, Copy)]
pub(crate) struct QueryView<'a, C> {
    /// Their coordinates.
    pub(crate) coords: Slice<'a, C>,
    /// The row of each, if they are not in the order of their rows.
    pub(crate) rows: Slice<'a, u32>,
    /// A point that each leaves out, by id; empty if none does.
    pub(crate) except: Slice<'a, u32>,
    /// Query `i` leaves out this point and `i` on, in place of those.
    pub(crate) first_left_out: Option<u32>,
    /// They are points of the tree in its order.
    pub(crate) are_in_order: bool,
    /// They are all of them.
    pub(crate) are_own: bool,
}

impl<'a, C: Coord> QueryView<'a, C> {
    /// All of a call.
    pub(crate) fn all(tree: &'a BucketIndex<C>, queries: DeviceQueries<'a, C>) -> Self {
        match queries {
            DeviceQueries::Coordinates(coords) => Self::of_points(coords.slice()),
            // SAFETY: the range is that of all points.
            DeviceQueries::Own { itself } => unsafe { Self::own(tree, 0..tree.num_points(), itself) },
        }
    }

    /// Of points, in the order of their rows.
    pub(crate) fn of_points(coords: Slice<'a, C>) -> Self {
        let none = empty_view().read_only();
        let (rows, except, first_left_out) = (none, none, None);
        Self { coords, rows, except, first_left_out, are_in_order: false, are_own: false }
    }

    /// The same, each without a point: number `i` of them, which has `before` others before it, without that id and so many more.
    pub(crate) fn leaving_out(self, first: Option<u32>, before: usize) -> Self {
        Self { first_left_out: first.map(|first| first + before as u32), ..self }
    }

    /// The points of the tree, those at `range` of its order, or of ids if it does not have all points that it was given. Rows of all of
    /// them are those of the ids, of some they are in that order.
    ///
    /// # Safety
    /// There are those points.
    pub(crate) unsafe fn own(tree: &'a BucketIndex<C>, range: Range<usize>, itself: bool) -> Self {
        if let Some(given) = &tree.given {
            // SAFETY: passed on to the caller.
            let coords = unsafe { given.slice().part(range.start * tree.dims, range.len() * tree.dims) };
            return Self::of_points(coords).leaving_out((!itself).then_some(0), range.start);
        }
        // SAFETY: passed on to the caller.
        let (coords, ids) = unsafe {
            let coords = tree.coords().part(range.start * tree.dims, range.len() * tree.dims);
            (coords, tree.ids.slice().part(range.start, range.len()))
        };
        let (none, are_own) = (empty_view().read_only(), range.len() == tree.num_points());
        Self {
            coords,
            rows: if are_own { ids } else { none },
            except: if itself { none } else { ids },
            first_left_out: None,
            are_in_order: true,
            are_own,
        }
    }

    /// Number of queries of so many dimensions.
    pub(crate) fn len(&self, dims: usize) -> usize {
        self.coords.len() / dims
    }
}

impl<C: Coord> BucketIndex<C> {
    /// The queries as kernels take them, for `k` results each.
    pub(crate) fn kernel_queries<'a>(
        &self,
        options: &'a DeviceOptions<C>,
        queries: QueryView<'a, C>,
        k: usize,
        QueryOrder { order, except }: QueryOrder<'a>,
    ) -> Queries<'a, C> {
        let in_order = if order.is_none() { flags::IN_ORDER } else { 0 };
        let own = if queries.are_own { flags::OWN } else { 0 };
        let brute_force = if options.is_brute_force(self.num_points(), k) { flags::BRUTE_FORCE } else { 0 };
        Queries {
            coords: queries.coords,
            rows: order.map_or(queries.rows, |order| order.values),
            start_buckets: order.map_or(empty_view().read_only(), |order| order.keys),
            excluded: except,
            mask: options.mask(),
            periods: options.periods.slice(),
            flags: in_order | own | brute_force | (options.wanted.norm as u32) << flags::NORM_SHIFT,
            bound: options.wanted.bound.to_f64(),
        }
    }
}
