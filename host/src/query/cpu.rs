//! Queries on the CPU, to any tree that implements `Traversable`, and [`CpuIndex`], the index of k-d trees and balanced trees.
//! Quadtrees implement `Traversable` for their cells, in `quadtree/host/traversal.rs`. Queries are compiled once per number of dimensions.
//!
//! - `backend`: the query backend of every tree; its methods call `nearest`, `visit` and `within`.
//! - `nearest`: the k nearest points; `best` keeps them.
//! - `visit`: visitors of the caller.
//! - `within`: points within a distance or in boxes.
//! - `traversal`: the trait `Traversable`, and the traversal of nodes; `rules` has the rules of distances.
//! - `queries`: the queries of a call.
//! - `order`: processes queries by start bucket.
//! - `buckets`: the positions of points in the index.
//! - `boxes`: the boxes of subtrees.

pub(crate) mod backend;
pub(crate) mod best;
pub(crate) mod boxes;
pub(crate) mod buckets;
mod nearest;
mod order;
pub(crate) mod queries;
pub(crate) mod rules;
pub(crate) mod traversal;
mod visit;
pub(crate) mod within;

use crate::error::Result;
use crate::memory::{self, Items, Parts};
use crate::parallel::{self, TASK_ITEMS};
use crate::point::with_dims;
use crate::query::backend::QueryBackend;
use backend::{CpuTree, TreeOf};
use boxes::{Boxes, Found};
use buckets::Buckets;
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::query::buckets::NO_POINT;
use kauri_kernels::query::left_balanced::in_order_rank;
use kauri_kernels::thread::coord::Coord;
pub(crate) use queries::Corners;
use std::borrow::Cow;
use std::sync::Arc;
use traversal::Nodes;

/// Number of points whose distances a scan computes at a time.
pub(crate) const LANES: usize = 8;
/// Number of buckets of a task that fills an index.
const TASK_BUCKETS: usize = 64;

/// A left-balanced k-d tree in host memory, in the order of [`Buckets`].
pub(crate) struct CpuIndex<C> {
    pub(crate) dims: usize,
    buckets: Buckets,
    /// The points of top nodes, one after another. Then the coordinates of each bucket, axis after axis; and [`LANES`] more at the end, so
    /// that a scan may load that many from any point on.
    coords: Vec<C>,
    ids: Vec<u32>,
    /// The axes of nodes that have children, in level order; empty if levels split on the axes of `cycle` in turn.
    pub(crate) axes: Items<u8>,
    pub(crate) cycle: AxisCycle,
    /// The coordinates of all input points by id, for a balanced tree: it may lack some of them, and its last level may have nodes
    /// without a point.
    input_coords: Option<Arc<Items<C>>>,
    /// The tree has some of the points of an index whose points change.
    is_part: bool,
    corners: Corners<C>,
    boxes: Boxes<C>,
}

/// The points of a tree and their ids in level order.
pub(crate) struct LevelOrder<C, const D: usize> {
    pub(crate) points: Vec<[C; D]>,
    pub(crate) ids: Vec<u32>,
}

