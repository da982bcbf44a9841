//! The split axes of the nodes: in turn by level, or the widest axis of the cell (Wald 2022, *GPU-friendly, Parallel, and
//! (Almost-)In-Place Construction of Left-Balanced k-d Trees*, "widest dimension").
//!
//! Levels leave out the axes on which all points are equal: there the order of points is that of their ids, which separates nothing.
//!
//! The cell of the root is the bounding box of all points. The split plane of a node goes through its point and cuts its cell into the
//! cells of its children. A tie between axes goes to the lower one.

use crate::policy::PER_ITEM_THREADS;
use crate::query::axes::AxisCycle;
use crate::thread::coord::Coord;
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point_up_to;
use cuda_std::prelude::*;

/// The cell of a node: a box of up to `D` dimensions.
#[derive(Clone, Copy)]
pub struct Cell<C, const D: usize> {
    low: [C; D],
    high: [C; D],
}

impl<C: Coord, const D: usize> Cell<C, D> {
    /// The cell between two corners, the low one first.
    pub const fn new([low, high]: [[C; D]; 2]) -> Self {
        Self { low, high }
    }

    /// Returns the two parts of the cell beside a split plane.
    pub fn cut(self, axis: usize, at: C) -> [Self; 2] {
        let (mut left, mut right) = (self, self);
        (left.high[axis], right.low[axis]) = (at, at);
        [left, right]
    }

    /// Loads the low and the high corner.
    ///
    /// # Safety
    /// `corners` has `2 * dims` coordinates.
    #[inline(always)]
    pub unsafe fn load(corners: Slice<'_, C>, dims: usize) -> Self {
        Self::new([0, 1].map(|corner| load_point_up_to::<C, D, D>(corners, corner, dims)))
    }

    /// Stores the low and the high corner.
    ///
    /// # Safety
    /// `corners` has `2 * dims` coordinates.
    #[inline(always)]
    pub unsafe fn store(&self, corners: SliceMut<'_, C>, dims: usize) {
        for axis in 0..D {
            if axis < dims {
                corners.store(axis, self.low[axis]);
                corners.store(dims + axis, self.high[axis]);
            }
        }
    }

    /// Returns the cell of node `node`, a descendant of node `root`, whose cell this is. The root of the tree is node 1; node `i` has the
    /// children `2 i` and `2 i + 1`. `plane` returns the split axis and the split coordinate of a node.
    #[inline(always)]
    pub fn of_descendant(mut self, root: u32, node: u32, plane: impl Fn(u32) -> (usize, C)) -> Self {
        let mut child = node;
        while child != root {
            let (split_axis, at) = plane(child / 2);
            let is_left = child.is_multiple_of(2);
            // The unrolled loop has constant indices, so the cell stays in registers.
            for axis in 0..D {
                if axis == split_axis {
                    // The plane of a nearer ancestor, which was applied before, cuts more.
                    if is_left {
                        self.high[axis] = self.high[axis].min(at);
                    } else {
                        self.low[axis] = self.low[axis].max(at);
                    }
                }
            }
            child /= 2;
        }
        self
    }

    #[inline(always)]
    fn width(&self, axis: usize) -> C::Distance {
        self.high[axis].widen() - self.low[axis].widen()
    }

    /// Returns the widest axis.
    #[inline(always)]
    pub fn widest(&self, dims: usize) -> usize {
        let (mut widest, mut width) = (0, self.width(0));
        for axis in 1..D {
            let other = self.width(axis);
            if axis < dims && other > width {
                (widest, width) = (axis, other);
            }
        }
        widest
    }
}

/// Sets the bits of the axes on which the points are not all equal, in `varying`, which is initialized to 0. A warp stops as soon as it has
/// seen the points differ on every axis, so that only axes of equal coordinates cost a pass over the points.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_varying_axes<C: Coord>(coords: Slice<C>, dims: u32, varying: SliceMut<u32>) {
    let (dims, num_points) = (dims as usize, coords.len() / dims as usize);
    let lane = warp::lane_id() as usize;
    let stride = thread::grid_dim_x() as usize * PER_ITEM_THREADS;
    let mut first = thread::index_1d_u64() as usize - lane;
    let mut known = 0;
    while first < num_points && known != AxisCycle::all(dims as u32).mask() {
        let point = first + lane;
        let mut found = 0;
        for axis in 0..dims {
            let differs =
                point < num_points && coords.load(point * dims + axis).key() != coords.load(axis).key();
            found |= u32::from(warp::warp_vote_any(warp::FULL_MASK, differs)) << axis;
        }
        if found & !known != 0 && lane == 0 {
            varying.atomic_or(0, found, Ordering::Relaxed, Scope::Device);
        }
        known |= found;
        first += stride;
    }
}

/// Writes the widest axis of each inner node of a level, and the cells of the level unless `cells` is empty. `top_coords` holds the points
/// of the nodes above, `corners` the bounding box of all points. One thread per node.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_widest_axes<C: Coord>(
    corners: Slice<C>,
    top_coords: Slice<C>,
    dims: u32,
    first_node: u32,
    axes: SliceMut<u8>,
    cells: SliceMut<C>,
) {
    let (i, dims) = (thread::index_1d_u64(), dims as usize);
    if i <= u64::from(first_node) {
        let node = first_node + i as u32;
        let plane = |code: u32| {
            let axis = axes.load(code as usize - 1) as usize;
            (axis, top_coords.load((code as usize - 1) * dims + axis))
        };
        let cell = Cell::<C, MAX_DIMS>::load(corners, dims).of_descendant(1, node + 1, plane);
        if (node as usize) < axes.len() {
            axes.store(node as usize, cell.widest(dims) as u8);
        }
        if !cells.is_empty() {
            cell.store(cells.part(i as usize * 2 * dims, 2 * dims), dims);
        }
    }
}
