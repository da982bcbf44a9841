//! A grid of one level, whose cells are stored: the cells of level 0 of a [`LevelGrid`] up to a last one along each axis.

use super::geometry::Aabb;
use super::levels::LevelGrid;
use crate::join::curve::{Curve, MAX_DIMS};
use crate::policy::LAYER_OWN_CELLS;
use crate::thread::coord::Float;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Most cells of a grid.
pub const MAX_CELLS: u64 = 1 << 31;

/// A grid of one level. The number of its cells is at most [`MAX_CELLS`].
#[derive(Clone, Copy, Debug)]
pub struct FlatGrid<const D: usize> {
    /// The grid with levels, all boxes of which are in the cells of this grid.
    pub levels: LevelGrid<D>,
    /// Number of cells along each axis, 1 for unused axes.
    pub nums: [u32; D],
}

/// The cells that a box touches.
#[derive(Clone, Copy)]
pub(super) struct CellRange<const D: usize> {
    first: [u32; D],
    nums: [u32; D],
    /// Number of cells, 0 for a box that touches none.
    num: u32,
}

impl<const D: usize> FlatGrid<D> {
    /// Creates a grid with the cells of level 0 up to the high corner.
    pub fn new(levels: LevelGrid<D>) -> Self {
        let corner = Aabb { low: levels.high, high: levels.high };
        let last = levels.cells(&corner).map_or([0; D], |cells| cells[1]);
        Self {
            levels,
            nums: core::array::from_fn(|axis| if axis < levels.dims { last[axis] + 1 } else { 1 }),
        }
    }

    /// Returns the number of cells, or `None` above [`MAX_CELLS`].
    pub fn num_cells(&self) -> Option<usize> {
        let product = |all: u64, &num: &u32| all.checked_mul(num.into()).filter(|&all| all <= MAX_CELLS);
        self.nums.iter().try_fold(1, product).map(|num| num as usize)
    }

    /// Returns the grid as numbers: those of the [`LevelGrid`], then the numbers of cells along the axes.
    pub fn to_words(&self) -> impl Iterator<Item = f64> {
        self.levels.to_words().chain(self.nums.into_iter().take(self.levels.dims).map(f64::from))
    }

    /// Loads the grid from the numbers of [`to_words`](Self::to_words).
    ///
    /// # Safety
    /// `words` are those of a grid of `dims` dimensions.
    #[inline(always)]
    pub(super) unsafe fn load(words: Slice<'_, f64>, dims: usize, bits: u32) -> Self {
        let levels = LevelGrid::load(words, dims, bits);
        let dims = levels.dims();
        let mut nums = [1; D];
        for axis in 0..D {
            if axis < dims {
                nums[axis] = words.load(2 + 2 * dims + axis) as u32;
            }
        }
        Self { levels, nums }
    }

    /// Returns the cells that box `i` touches, none if there is no such box.
    #[inline(always)]
    pub(super) unsafe fn load_range<C: Float>(&self, corners: Slice<'_, C>, i: usize) -> CellRange<D> {
        let dims = self.levels.dims();
        let mut range = CellRange { first: [0; D], nums: [1; D], num: 0 };
        if i >= corners.len() / (2 * dims) {
            return range;
        }
        if let Some([first, last]) = self.levels.cells(&Aabb::<C, D>::load(corners, i, dims)) {
            range.num = 1;
            for axis in 0..D {
                if D < MAX_DIMS || axis < dims {
                    let border = self.nums[axis] - 1;
                    let clamped = |cell: u32| if cell < border { cell } else { border };
                    range.first[axis] = clamped(first[axis]);
                    range.nums[axis] = clamped(last[axis]) - range.first[axis] + 1;
                    range.num *= range.nums[axis];
                }
            }
        }
        range
    }

