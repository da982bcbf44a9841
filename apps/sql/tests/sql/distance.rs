//! Joins within a distance.

use crate::data::{SHAPES, add_points, assert_one_join, assert_rows, plan, rows, session, set};

const ORACLE: &str = "SELECT a.id, b.id FROM a JOIN b ON ST_DWithin(a.geom, b.geom, 2)";

#[tokio::test]
async fn conditions_equal_a_nested_loop() {
    for (partitions, batch_size) in SHAPES {
        let session = session(partitions, batch_size);
        add_points(&session, "a", 1, 300, 30, true);
        add_points(&session, "b", 2, 200, 30, true);
        for sql in [
            "SELECT a.id, b.id FROM a JOIN b ON ST_DWithin(a.geom, b.geom, 2)",
            "SELECT a.id, b.id FROM a JOIN b ON ST_DWithin(b.geom, a.geom, 2.0)",
            "SELECT a.id, b.id FROM a, b WHERE ST_DWithin(a.geom, b.geom, 1 + 1)",
            "SELECT a.id, b.id FROM a JOIN b ON ST_Distance(a.geom, b.geom) <= 2",
            "SELECT a.id, b.id FROM a, b WHERE 2 >= ST_Distance(b.geom, a.geom)",
            "SELECT a.id, b.id FROM a JOIN b ON ST_DWithin(ST_Point(ST_X(a.geom), a.y), b.geom, 2)",
        ] {
            assert_rows(&session, sql, ORACLE).await;
        }
        for condition in [
            "ST_Distance(a.geom, b.geom) < 2",
            "ST_DWithin(a.geom, b.geom, 3) AND a.id < b.id AND b.score > 100",
            "ST_DWithin(a.geom, b.geom, 3) AND (a.id = 5 OR b.id = 7)",
            "ST_DWithin(a.geom, b.geom, 0)",
            "ST_DWithin(a.geom, b.geom, 1e9)",
        ] {
            let sql = format!(
                "SELECT a.id, b.id, b.geom, ST_Distance(a.geom, b.geom) FROM a JOIN b ON {condition}"
            );
            assert_rows(&session, &sql, &sql).await;
        }
        let count = "SELECT count(*) FROM a JOIN b ON ST_DWithin(a.geom, b.geom, 2)";
        assert_rows(&session, count, count).await;
    }
}

