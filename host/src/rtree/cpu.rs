//! R-trees on the CPU.

use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::parallel::{self, TASK_ITEMS};
use crate::point::with_dims;
use crate::primitives::cpu::bounds::bounds;
use crate::query::backend::QueryBackend;
use crate::query::cpu::backend::{CpuTree, TreeOf};
use crate::query::cpu::best::Best;
use crate::query::cpu::boxes::{Boxes, BoxesOf, Found};
use crate::query::cpu::rules::PointQuery;
use crate::query::cpu::traversal::{Bucket, Traversable};
use crate::query::cpu::within::{RangePredicate, RangeVisitor, Share};
use crate::query::cpu::{Corners, LANES, points};
use crate::rtree::backend::Backend;
#[cfg(feature = "io")]
use crate::rtree::backend::{FilePoints, Sections};
use crate::stats::Stats;
use kauri_kernels::query::buckets::{BucketLayout, levels};
use kauri_kernels::query::grid::{Grid, code_bits};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::point::widen;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of levels; at most one far child per level is pending.
const MAX_LEVELS: usize = 32;
/// Number of buckets of a task that fills an index.
const TASK_BUCKETS: usize = 64;

/// An R-tree in host memory.
pub(crate) struct HostTree<C> {
    dims: usize,
    layout: BucketLayout,
    /// The coordinates of each bucket, axis after axis; and [`LANES`] more at the end, so that a scan may load that many from any point on.
    coords: Vec<C>,
    ids: Vec<u32>,
    /// The boxes of the nodes down to the buckets, in level order.
    boxes: Boxes<C>,
    /// The low and the high corner of the grid.
    grid: [Vec<C>; 2],
    corners: Corners<C>,
    num_ids: usize,
    /// The ids of all points in ascending order; empty if no point has been removed.
    own_ids: Vec<u32>,
}

/// A point with its id and its code. Points are moved whole, so that a sort needs no indirect loads.
#[derive(Clone, Copy)]
struct Item<C, const D: usize> {
    code: u64,
    id: u32,
    coords: [C; D],
}

/// Builds the tree over validated coordinates (one point after another).
pub(crate) fn build<C: Coord>(coords: &[C], dims: usize, stats: &mut Stats) -> Result<HostTree<C>> {
    with_dims!(dims, D => HostTree::of_points(points::<C, D>(coords), 0, stats))
}

/// Makes the tree of the points of a file.
#[cfg(feature = "io")]
pub(crate) fn of_file<C: Coord>(file: FilePoints<C>) -> Result<HostTree<C>> {
    let grid = [0, 1].map(|corner| file.corners[corner * file.dims..][..file.dims].to_vec());
    with_dims!(file.dims, D => {
        let (points, ids) = (points::<C, D>(&file.coords), &*file.ids);
        let tree = HostTree::of_sorted(points.len(), |slot| (points[slot], ids[slot]), grid, file.num_ids)?;
        Ok(HostTree { own_ids: file.own_ids, ..tree })
    })
}

/// A tree without points that has given many ids.
#[cfg(test)]
pub(crate) fn with_num_ids(dims: usize, num_ids: usize) -> Result<HostTree<f32>> {
    Ok(HostTree { num_ids, ..build(&[], dims, &mut Stats::default())? })
}

impl<C: Coord> HostTree<C> {
    /// Builds a tree of points, whose ids are `first_id` and the following.
    fn of_points<const D: usize>(points: &[[C; D]], first_id: usize, stats: &mut Stats) -> Result<Self> {
        let corners = bounds(points);
        let grid = Grid::new(corners[0], corners[1], D);
        let mut items = memory::vec_with_capacity(points.len(), "codes of points")?;
        stats.phase("codes", || extend(&mut items, points, &grid, first_id));
        // Ids differ, so an unstable sort gives one order.
        stats.phase("sort", || items.par_sort_unstable_by_key(|item| (item.code, item.id)));
        let num_ids = first_id + points.len();
        stats.phase("boxes", || Self::of_items(&items, corners.map(Vec::from), num_ids))
    }

    /// Makes a tree of points in the order of their codes.
    fn of_items<const D: usize>(items: &[Item<C, D>], grid: [Vec<C>; 2], num_ids: usize) -> Result<Self> {
        let point = |slot: usize| (items[slot].coords, items[slot].id);
        let mut tree = Self::of_sorted(items.len(), point, grid, num_ids)?;
        if items.len() < num_ids {
            tree.own_ids = memory::copy(&tree.ids, "ids of the points")?;
            tree.own_ids.par_sort_unstable();
        }
        Ok(tree)
    }

