//! The systems of equations of splines, on the device: a block solves one system after another.

use super::{MAX_POINTS, PANEL, Shape, column_begin, distance_from_cell, inverse_of_pivot, matrix_len};
use crate::block::nth::{NthSmem, clear_counts, count_digit, find_digit};
use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::policy::{SPLINE_MIN_BLOCKS, SPLINE_THREADS as THREADS};
use crate::quadtree::frame::Frame;
use crate::quadtree::node::Node;
use crate::thread::items::strided;
use crate::thread::ranked::Ranked;
use crate::thread::words::computed;
use cuda_std::prelude::*;

/// Rows that a warp updates together.
const WARP_ROWS: usize = 32;

/// Columns that a thread updates together.
const THREAD_COLUMNS: usize = 8;

/// The number of points of a spline whose points are not all known.
pub const UNKNOWN: u32 = u32::MAX;

/// A quadtree over points with heights.
#[derive(Clone, Copy, KernelArgs)]
pub struct PointTree<'a> {
    /// The words of the frame.
    pub frame: Slice<'a, u64>,
    /// The nodes.
    pub nodes: Slice<'a, crate::thread::words::Bits128>,
    /// The low corner of each node's cell, in units.
    pub first_units: Slice<'a, u32>,
    /// 1 for each leaf whose points are all known.
    pub known: Slice<'a, u8>,
    /// Positions in tree order, point after point.
    pub positions: Slice<'a, i32>,
    /// Ids in tree order.
    pub ids: Slice<'a, u32>,
    /// Heights by id.
    pub heights: Slice<'a, i32>,
}

/// Leaves, and the leaves adjacent to each of them.
#[derive(Clone, Copy, KernelArgs)]
pub struct LeafRows<'a> {
    /// The leaves.
    pub leaves: Slice<'a, u32>,
    /// Where the adjacent leaves of each leaf begin in `adjacent`, and where those of the last one end.
    pub offsets: Slice<'a, u64>,
    /// The adjacent leaves.
    pub adjacent: Slice<'a, u32>,
}

/// Memory of the blocks.
#[derive(Clone, Copy, KernelArgs)]
pub struct Scratch<'a> {
    /// The lower triangle of a matrix for each block.
    pub matrices: SliceMut<'a, f64>,
    /// The columns of a panel times the inverse pivots, for each block.
    pub scaled: SliceMut<'a, f64>,
}

/// The splines to be written; [`Splines`](super::evaluate::Splines) describes them.
#[derive(Clone, Copy, KernelArgs)]
pub struct SplinesMut<'a> {
    /// The positions of the points.
    pub positions: SliceMut<'a, i32>,
    /// The weights of the points.
    pub weights: SliceMut<'a, f64>,
    /// The number of points of each spline.
    pub lens: SliceMut<'a, u32>,
    /// The height of the anchor of each spline.
    pub bases: SliceMut<'a, i32>,
    /// The number that is added to the height of the anchor.
    pub shifts: SliceMut<'a, f64>,
    /// The largest number of points of a spline.
    pub capacity: u32,
}

/// Shared memory of a block.
#[repr(C)]
pub struct SolveSmem {
    /// Radial functions of the distances from the anchor.
    to_anchor: [f64; MAX_POINTS as usize],
    /// The inverse pivots.
    inverses: [f64; MAX_POINTS as usize],
    /// The right-hand side of the back substitution.
    rest: [f64; MAX_POINTS as usize],
    nth: NthSmem,
    scan: ScanSmem,
}

/// Writes the spline of each leaf. Block `b` solves the systems of the leaves `b`, `b + blocks`, and so on.
#[kernel(family = "terrain-spline", block = THREADS, min_blocks = SPLINE_MIN_BLOCKS, shared = SolveSmem, hot)]
pub unsafe fn terrain_spline_solve(
    tree: PointTree<'_>,
    rows: LeafRows<'_>,
    shape: Shape,
    scratch: Scratch<'_>,
    splines: SplinesMut<'_>,
) {
    let (block, num_blocks) = (thread::block_idx_x() as usize, thread::grid_dim_x() as usize);
    let capacity = splines.capacity as usize;
    let smem = shared_mem::<SolveSmem>();
    let mut leaf = block;
    while leaf < rows.leaves.len() {
        let solve = Solve {
            shape,
            positions: splines.positions.part(2 * leaf * capacity, 2 * capacity),
            weights: splines.weights.part(leaf * capacity, capacity),
            matrix: scratch.matrices.part(block * matrix_len(capacity), matrix_len(capacity)),
            scaled: scratch.scaled.part(block * PANEL * capacity, PANEL * capacity),
            capacity,
            smem,
        };
        let num_points = Gather { tree, rows, leaf, smem }.run(&solve);
        thread::sync_threads();
        let is_known = num_points != UNKNOWN;
        let (base, shift) =
            if is_known && num_points > 0 { solve.run(num_points as usize) } else { (0.0, 0.0) };
        if thread::thread_idx_x() == 0 {
            splines.lens.store(leaf, num_points);
            splines.bases.store(leaf, base as i32);
            splines.shifts.store(leaf, shift);
        }
        thread::sync_threads();
        leaf += num_blocks;
    }
}

