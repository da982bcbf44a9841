//! The points within a distance of each query, or in each box: counts, offsets by a scan, then the points.

use super::GpuTree;
use super::ask::{Asked, QueriesOn, WalkArgs, walk_args};
use super::order::Order;
use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::primitives::operator::Sum;
use crate::primitives::pairs::Source;
use crate::primitives::scan::{Ends, Scan};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::within::{
    kdtree_count_in_boxes, kdtree_count_within, kdtree_emit_in_boxes, kdtree_emit_within,
};
use kauri_kernels::primitives::expand::primitives_expand_counts;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;
use kauri_kernels::warp::look_back::Decoupled;

/// What points are looked for by.
#[derive(Clone, Copy)]
pub(super) enum Within<'a, C> {
    /// Queries, and the distance that was asked for.
    Distance(&'a Asked<C>, QueriesOn<'a, C>),
    /// The least and then the greatest coordinates of each box, and a bit a point that may be taken, or nothing.
    Boxes(Slice<'a, C>, Slice<'a, u32>),
}

/// As many neighbours as there are.
pub(super) const ALL: usize = usize::MAX;

/// The buckets and the numbers of queries in the order of the walk; nothing if that is their own order.
pub(super) type RowOrder<'a> = Option<Source<'a, u32, u32>>;

/// Room for what is found, at the offsets of its rows; none for distances that are not wanted.
#[derive(Clone, Copy)]
pub(super) struct FoundMut<'a, C> {
    pub(super) offsets: Slice<'a, u64>,
    pub(super) ids: SliceMut<'a, u32>,
    pub(super) dist2: SliceMut<'a, C>,
}

/// Temporary memory of one call, from counts to points.
pub(super) struct WithinPlan {
    order: Option<Order>,
    counts: Region<u32>,
    scan: Scan,
}

impl WithinPlan {
    /// Plans `num_rows` queries or boxes; queries are put in order unless they are `in_order`.
    pub(super) fn new<C: Coord>(
        layout: &mut Layout,
        tree: &GpuTree<C>,
        num_rows: usize,
        in_order: bool,
    ) -> Self {
        Self {
            order: if in_order { None } else { Order::plan(layout, num_rows, tree.len()) },
            counts: layout.reserve(num_rows),
            scan: Scan::plan::<u64, Decoupled>(layout, num_rows + 1),
        }
    }

    /// The order of queries, if there is one.
    ///
    /// # Safety
    /// As of [`Order::run`].
    unsafe fn order<'a, C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        tree: &GpuTree<C>,
        within: Within<'_, C>,
    ) -> Result<RowOrder<'a>> {
        match (&self.order, within) {
            // SAFETY: passed on to the caller.
            (Some(order), Within::Distance(_, queries)) => unsafe {
                order.run(stream, temp, tree, queries.coords).map(Some)
            },
            _ => Ok(None),
        }
    }

    /// Counts the points of each row. Returns the order in which rows are looked at, for [`emit`](Self::emit).
    ///
    /// # Safety
    /// As many rows as counts; nothing else uses queries and counts until the stream has done the work.
    pub(super) unsafe fn count<'a, C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        tree: &GpuTree<C>,
        within: Within<'_, C>,
        counts: SliceMut<'_, u32>,
    ) -> Result<RowOrder<'a>> {
        // SAFETY: passed on to the caller.
        unsafe {
            let order = self.order(stream, temp, tree, within)?;
            match within {
                Within::Distance(asked, queries) => {
                    let walk = WalkArgs::new(tree, asked, queries, ALL, order);
                    let (n, args) = (walk.num_queries, walk_args!(walk, counts));
                    match asked.kernel_dims(tree.dims) {
                        2 => stream.launch_items::<kdtree_count_within<C, 2>>(n, args),
                        3 => stream.launch_items::<kdtree_count_within<C, 3>>(n, args),
                        4 => stream.launch_items::<kdtree_count_within<C, 4>>(n, args),
                        _ => stream.launch_items::<kdtree_count_within<C, MAX_DIMS>>(n, args),
                    }
                }
                Within::Boxes(corners, mask) => {
                    let (coords, ids, boxes) = (tree.room.slice(), tree.ids.slice(), tree.boxes.slice());
                    let args = (coords, ids, boxes, tree.dims as u32, corners, mask, counts);
                    let n = counts.len() as u64;
                    match tree.dims {
                        2 => stream.launch_items::<kdtree_count_in_boxes<C, 2>>(n, args),
                        3 => stream.launch_items::<kdtree_count_in_boxes<C, 3>>(n, args),
                        _ => stream.launch_items::<kdtree_count_in_boxes<C, MAX_DIMS>>(n, args),
                    }
                }
            }?;
            Ok(order)
        }
    }

    /// Counts, and sets the offsets, one more than rows, to where each row begins.
    ///
    /// # Safety
    /// As of [`count`](Self::count).
    pub(super) unsafe fn offsets<'a, C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        tree: &GpuTree<C>,
        within: Within<'_, C>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<RowOrder<'a>> {
        let counts = temp.view(self.counts);
        // SAFETY: passed on to the caller; the counts are the plan's own.
        unsafe {
            let order = self.count(stream, temp, tree, within, counts)?;
            stream.launch_items::<primitives_expand_counts>(
                offsets.len() as u64,
                (counts.read_only(), offsets),
            )?;
            self.scan.run::<u64, Sum, Decoupled>(
                stream,
                temp,
                offsets.read_only(),
                offsets,
                Ends::Exclusive,
            )?;
            Ok(order)
        }
    }

    /// Writes the points of each row from its offset on, as far as there is room; distances unless there is no room for any.
    ///
    /// # Safety
    /// As of [`count`](Self::count).
    pub(super) unsafe fn emit<C: Coord>(
        stream: &Stream,
        tree: &GpuTree<C>,
        within: Within<'_, C>,
        order: RowOrder<'_>,
        found: FoundMut<'_, C>,
    ) -> Result<()> {
        let FoundMut { offsets, ids, dist2 } = found;
        // SAFETY: passed on to the caller.
        unsafe {
            match within {
                Within::Distance(asked, queries) => {
                    let walk = WalkArgs::new(tree, asked, queries, ALL, order);
                    let (n, args) = (walk.num_queries, walk_args!(walk, offsets, ids, dist2));
                    match asked.kernel_dims(tree.dims) {
                        2 => stream.launch_items::<kdtree_emit_within<C, 2>>(n, args),
                        3 => stream.launch_items::<kdtree_emit_within<C, 3>>(n, args),
                        4 => stream.launch_items::<kdtree_emit_within<C, 4>>(n, args),
                        _ => stream.launch_items::<kdtree_emit_within<C, MAX_DIMS>>(n, args),
                    }
                }
                Within::Boxes(corners, mask) => {
                    let (coords, tree_ids, boxes) = (tree.room.slice(), tree.ids.slice(), tree.boxes.slice());
                    let args = (coords, tree_ids, boxes, tree.dims as u32, corners, mask, offsets, ids);
                    let n = (offsets.len() - 1) as u64;
                    match tree.dims {
                        2 => stream.launch_items::<kdtree_emit_in_boxes<C, 2>>(n, args),
                        3 => stream.launch_items::<kdtree_emit_in_boxes<C, 3>>(n, args),
                        _ => stream.launch_items::<kdtree_emit_in_boxes<C, MAX_DIMS>>(n, args),
                    }
                }
            }
        }
    }
}
