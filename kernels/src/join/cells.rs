//! Sets of points in the order of their cells.

use super::curve::{Curve, MAX_DIMS};
use super::grid::Grid;
use super::score::{ScoreType, Scores};
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::measure::Norm;
use crate::thread::operator::{Max, Min};
use crate::thread::point::load_point_of_most;
use crate::warp::scan::reduce;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// The code of a point that is in no cell, behind all others.
pub const NOWHERE: u64 = u64::MAX;

/// A point of a join.
#[inline(always)]
pub(super) unsafe fn load_point<C: Coord, const D: usize>(
    coords: Slice<'_, C>,
    i: usize,
    dims: usize,
) -> [C; D] {
    load_point_of_most::<C, D, MAX_DIMS>(coords, i, dims)
}

/// What is not of a set, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bits of a cell's number.
    pub bits: u32,
    /// The order of cells.
    pub curve: Curve,
    /// How distances are measured.
    pub norm: Norm,
    /// Which pairs of one set with itself count.
    pub pairing: Pairing,
}

/// Which pairs count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// All.
    All = 0,
    /// Of one set those of two points, both ways.
    Both = 1,
    /// Of one set those of two points, the lesser id first.
    Once = 2,
}

impl Shape {
    /// As a word.
    pub const fn to_word(&self) -> u32 {
        self.bits | (self.curve as u32) << 8 | (self.norm as u32) << 16 | (self.pairing as u32) << 24
    }

    /// From that word.
    #[inline(always)]
    pub(super) const fn from_word(word: u32) -> Self {
        let pairing = match word >> 24 {
            0 => Pairing::All,
            1 => Pairing::Both,
            _ => Pairing::Once,
        };
        Self {
            bits: word & 0xFF,
            curve: Curve::of(word >> 8 & 0xFF),
            norm: Norm::of(word >> 16 & 0xFF),
            pairing,
        }
    }
}

impl Pairing {
    /// True if a pair of ids counts.
    #[inline(always)]
    pub const fn takes(self, left: u32, right: u32) -> bool {
        match self {
            Self::All => true,
            Self::Both => left != right,
            Self::Once => left < right,
        }
    }
}

/// Writes the code of each point's cell, [`NOWHERE`] if it is in none, and its id; a thread a point.
#[kernel(family = "join", block = PER_ITEM_THREADS, hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f32, 6)]
#[instance(f64, 2)]
#[instance(f64, 3)]
#[instance(f64, 6)]
pub unsafe fn join_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    dims: u32,
    grid: Slice<f64>,
    shape: u32,
    codes: SliceMut<u64>,
    ids: SliceMut<u32>,
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
}

/// Writes the ranks of the scores of points by their ids, or in their order if there are no ids, and to `extremes` the least and
/// the greatest, which hold the greatest and the least number at first; a thread a point.
#[kernel(family = "join", block = PER_ITEM_THREADS)]
pub unsafe fn join_ranks(
    words: Slice<u32>,
    score_type: u32,
    ids: Slice<u32>,
    ranks: SliceMut<u64>,
    extremes: SliceMut<u64>,
) {
    let i = thread::index_1d_u64() as usize;
    let scores = Scores { words, of: ScoreType::of(score_type) };
    let (mut least, mut greatest) = (u64::MAX, 0);
    if i < ranks.len() {
        let rank = scores.rank(if ids.is_empty() { i } else { ids.load(i) as usize });
        ranks.store(i, rank);
        (least, greatest) = (rank, rank);
    }
    let (least, greatest) = (reduce::<u64, Min>(least), reduce::<u64, Max>(greatest));
    if warp::lane_id() == 0 {
        // Most warps know better than to ask for a word that all of them want.
        if least < extremes.atomic_load(0, Ordering::Relaxed, Scope::Device) {
            extremes.atomic_min(0, least, Ordering::Relaxed, Scope::Device);
        }
        if greatest > extremes.atomic_load(1, Ordering::Relaxed, Scope::Device) {
            extremes.atomic_max(1, greatest, Ordering::Relaxed, Scope::Device);
        }
    }
}
