//! Scores of points, and the functions that make the score of a pair.

use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// The type of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreType {
    /// `u32`; the scores of pairs are computed in `i64`.
    U32 = 0,
    /// `i64`; the scores of pairs saturate on overflow.
    I64 = 1,
    /// `f32`; the scores of pairs are computed in `f64`.
    F32 = 2,
    /// `f64`.
    F64 = 3,
}

impl ScoreType {
    /// Returns the type of a number; numbers out of range give the last type.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::U32,
            1 => Self::I64,
            2 => Self::F32,
            _ => Self::F64,
        }
    }

    /// True if scores of pairs are `i64`, false if they are `f64`.
    #[inline(always)]
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::U32 | Self::I64)
    }
}

/// The function that makes the score of a pair from the scores of its points. Sums and products of integers saturate.
///
/// ```
/// use kauri_kernels::join::score::{ScoreFunction, Scoring, integer_of_rank, rank_of_integer};
/// let scoring = Scoring { of_integers: true, function: ScoreFunction::Min, weights: [1.0; 2] };
/// let rank = scoring.rank(rank_of_integer(3), rank_of_integer(5));
/// assert_eq!(integer_of_rank(rank), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreFunction {
    /// Left plus right.
    Sum = 0,
    /// Left times right. With negative scores it is not monotone, so the best-scored points give no threshold.
    Product = 1,
    /// The lesser of both.
    Min = 2,
    /// The greater of both.
    Max = 3,
    /// The weighted sum of left and right, as `f64`.
    Weighted = 4,
}

impl ScoreFunction {
    /// Returns the function of a number; numbers out of range give the last function.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::Sum,
            1 => Self::Product,
            2 => Self::Min,
            3 => Self::Max,
            _ => Self::Weighted,
        }
    }
}

/// A score function on ranks. The rank of a score is its position in the order of all `i64`, or of all `f64`; so is the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scoring {
    /// True if the scores of points are integers.
    pub of_integers: bool,
    /// The score function.
    pub function: ScoreFunction,
    /// The weights of left and right for [`Weighted`](ScoreFunction::Weighted).
    pub weights: [f64; 2],
}

/// A [`Scoring`] as an argument of kernels.
#[derive(Clone, Copy, KernelArgs)]
pub struct ScoringArgs {
    /// Type and function: [`Scoring::to_bits`].
    pub bits: u32,
    /// The weight of the left score.
    pub left_weight: f64,
    /// The weight of the right score.
    pub right_weight: f64,
}

impl ScoringArgs {
    /// Unpacks the scoring.
    #[inline(always)]
    pub fn scoring(&self) -> Scoring {
        Scoring::from_bits(self.bits, [self.left_weight, self.right_weight])
    }
}

/// The ranks of the scores of both sides, and the score function.
#[derive(Clone, Copy, KernelArgs)]
pub struct PairRanks<'a> {
    /// The ranks of the build points, in the order of their cells.
    pub build: Slice<'a, u64>,
    /// The ranks of the probe points, in the order of their cells.
    pub probe: Slice<'a, u64>,
    /// The score function.
    pub scoring: crate::join::score::ScoringArgs,
}

/// The scores of two sets by id, and the score function.
#[derive(Clone, Copy, KernelArgs)]
pub struct PairScores<'a> {
    /// The scores of the left points as words.
    pub left: Slice<'a, u32>,
    /// The scores of the right points as words.
    pub right: Slice<'a, u32>,
    /// The [`ScoreType`] of both.
    pub score_type: u32,
    /// The score function.
    pub scoring: crate::join::score::ScoringArgs,
}

impl<'a> PairScores<'a> {
    /// Returns the scores of both sets.
    #[inline(always)]
    pub(super) fn of_sets(&self) -> [Scores<'a>; 2] {
        let of = ScoreType::of(self.score_type);
        [self.left, self.right].map(|words| Scores { words, of })
    }
}

impl Scoring {
    /// Returns the scoring as an argument of kernels.
    pub const fn args(&self) -> ScoringArgs {
        ScoringArgs { bits: self.to_bits(), left_weight: self.weights[0], right_weight: self.weights[1] }
    }

    /// Packs type and function in a word.
    pub const fn to_bits(&self) -> u32 {
        self.function as u32 | (self.of_integers as u32) << 8
    }

    /// Unpacks a word.
    #[inline(always)]
    pub const fn from_bits(bits: u32, weights: [f64; 2]) -> Self {
        Self { of_integers: bits >> 8 != 0, function: ScoreFunction::of(bits & 0xFF), weights }
    }

    /// True if the scores of pairs are integers.
    #[inline(always)]
    pub fn is_integer(&self) -> bool {
        self.of_integers && !matches!(self.function, ScoreFunction::Weighted)
    }

