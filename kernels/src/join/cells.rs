//! Sorts the points of the sets of a join by the cells of a grid.

use super::curve::{Curve, MAX_DIMS};
use super::grid::Grid;
use super::score::{ScoreType, Scores};
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Float;
use crate::thread::items::strided;
use crate::thread::measure::Norm;
use crate::thread::operator::{Max, Min};
use crate::thread::point::load_point_up_to;
use crate::thread::search::partition_point;
use crate::warp::scan::reduce;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// The code of a point outside the grid, which sorts after all others.
pub const NOWHERE: u64 = u64::MAX;

/// Loads a point.
#[inline(always)]
pub(super) unsafe fn load_point<C: Float, const D: usize>(
    coords: Slice<'_, C>,
    i: usize,
    dims: usize,
) -> [C; D] {
    load_point_up_to::<C, D, MAX_DIMS>(coords, i, if D < MAX_DIMS { D } else { dims })
}

/// Grid, norm and pairing of a join, packed in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bits of a cell's coordinate on an axis.
    pub bits: u32,
    /// The order of the cells.
    pub curve: Curve,
    /// The norm of distances.
    pub norm: Norm,
    /// The pairs that the join has.
    pub pairing: Pairing,
}

/// The pairs that a join has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// All pairs of two sets.
    All = 0,
    /// All pairs of two points of one set, in both directions.
    Both = 1,
    /// All pairs of two points of one set, once: the build point has the smaller id.
    Once = 2,
    /// All pairs of two sets whose sides are swapped: the build side is the right set.
    Swapped = 3,
}

impl Shape {
    /// Packs the shape in a word.
    pub const fn to_word(&self) -> u32 {
        self.bits | (self.curve as u32) << 8 | (self.norm as u32) << 16 | (self.pairing as u32) << 24
    }

    /// Unpacks a word.
    #[inline(always)]
    pub(super) const fn from_word(word: u32) -> Self {
        Self {
            bits: word & 0xFF,
            curve: Curve::of(word >> 8 & 0xFF),
            norm: Norm::of(word >> 16 & 0xFF),
            pairing: Pairing::of(word >> 24),
        }
    }
}

impl Pairing {
    /// Returns the pairing of a number.
    #[inline(always)]
    pub(super) const fn of(number: u32) -> Self {
        match number {
            0 => Self::All,
            1 => Self::Both,
            2 => Self::Once,
            _ => Self::Swapped,
        }
    }

    /// True if a set is joined with itself.
    pub const fn is_self_join(self) -> bool {
        matches!(self, Self::Both | Self::Once)
    }

    /// True if the join has the pair of these ids.
    #[inline(always)]
    pub const fn includes(self, left: u32, right: u32) -> bool {
        match self {
            Self::All | Self::Swapped => true,
            Self::Both => left != right,
            Self::Once => left < right,
        }
    }
}

/// Directory of the codes: entry `i` is the position of the first code whose highest bits are at least `i`. It narrows binary searches.
/// The number of entries is a power of two plus one.
#[derive(Clone, Copy)]
pub(super) struct Directory<'a> {
    begins: Slice<'a, u32>,
    shift: u32,
}

impl<'a> Directory<'a> {
    #[inline(always)]
    pub(super) fn new(begins: Slice<'a, u32>, code_bits: u32) -> Self {
        let entries = begins.len() as u64 - 1;
        Self { begins, shift: code_bits - entries.trailing_zeros() }
    }

    /// Returns the least code of an entry.
    #[inline(always)]
    pub(super) fn code(&self, entry: u64) -> u64 {
        if self.shift < u64::BITS { entry << self.shift } else { 0 }
    }

    /// Returns the range of positions to search for a code.
    #[inline(always)]
    pub(super) unsafe fn range(&self, code: u64) -> (usize, usize) {
        let entry = if self.shift < u64::BITS { (code >> self.shift) as usize } else { 0 };
        (self.begins.load(entry) as usize, self.begins.load(entry + 1) as usize)
    }
}

/// Sorted codes with their directory.
#[derive(Clone, Copy)]
pub(super) struct SortedCodes<'a> {
    pub(super) codes: Slice<'a, u64>,
    pub(super) directory: Directory<'a>,
}

