//! The pairs with the greatest sums of scores.

use crate::data::{SHAPES, add_points, assert_rows, session};

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