    /// Returns the scoring of pairs whose left and right scores are swapped.
    #[inline(always)]
    pub(super) const fn swapped(&self) -> Self {
        Self { weights: [self.weights[1], self.weights[0]], ..*self }
    }

    /// Returns the rank of the score of a pair from the ranks of the scores of its points.
    #[inline(always)]
    pub fn rank(&self, left: u64, right: u64) -> u64 {
        if let ScoreFunction::Weighted = self.function {
            let number =
                |rank| if self.of_integers { integer_of_rank(rank) as f64 } else { f64::from_key(rank) };
            // Limited to finite values, so that the sum is not NaN.
            let times = |weight: f64, x: f64| Coord::max(Coord::min(weight * x, f64::MAX), f64::MIN);
            (times(self.weights[0], number(left)) + times(self.weights[1], number(right))).key()
        } else if self.of_integers {
            rank_of_integer(self.integer(integer_of_rank(left), integer_of_rank(right)))
        } else {
            self.float(f64::from_key(left), f64::from_key(right)).key()
        }
    }

    #[inline(always)]
    fn integer(&self, left: i64, right: i64) -> i64 {
        match self.function {
            ScoreFunction::Sum => left.saturating_add(right),
            ScoreFunction::Product => left.saturating_mul(right),
            ScoreFunction::Min => Ord::min(left, right),
            _ => Ord::max(left, right),
        }
    }

    #[inline(always)]
    fn float(&self, left: f64, right: f64) -> f64 {
        match self.function {
            ScoreFunction::Sum => left + right,
            ScoreFunction::Product => left * right,
            ScoreFunction::Min => Coord::min(left, right),
            _ => Coord::max(left, right),
        }
    }

    /// True if a greater left score never makes a lesser result; false if it never makes a greater one.
    #[inline(always)]
    fn grows(&self, right: u64) -> bool {
        match self.function {
            ScoreFunction::Product => right >= if self.of_integers { rank_of_integer(0) } else { 0.0.key() },
            ScoreFunction::Weighted => self.weights[0] >= 0.0,
            _ => true,
        }
    }

    /// True if [`left_ranks_reaching`](Self::left_ranks_reaching) needs no search.
    #[inline(always)]
    pub fn has_closed_form(&self) -> bool {
        match self.function {
            ScoreFunction::Sum => self.of_integers,
            ScoreFunction::Min | ScoreFunction::Max => true,
            _ => false,
        }
    }

    /// Returns the least left rank that reaches `rank`, for functions that need no search; `None` if no rank reaches it.
    #[inline(always)]
    fn least_left(&self, rank: u64, right: u64) -> Option<u64> {
        match self.function {
            // On overflow of the difference either no left score reaches the sum, or all do.
            ScoreFunction::Sum => {
                let (sum, right) = (integer_of_rank(rank), integer_of_rank(right));
                match sum.checked_sub(right) {
                    Some(least) => Some(if sum == i64::MIN { 0 } else { rank_of_integer(least) }),
                    None if right < 0 && sum != i64::MIN => None,
                    None => Some(0),
                }
            }
            ScoreFunction::Min => (right >= rank).then_some(rank),
            _ => Some(if right >= rank { 0 } else { rank }),
        }
    }

    /// Returns the range of left ranks within `least..=greatest` that with `right` make at least `rank`, as (first, last); `None` if none
    /// do.
    ///
    /// Every function is monotone in the left score, even after rounding, so that a binary search finds the end of the range.
    #[inline(always)]
    pub fn left_ranks_reaching(
        &self,
        rank: u64,
        right: u64,
        [least, greatest]: [u64; 2],
    ) -> Option<(u64, u64)> {
        if self.has_closed_form() {
            let first = self.least_left(rank, right)?;
            let first = if first > least { first } else { least };
            return (first <= greatest).then_some((first, greatest));
        }
        let grows = self.grows(right);
        let suffices = |left| self.rank(left, right) >= rank;
        let (worst, best) = if grows { (least, greatest) } else { (greatest, least) };
        if !suffices(best) {
            return None;
        }
        if suffices(worst) {
            return Some((least, greatest));
        }
        // Invariant: `without` does not reach the rank, `with` does.
        let (mut without, mut with) = (worst, best);
        loop {
            let gap = without.abs_diff(with);
            if gap <= 1 {
                return Some(if grows { (with, greatest) } else { (least, with) });
            }
            let middle = if grows { without + gap / 2 } else { without - gap / 2 };
            if suffices(middle) {
                with = middle;
            } else {
                without = middle;
            }
        }
    }
}

/// Returns the rank of an integer.
#[inline(always)]
pub const fn rank_of_integer(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

/// Returns the integer of a rank.
#[inline(always)]
pub const fn integer_of_rank(rank: u64) -> i64 {
    (rank ^ 1 << 63) as i64
}

/// Scores by id, as words of 4 bytes.
#[derive(Clone, Copy)]
pub struct Scores<'a> {
    /// One or two words per score.
    pub words: Slice<'a, u32>,
    /// The type of the scores.
    pub of: ScoreType,
}