    /// Makes a tree of `n` points in the order of their codes, without `own_ids`. `point` returns the coordinates and the id of the point of
    /// a slot.
    fn of_sorted<const D: usize>(
        n: usize,
        point: impl Fn(usize) -> ([C; D], u32) + Sync,
        grid: [Vec<C>; 2],
        num_ids: usize,
    ) -> Result<Self> {
        let layout = BucketLayout::left_balanced(n as u32);
        let first_bucket = full_tree(layout.levels) as usize;
        let mut coords = memory::vec_with_capacity(n * D + LANES, "points of the tree")?;
        let mut ids = memory::vec_with_capacity(n, "ids of the points")?;
        let mut boxes = memory::filled(num_boxes(n), Found::NONE, "boxes of subtrees")?;
        let coord_slots = Parts::new(&mut coords.spare_capacity_mut()[..n * D]);
        let id_slots = Parts::new(&mut ids.spare_capacity_mut()[..n]);
        parallel::for_chunks(&mut boxes[first_bucket..], TASK_BUCKETS, |chunk, boxes| {
            for (bucket, found) in (chunk * TASK_BUCKETS..).zip(boxes) {
                let slots = slots(&layout, bucket);
                // SAFETY: buckets do not overlap.
                let coords = unsafe { coord_slots.part(slots.start * D..slots.end * D) };
                // SAFETY: as above.
                let ids = unsafe { id_slots.part(slots.clone()) };
                for (i, slot) in slots.clone().enumerate() {
                    let (at, id) = point(slot);
                    for axis in 0..D {
                        coords[axis * slots.len() + i].write(at[axis]);
                    }
                    ids[i].write(id);
                    found.add(at, id);
                }
            }
        });
        // SAFETY: the loops above have written the coordinates and the id of each slot.
        unsafe {
            coords.set_len(n * D);
            ids.set_len(n);
        }
        coords.resize(n * D + LANES, C::ZERO);
        for node in (0..first_bucket).rev() {
            boxes[node] = boxes[2 * node + 1].with(boxes[2 * node + 2]);
        }
        let (boxes, corners) = (Boxes::new(&boxes)?, Corners::new());
        Ok(Self { dims: D, layout, coords, ids, boxes, grid, corners, num_ids, own_ids: Vec::new() })
    }

    /// Returns the points that `stays` takes, in the order of the tree, with room for more.
    fn items<const D: usize>(
        &self,
        stays: impl Fn(u32) -> bool + Sync,
        num_more: usize,
    ) -> Result<Vec<Item<C, D>>> {
        let mut items = memory::vec_with_capacity(self.ids.len() + num_more, "points of the tree")?;
        for bucket in 0..1 << self.layout.levels {
            let slots = slots(&self.layout, bucket);
            let (coords, len) = (&self.coords[slots.start * D..], slots.len());
            for (i, &id) in self.ids[slots].iter().enumerate().filter(|(_, id)| stays(**id)) {
                items.push(Item { code: 0, id, coords: std::array::from_fn(|axis| coords[axis * len + i]) });
            }
        }
        Ok(items)
    }

    /// Returns the coordinates, point after point, in the order of the tree.
    #[cfg(feature = "io")]
    fn coords_in_order(&self) -> Result<Vec<C>> {
        let dims = self.dims;
        let mut in_order = memory::vec_with_capacity(self.ids.len() * dims, "points of the tree")?;
        for bucket in 0..1 << self.layout.levels {
            let slots = slots(&self.layout, bucket);
            let (coords, len) = (&self.coords[slots.start * dims..], slots.len());
            for i in 0..len {
                in_order.extend((0..dims).map(|axis| coords[axis * len + i]));
            }
        }
        Ok(in_order)
    }

    fn grid<const D: usize>(&self) -> Grid<D> {
        let [low, high] = [0, 1].map(|i| points::<C, D>(&self.grid[i])[0]);
        Grid::new(low, high, D)
    }

    fn grid_corners(&self) -> Result<[Vec<C>; 2]> {
        let [low, high] = &self.grid;
        Ok([memory::copy(low, "corners of a grid")?, memory::copy(high, "corners of a grid")?])
    }

    /// Returns the tree with new points.
    fn with_points<const D: usize>(&self, new: &[[C; D]]) -> Result<Self> {
        if self.ids.is_empty() {
            return Self::of_points(new, self.num_ids, &mut Stats::default());
        }
        let (grid, mut items) = (self.grid::<D>(), self.items(|_| true, new.len())?);
        items.par_iter_mut().for_each(|item| item.code = grid.code(item.coords));
        extend(&mut items, new, &grid, self.num_ids);
        // A stable sort takes the points of the tree as one sorted run.
        items.par_sort_by_key(|item| (item.code, item.id));
        Self::of_items(&items, self.grid_corners()?, self.num_ids + new.len())
    }
}

