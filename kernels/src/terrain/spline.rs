//! The regularized spline with tension (Mitasova, Mitas 1993), for each leaf of a quadtree over the points of the leaf and of its
//! adjacent leaves (Agarwal, Arge, Danner 2006, phase three).
//!
//! The surface of a leaf is `S(x) = a - sum_j w_j f(rho_j)` with `sum_j w_j = 0`, where `rho_j` is the squared distance from point `j` times
//! the [scale](Shape::scale), and `f` is the [radial function](radial()). Its value at point `i` is the point's height less
//! `smoothing * w_i`.
//!
//! # The system of equations
//! `f` is a conditionally negative definite kernel (its Fourier transform is negative away from 0, and `f(0) = 0`):
//! `-sum_ij v_i v_j f_ij > 0` for distinct points and all `v` other than 0 with `sum_i v_i = 0`. The equation of the first point, the
//! anchor, eliminates `a`, and `w_0 = -sum_j w_j` eliminates the weight of the anchor. For the other points there remains
//!
//! ```text
//! sum_j M_ij w_j = height_i - height_0    with    M_ij = f_i0 + f_0j - f_ij + smoothing (1, or 2 if i = j)
//! ```
//!
//! `v^T M v` is the form above for the vector `(-sum_i v_i, v)`, whose sum is 0, plus `smoothing` times its squared length. So `M` is
//! symmetric and positive definite, its smallest eigenvalue is at least that of the bordered system on vectors with sum 0, and a
//! factorization `L D L^T` without pivoting is stable.
//!
//! In floating point a pivot can still vanish: `f` is smooth, so the heights of close points without smoothing are nearly dependent. The
//! pivot of a point is the part of `M_ii` that the points before it do not determine. A point whose pivot is at most
//! [`LEAST_PIVOT`] of the largest `M_ii` gets the weight 0: the surface is that of the other points.
//!
//! # Parts of a cloud
//! The tree and the unit of tension are those of all points. If only a part of the points is there, a leaf is a leaf of the whole tree if all
//! points in its cell are known. The cells of a leaf have no value yet, [`UNRESOLVED`](crate::terrain::cells::UNRESOLVED), unless this
//! holds for the leaf and its adjacent leaves.
//!
//! # Order of operations
//! Each element of the factorization is `M_ij - v_i0 s_j0 - v_i1 s_j1 - …` in this order, on every device; elements are independent of each
//! other, so any number of threads computes the same bits.

pub mod areas;
pub mod evaluate;
pub mod radial;
pub mod solve;

use crate::quadtree::frame::Frame;
use cuda_std::prelude::*;
use radial::radial;

/// The largest number of points of a leaf.
pub const MAX_LEAF_POINTS: u32 = 100;

/// Returns the largest number of points of a system: more than nine full leaves have. Points beyond are left out, the farthest from the
/// leaf first.
pub const fn capacity(leaf_points: u32) -> u32 {
    let points = 12 * leaf_points;
    if points < MAX_POINTS { points } else { MAX_POINTS }
}

/// The largest number of points of any system.
pub const MAX_POINTS: u32 = 1024;

/// The number of columns that are factored together.
pub const PANEL: usize = 8;

/// The least pivot, relative to the largest element of the diagonal. Rounding errors of a pivot are smaller.
pub const LEAST_PIVOT: f64 = 1.0 / (1_u64 << 36) as f64;

/// The number of points, on average, of the square whose side is the unit of `tension`, as in GRASS GIS.
const POINTS_OF_UNIT: f64 = 300.0;

/// The shape of the radial function, and the smoothing.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Shape {
    /// The factor from squared distances to arguments of the radial function.
    pub scale: f64,
    /// The smoothing.
    pub smoothing: f64,
}

impl Shape {
    /// Returns the shape for `num_points` points from corner `low` to corner `high`. `tension` and `smoothing` are at least 0.
    ///
    /// The tension applies to distances in units of the side of a square with 300 points on average. The average spacing of points on a
    /// line is the length divided by their number.
    pub fn new(tension: f64, smoothing: f64, [low, high]: [[i32; 2]; 2], num_points: usize) -> Self {
        let [width, height] = [0, 1].map(|axis| high[axis] as f64 - low[axis] as f64);
        let num_points = num_points as f64;
        let area_of_point = width * height / num_points;
        let spacing_on_line = if width > height { width } else { height } / num_points;
        let area = f64::max(area_of_point, spacing_on_line * spacing_on_line);
        // One point has no spacing, and any will do.
        let unit = if area > 0.0 { POINTS_OF_UNIT * area } else { 1.0 };
        // With larger values the products of the system overflow.
        const MAX: f64 = 1e150;
        Self { scale: (tension * tension / (4.0 * unit)).min(MAX), smoothing: smoothing.min(MAX) }
    }

