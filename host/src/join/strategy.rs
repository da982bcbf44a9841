//! Strategies of the top-k distance join.

use crate::error::{Error, Result};
use kauri_kernels::join::heaps::{MOST_REGISTERS, MOST_SHARED};
use kauri_kernels::join::score::{ScoreFunction, ScoreType, Scoring};
use kauri_kernels::policy::JOIN;

/// How a GPU finds the best pairs. All give the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// [`Filter`](Self::Filter) for more than a million pairs; else [`NestedLoop`](Self::NestedLoop) of few points,
    /// [`Threshold`](Self::Threshold) if greater scores never make a lesser one, [`Cells`](Self::Cells) otherwise.
    #[default]
    Auto,
    /// All pairs, without a grid.
    NestedLoop,
    /// The points with the best scores first: no pair with another one can be better than what these give, or else they say how good the
    /// pairs have to be that [`Cells`](Self::Cells) looks for.
    Threshold,
    /// All points around each right point whose score suffices for a limit, which rises from part to part of the right points. What takes
    /// a warp long is divided among all; of sets of very different sizes the points of the larger one look in the smaller.
    Cells,
    /// The best pairs of each right point in registers (Løvik 2020); up to 64.
    RegisterHeap,
    /// The same in shared memory; up to 64.
    SharedHeap,
    /// All pairs, then the best of them (Løvik's baseline, with a selection in place of the sort).
    Filter,
}

impl Strategy {
    /// What is done for the best `k` pairs of sets of so many points, `k` no more than there are: of this strategy or, of
    /// [`Auto`](Self::Auto), of the one that costs least.
    ///
    /// # Errors
    /// [`Error::StrategyLimit`] if it keeps fewer pairs.
    pub(super) fn chosen(self, scoring: &Scoring, of: ScoreType, lens: [usize; 2], k: usize) -> Result<Self> {
        let refuse =
            |strategy, most: usize| Err(Error::StrategyLimit { strategy, k: k as u64, most: most as u64 });
        Ok(match self {
            Self::RegisterHeap if k > MOST_REGISTERS => return refuse("RegisterHeap", MOST_REGISTERS),
            Self::SharedHeap if k > MOST_SHARED => return refuse("SharedHeap", MOST_SHARED),
            // First of all: others have room for k pairs, however few there are.
            Self::Auto if k > JOIN.most_kept => Self::Filter,
            Self::Auto if lens[0] as u128 * lens[1] as u128 <= JOIN.nested_pairs => Self::NestedLoop,
            Self::Auto if is_monotone(scoring, of) && are_many(lens, k) => Self::Threshold,
            Self::Auto => Self::Cells,
            // Nothing is known of pairs that were left out.
            Self::Threshold if !is_monotone(scoring, of) => Self::Cells,
            strategy => strategy,
        })
    }
}

/// True if sets have so many points that the best of them are few.
fn are_many(lens: [usize; 2], k: usize) -> bool {
    lens.iter().all(|&len| len / JOIN.threshold_from >= JOIN.best_points(k))
}

/// True if a greater score of a point never makes a lesser one of a pair, or always does.
fn is_monotone(scoring: &Scoring, of: ScoreType) -> bool {
    scoring.function != ScoreFunction::Product || of == ScoreType::U32
}
