//! The nearest rows.

use crate::data::{
    SHAPES, add_points, assert_one_join, assert_rows, error, oracle, plan, rows, session, set,
};

/// The ranks of right rows in the order of a kNN join.
fn ranked(left: &str, right: &str) -> String {
    format!(
        "SELECT a.id AS a, b.id AS b, ST_Distance(a.geom, b.geom) AS d, \
         row_number() OVER (PARTITION BY a.id ORDER BY ST_Distance(a.geom, b.geom), b.x, b.y, b.id) AS n, \
         rank() OVER (PARTITION BY a.id ORDER BY ST_Distance(a.geom, b.geom)) AS r \
         FROM {left} a CROSS JOIN {right} b WHERE a.geom IS NOT NULL AND b.geom IS NOT NULL"
    )
}

#[tokio::test]
async fn all_forms_equal_ranked_pairs() {
    for (partitions, batch_size) in SHAPES {
        let session = session(partitions, batch_size);
        add_points(&session, "a", 11, 120, 12, true);
        add_points(&session, "b", 12, 90, 12, true);
        for k in [1, 4, 1000] {
            let expected = format!("SELECT a, b, d FROM ({}) WHERE n <= {k}", ranked("a", "b"));
            for sql in [
                format!("SELECT id, id_right, distance FROM knn_join(a, (SELECT id, geom FROM b), {k})"),
                format!(
                    "SELECT a.id, b.id, ST_Distance(a.geom, b.geom) FROM a JOIN (SELECT id, geom FROM b) b ON ST_KNN(a.geom, b.geom, {k})"
                ),
                format!(
                    "SELECT a.id, b.id, ST_Distance(a.geom, b.geom) FROM (SELECT id, geom FROM b) b JOIN a ON ST_KNN(a.geom, b.geom, {k})"
                ),
                format!(
                    "SELECT a.id, b.id, ST_Distance(a.geom, b.geom) FROM a, (SELECT id, geom FROM b) b WHERE ST_KNN(a.geom, b.geom, {k})"
                ),
                format!(
                    "SELECT a.id, l.id, l.d FROM a CROSS JOIN LATERAL (SELECT b.id, ST_Distance(a.geom, b.geom) AS d FROM (SELECT id, geom FROM b) b ORDER BY d LIMIT {k}) l"
                ),
                format!(
                    "SELECT a.id, l.id, ST_Distance(a.geom, l.geom) FROM a CROSS JOIN LATERAL (SELECT * FROM (SELECT id, geom FROM b) b ORDER BY ST_Distance(b.geom, a.geom) LIMIT {k}) l"
                ),
            ] {
                assert_rows(&session, &sql, &expected).await;
            }
        }
    }
}

#[tokio::test]
async fn ties_and_limits() {
    for (partitions, batch_size) in SHAPES {
        let session = session(partitions, batch_size);
        add_points(&session, "a", 13, 80, 8, false);
        add_points(&session, "b", 14, 150, 8, false);
        let near = format!("SELECT a, b, d FROM ({}) WHERE n <= 5 AND d <= 1", ranked("a", "b"));
        assert_rows(
            &session,
            "SELECT id, id_right, distance FROM knn_join(a, (SELECT id, geom FROM b), 5, within => 1)",
            &near,
        )
        .await;
        set(&session, "include_ties", "true").await;
        for k in [1, 3, 149, 150] {
            let tied = format!("SELECT a, b, d FROM ({}) WHERE r <= {k}", ranked("a", "b"));
            assert_rows(&session, &format!("SELECT id, id_right, distance FROM knn_join(a, b, {k})"), &tied)
                .await;
        }
    }
}

