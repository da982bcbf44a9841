//! Memory limits and cancellation.

use crate::data::{add_points, error, rows, session, session_with, set};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn runtime(bytes: usize) -> RuntimeEnv {
    RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build().unwrap()
}

fn tables(session: &SessionContext) {
    add_points(session, "a", 51, 2000, 300, true);
    add_points(session, "b", 52, 20_000, 300, true);
}

/// Returns the bytes that a plan and its children have written to disk.
fn spilled(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0);
    own + plan.children().into_iter().map(spilled).sum::<usize>()
}

const QUERIES: [&str; 4] = [
    "SELECT id, id_right, distance FROM knn_join(a, (SELECT id, geom FROM b), 4)",
    "SELECT id, id_right, distance FROM distance_join(a, b, 2)",
    "SELECT a.id, b.id FROM a JOIN b ON ST_DWithin(a.geom, b.geom, 2)",
    "SELECT a.id, b.id FROM a JOIN b ON ST_Intersects(ST_MakeBox(a.x, a.y, a.x + 2, a.y + 1), ST_MakeBox(b.x, b.y, b.x, b.y))",
];

#[tokio::test]
async fn a_right_side_on_disk_has_the_rows_of_one_in_memory() {
    for (partitions, ties) in [(1, "false"), (3, "false"), (3, "true")] {
        let unlimited = session(partitions, 512);
        let limited = session_with(partitions, 512, runtime(1_500_000));
        for session in [&unlimited, &limited] {
            tables(session);
            set(session, "include_ties", ties).await;
        }
        for sql in QUERIES {
            let expected = rows(&unlimited, sql).await.unwrap();
            let plan = limited.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            collect(Arc::clone(&plan), limited.task_ctx()).await.unwrap();
            assert!(spilled(&plan) > 0, "{sql} wrote nothing to disk");
            let found = rows(&limited, sql).await.unwrap();
            assert!(found == expected, "{sql}: {} and {} rows", found.len(), expected.len());
        }
    }
}

#[tokio::test]
async fn too_little_memory_is_an_error() {
    let session = session_with(1, 8192, runtime(20_000));
    tables(&session);
    for sql in QUERIES.into_iter().chain(["SELECT * FROM top_k_distance_join(a, b, 3, 10, score, score)"]) {
        assert!(error(&session, sql).await.contains("Resources exhausted"), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_stream_stops_the_join() {
    let session = session(2, 8192);
    add_points(&session, "a", 53, 30_000, 100, false);
    // All pairs: 900 million rows.
    let sql = "SELECT a.id, b.id FROM a JOIN a b ON ST_DWithin(a.geom, b.geom, 1000)";
    let mut stream = session.sql(sql).await.unwrap().execute_stream().await.unwrap();
    assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
    drop(stream);
    let begin = Instant::now();
    while session.runtime_env().memory_pool.reserved() > 0 && begin.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(session.runtime_env().memory_pool.reserved(), 0);
    assert_eq!(rows(&session, &format!("{sql} LIMIT 5")).await.unwrap().len(), 5);
}
