//! Joins part by part, in one process.

use crate::data::{add_points, plan, rows, session, set};
use datafusion::prelude::SessionContext;

/// Queries of all kinds, over tables `a` and `b`.
pub(crate) const QUERIES: [&str; 9] = [
    "SELECT id, id_right, distance FROM knn_join(a, b, 4)",
    "SELECT id, id_right, distance FROM knn_join(a, b, 3, within => 2)",
    "SELECT a.id, b.id FROM a JOIN b ON ST_KNN(a.geom, b.geom, 2) WHERE b.id % 3 = 0",
    "SELECT id, id_right, distance FROM distance_join(a, b, 2.5)",
    "SELECT a.id, b.id FROM a JOIN b ON ST_DWithin(a.geom, b.geom, 1)",
    "SELECT a.id, b.id FROM a JOIN b ON ST_Intersects(ST_MakeBox(a.x, a.y, a.x + 9, a.y + 2), ST_MakeBox(b.x, b.y, b.x + 3, b.y + 1))",
    "SELECT count(*), max(distance) FROM knn_join((SELECT id, geom FROM a WHERE id % 2 = 0), (SELECT geom FROM b WHERE id > 10), 5)",
    "SELECT a.id, count(*) FROM knn_join(a, b, 2) AS j JOIN a ON a.id = j.id_right GROUP BY a.id",
    "SELECT score_join FROM top_k_distance_join(a, b, 2, 25, score, score)",
];

async fn in_parts(session: &SessionContext, sample_rows: usize) {
    set(session, "shared_rows", "0").await;
    set(session, "sample_rows", &sample_rows.to_string()).await;
}

/// Checks that queries have the same rows part by part as all together.
async fn assert_equal(queries: &[&str], left: (usize, u64), right: (usize, u64), ties: &str) {
    for (partitions, sample_rows) in [(2, 40), (5, 1), (8, 300), (3, 1 << 17)] {
        let (whole, parts) = (session(partitions, 512), session(partitions, 512));
        for session in [&whole, &parts] {
            add_points(session, "a", 61, left.0, left.1, true);
            add_points(session, "b", 62, right.0, right.1, true);
            set(session, "include_ties", ties).await;
        }
        in_parts(&parts, sample_rows).await;
        for sql in queries {
            let (expected, found) = (rows(&whole, sql).await.unwrap(), rows(&parts, sql).await.unwrap());
            assert_eq!(
                found.len(),
                expected.len(),
                "{sql}: {partitions} partitions, sample of {sample_rows}"
            );
            assert!(found == expected, "{sql}: {partitions} partitions, sample of {sample_rows}");
        }
    }
}

#[tokio::test]
async fn parts_have_the_rows_of_the_whole() {
    assert_equal(&QUERIES, (900, 60), (1500, 60), "false").await;
    assert_equal(&QUERIES[..3], (400, 20), (700, 20), "true").await;
}

#[tokio::test]
async fn sides_of_other_extents_and_sizes() {
    // A left side around and far from the right one, a right side with fewer rows than neighbors, equal points, and no rows.
    for (left, right) in
        [((500, 2000), (800, 9)), ((500, 5), (900, 1000)), ((50, 30), (2, 30)), ((60, 1), (80, 1))]
    {
        assert_equal(&QUERIES[..5], left, right, "false").await;
    }
    assert_equal(&QUERIES, (0, 1), (100, 30), "false").await;
    assert_equal(&QUERIES, (100, 30), (0, 1), "false").await;
}

#[tokio::test]
async fn longitudes_and_latitudes() {
    let queries = [
        "SELECT id, id_right, distance FROM knn_join(a, b, 3)",
        "SELECT id, id_right, distance FROM distance_join(a, b, 300e3)",
        "SELECT id, id_right, distance FROM distance_join(a, b, 2e7)",
    ];
    let (whole, parts) = (session(4, 512), session(4, 512));
    for session in [&whole, &parts] {
        add_points(session, "a", 63, 300, 181, true);
        add_points(session, "b", 64, 400, 181, true);
        for table in ["a", "b"] {
            // From -180 to 180 degrees, and from pole to pole.
            let view = format!(
                "CREATE VIEW {table}_ AS SELECT id, ST_Point(2 * x - 180, y - 90, 'OGC:CRS84') AS geom FROM {table}"
            );
            session.sql(&view).await.unwrap();
        }
    }
    in_parts(&parts, 60).await;
    for sql in queries {
        let sql = sql.replace("(a, b,", "(a_, b_,");
        let expected = rows(&whole, &sql).await.unwrap();
        assert!(!expected.is_empty() && rows(&parts, &sql).await.unwrap() == expected, "{sql}");
    }
}

#[tokio::test]
async fn small_right_sides_are_shared() {
    let session = session(4, 512);
    add_points(&session, "a", 61, 300, 60, false);
    add_points(&session, "b", 62, 200, 60, false);
    let physical = async |sql: &str| plan(&session, sql).await;
    in_parts(&session, 100).await;
    let sql = QUERIES[0];
    assert!(physical(sql).await.contains("part by part"));
    set(&session, "shared_rows", "199").await;
    assert!(physical(sql).await.contains("part by part"));
    set(&session, "shared_rows", "200").await;
    assert!(!physical(sql).await.contains("part by part"));
}

#[tokio::test]
async fn parts_find_invalid_geometries() {
    let session = session(3, 512);
    in_parts(&session, 100).await;
    add_points(&session, "a", 61, 300, 60, true);
    let error = async |sql: &str| rows(&session, sql).await.unwrap_err().to_string();
    let sql = "SELECT * FROM knn_join(a, (SELECT ST_Point(x / 0, y) AS place FROM a), 2)";
    assert!(error(sql).await.contains("is not finite"), "{}", error(sql).await);
    set(&session, "nulls", "error").await;
    assert!(error(QUERIES[0].replace(", b,", ", a,").as_str()).await.contains("the value is missing"));
}

#[tokio::test]
async fn rows_that_change_from_run_to_run_are_shared() {
    let session = session(4, 512);
    add_points(&session, "a", 61, 300, 60, false);
    in_parts(&session, 100).await;
    for side in [
        "SELECT * FROM a LIMIT 50",
        "SELECT * FROM a ORDER BY id LIMIT 50",
        "SELECT * FROM a WHERE random() < 0.5",
    ] {
        let sql = format!("SELECT count(*) FROM knn_join(a, ({side}), 2)");
        assert!(!plan(&session, &sql).await.contains("part by part"), "{sql}");
        let sql = format!("SELECT count(*) FROM knn_join(({side}), a, 2)");
        assert!(!plan(&session, &sql).await.contains("part by part"), "{sql}");
    }
}
