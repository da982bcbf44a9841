//! Scores of points, and how those of two make that of a pair.

use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// The order of pairs: the greater key is the better score.
pub trait Score: Copy {
    /// The key of the score of a left and a right point, by their ids.
    ///
    /// # Safety
    /// There are points of these ids.
    unsafe fn key(&self, left: u32, right: u32) -> u64;
}

/// The type of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreType {
    /// `u32`; of two the score is computed as of `i64`.
    U32 = 0,
    /// `i64`; what overflows becomes the least or the greatest.
    I64 = 1,
    /// `f32`; of two the score is computed as of `f64`, and is one.
    F32 = 2,
    /// `f64`.
    F64 = 3,
}

impl ScoreType {
    /// The type of a number; of other numbers the last.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::U32,
            1 => Self::I64,
            2 => Self::F32,
            _ => Self::F64,
        }
    }

    /// True if the score of two is an `i64`, and false if it is an `f64`.
    #[inline(always)]
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::U32 | Self::I64)
    }
}

/// What is made of two scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreFunction {
    /// Left and right.
    Sum = 0,
    /// Left times right.
    Product = 1,
    /// The lesser.
    Min = 2,
    /// The greater.
    Max = 3,
    /// Left and right, each times a number, as `f64`.
    Weighted = 4,
}

impl ScoreFunction {
    /// The function of a number; of other numbers the last.
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

/// A function of scores of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scoring {
    /// The type.
    pub of: ScoreType,
    /// The function.
    pub function: ScoreFunction,
    /// What [`Weighted`](ScoreFunction::Weighted) multiplies left and right by.
    pub weights: [f64; 2],
}

impl Scoring {
    /// The key of the score of two points, whose own scores are the bits of an `i64` or an `f64`.
    #[inline(always)]
    pub fn key(&self, left: u64, right: u64) -> u64 {
        if self.function == ScoreFunction::Weighted {
            let number =
                |bits: u64| if self.of.is_integer() { bits as i64 as f64 } else { f64::from_bits(bits) };
            let sum = self.weights[0] * number(left) + self.weights[1] * number(right);
            // What is infinite either way is the worst.
            if sum.is_nan() { (-f64::INFINITY).key() } else { sum.key() }
        } else if self.of.is_integer() {
            integer_key(self.of_integers(left as i64, right as i64))
        } else {
            self.of_floats(f64::from_bits(left), f64::from_bits(right)).key()
        }
    }

    /// True if the result is an `i64`, and false if it is an `f64`.
    #[inline(always)]
    pub fn is_integer(&self) -> bool {
        self.of.is_integer() && self.function != ScoreFunction::Weighted
    }

    #[inline(always)]
    fn of_integers(&self, left: i64, right: i64) -> i64 {
        match self.function {
            ScoreFunction::Sum => left.saturating_add(right),
            ScoreFunction::Product => left.saturating_mul(right),
            ScoreFunction::Min => Ord::min(left, right),
            _ => Ord::max(left, right),
        }
    }

    #[inline(always)]
    fn of_floats(&self, left: f64, right: f64) -> f64 {
        match self.function {
            ScoreFunction::Sum => left + right,
            ScoreFunction::Product => left * right,
            ScoreFunction::Min => Coord::min(left, right),
            _ => Coord::max(left, right),
        }
    }
}

/// The key of an integer, whose order is that of integers.
#[inline(always)]
pub const fn integer_key(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

/// The integer of a key.
#[inline(always)]
pub const fn integer_of_key(key: u64) -> i64 {
    (key ^ 1 << 63) as i64
}

/// Scores of points by id, as words of 4 bytes.
#[derive(Clone, Copy)]
pub struct Scores<'a> {
    /// One or two a score.
    pub words: Slice<'a, u32>,
    /// Their type.
    pub of: ScoreType,
}

impl Scores<'_> {
    /// A score, as the bits of an `i64` or an `f64`.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub unsafe fn load(&self, id: u32) -> u64 {
        let id = id as usize;
        match self.of {
            ScoreType::U32 => self.words.load(id).into(),
            ScoreType::F32 => f64::from(f32::from_bits(self.words.load(id))).to_bits(),
            _ => u64::from(self.words.load(2 * id)) | u64::from(self.words.load(2 * id + 1)) << 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [ScoreFunction; 4] =
        [ScoreFunction::Sum, ScoreFunction::Product, ScoreFunction::Min, ScoreFunction::Max];

    fn scoring(of: ScoreType, function: ScoreFunction) -> Scoring {
        Scoring { of, function, weights: [1.0, 1.0] }
    }

    #[test]
    fn keys_of_integers_are_in_their_order() {
        let all = [i64::MIN, i64::MIN + 1, -7, -1, 0, 1, 5, i64::MAX];
        for pair in all.windows(2) {
            assert!(integer_key(pair[0]) < integer_key(pair[1]));
            assert_eq!(integer_of_key(integer_key(pair[0])), pair[0]);
        }
    }

    #[test]
    fn scores_of_integers() {
        let results = |left: i64, right: i64| {
            FUNCTIONS.map(|function| {
                integer_of_key(scoring(ScoreType::I64, function).key(left as u64, right as u64))
            })
        };
        assert_eq!(results(3, -5), [-2, -15, -5, 3]);
        assert_eq!(results(i64::MAX, 2), [i64::MAX, i64::MAX, 2, i64::MAX]);
        assert_eq!(results(i64::MIN, -1), [i64::MIN, i64::MAX, i64::MIN, -1]);
        let largest = u64::from(u32::MAX);
        assert_eq!(
            integer_of_key(scoring(ScoreType::U32, FUNCTIONS[0]).key(largest, largest)),
            2 * largest as i64
        );
    }

    #[test]
    fn scores_of_floats() {
        let results = |left: f64, right: f64| {
            FUNCTIONS.map(|function| {
                f64::from_key(scoring(ScoreType::F64, function).key(left.to_bits(), right.to_bits()))
            })
        };
        assert_eq!(results(1.5, -2.0), [-0.5, -3.0, -2.0, 1.5]);
        assert_eq!(results(f64::MAX, f64::MAX)[0], f64::INFINITY);
        // Zeros of either sign are equal, so that ids decide.
        let key = |x: f64| scoring(ScoreType::F32, ScoreFunction::Product).key(x.to_bits(), 1_f64.to_bits());
        assert_eq!(key(-0.0), key(0.0));
    }

    #[test]
    fn weights_are_of_either_type() {
        let weighted = |of| Scoring { of, function: ScoreFunction::Weighted, weights: [2.0, -0.5] };
        assert_eq!(f64::from_key(weighted(ScoreType::I64).key(-3_i64 as u64, 5)), -8.5);
        assert_eq!(f64::from_key(weighted(ScoreType::F64).key(3_f64.to_bits(), 1_f64.to_bits())), 5.5);
        let largest = f64::MAX.to_bits();
        let scoring = Scoring { weights: [2.0, -2.0], ..weighted(ScoreType::F64) };
        assert_eq!(f64::from_key(scoring.key(largest, largest)), -f64::INFINITY);
    }
}