impl Scores<'_> {
    /// Returns the rank of a score.
    ///
    /// # Safety
    /// There is a score with this id.
    #[inline(always)]
    pub unsafe fn rank(&self, id: usize) -> u64 {
        match self.of {
            ScoreType::U32 => rank_of_integer(self.words.load(id).into()),
            ScoreType::F32 => f64::from(f32::from_bits(self.words.load(id))).key(),
            of => {
                let bits = u64::from(self.words.load(2 * id)) | u64::from(self.words.load(2 * id + 1)) << 32;
                if of.is_integer() { rank_of_integer(bits as i64) } else { f64::from_bits(bits).key() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScoreFunction::*;

    const FUNCTIONS: [ScoreFunction; 4] = [Sum, Product, Min, Max];
    const WEIGHTS: [[f64; 2]; 4] = [[1.0, 1.0], [-2.5, 0.0], [1e300, -1e300], [0.0, 3.0]];

    fn scoring(of_integers: bool, function: ScoreFunction) -> Scoring {
        Scoring { of_integers, function, weights: [2.0, -0.5] }
    }

    #[test]
    fn ranks_of_integers_are_in_their_order() {
        let all = [i64::MIN, i64::MIN + 1, -7, -1, 0, 1, 5, i64::MAX];
        for pair in all.windows(2) {
            assert!(rank_of_integer(pair[0]) < rank_of_integer(pair[1]));
            assert_eq!(integer_of_rank(rank_of_integer(pair[0])), pair[0]);
        }
    }

    #[test]
    fn scores_of_integers() {
        let result = |function, left, right| {
            integer_of_rank(scoring(true, function).rank(rank_of_integer(left), rank_of_integer(right)))
        };
        let results = |left, right| FUNCTIONS.map(|function| result(function, left, right));
        assert_eq!(results(3, -5), [-2, -15, -5, 3]);
        assert_eq!(results(i64::MAX, 2), [i64::MAX, i64::MAX, 2, i64::MAX]);
        assert_eq!(results(i64::MIN, -1), [i64::MIN, i64::MAX, i64::MIN, -1]);
    }

    #[test]
    fn scores_of_floats() {
        let rank = |function, left: f64, right: f64| scoring(false, function).rank(left.key(), right.key());
        let results = |left, right| FUNCTIONS.map(|function| f64::from_key(rank(function, left, right)));
        assert_eq!(results(1.5, -2.0), [-0.5, -3.0, -2.0, 1.5]);
        assert_eq!(results(f64::MAX, f64::MAX)[0], f64::INFINITY);
        // Zeros of either sign are equal, so that ids decide.
        assert_eq!(rank(Product, -0.0, 1.0), rank(Product, 0.0, 1.0));
    }

    #[test]
    fn weights_are_of_either_type() {
        let integers = scoring(true, Weighted).rank(rank_of_integer(-3), rank_of_integer(5));
        assert_eq!(f64::from_key(integers), -8.5);
        assert_eq!(f64::from_key(scoring(false, Weighted).rank(3.0.key(), 1.0.key())), 5.5);
        let opposite = Scoring { weights: [2.0, -2.0], ..scoring(false, Weighted) };
        assert_eq!(f64::from_key(opposite.rank(f64::MAX.key(), f64::MAX.key())), 0.0);
    }

    /// Checks that exactly the left ranks in [`Scoring::left_ranks_reaching`] reach a rank.
    fn check(scoring: Scoring, ranks: &[u64]) {
        for &rank in ranks {
            for &right in ranks {
                let all = [ranks[0], ranks[ranks.len() - 1]];
                let lefts = scoring.left_ranks_reaching(rank, right, all);
                for &left in ranks {
                    let suffices = scoring.rank(left, right) >= rank;
                    let said = lefts.is_some_and(|(first, last)| first <= left && left <= last);
                    assert_eq!(suffices, said, "{scoring:?}, {rank}, {left}, {right}");
                }
            }
        }
    }

    #[test]
    fn left_scores_that_suffice() {
        let integers = [i64::MIN, -1 << 60, -77, -2, -1, 0, 1, 2, 3, 1 << 40, i64::MAX].map(rank_of_integer);
        let floats = [f64::MIN, -1e200, -3.0, -1.0, -1e-300, 0.0, 1e-300, 0.5, 1.0, 4.0, 1e200, f64::MAX];
        let floats = floats.map(Coord::key);
        for function in FUNCTIONS {
            check(scoring(true, function), &integers);
            check(scoring(false, function), &floats);
        }
        for weights in WEIGHTS {
            check(Scoring { weights, ..scoring(true, Weighted) }, &integers);
            check(Scoring { weights, ..scoring(false, Weighted) }, &floats);
        }
    }
}
