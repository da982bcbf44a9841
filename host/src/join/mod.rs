//! Joins of two sets of points by distance.
//!
//! | join | result |
//! |---|---|
//! | [`TopKDistanceJoin`] | the `k` best-scored pairs of points within a distance |
//! | [`KnnJoin`] | for each point of one set the `k` nearest points of another, optionally within a distance |
//! | [`DistanceJoin`] | all pairs of points within a distance, or their number; of two sets or of one with itself |
//!
//! The sets are points of 1 to 6 dimensions or longitudes and latitudes, and need no index. The points of one set, the *build side*, are
//! sorted by grid cell along a [`Curve`]; the grid itself is not stored. Each point of the other set, the *probe side*, finds the points
//! of its neighbor cells by binary search (Løvik 2020, *Top-k spatial distance join on the GPU*). A result does not depend on the device
//! or the strategy. The curve determines only the order of ids in a row of [`DistanceJoin`].
//!
//! Distances are compared as an index compares them ([`SpatialIndex::within`](crate::SpatialIndex::within)): in the type of the
//! coordinates, squared under the Euclidean norm.

/// Runs `$body` with the constant `$D` = `$dims`, which must be 1 to 6.
macro_rules! with_exact_dims {
    ($dims:expr, $D:ident => $body:expr) => {
        with_exact_dims!(@ $dims, $D, $body, 1 2 3 4 5 6)
    };
    (@ $dims:expr, $D:ident, $body:expr, $($n:literal)*) => {
        match $dims {
            $($n => { const $D: usize = $n; $body })*
            dims => unreachable!("{dims} dimensions"),
        }
    };
}

mod cpu;
mod distance;
mod estimate;
mod gpu;
mod grid;
mod nearest;
mod params;
mod plan;
mod rows;
mod scored;
mod sets;
mod strategy;
mod top_k;

pub use distance::{DistanceJoin, SelfPairs};
pub use gpu::DeviceScored;
pub use kauri_kernels::join::curve::Curve;
pub use kauri_kernels::join::score::ScoreFunction;
pub use kauri_kernels::join::threshold::CustomScoreLaunch;
pub use kauri_kernels::thread::measure::Norm;
pub use nearest::{KnnIndex, KnnJoin};
pub use params::Lookup;
pub use plan::{JoinMethod, JoinPlan};
pub use scored::{PairScore, Score, Scored, ScoredPair};
pub use strategy::Strategy;
pub use top_k::{RankedPair, TopKDistanceJoin, TopPairs};
