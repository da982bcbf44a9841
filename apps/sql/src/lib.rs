//! Spatial joins in SQL: kauri's joins as operators of the engine [DataFusion](https://datafusion.apache.org).
//!
//! | SQL | result |
//! |---|---|
//! | `FROM a JOIN b ON ST_DWithin(a.geom, b.geom, d)` | the pairs within a distance |
//! | `FROM a JOIN b ON ST_KNN(a.geom, b.geom, k)` | for each row of `a` the `k` nearest rows of `b` |
//! | `FROM a CROSS JOIN LATERAL (SELECT … FROM b ORDER BY ST_Distance(a.geom, b.geom) LIMIT k)` | these pairs, too |
//! | `FROM a JOIN b ON ST_Intersects(a.box, b.box)` | the pairs of boxes that intersect |
//! | `FROM knn_join(a, b, k)` and other [table functions](relation) | pairs with their distances |
//!
//! [`functions`] lists the functions, and [`options`] the options of a session. A join is one operator of a plan,
//! [`SpatialJoinExec`](exec::SpatialJoinExec), on the CPU or a GPU with equal results.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! let session = kauri_sql::session()?;
//! session.sql("CREATE TABLE wells AS VALUES (1, 0.0, 0.0), (2, 5.0, 5.0)").await?;
//! let sql = "SELECT a.column1 AS well, b.column1 AS nearest, ST_Distance(ST_Point(a.column2, a.column3), \
//!            ST_Point(b.column2, b.column3)) AS d FROM wells a JOIN wells b \
//!            ON ST_DWithin(ST_Point(a.column2, a.column3), ST_Point(b.column2, b.column3), 1) ORDER BY well";
//! let result = session.sql(sql).await?.collect().await?;
//! assert_eq!(result.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
//! # Ok(())
//! # }
//! ```

pub mod cli;
pub mod cluster;
#[cfg(any(feature = "ballista", feature = "distributed"))]
pub mod codec;
pub mod error;
pub mod exec;
pub mod functions;
pub mod geometry;
#[cfg(feature = "las")]
pub mod las;
pub mod node;
pub mod options;
pub mod partition;
pub mod planner;
pub mod predicate;
pub mod relation;
pub mod rules;
mod session;

pub use session::{register, register_tables, session, session_with};
