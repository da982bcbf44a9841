//! Sessions, random tables, and comparison of results.

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

/// Partitions of plans, and rows of batches.
pub(crate) const SHAPES: [(usize, usize); 3] = [(1, 8192), (3, 7), (3, 8192)];

/// A generator of pseudo-random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Creates a session with this number of partitions and rows of batches, on the CPU.
pub(crate) fn session(target_partitions: usize, batch_size: usize) -> SessionContext {
    session_with(target_partitions, batch_size, RuntimeEnv::default())
}

/// Creates a session as [`session`], with the memory and the disk of `runtime`.
pub(crate) fn session_with(
    target_partitions: usize,
    batch_size: usize,
    runtime: RuntimeEnv,
) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(target_partitions).with_batch_size(batch_size);
    kauri_sql::session_with(config, Arc::new(runtime)).unwrap()
}

/// Adds a table of `rows` points with integer coordinates below `extent`, so that there are duplicates and ties. About one in ten points
/// is null if `nulls` is set. Columns: id, geom, x, y, score.
pub(crate) fn add_points(
    session: &SessionContext,
    name: &str,
    seed: u64,
    rows: usize,
    extent: u64,
    nulls: bool,
) {
    let mut random = Random::new(seed);
    let mut coordinates = || (0..rows).map(|_| random.below(extent) as f64).collect::<Vec<f64>>();
    let (x, y) = (coordinates(), coordinates());
    let present: Vec<bool> = (0..rows).map(|_| !nulls || random.below(10) > 0).collect();
    let axis = |name: &str| Field::new(name, DataType::Float64, true);
    let fields = Fields::from(vec![axis("x"), axis("y")]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Float64Array::from(x.clone())), Arc::new(Float64Array::from(y.clone()))];
    let points = StructArray::new(fields.clone(), columns, Some(present.into()));
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("geom", DataType::Struct(fields), true),
        axis("x"),
        axis("y"),
        Field::new("score", DataType::Int64, false),
    ]));
    let scores = (0..rows).map(|row| (row as i64 * 7919) % 1009).collect::<Int64Array>();
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..rows as i64).collect::<Int64Array>()),
        Arc::new(points),
        Arc::new(Float64Array::from(x)),
        Arc::new(Float64Array::from(y)),
        Arc::new(scores),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    // Three partitions of different lengths, one of them in two batches.
    let at = [0, rows / 5, rows / 3, rows / 2, rows];
    let part = |index: usize| batch.slice(at[index], at[index + 1] - at[index]);
    let partitions = vec![vec![part(0)], vec![part(1), part(2)], vec![part(3)]];
    session.register_table(name, Arc::new(MemTable::try_new(schema, partitions).unwrap())).unwrap();
}

/// Returns the rows of a query as sorted lines.
pub(crate) async fn rows(session: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = session.sql(sql).await?.collect().await?;
    let line = |batch: &RecordBatch, row: usize| {
        let values = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
        values.collect::<Vec<_>>().join(" | ")
    };
    let lines = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| line(batch, row)));
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    Ok(lines)
}

/// Returns the rows of a query that is planned without spatial joins.
pub(crate) async fn oracle(session: &SessionContext, sql: &str) -> Vec<String> {
    set(session, "enabled", "false").await;
    let rows = rows(session, sql).await.unwrap();
    set(session, "enabled", "true").await;
    rows
}

/// Sets an option of `kauri`.
pub(crate) async fn set(session: &SessionContext, option: &str, value: &str) {
    session.sql(&format!("SET kauri.{option} = '{value}'")).await.unwrap();
}

/// Returns the physical plan of a query.
pub(crate) async fn plan(session: &SessionContext, sql: &str) -> String {
    let plan = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Checks that a query has one spatial join and no join by comparing all pairs.
pub(crate) async fn assert_one_join(session: &SessionContext, sql: &str) {
    let plan = plan(session, sql).await;
    assert_eq!(plan.matches("SpatialJoinExec").count(), 1, "{sql}\n{plan}");
    assert!(!plan.contains("NestedLoopJoin") && !plan.contains("CrossJoin"), "{sql}\n{plan}");
}

/// Checks that a query has one spatial join, and the rows of another query without.
pub(crate) async fn assert_rows(session: &SessionContext, sql: &str, expected: &str) {
    assert_one_join(session, sql).await;
    let (found, expected) = (rows(session, sql).await.unwrap(), oracle(session, expected).await);
    assert_eq!(found.len(), expected.len(), "{sql}");
    assert_eq!(found, expected, "{sql}");
}

/// Returns the message of a query that fails.
pub(crate) async fn error(session: &SessionContext, sql: &str) -> String {
    match rows(session, sql).await {
        Err(error) => error.to_string(),
        Ok(rows) => panic!("{sql} has {} rows", rows.len()),
    }
}
