//! Rules that turn conditions of SQL into spatial joins.
//!
//! | rule | finds | when |
//! |---|---|---|
//! | [`KnnConditions`] | inner joins with a condition `ST_KNN` | analyzer: before conditions of one table move below the join |
//! | [`LateralNearest`] | `CROSS JOIN LATERAL (SELECT … ORDER BY ST_Distance(…) LIMIT k)` | analyzer |
//! | [`JoinConditions`] | inner joins with `ST_DWithin`, `ST_Distance … <= d`, `ST_Intersects`, `ST_Contains` | last optimizer rule but one |
//! | [`PruneOutput`] | columns of a join's result that no one reads | last optimizer rule |

mod calls;
mod columns;
mod join;
mod knn;
mod lateral;

pub use columns::PruneOutput;
pub use join::JoinConditions;
pub use knn::KnnConditions;
pub use lateral::LateralNearest;