/// Appends points with codes, whose ids are `first_id` and the following. There is capacity for them.
fn extend<C: Coord, const D: usize>(
    items: &mut Vec<Item<C, D>>,
    points: &[[C; D]],
    grid: &Grid<D>,
    first_id: usize,
) {
    parallel::extend(items, points.len(), TASK_ITEMS, |i| Item {
        code: grid.code(points[i]),
        id: (first_id + i) as u32,
        coords: points[i],
    });
}

/// Returns the slots of a bucket.
#[inline(always)]
fn slots(layout: &BucketLayout, bucket: usize) -> Range<usize> {
    let begin = |bucket: usize| layout.begin(bucket as u32, layout.levels) as usize;
    begin(bucket)..begin(bucket + 1)
}

/// Returns the bytes of a tree.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let box_bytes = num_boxes(num_points) * with_dims!(dims, D => Boxes::<C>::bytes_each::<D>());
    (num_points * (dims * size_of::<C>() + size_of::<u32>()) + LANES * size_of::<C>() + box_bytes) as u64
}

/// Returns the temporary bytes of a build.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let box_bytes = num_boxes(num_points) * with_dims!(dims, D => Boxes::<C>::bytes_each::<D>());
    let item_bytes = with_dims!(dims, D => size_of::<Item<C, D>>());
    (num_points * item_bytes + box_bytes) as u64
}

/// Returns the number of boxes of a tree.
fn num_boxes(num_points: usize) -> usize {
    full_tree(levels(num_points as u32) + 1) as usize
}

impl<C: Coord> Backend<C> for HostTree<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        self
    }

    fn num_points(&self) -> usize {
        self.ids.len()
    }

    fn num_ids(&self) -> usize {
        self.num_ids
    }

    fn contains(&self, id: u32) -> Result<bool> {
        let has_gaps = !self.own_ids.is_empty();
        let is_own = || !has_gaps || self.own_ids.binary_search(&id).is_ok();
        Ok((id as usize) < self.num_ids && !self.ids.is_empty() && is_own())
    }

    fn ids(&self) -> Result<Vec<u32>> {
        if self.own_ids.is_empty() {
            return memory::collect(0..self.ids.len() as u32, "ids of the points");
        }
        memory::copy(&self.own_ids, "ids of the points")
    }

    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        let (coords, corners) = (self.coords_in_order()?, self.grid.concat());
        write(Sections { coords: &coords, ids: &self.ids, corners: &corners, num_ids: self.num_ids })
    }

    fn insert(&mut self, coords: &[C]) -> Result<()> {
        if !coords.is_empty() {
            *self = with_dims!(self.dims, D => self.with_points(points::<C, D>(coords)))?;
        }
        Ok(())
    }

    fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let mut removed = memory::copy(ids, "points to remove")?;
        removed.par_sort_unstable();
        for (i, &id) in removed.iter().enumerate() {
            if !self.contains(id)? {
                return Err(Error::UnknownId { id });
            }
            if removed.get(i + 1) == Some(&id) {
                return Err(Error::RepeatedId { id });
            }
        }
        if !removed.is_empty() {
            *self = with_dims!(self.dims, D => {
                let items = self.items::<D>(|id| removed.binary_search(&id).is_err(), 0)?;
                Self::of_items(&items, self.grid_corners()?, self.num_ids)
            })?;
        }
        Ok(())
    }
}

impl<C: Coord> HostTree<C> {
    fn nodes<const D: usize>(&self) -> Nodes<'_, C, D> {
        Nodes {
            layout: self.layout,
            first_bucket: full_tree(self.layout.levels) as usize,
            coords: &self.coords,
            ids: &self.ids,
            boxes: self.boxes.view(),
            grid: self.grid(),
        }
    }
}

impl<C: Coord> CpuTree for HostTree<C> {
    type Coord = C;

    fn coords_by_id(&self) -> Result<Cow<'_, [C]>> {
        let mut by_id = memory::filled(self.ids.len() * self.dims, C::ZERO, "points as queries")?;
        let row = |id: u32| match self.own_ids.binary_search(&id) {
            Ok(row) => row,
            Err(_) => id as usize,
        };
        with_dims!(self.dims, D => {
            let rows = by_id.as_chunks_mut::<D>().0;
            self.items::<D>(|_| true, 0)?.iter().for_each(|item| rows[row(item.id)] = item.coords);
        });
        Ok(by_id.into())
    }

    fn own_ids(&self) -> &[u32] {
        &self.own_ids
    }

    fn with_queries<R>(&self, run: impl FnOnce(&dyn QueryBackend<C>) -> Result<R>) -> Result<R> {
        with_dims!(self.dims, D => {
            run(&TreeOf { index: self, tree: self.nodes::<D>(), corners: &self.corners })
        })
    }
}

