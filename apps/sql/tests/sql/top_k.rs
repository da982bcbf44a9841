//! The pairs with the greatest sums of scores.

use crate::data::{SHAPES, add_points, assert_rows, error, rows, session};

#[tokio::test]
async fn best_pairs_equal_sorted_pairs() {
    for (partitions, batch_size) in SHAPES {
        let session = session(partitions, batch_size);
        add_points(&session, "a", 31, 200, 40, true);
        add_points(&session, "b", 32, 150, 40, true);
        // The scores of pairs; equal scores may be chosen in any order, so that only scores are compared.
        let sql = "SELECT score_join FROM top_k_distance_join(a, b, 4, 25, score, 'score')";
        let expected = "SELECT CAST(a.score + b.score AS DOUBLE) AS s FROM a, b WHERE ST_DWithin(a.geom, b.geom, 4) ORDER BY s DESC LIMIT 25";
        assert_rows(&session, sql, expected).await;
        let sql = "SELECT id, id_right, distance, score_join FROM top_k_distance_join(a, b, 4, 100000, score, score)";
        let expected = "SELECT a.id, b.id, ST_Distance(a.geom, b.geom), CAST(a.score + b.score AS DOUBLE) FROM a, b WHERE ST_DWithin(a.geom, b.geom, 4)";
        assert_rows(&session, sql, expected).await;
    }
}

/// Large sides, whose best rows are joined first: with enough pairs among these rows, and with too few.
#[tokio::test]
async fn best_pairs_of_many_rows() {
    let session = session(3, 8192);
    add_points(&session, "a", 33, 200_000, 4000, true);
    add_points(&session, "b", 34, 180_000, 4000, true);
    for (distance, k) in [(4, 25), (0, 200), (0, 2000)] {
        let found =
            format!("SELECT score_join FROM top_k_distance_join(a, b, {distance}, {k}, score, score)");
        let expected = format!(
            "SELECT CAST(a.score + b.score AS DOUBLE) AS s FROM a JOIN b ON ST_DWithin(a.geom, b.geom, {distance})
             ORDER BY s DESC LIMIT {k}"
        );
        let [found, expected] = [&found, &expected].map(|sql| rows(&session, sql));
        assert_eq!(found.await.unwrap(), expected.await.unwrap(), "distance {distance}, {k} pairs");
    }
}

/// Values that are not valid are errors also in rows of low scores.
#[tokio::test]
async fn rows_of_low_scores_are_checked() {
    let session = session(1, 8192);
    let points = |bad: &str| {
        format!(
            "SELECT ST_Point(CASE WHEN value = 7 THEN {bad} ELSE value END, 1) AS geom, CAST(value AS DOUBLE) AS score
             FROM generate_series(0, 199999)"
        )
    };
    let join = |left: &str, right: &str| {
        format!("SELECT * FROM top_k_distance_join(({left}), ({right}), 1, 3, score, score)")
    };
    let (good, bad) = (points("7.0"), points("CAST('NaN' AS DOUBLE)"));
    assert_eq!(rows(&session, &join(&good, &good)).await.unwrap().len(), 3);
    for sql in [join(&bad, &good), join(&good, &bad)] {
        assert!(error(&session, &sql).await.contains("row 7: NaN is not finite"));
    }
    let score = good.replace("CAST(value AS DOUBLE)", "1 / (CAST(value AS DOUBLE) - 7)");
    let message = error(&session, &join(&good, &score)).await;
    assert!(message.contains("column 'score', row 7: inf is not finite"), "{message}");
}