    /// Returns the radial function of the distance between two positions.
    #[inline(always)]
    pub fn radial(&self, a: [i32; 2], b: [i32; 2]) -> f64 {
        let (dx, dy) = (a[0] as f64 - b[0] as f64, a[1] as f64 - b[1] as f64);
        radial(self.scale * (dx * dx + dy * dy))
    }

    /// Returns an element of the matrix off the diagonal. `to_anchor` are the radial functions of the distances of both points from the
    /// anchor, `between` that of the distance between them.
    #[inline(always)]
    pub fn element(&self, to_anchor: [f64; 2], between: f64) -> f64 {
        to_anchor[0] + to_anchor[1] - between + self.smoothing
    }

    /// Returns the element of the diagonal of a point, given the radial function of its distance from the anchor.
    #[inline(always)]
    pub fn diagonal(&self, to_anchor: f64) -> f64 {
        to_anchor + to_anchor + (self.smoothing + self.smoothing)
    }

    /// Returns the threshold of pivots.
    #[inline(always)]
    pub fn least_pivot(&self, greatest_to_anchor: f64) -> f64 {
        LEAST_PIVOT * self.diagonal(greatest_to_anchor)
    }
}

/// The bounding box of all points, and the part of the plane in which they are known.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Extent {
    /// The least x of all points.
    pub low_x: i32,
    /// The least y of all points.
    pub low_y: i32,
    /// The greatest x of all points.
    pub high_x: i32,
    /// The greatest y of all points.
    pub high_y: i32,
    /// The part of the plane in which all points are known.
    pub known: crate::terrain::known::Known,
}

impl Extent {
    /// Returns true if all points in a cell of the tree are known.
    #[inline(always)]
    pub fn has_points_of(&self, frame: &Frame<2>, first_unit: [u32; 2], level: u32) -> bool {
        let (first, side) = (first_unit.map(u64::from), 1 << (frame.levels - level));
        let [low, high] = [first, first.map(|unit| unit + side)].map(|units| frame.corner(units));
        // The root may be much larger than the box of all points.
        let low = [low[0].max(self.low_x.into()), low[1].max(self.low_y.into())];
        let high = [high[0].min(self.high_x.into()), high[1].min(self.high_y.into())];
        self.known.covers([low, high])
    }
}

/// Returns the inverse of a pivot; 0 for a point that is left out.
#[inline(always)]
pub fn inverse_of_pivot(pivot: f64, least_pivot: f64) -> f64 {
    if pivot > least_pivot { 1.0 / pivot } else { 0.0 }
}

/// Returns where column `column` of a matrix begins: element (`row`, `column`) is `row` items further. The lower triangle is stored, column
/// after column. There are `num_points` rows: the other points than the anchor, and the right-hand side as the last row.
#[inline(always)]
pub const fn column_begin(column: usize, num_points: usize) -> usize {
    column * (2 * num_points - column - 1) / 2
}

/// Returns the number of items of a matrix.
pub const fn matrix_len(num_points: usize) -> usize {
    num_points * (num_points + 1) / 2
}

/// Returns the distance of a point from a cell, in units on the axis on which it is greater. `first` is the low corner of the cell,
/// `side` its side.
#[inline(always)]
pub fn distance_from_cell(frame: &Frame<2>, point: [i32; 2], first: [u32; 2], side: u64) -> u32 {
    let (unit, mut distance) = (frame.unit(point), 0);
    for axis in 0..2 {
        let end = u64::from(first[axis]) + side;
        let gap = if unit[axis] < first[axis] {
            first[axis] - unit[axis]
        } else if u64::from(unit[axis]) >= end {
            (u64::from(unit[axis]) - end + 1) as u32
        } else {
            0
        };
        distance = if gap > distance { gap } else { distance };
    }
    distance
}