    /// Returns the position along a Z-order curve of the first cell of box `i`, or all ones if the box touches no cell.
    #[inline(always)]
    pub(super) unsafe fn z_code<C: Float>(&self, corners: Slice<'_, C>, i: usize) -> u64 {
        let range = self.load_range(corners, i);
        if range.num == 0 {
            return u64::MAX;
        }
        Curve::ZOrder.code(range.first, self.levels.dims(), self.levels.bits)
    }

    /// Returns the index of cell `k` of a range.
    #[inline(always)]
    fn cell(&self, range: &CellRange<D>, k: u32) -> usize {
        let (mut rest, mut stride, mut index) = (k, 1, 0);
        for axis in 0..D {
            let own = if axis + 1 < D { rest % range.nums[axis] } else { rest };
            index += (range.first[axis] + own) * stride;
            if axis + 1 < D {
                rest /= range.nums[axis];
                stride *= self.nums[axis];
            }
        }
        index as usize
    }

    /// Calls `visit` with the item and the cells of each lane, and returns to each lane the combined bits of its cells, of which no more
    /// are visited once all bits of `full` are set. The warp visits the cells of a large box together.
    ///
    /// # Safety
    /// All lanes call, with the same `full`.
    #[inline(always)]
    pub(super) unsafe fn for_each_cell(
        &self,
        range: &CellRange<D>,
        item: u32,
        full: u64,
        visit: impl Fn(u32, usize) -> u64,
    ) -> u64 {
        let is_large = range.num > LAYER_OWN_CELLS;
        let (mut bits, mut k) = (0, 0);
        while !is_large && k < range.num && bits != full {
            bits |= visit(item, self.cell(range, k));
            k += 1;
        }
        let mut large = warp::warp_vote_ballot(warp::FULL_MASK, is_large);
        while large != 0 {
            let owner = large.trailing_zeros();
            large &= large - 1;
            let of = |value: u32| warp::shuffle_idx(warp::FULL_MASK, value, owner);
            let mut shared = *range;
            for axis in 0..D {
                shared.first[axis] = of(range.first[axis]);
                shared.nums[axis] = of(range.nums[axis]);
            }
            let (num, item) = (of(range.num), of(item));
            let (mut found, mut k) = (0, 0);
            while k < num && found != full {
                let own = k + warp::lane_id();
                found |= warp_or(if own < num { visit(item, self.cell(&shared, own)) } else { 0 });
                k += 32;
            }
            if warp::lane_id() == owner {
                bits = found;
            }
        }
        bits
    }
}

/// Returns the combined bits of all lanes.
///
/// # Safety
/// All lanes call.
#[inline(always)]
pub(super) unsafe fn warp_or(bits: u64) -> u64 {
    let or = |half: u32| warp::warp_reduce(warp::FULL_MASK, half, WarpReductionOp::Or);
    u64::from(or((bits >> 32) as u32)) << 32 | u64::from(or(bits as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_and_in_row_major_order() {
        let grid = FlatGrid::<2>::new(LevelGrid::new(2, [0.0; 2], [1.0, 0.5], 0.1, 0.0));
        assert_eq!((grid.nums, grid.num_cells()), ([10, 5], Some(50)));
        let range = CellRange { first: [3, 1], nums: [2, 3], num: 6 };
        let cells: [usize; 6] = core::array::from_fn(|k| grid.cell(&range, k as u32));
        assert_eq!(cells, [13, 14, 23, 24, 33, 34]);
        let point = FlatGrid::<2>::new(LevelGrid::new(2, [1.0; 2], [1.0; 2], 0.0, 0.0));
        assert_eq!(point.num_cells(), Some(1));
    }

    #[test]
    fn too_many_cells_are_noticed() {
        let of = |length| FlatGrid::<6>::new(LevelGrid::new(5, [0.0; 6], [1.0; 6], length, 0.0));
        assert_eq!(of(0.01).num_cells(), None);
        assert_eq!(of(0.26).num_cells(), Some(1024));
    }
}
