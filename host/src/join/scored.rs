//! Points and boxes with scores, and scores of pairs.

use crate::error::{Error, Result, check_len};
use crate::point::check_each;
use kauri_kernels::join::score::{ScoreType, Scoring, integer_of_rank, rank_of_integer};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// Most scores that the calling thread checks alone.
const SEQUENTIAL: usize = 1 << 16;

/// A type of scores: `u32`, `i64`, `f32` or `f64`. The trait is sealed.
///
/// Scores of pairs are `i64` for integers, and `f64` for floats ([`PairScore`]).
///
/// ```
/// use kauri::join::{Score, Scored};
/// fn with_scores<'a, S: Score>(points: &'a [[f32; 2]], scores: &'a [S]) -> kauri::Result<Scored<'a, [f32; 2], S>> {
///     Scored::new(points, scores)
/// }
/// assert!(with_scores(&[[0.0, 0.0]], &[1.5f64]).is_ok());
/// ```
pub trait Score: private::RankedScore + crate::primitives::top_k::RankKey {}

mod private {
    use kauri_kernels::join::score::ScoreType;

    pub trait RankedScore {
        const TYPE: ScoreType;

        /// Returns the rank of the score among all `i64` or `f64`: greater scores have greater ranks.
        fn score_rank(self) -> u64;
        fn to_f64(self) -> f64;
    }
}

macro_rules! scores {
    ($($t:ty: $of:ident, |$x:ident| $rank:expr;)*) => { $(
        impl Score for $t {}
        impl private::RankedScore for $t {
            const TYPE: ScoreType = ScoreType::$of;

            fn score_rank(self) -> u64 {
                let $x = self;
                $rank
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )* };
}
scores! {
    u32: U32, |x| rank_of_integer(x.into());
    i64: I64, |x| rank_of_integer(x);
    f32: F32, |x| f64::from(x).key();
    f64: F64, |x| Coord::key(x);
}

/// Points or boxes in host memory, each with a score: a set of a [`TopKDistanceJoin`](super::TopKDistanceJoin) or a
/// [`TopKBoxJoin`](super::TopKBoxJoin).
///
/// ```
/// use kauri::join::Scored;
/// let hotels = [[0.0f32, 0.0], [5.0, 5.0]];
/// let set = Scored::new(&hotels, &[4.5f32, 3.0])?;
/// assert_eq!((set.points().len(), set.scores()[0]), (2, 4.5));
/// assert!(Scored::new(&hotels, &[f32::NAN, 3.0]).is_err());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a, P, S> {
    points: &'a [P],
    scores: &'a [S],
}

impl<'a, P, S: Score> Scored<'a, P, S> {
    /// Combines points or boxes with their scores.
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of scores and points or boxes differ, [`Error::NonFiniteScore`] for the first score that is
    /// NaN or infinite.
    pub fn new(points: &'a [P], scores: &'a [S]) -> Result<Self> {
        check_len("scores of a set", points.len(), scores.len())?;
        check_each(scores, SEQUENTIAL, |index, score| {
            let error = || Error::NonFiniteScore { index: index as u64, value: score.to_f64() };
            (!score.to_f64().is_finite()).then(error)
        })?;
        Ok(Self { points, scores })
    }

    /// Returns the points or boxes.
    pub fn points(&self) -> &'a [P] {
        self.points
    }

    /// Returns the scores.
    pub fn scores(&self) -> &'a [S] {
        self.scores
    }
}

/// The score of a pair, in the type that follows from the type of the points' scores.
///
/// ```
/// use kauri::join::PairScore;
/// assert!(PairScore::Integer(3) < PairScore::Integer(5));
/// assert_eq!(PairScore::Integer(3).to_f64(), 3.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum PairScore {
    /// The score of integer scores; it saturates on overflow.
    Integer(i64),
    /// The score of float scores, or a weighted sum.
    Float(f64),
}

impl PairScore {
    /// Returns the score as a float; integers are rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Integer(score) => score as f64,
            Self::Float(score) => score,
        }
    }
}

/// A pair of points or boxes and its score, as [`TopKDistanceJoin::run`](super::TopKDistanceJoin::run) returns it.
///
/// ```
/// use kauri::join::{PairScore, Scored, TopKDistanceJoin};
/// let sets = [[[0.0f32, 0.0]], [[3.0, 4.0]]];
/// let [left, right] = [Scored::new(&sets[0], &[10u32])?, Scored::new(&sets[1], &[5u32])?];
/// let best = TopKDistanceJoin::new(5.0, 1).run(&kauri::Device::cpu(), left, right)?;
/// let pair = best.pairs()[0];
/// assert_eq!((pair.left, pair.right, pair.score), (0, 0, PairScore::Integer(15)));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredPair {
    /// Id in the left set.
    pub left: u32,
    /// Id in the right set.
    pub right: u32,
    /// The score that the score function makes from the scores of both.
    pub score: PairScore,
}

impl ScoredPair {
    /// Unpacks a pair from its 128-bit form.
    pub(super) fn unpack(bits: Bits128, scoring: &Scoring) -> Self {
        let rank = !bits.0;
        let score = if scoring.is_integer() {
            PairScore::Integer(integer_of_rank(rank))
        } else {
            PairScore::Float(f64::from_key(rank))
        };
        Self { left: (bits.1 >> 32) as u32, right: bits.1 as u32, score }
    }
}