impl<C: Coord> CpuIndex<C> {
    /// Makes the index of `num_points` nodes. `point` returns the point of a node, and its id, for the node's number in level order and for
    /// its rank in in-order sequence.
    pub(crate) fn new<const D: usize>(
        num_points: usize,
        axes: Items<u8>,
        cycle: AxisCycle,
        input_coords: Option<Arc<Items<C>>>,
        point: impl Fn(usize, usize) -> ([C; D], u32) + Sync,
    ) -> Result<Self> {
        let buckets = Buckets::new(num_points);
        let mut coords = memory::vec_with_capacity(num_points * D + LANES, "nodes of the tree")?;
        let mut ids = memory::vec_with_capacity(num_points, "ids of the nodes")?;
        let mut boxes = memory::filled(buckets.num_top() + buckets.num(), Found::NONE, "boxes of subtrees")?;
        let bucket_boxes = &mut boxes[buckets.num_top()..];
        let coord_slots = Parts::new(&mut coords.spare_capacity_mut()[..num_points * D]);
        let id_slots = Parts::new(&mut ids.spare_capacity_mut()[..num_points]);
        parallel::for_chunks(bucket_boxes, TASK_BUCKETS, |chunk, boxes| {
            for (bucket, found) in (chunk * TASK_BUCKETS..).zip(boxes) {
                let slots = buckets.slots(bucket);
                let len = slots.len();
                // SAFETY: buckets do not overlap.
                let coords = unsafe { coord_slots.part(slots.start * D..slots.end * D) };
                // SAFETY: as above.
                let ids = unsafe { id_slots.part(slots) };
                for (i, (node, rank)) in buckets.nodes(bucket).enumerate() {
                    let (point, id) = point(node, rank);
                    for axis in 0..D {
                        coords[axis * len + i].write(point[axis]);
                    }
                    ids[i].write(id);
                    found.add(point, id);
                }
            }
        });
        for node in (0..buckets.num_top()).rev() {
            let (point, id) = point(node, in_order_rank(node as u32, num_points as u32) as usize);
            boxes[node] = boxes[2 * node + 1].with(boxes[2 * node + 2]);
            boxes[node].add(point, id);
            // SAFETY: the slots of the top nodes are before those of the buckets, and each is written once.
            unsafe { coord_slots.part(node * D..(node + 1) * D).write_copy_of_slice(&point) };
            // SAFETY: as above.
            unsafe { id_slots.write(node, id) };
        }
        // SAFETY: the loops above have written the coordinates and the id of each slot.
        unsafe {
            coords.set_len(num_points * D);
            ids.set_len(num_points);
        }
        coords.resize(num_points * D + LANES, C::ZERO);
        let (corners, boxes) = (Corners::new(), Boxes::new(&boxes[..buckets.num_boxes()])?);
        let is_part = false;
        Ok(Self { dims: D, buckets, coords, ids, axes, cycle, input_coords, is_part, corners, boxes })
    }

    /// Makes the tree a part of an index whose points change: it may lack the points of queries.
    pub(crate) fn into_part(self) -> Self {
        Self { is_part: true, ..self }
    }

    /// Calls `visit` with each point and its id, without those that have been removed.
    pub(crate) fn for_each_point<const D: usize>(&self, mut visit: impl FnMut([C; D], u32)) {
        let top = (0..self.buckets.num_top()).map(|node| (None, node));
        let bucket = |bucket| self.buckets.slots(bucket).map(move |slot| (Some(bucket), slot));
        for (bucket, slot) in top.chain((0..self.buckets.num()).flat_map(bucket)) {
            if self.ids[slot] != NO_POINT {
                visit(self.point(bucket, slot), self.ids[slot]);
            }
        }
    }

    /// Prepares the removal of the points for which `is_removed` returns true, by their ids: returns the boxes of the other points.
    pub(crate) fn boxes_without<const D: usize>(
        &self,
        is_removed: impl Fn(u32) -> bool + Sync,
    ) -> Result<Boxes<C>> {
        let buckets = &self.buckets;
        let id = |slot: usize| if is_removed(self.ids[slot]) { NO_POINT } else { self.ids[slot] };
        let mut boxes = memory::filled(buckets.num_top() + buckets.num(), Found::NONE, "boxes of subtrees")?;
        parallel::for_chunks(&mut boxes[buckets.num_top()..], TASK_BUCKETS, |chunk, boxes| {
            for (bucket, found) in (chunk * TASK_BUCKETS..).zip(boxes) {
                buckets
                    .slots(bucket)
                    .for_each(|slot| found.add(self.point::<D>(Some(bucket), slot), id(slot)));
            }
        });
        for node in (0..buckets.num_top()).rev() {
            boxes[node] = boxes[2 * node + 1].with(boxes[2 * node + 2]);
            boxes[node].add(self.point(None, node), id(node));
        }
        Boxes::new(&boxes[..buckets.num_boxes()])
    }

    /// Removes these points. `boxes` are those of the other points.
    pub(crate) fn remove(&mut self, is_removed: impl Fn(u32) -> bool + Sync, boxes: Boxes<C>) {
        parallel::for_chunks(&mut self.ids, TASK_ITEMS, |_, ids| {
            ids.iter_mut().filter(|id| is_removed(**id)).for_each(|id| *id = NO_POINT);
        });
        (self.boxes, self.corners) = (boxes, Corners::new());
    }