/// Collects the points of one system.
struct Gather<'a> {
    tree: PointTree<'a>,
    rows: LeafRows<'a>,
    leaf: usize,
    smem: *mut SolveSmem,
}

impl Gather<'_> {
    /// Writes the positions and the heights of the points of the leaf and of its adjacent leaves, and returns their number. If there are
    /// more than `capacity`, they are the nearest to the leaf. Returns [`UNKNOWN`] unless all of them are known.
    #[inline(always)]
    unsafe fn run(&self, to: &Solve<'_>) -> u32 {
        let mut num_candidates = 0;
        let num_leaves = self.num_leaves();
        let (mut first, mut num_unknown) = (0, 0);
        while first < num_leaves {
            let (number, node) = self.candidates(first);
            num_candidates += self.before(&node).1;
            num_unknown += u32::from(self.tree.known.load(number as usize) == 0);
            first += THREADS;
        }
        if thread::sync_threads_or(num_unknown) != 0 {
            return UNKNOWN;
        }
        let last =
            if num_candidates as usize <= to.capacity { u64::LAST } else { self.nth(to.capacity as u64 - 1) };
        let (mut first, mut index, mut num_points) = (0, 0, 0);
        while first < num_leaves {
            let (_, node) = self.candidates(first);
            let (before, len) = self.before(&node);
            let mut num_kept = node.len();
            if last != u64::LAST {
                num_kept = 0;
                for i in strided(0, node.len(), 1) {
                    num_kept += (self.key(node.start + i, index + before + i) <= last) as u32;
                }
            }
            let (before_kept, num_all_kept) = exclusive_sum(num_kept, &raw mut (*self.smem).scan);
            let mut slot = (num_points + before_kept) as usize;
            for i in strided(0, node.len(), 1) {
                if last == u64::LAST || self.key(node.start + i, index + before + i) <= last {
                    let [x, y] = self.position(node.start + i);
                    let id = self.tree.ids.load((node.start + i) as usize);
                    to.positions.store(2 * slot, x);
                    to.positions.store(2 * slot + 1, y);
                    to.weights.store(slot, self.tree.heights.load(id as usize) as f64);
                    slot += 1;
                }
            }
            index += len;
            num_points += num_all_kept;
            first += THREADS;
        }
        num_points
    }

    /// Returns the number of leaves: the leaf itself and its adjacent leaves.
    #[inline(always)]
    unsafe fn num_leaves(&self) -> usize {
        1 + (self.rows.offsets.load(self.leaf + 1) - self.rows.offsets.load(self.leaf)) as usize
    }

    /// Returns the thread's leaf of the leaves from `first` on. If there are no more, it is the leaf of the spline, without points.
    #[inline(always)]
    unsafe fn candidates(&self, first: usize) -> (u32, Node) {
        let i = first + thread::thread_idx_x() as usize;
        let is_leaf = i < self.num_leaves();
        let number = if i == 0 || !is_leaf {
            self.rows.leaves.load(self.leaf)
        } else {
            self.rows.adjacent.load(self.rows.offsets.load(self.leaf) as usize + i - 1)
        };
        let node = Node::from_bits(self.tree.nodes.load(number as usize));
        (number, Node { end: if is_leaf { node.end } else { node.start }, ..node })
    }

    /// Returns the number of points of the nodes of the threads before, and of all threads. All threads call.
    #[inline(always)]
    unsafe fn before(&self, node: &Node) -> (u32, u32) {
        // Otherwise the compiler copies the collectives into both branches of a condition of the length.
        exclusive_sum(computed(node.len()), &raw mut (*self.smem).scan)
    }

    #[inline(always)]
    unsafe fn position(&self, point: u32) -> [i32; 2] {
        let i = 2 * point as usize;
        [self.tree.positions.load(i), self.tree.positions.load(i + 1)]
    }

    /// Returns a key by which the points are in the order of their distances from the leaf.
    #[inline(always)]
    unsafe fn key(&self, point: u32, index: u32) -> u64 {
        let (frame, number) = (Frame::<2>::load(self.tree.frame), self.rows.leaves.load(self.leaf) as usize);
        let level = Node::from_bits(self.tree.nodes.load(number)).level;
        let first = [self.tree.first_units.load(2 * number), self.tree.first_units.load(2 * number + 1)];
        let side = 1 << (frame.levels - level);
        u64::new(distance_from_cell(&frame, self.position(point), first, side), index)
    }

    /// Returns key `n` of all candidates in their order.
    #[inline(always)]
    unsafe fn nth(&self, mut n: u64) -> u64 {
        let counts = shared_field!(&raw mut (*self.smem).nth, counts);
        let (mut prefix, mut digit) = (0, 0);
        // Not unrolled: the body is long, and rare.
        let num_digits = computed(<u64 as Ranked>::DIGITS);
        while digit < num_digits {
            clear_counts(counts);
            thread::sync_threads();
            let (mut first, mut index) = (0, 0);
            while first < self.num_leaves() {
                let (_, node) = self.candidates(first);
                let (before, len) = self.before(&node);
                for i in strided(0, node.len(), 1) {
                    let key = self.key(node.start + i, index + before + i);
                    count_digit(key, prefix, digit, counts);
                }
                index += len;
                first += THREADS;
            }
            thread::sync_threads();
            let (value, before) = find_digit(|digit| counts.load(digit).into(), n);
            thread::sync_threads();
            prefix = prefix.with_digit(digit, value);
            n -= before;
            digit += 1;
        }
        prefix
    }
}