/// A tree with `D` dimensions.
#[derive(Clone, Copy)]
struct Nodes<'a, C, const D: usize> {
    layout: BucketLayout,
    /// The node of the first bucket.
    first_bucket: usize,
    coords: &'a [C],
    ids: &'a [u32],
    boxes: BoxesOf<'a, C, D>,
    grid: Grid<D>,
}

impl<'a, C: Coord, const D: usize> Nodes<'a, C, D> {
    /// Returns the bucket of a node.
    #[inline(always)]
    fn bucket(&self, node: usize) -> Bucket<'a, C> {
        let slots = slots(&self.layout, node - self.first_bucket);
        Bucket { coords: &self.coords[slots.start * D..], ids: &self.ids[slots] }
    }

    /// Visits the points of a node's subtree in the order of the tree.
    fn visit_subtree<L: RangePredicate<C, D>, S: RangeVisitor<C::Distance>>(
        &self,
        node: usize,
        predicate: &L,
        row: usize,
        visitor: &mut S,
    ) {
        let subtree = self.boxes.of(node);
        match predicate.share(row, &subtree.corners.map(widen)) {
            Share::None => return,
            Share::All if S::COUNTS => return visitor.count(subtree.len),
            _ => {}
        }
        if node < self.first_bucket {
            self.visit_subtree(2 * node + 1, predicate, row, visitor);
            return self.visit_subtree(2 * node + 2, predicate, row, visitor);
        }
        let bucket = self.bucket(node);
        bucket.scan(
            predicate.bound(),
            false,
            |point| predicate.measure(row, point),
            |i, distance| {
                if predicate.takes(row, bucket.ids[i]) {
                    visitor.point(bucket.ids[i], distance);
                }
                predicate.bound()
            },
        );
    }
}

/// The pending far children of a traversal.
struct Stack<F>([Child<F>; MAX_LEVELS]);

/// A node with its distance from the query, and the least id of its points.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Child<F> {
    distance: F,
    least_id: u32,
    node: usize,
}

impl<F: Float> Default for Stack<F> {
    fn default() -> Self {
        Self([Child { distance: F::ZERO, least_id: 0, node: 0 }; MAX_LEVELS])
    }
}

impl<C: Coord, const D: usize> Traversable<C, D> for Nodes<'_, C, D> {
    type Stack = Stack<C::Distance>;

    fn num_points(&self) -> usize {
        self.ids.len()
    }

    fn bounds(&self) -> [[C; D]; 2] {
        *self.boxes.of(0).corners
    }

    /// The highest bits of the code of the location.
    fn start_bucket(&self, location: &[C; D]) -> u32 {
        (self.grid.code(*location) >> code_bits(D).saturating_sub(u32::BITS)) as u32
    }

    #[inline(always)]
    fn nearest<B: Best<C::Distance>, const PLAIN: bool>(
        self,
        query: PointQuery<'_, C, D>,
        Stack(stack): &mut Stack<C::Distance>,
        best: &mut B,
    ) {
        let child = |node: usize| {
            let subtree = self.boxes.of(node);
            let distance = query.rules.distance_to_box::<PLAIN>(query.point, &subtree.corners.map(widen));
            Child { distance, least_id: subtree.least_id, node }
        };
        let (mut next, mut pending) = (child(0), 0);
        loop {
            while best.may_take(next.distance, next.least_id) {
                if next.node >= self.first_bucket {
                    let bucket = self.bucket(next.node);
                    bucket.scan(
                        best.worst(),
                        B::IS_ONE && PLAIN,
                        |at| query.rules.distance::<PLAIN>(query.point, at),
                        |i, distance| {
                            query.offer::<PLAIN>(bucket.ids[i], distance, best);
                            best.worst()
                        },
                    );
                    break;
                }
                let [left, right] = [1, 2].map(|side| child(2 * next.node + side));
                let (near, far) = if right < left { (right, left) } else { (left, right) };
                // No branch, which would often be mispredicted.
                stack[pending] = far;
                pending += usize::from(best.may_take(far.distance, far.least_id));
                next = near;
            }
            if pending == 0 {
                return;
            }
            pending -= 1;
            next = stack[pending];
        }
    }

    fn visit_range<L: RangePredicate<C, D>>(
        self,
        predicate: &L,
        row: usize,
        visitor: &mut impl RangeVisitor<C::Distance>,
    ) {
        self.visit_subtree(0, predicate, row, visitor);
    }

    fn has_all(&self) -> bool {
        true
    }
}