impl SortedCodes<'_> {
    /// Returns the index of the first code that is not less than `code`.
    #[inline(always)]
    pub(super) unsafe fn lower_bound(&self, code: u64) -> usize {
        let (low, high) = self.directory.range(code);
        partition_point(low, high, |i| self.codes.load(i) < code)
    }

    /// Returns the index of the first code after `begin` that is greater than `last`, by an exponential search, because it is usually
    /// near.
    #[inline(always)]
    pub(super) unsafe fn upper_bound(&self, begin: usize, last: u64) -> usize {
        let (mut low, mut step, len) = (begin, 1, self.codes.len());
        while low + step <= len && self.codes.load(low + step - 1) <= last {
            low += step;
            step *= 2;
        }
        let high = if low + step - 1 < len { low + step - 1 } else { len };
        partition_point(low, high, |i| self.codes.load(i) <= last)
    }
}

/// Writes the code of each point's cell, [`NOWHERE`] for a point outside the grid, and its id; a thread per point. Also writes zeros to
/// the padding after the last point.
#[kernel(family = "join", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_codes<C: Float, const D: usize>(
    coords: Slice<C>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    codes: SliceMut<u64>,
    ids: SliceMut<u32>,
    behind: SliceMut<C>,
) {
    let (i, Shape { bits, curve, .. }) = (thread::index_1d_u64() as usize, Shape::from_word(shape));
    if i < codes.len() {
        let grid = Grid::<D>::load(grid, dims as usize, bits, curve);
        let code = match grid.cell(load_point::<C, D>(coords, i, dims as usize)) {
            Some(cell) => grid.code(cell),
            None => NOWHERE,
        };
        codes.store(i, code);
        ids.store(i, i as u32);
    }
    if i < behind.len() {
        behind.store(i, C::ZERO);
    }
}

/// Writes the directory of sorted codes: where equal ranges of codes begin, and the number of points in the grid as the end; a thread per
/// entry. The number of entries is a power of two plus one.
#[kernel(family = "join", block = PER_ITEM_THREADS)]
pub unsafe fn join_directory(codes: Slice<u64>, code_bits: u32, begins: SliceMut<u32>) {
    let part = thread::index_1d_u64();
    if part < begins.len() as u64 {
        let directory = Directory::new(begins.read_only(), code_bits);
        let is_last = part + 1 == begins.len() as u64;
        // All codes in the grid are less than the code after the last range. If it exceeds 64 bits, `NOWHERE` takes its place.
        let code = if is_last && code_bits == u64::BITS { NOWHERE } else { directory.code(part) };
        begins.store(part as usize, partition_point(0, codes.len(), |i| codes.load(i) < code) as u32);
    }
}

/// Writes the ranks of the scores of points by their ids, zeros to the padding, and the least and the greatest rank to `extremes`, which
/// must be initialized with the greatest and the least number. Grid-stride loop.
#[kernel(family = "join", block = PER_ITEM_THREADS)]
pub unsafe fn join_ranks(
    words: Slice<u32>,
    score_type: u32,
    ids: Slice<u32>,
    ranks: SliceMut<u64>,
    extremes: SliceMut<u64>,
) {
    let stride = thread::grid_dim_x() as usize * PER_ITEM_THREADS;
    let scores = Scores { words, of: ScoreType::of(score_type) };
    let (mut least, mut greatest) = (u64::MAX, 0);
    for i in strided(thread::index_1d_u64() as usize, ranks.len(), stride) {
        let mut rank = 0;
        if i < ids.len() {
            rank = scores.rank(ids.load(i) as usize);
            least = if rank < least { rank } else { least };
            greatest = if rank > greatest { rank } else { greatest };
        }
        ranks.store(i, rank);
    }
    let (least, greatest) = (reduce::<u64, Min>(least), reduce::<u64, Max>(greatest));
    if warp::lane_id() == 0 {
        // The load spares most warps an atomic operation on contended words.
        if least < extremes.atomic_load(0, Ordering::Relaxed, Scope::Device) {
            extremes.atomic_min(0, least, Ordering::Relaxed, Scope::Device);
        }
        if greatest > extremes.atomic_load(1, Ordering::Relaxed, Scope::Device) {
            extremes.atomic_max(1, greatest, Ordering::Relaxed, Scope::Device);
        }
    }
}