#[tokio::test]
async fn conditions_apply_to_the_nearest_rows() {
    let session = session(3, 8192);
    add_points(&session, "a", 15, 80, 15, false);
    add_points(&session, "b", 16, 80, 15, false);
    let expected = format!("SELECT a, b FROM ({}) WHERE n <= 3 AND b > 40", ranked("a", "b"));
    let right = "(SELECT id, geom FROM b) b";
    assert_rows(
        &session,
        &format!("SELECT a.id, b.id FROM a, {right} WHERE ST_KNN(a.geom, b.geom, 3) AND b.id > 40"),
        &expected,
    )
    .await;
    assert_rows(
        &session,
        &format!("SELECT a.id, b.id FROM a JOIN {right} ON ST_KNN(a.geom, b.geom, 3) AND b.id > 40"),
        &expected,
    )
    .await;
    // The conditions of a subquery choose the rows among which the nearest are.
    let chosen =
        format!("SELECT a, b FROM ({}) WHERE n <= 3", ranked("a", "(SELECT * FROM b WHERE id > 40)"));
    assert_rows(
        &session,
        "SELECT a.id, l.id FROM a CROSS JOIN LATERAL (SELECT b.id FROM (SELECT id, geom FROM b) b WHERE b.id > 40 ORDER BY ST_Distance(a.geom, b.geom) LIMIT 3) l",
        &chosen,
    )
    .await;
}

#[tokio::test]
async fn places_have_neighbors_in_meters() {
    let session = session(3, 8192);
    add_points(&session, "a", 17, 60, 60, false);
    add_points(&session, "b", 18, 60, 60, false);
    set(&session, "crs", "lonlat").await;
    let expected = format!("SELECT a, b, d FROM ({}) WHERE n <= 3", ranked("a", "b"));
    let found = rows(&session, "SELECT id, id_right, distance FROM knn_join(a, (SELECT id, geom FROM b), 3)")
        .await
        .unwrap();
    let expected = oracle(&session, &expected).await;
    assert_eq!(found, expected);
}

#[tokio::test]
async fn calls_elsewhere_are_refused_with_advice() {
    let session = session(1, 8192);
    add_points(&session, "a", 19, 20, 60, false);
    for sql in [
        "SELECT ST_KNN(a.geom, a.geom, 2) FROM a",
        "SELECT a.id FROM a WHERE ST_KNN(a.geom, ST_Point(0, 0), 2)",
        "SELECT a.id FROM a JOIN a b ON ST_KNN(a.geom, b.geom, 2) OR a.id = 1",
        "SELECT a.id FROM a LEFT JOIN a b ON ST_KNN(a.geom, b.geom, 2)",
    ] {
        let error = error(&session, sql).await;
        assert!(error.contains("knn_join(a, b, 5)"), "{sql}: {error}");
    }
    for sql in [
        "SELECT a.id FROM a CROSS JOIN LATERAL (SELECT b.id FROM a b WHERE b.id > a.id ORDER BY ST_Distance(a.geom, b.geom) LIMIT 2) l",
        "SELECT a.id FROM a CROSS JOIN LATERAL (SELECT b.id FROM a b ORDER BY ST_Distance(a.geom, b.geom) DESC LIMIT 2) l",
        "SELECT a.id FROM a CROSS JOIN LATERAL (SELECT b.id FROM a b ORDER BY ST_Distance(a.geom, b.geom) LIMIT 2 OFFSET 1) l",
        "SELECT a.id FROM a LEFT JOIN LATERAL (SELECT b.id FROM a b ORDER BY ST_Distance(a.geom, b.geom) LIMIT 2) l ON true",
    ] {
        let error = error(&session, sql).await;
        assert!(error.contains("use the table function knn_join(a, b, k)"), "{sql}: {error}");
    }
    set(&session, "enabled", "false").await;
    assert!(
        error(&session, "SELECT a.id FROM a JOIN a b ON ST_KNN(a.geom, b.geom, 2)")
            .await
            .contains("kauri.enabled")
    );
}

#[tokio::test]
async fn geometries_that_are_not_read_are_not_copied() {
    let session = session(1, 8192);
    add_points(&session, "a", 19, 20, 60, false);
    let sql = "SELECT id, id_right FROM knn_join(a, a, 2)";
    assert_one_join(&session, sql).await;
    let plan = plan(&session, sql).await;
    assert!(plan.contains("kind=knn, k=2, measure=planar"), "{plan}");
    let logical = session.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    let join =
        kauri_sql::node::SpatialJoinNode::of(logical.inputs()[0]).expect("the join is below a projection");
    assert_eq!(join.output.len(), 2);
}