    /// Number of points that have not been removed.
    pub(crate) fn num_remaining(&self) -> usize {
        with_dims!(self.dims, D => self.boxes.view::<D>().of(0).len as usize)
    }

    /// Returns the least and the greatest corner of the bounding box of the points that have not been removed.
    pub(crate) fn bounds<const D: usize>(&self) -> [[C; D]; 2] {
        *self.boxes.view::<D>().of(0).corners
    }

    /// Returns the bytes of the index of a k-d tree, without axes.
    pub(crate) fn bytes<const D: usize>(num_points: usize) -> usize {
        let box_bytes = Buckets::new(num_points).num_boxes() * Boxes::<C>::bytes_each::<D>();
        num_points * (size_of::<[C; D]>() + size_of::<u32>()) + LANES * size_of::<C>() + box_bytes
    }

    /// Returns the temporary bytes of [`new`](Self::new): the boxes of top nodes and of buckets.
    pub(crate) fn temp_bytes<const D: usize>(num_points: usize) -> usize {
        let buckets = Buckets::new(num_points);
        (buckets.num_top() + buckets.num()) * Boxes::<C>::bytes_each::<D>()
    }

    pub(crate) fn num_points(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn nodes<const D: usize>(&self) -> Nodes<'_, C, D> {
        let (top, coords) = self.coords.split_at(self.buckets.num_top() * D);
        Nodes {
            buckets: self.buckets,
            top: points(top),
            coords,
            ids: &self.ids,
            axes: &self.axes,
            cycle: self.cycle,
            has_all: self.input_coords.is_none() && !self.is_part,
            is_part: self.is_part,
            boxes: self.boxes.view(),
        }
    }

    /// Returns the point of a slot of a bucket, or of a top node.
    fn point<const D: usize>(&self, bucket: Option<usize>, slot: usize) -> [C; D] {
        let (start, len) = match bucket {
            None => (slot, 1),
            Some(bucket) => (self.buckets.slots(bucket).start, self.buckets.slots(bucket).len()),
        };
        std::array::from_fn(|axis| self.coords[start * D + axis * len + slot - start])
    }

    /// Copies the points and the ids in level order.
    pub(crate) fn level_order<const D: usize>(&self) -> Result<LevelOrder<C, D>> {
        let point = |node| {
            let (bucket, slot) = self.buckets.find(node);
            self.point::<D>(bucket, slot)
        };
        let points = parallel::collect(self.num_points(), TASK_ITEMS, "points in level order", point)?;
        Ok(LevelOrder { points, ids: self.ids_in_level_order()? })
    }

    /// Copies the ids in level order.
    pub(crate) fn ids_in_level_order(&self) -> Result<Vec<u32>> {
        let id = |node| self.ids[self.buckets.find(node).1];
        parallel::collect(self.num_points(), TASK_ITEMS, "ids of the nodes", id)
    }

    /// Renumbers the points by `ids`, which are ascending.
    pub(crate) fn with_ids(mut self, ids: &[u32]) -> Self {
        self.ids.iter_mut().for_each(|id| *id = ids[*id as usize]);
        self.boxes.renumber(ids);
        self
    }
}

impl<C: Coord> CpuTree for CpuIndex<C> {
    type Coord = C;

    fn coords_by_id(&self) -> Result<Cow<'_, [C]>> {
        if let Some(coords) = &self.input_coords {
            return Ok(Cow::Borrowed(coords));
        }
        let mut by_id = memory::filled(self.num_points() * self.dims, C::ZERO, "points as queries")?;
        with_dims!(self.dims, D => {
            let rows = by_id.as_chunks_mut::<D>().0;
            self.for_each_point(|point, id| rows[id as usize] = point);
        });
        Ok(by_id.into())
    }

    fn with_queries<R>(&self, run: impl FnOnce(&dyn QueryBackend<C>) -> Result<R>) -> Result<R> {
        with_dims!(self.dims, D => {
            run(&TreeOf { index: self, tree: self.nodes::<D>(), corners: &self.corners })
        })
    }
}

/// Views flat coordinates as points.
pub(crate) fn points<C, const D: usize>(coords: &[C]) -> &[[C; D]] {
    let (points, rest) = coords.as_chunks();
    debug_assert!(rest.is_empty());
    points
}
