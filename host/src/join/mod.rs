//! Joins of two sets of points by distance, and of two sets of boxes.
//!
//! | join | result | 1M points of each set | scratch memory per point |
//! |---|---|---|---|
//! | [`TopKDistanceJoin`] | the `k` best-scored pairs of points within a distance | 0.14 ms (16 pairs) | 1 MB in all, or 45 bytes |
//! | [`KnnJoin`] | for each point of one set the `k` nearest points of another, optionally within a distance | 0.46 ms (nearest of 4) | 33 bytes |
//! | [`DistanceJoin::count`] | the number of all pairs within a distance, of two sets or of one with itself | 0.42 ms (60 per point) | 37 bytes |
//! | [`DistanceJoin::rows`] | these pairs | 1.8 ms (60 per point) | 37 bytes, and 4 per pair |
//! | [`DistanceJoin::rows_batches`] | these pairs, part by part | 7.7 ms (60 per point, from and to host memory) | two batches |
//!
//! The times were measured with uniform `f32` x 2 in the memory of an H200 (benches/results/join-h200.md); [`Strategy`] compares the algorithms
//! of the top-k joins.
//!
//! | join of boxes | result | scratch memory |
//! |---|---|---|
//! | [`BoxJoin`] | all pairs of boxes that intersect, contain each other or are within a distance | 64 bytes per box, and 4 per pair |
//! | [`TopKBoxJoin`] | the `k` best-scored of these pairs | 1 MB in all, or 72 bytes per box |
//!
//! The sets are called *left* and *right*. A row of [`DistanceJoin`] belongs to a left point and has the ids of right points, without
//! distances; [`SpatialIndex::within`](crate::SpatialIndex::within) of a tree over the right points returns distances too. A row of
//! [`KnnJoin`] belongs to a *right* point and has left points with their distances.
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

mod all_pairs;
pub(crate) mod boxes;
mod cpu;
mod distance;
mod estimate;
mod gpu;
mod grid;
mod nearest;
pub(crate) mod params;
mod plan;
mod rows;
mod scored;
mod sets;
mod strategy;
mod top_k;

pub use boxes::{BoxJoin, BoxMethod, TopKBoxJoin};
pub use distance::{DistanceJoin, SelfPairs};
pub use gpu::DeviceScored;
pub use kauri_kernels::join::curve::Curve;
pub use kauri_kernels::join::score::ScoreFunction;
pub use kauri_kernels::join::threshold::CustomScoreLaunch;
pub use kauri_kernels::thread::measure::Norm;
pub use nearest::{KnnIndex, KnnJoin};
pub use plan::{JoinMethod, JoinPlan};
pub use scored::{PairScore, Score, Scored, ScoredPair};
pub use strategy::Strategy;
pub use top_k::{RankedPair, TopKDistanceJoin, TopPairs};