#[tokio::test]
async fn table_function() {
    for (partitions, batch_size) in SHAPES {
        let session = session(partitions, batch_size);
        add_points(&session, "a", 3, 100, 20, true);
        add_points(&session, "b", 4, 150, 20, false);
        let oracle =
            "SELECT a.id, b.id, ST_Distance(a.geom, b.geom) FROM a, b WHERE ST_DWithin(a.geom, b.geom, 2.5)";
        let sql = "SELECT id, id_right, distance FROM distance_join(a, b, 2.5, left_geometry => 'geom', right_geometry => geom)";
        assert_rows(&session, sql, oracle).await;
        // Named arguments, subqueries and names of WITH.
        let sql = "WITH w AS (SELECT id, geom FROM b) SELECT j.id, id_right, distance \
                   FROM distance_join((SELECT id, geom FROM a), w, d => 2.5) AS j";
        assert_rows(&session, sql, oracle).await;
        assert_eq!(rows(&session, "SELECT count(*) FROM distance_join(a, b, 2.5)").await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn columns_of_table_functions_have_unique_names() {
    let session = session(1, 8192);
    add_points(&session, "a", 3, 10, 20, false);
    let schema = session
        .sql("SELECT * FROM distance_join((SELECT geom, id, score, 1 AS distance FROM a), a, 9)")
        .await
        .unwrap();
    let names: Vec<&str> = schema.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(
        names,
        [
            "geom",
            "id",
            "score",
            "distance",
            "id_right",
            "geom_right",
            "x",
            "y",
            "score_right",
            "distance_join"
        ]
    );
}

#[tokio::test]
async fn longitudes_and_latitudes_are_joined_in_meters() {
    let session = session(3, 16);
    add_points(&session, "a", 5, 100, 20, false);
    add_points(&session, "b", 6, 100, 20, false);
    set(&session, "crs", "lonlat").await;
    for condition in [
        "ST_DWithin(a.geom, b.geom, 150e3)",
        "ST_Distance(a.geom, b.geom) <= 150e3",
        "ST_Distance(a.geom, b.geom) < 2.0e7",
    ] {
        let sql = format!("SELECT a.id, b.id, ST_Distance(a.geom, b.geom) FROM a, b WHERE {condition}");
        assert_rows(&session, &sql, &sql).await;
    }
    set(&session, "crs", "auto").await;
    let points = "SELECT id, ST_Point(x, y, 'OGC:CRS84') AS geom FROM";
    let sql = format!("SELECT id, id_right, distance FROM distance_join(({points} a), ({points} b), 150e3)");
    let oracle = "SELECT a.id, b.id, ST_Distance(ST_Point(a.x, a.y, 'EPSG:4326'), ST_Point(b.x, b.y, 'EPSG:4326')) FROM a, b \
                  WHERE ST_DWithin(ST_Point(a.x, a.y, 'EPSG:4326'), ST_Point(b.x, b.y, 'EPSG:4326'), 150000)";
    assert_rows(&session, &sql, oracle).await;
}

#[tokio::test]
async fn empty_sides_have_no_pairs() {
    let session = session(3, 8192);
    add_points(&session, "a", 7, 50, 10, false);
    add_points(&session, "e", 8, 0, 10, false);
    for (left, right) in [("a", "e"), ("e", "a"), ("e", "e")] {
        for sql in [
            format!("SELECT l.id FROM {left} l JOIN {right} r ON ST_DWithin(l.geom, r.geom, 2)"),
            format!("SELECT id FROM distance_join({left}, {right}, 2)"),
            format!("SELECT id FROM knn_join({left}, {right}, 2)"),
            format!("SELECT id FROM top_k_distance_join({left}, {right}, 2, 3, score, score)"),
        ] {
            assert_eq!(rows(&session, &sql).await.unwrap(), Vec::<String>::new(), "{sql}");
        }
    }
}

#[tokio::test]
async fn other_joins_are_left_to_the_engine() {
    let session = session(1, 8192);
    add_points(&session, "a", 7, 50, 10, false);
    for sql in [
        "SELECT a.id FROM a LEFT JOIN a b ON ST_DWithin(a.geom, b.geom, 2)",
        "SELECT a.id FROM a JOIN a b ON a.id = b.id AND ST_DWithin(a.geom, b.geom, 2)",
        "SELECT a.id FROM a JOIN a b ON ST_DWithin(a.geom, b.geom, b.x)",
    ] {
        let plan = plan(&session, sql).await;
        assert!(!plan.contains("SpatialJoinExec"), "{sql}\n{plan}");
        assert!(rows(&session, sql).await.is_ok());
    }
    let sql = "EXPLAIN SELECT a.id FROM a JOIN a b ON ST_DWithin(a.geom, b.geom, 2)";
    let explained = rows(&session, sql).await.unwrap().join("\n");
    assert!(
        explained.contains("SpatialJoinExec: kind=distance, d=2, measure=planar, left=geom@1, right=geom@"),
        "{explained}"
    );
    assert_one_join(&session, "SELECT a.id FROM a JOIN a b ON ST_DWithin(a.geom, b.geom, 2)").await;
}

#[tokio::test]
async fn points_in_well_known_binary_are_joined() {
    let session = session(1, 8192);
    // The points (1, 2) and (1, 5).
    let wkb = "(VALUES (1, X'0101000000000000000000F03F0000000000000040'), (2, X'0101000000000000000000F03F0000000000001440'), (3, NULL))";
    let points = format!("(SELECT column1 AS id, column2 AS geom FROM {wkb})");
    let sql = format!("SELECT id, id_right, distance FROM distance_join({points}, {points}, 3)");
    assert_eq!(
        rows(&session, &sql).await.unwrap(),
        ["1 | 1 | 0.0", "1 | 2 | 3.0", "2 | 1 | 3.0", "2 | 2 | 0.0"]
    );
    let sql = format!("SELECT a.id FROM {points} a JOIN {points} b ON ST_DWithin(a.geom, b.geom, 2)");
    assert_one_join(&session, &sql).await;
    assert_eq!(rows(&session, &sql).await.unwrap(), ["1", "2"]);
}

#[tokio::test]
async fn metrics_of_the_operator() {
    let session = session(3, 8192);
    add_points(&session, "a", 9, 60, 20, false);
    set(&session, "device", "cpu").await;
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM a l JOIN a r ON ST_DWithin(l.geom, r.geom, 2)";
    let text = rows(&session, sql).await.unwrap().join("\n");
    let line = text.lines().find(|line| line.contains("SpatialJoinExec")).expect("the operator is shown");
    assert!(line.contains(", device=cpu ("), "{line}");
    for metric in
        ["output_rows=", "build_rows=60", "input_rows=60", "build_time=", "join_time=", "spilled_bytes="]
    {
        assert!(line.contains(metric), "{metric}: {line}");
    }
}