/// Solves one system.
struct Solve<'a> {
    shape: Shape,
    positions: SliceMut<'a, i32>,
    /// First the heights, then the weights.
    weights: SliceMut<'a, f64>,
    matrix: SliceMut<'a, f64>,
    scaled: SliceMut<'a, f64>,
    capacity: usize,
    smem: *mut SolveSmem,
}

impl Solve<'_> {
    /// Writes the weights of `num_points` points, and returns the height of the anchor and what is added to it. All threads call.
    #[inline(always)]
    unsafe fn run(&self, num_points: usize) -> (f64, f64) {
        let base = self.weights.load(0);
        let least_pivot = self.fill(num_points, base);
        self.factor(num_points, least_pivot);
        (base, self.substitute(num_points))
    }

    #[inline(always)]
    unsafe fn position(&self, i: usize) -> [i32; 2] {
        [self.positions.load(2 * i), self.positions.load(2 * i + 1)]
    }

    /// Writes the lower triangle of the matrix, and returns the threshold of pivots. The threads share the elements in the order of memory.
    #[inline(always)]
    unsafe fn fill(&self, num_points: usize, base: f64) -> f64 {
        let to_anchor = shared_field!(self.smem, to_anchor);
        let (t, unknowns) = (thread::thread_idx_x() as usize, num_points - 1);
        let anchor = self.position(0);
        for i in strided(t, unknowns, THREADS) {
            to_anchor.store(i, self.shape.radial(anchor, self.position(i + 1)));
        }
        thread::sync_threads();
        let (mut greatest, mut i) = (0.0, 0);
        while i < unknowns {
            let value = to_anchor.load(i);
            greatest = if value > greatest { value } else { greatest };
            i += 1;
        }
        let (mut row, mut column, mut item) = (t, 0, t);
        loop {
            while row >= num_points && column < unknowns {
                column += 1;
                row = row - num_points + column;
            }
            if column >= unknowns {
                break;
            }
            let value = if row == unknowns {
                self.weights.load(column + 1) - base
            } else if row == column {
                self.shape.diagonal(to_anchor.load(row))
            } else {
                let between = self.shape.radial(self.position(row + 1), self.position(column + 1));
                self.shape.element([to_anchor.load(row), to_anchor.load(column)], between)
            };
            self.matrix.store(item, value);
            row += THREADS;
            item += THREADS;
        }
        thread::sync_threads();
        self.shape.least_pivot(greatest)
    }

    /// Factors the matrix, right-hand side included, panel by panel.
    #[inline(always)]
    unsafe fn factor(&self, num_points: usize, least_pivot: f64) {
        let (unknowns, mut first) = (num_points - 1, 0);
        while first < unknowns {
            let end = if first + PANEL < unknowns { first + PANEL } else { unknowns };
            let mut column = first;
            while column < end {
                self.factor_column(num_points, first, column, least_pivot);
                thread::sync_threads();
                column += 1;
            }
            self.update(num_points, first, end);
            thread::sync_threads();
            first = end;
        }
    }

    /// Updates a column by the columns of its panel before it, and scales it. Its element of the diagonal keeps its old value, from which
    /// every thread computes the pivot.
    #[inline(always)]
    unsafe fn factor_column(&self, num_points: usize, first: usize, column: usize, least_pivot: f64) {
        let inverses = shared_field!(self.smem, inverses);
        let (t, begin) = (thread::thread_idx_x() as usize, column_begin(column, num_points));
        let updated = |row: usize| {
            let (mut value, mut earlier) = (self.matrix.load(begin + row), first);
            while earlier < column {
                let scaled = self.scaled.load((earlier - first) * self.capacity + column);
                value -= self.matrix.load(column_begin(earlier, num_points) + row) * scaled;
                earlier += 1;
            }
            value
        };
        let inverse = inverse_of_pivot(updated(column), least_pivot);
        for row in strided(column + 1 + t, num_points, THREADS) {
            let value = updated(row);
            self.matrix.store(begin + row, value);
            self.scaled.store((column - first) * self.capacity + row, value * inverse);
        }
        if t == 0 {
            inverses.store(column, inverse);
        }
    }

    /// Updates the columns from `end` on by the panel of the columns `first..end`. A warp updates 32 rows of some columns.
    #[inline(always)]
    unsafe fn update(&self, num_points: usize, first: usize, end: usize) {
        let (lane, warp) = (warp::lane_id() as usize, thread::thread_idx_x() as usize / 32);
        let unknowns = num_points - 1;
        let row_blocks = (num_points - end).div_ceil(WARP_ROWS);
        let num_tiles = row_blocks * (unknowns - end).div_ceil(THREAD_COLUMNS);
        for tile in strided(warp, num_tiles, THREADS / 32) {
            let row = end + tile % row_blocks * WARP_ROWS + lane;
            let column = end + tile / row_blocks * THREAD_COLUMNS;
            if row < num_points && column <= row {
                self.update_row(num_points, first, row, column);
            }
        }
    }

    /// Updates some elements of a row, from `column` on, by a whole panel.
    #[inline(always)]
    unsafe fn update_row(&self, num_points: usize, first: usize, row: usize, column: usize) {
        let last = if row < num_points - 1 { row } else { num_points - 2 };
        let mut values = [0.0; THREAD_COLUMNS];
        for c in 0..THREAD_COLUMNS {
            if column + c <= last {
                values[c] = self.matrix.load(column_begin(column + c, num_points) + row);
            }
        }
        for p in 0..PANEL {
            let factor = self.matrix.load(column_begin(first + p, num_points) + row);
            for c in 0..THREAD_COLUMNS {
                if column + c <= last {
                    values[c] -= factor * self.scaled.load(p * self.capacity + column + c);
                }
            }
        }
        for c in 0..THREAD_COLUMNS {
            if column + c <= last {
                self.matrix.store(column_begin(column + c, num_points) + row, values[c]);
            }
        }
    }

    /// Writes the weights by back substitution, and returns what is added to the height of the anchor.
    #[inline(always)]
    unsafe fn substitute(&self, num_points: usize) -> f64 {
        let (rest, inverses) = (shared_field!(self.smem, rest), shared_field!(self.smem, inverses));
        let to_anchor = shared_field!(self.smem, to_anchor);
        let (t, unknowns) = (thread::thread_idx_x() as usize, num_points - 1);
        for column in strided(t, unknowns, THREADS) {
            rest.store(column, self.matrix.load(column_begin(column, num_points) + unknowns));
        }
        let (mut sum, mut shift, mut row) = (0.0, 0.0, unknowns);
        while row > 0 {
            row -= 1;
            thread::sync_threads();
            let weight = rest.load(row) * inverses.load(row);
            for column in strided(t, row, THREADS) {
                let factor = self.matrix.load(column_begin(column, num_points) + row);
                rest.store(column, rest.load(column) - factor * weight);
            }
            if t == 0 {
                self.weights.store(row + 1, weight);
            }
            sum += weight;
            shift += weight * to_anchor.load(row);
        }
        if t == 0 {
            self.weights.store(0, -sum);
        }
        shift + self.shape.smoothing * sum
    }
}
