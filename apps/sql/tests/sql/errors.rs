//! Input that a join refuses.

use crate::data::{add_points, error, rows, session, set};

#[tokio::test]
async fn arguments_of_table_functions() {
    let session = session(1, 8192);
    add_points(&session, "a", 41, 20, 60, false);
    for (call, expected) in [
        ("knn_join(a, a, 0)", "k = 0: expected a number that is 1 or greater"),
        ("knn_join(a, a)", "the argument k is missing"),
        ("knn_join(a, a, 'x')", "k must be an integer, not 'x'"),
        ("knn_join(a, a, 1, 2, 3)", "unexpected argument 3"),
        ("knn_join(a, a, 1, fast => true)", "unexpected argument fast"),
        ("knn_join(a, b, 1)", "table or file 'b' not found"),
        (
            "knn_join(a, a, 1, left_geometry => 'shape')",
            "left: no column 'shape'; the columns are: id, geom, x, y, score",
        ),
        ("knn_join(a, a, 1, right_geometry => id)", "right: column 'id' has type Int64, expected points"),
        ("distance_join(a, a, -1)", "distance -1: expected a number that is 0 or greater"),
        ("distance_join(a, a, 'NaN'::double)", "distance NaN"),
        ("top_k_distance_join(a, a, 1, 5, geom, score)", "left_score: column 'geom' has type"),
        ("top_k_distance_join(a, a, 1, 5, price, score)", "left_score: no column 'price'"),
        ("box_join(a, a, 'intersects')", "left: no column of boxes"),
        (
            "distance_join((SELECT ST_Point(x, y, 'OGC:CRS84') AS p FROM a), (SELECT ST_Point(x, y, 'EPSG:3857') AS q FROM a), 5)",
            "column 'p' is in OGC:CRS84 and column 'q' in EPSG:3857",
        ),
    ] {
        let error = error(&session, &format!("SELECT * FROM {call}")).await;
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[tokio::test]
async fn values_of_columns() {
    let session = session(3, 8192);
    add_points(&session, "a", 42, 20, 60, false);
    add_points(&session, "n", 43, 100, 60, true);
    let bad = "(SELECT CASE WHEN id = 7 THEN ST_Point('inf'::double, 1) ELSE geom END AS p FROM a)";
    for sql in [
        format!("SELECT * FROM distance_join({bad}, a, 1, right_geometry => 'geom')"),
        format!("SELECT * FROM knn_join(a, {bad}, 1)"),
    ] {
        let error = error(&session, &sql).await;
        assert!(error.contains("column 'p', row ") && error.contains("inf is not finite"), "{error}");
    }
    set(&session, "nulls", "error").await;
    for sql in ["SELECT * FROM distance_join(n, a, 1)", "SELECT * FROM distance_join(a, n, 1)"] {
        let error = error(&session, sql).await;
        assert!(
            error.contains("column 'geom', row ") && error.contains("SET kauri.nulls = 'skip'"),
            "{error}"
        );
    }
    set(&session, "nulls", "skip").await;
    set(&session, "crs", "lonlat").await;
    let far = "SELECT * FROM distance_join((SELECT ST_Point(x + 400, y) AS p FROM a), a, 1)";
    assert!(error(&session, far).await.contains("column 'p', row 0: longitude"));
    set(&session, "device", "toaster").await;
    assert!(
        error(&session, "SELECT * FROM distance_join(a, a, 1)").await.contains("unknown device 'toaster'")
    );
    assert!(session.sql("SET kauri.nulls = 'maybe'").await.is_err());
    set(&session, "device", "cpu").await;
    assert!(!rows(&session, "SELECT * FROM distance_join(a, a, 1)").await.unwrap().is_empty());
}
