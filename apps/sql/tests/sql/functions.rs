//! The functions of rows.

use crate::data::{error, rows, session};

#[tokio::test]
async fn values() {
    let session = session(1, 8192);
    for (sql, expected) in [
        ("ST_Distance(ST_Point(0, 0), ST_Point(3, 4))", "5.0"),
        ("ST_X(ST_Point(1.5, 2))", "1.5"),
        ("ST_Y(ST_Point(1.5, 2))", "2.0"),
        ("ST_X(ST_Point(NULL, 2))", ""),
        ("ST_DWithin(ST_Point(0, 0), ST_Point(3, 4), 5)", "true"),
        ("ST_DWithin(ST_Point(0, 0), ST_Point(3, 4), 4.9)", "false"),
        ("ST_DWithin(ST_Point(0, 0), NULL, 4.9)", ""),
        (
            "round(ST_Distance(ST_Point(18.07, 59.33, 'OGC:CRS84'), ST_Point(24.94, 60.17, 'EPSG:4326')) / 1000)",
            "396.0",
        ),
        ("ST_Y(X'0101000000000000000000F03F0000000000000040')", "2.0"),
        ("ST_Intersects(ST_MakeBox(0, 0, 2, 2), ST_MakeBox(2, 2, 3, 3))", "true"),
        ("ST_Contains(ST_MakeBox(0, 0, 2, 2), ST_MakeBox(1, 1, 3, 3))", "false"),
    ] {
        assert_eq!(rows(&session, &format!("SELECT {sql}")).await.unwrap(), [expected], "{sql}");
    }
}

#[tokio::test]
async fn invalid_arguments() {
    let session = session(1, 8192);
    for (sql, expected) in [
        ("ST_Distance(ST_Point(0, 0), 5)", "ST_Distance(a, b): argument 2 has type Int64, expected a point"),
        ("ST_Point('a', 1)", "ST_Point(x, y [, crs]): argument 1 has type Utf8, expected a number"),
        ("ST_X(ST_Point(0, 0), 1)", "ST_X(point): got 2 arguments"),
        (
            "ST_DWithin(ST_Point(0, 0), ST_Point(3, 4), -1)",
            "distance -1: expected a number that is 0 or greater",
        ),
        ("ST_Distance(ST_Point('NaN'::double, 0), ST_Point(3, 4))", "row 0: NaN is not finite"),
        (
            "ST_Distance(ST_Point(0, 99, 'OGC:CRS84'), ST_Point(3, 4))",
            "latitude 99 is not within ±90 degrees",
        ),
        (
            "ST_Distance(ST_Point(0, 9, 'OGC:CRS84'), ST_Point(3, 4, 'EPSG:3857'))",
            "is in OGC:CRS84 and column",
        ),
        ("ST_X(X'01')", "row 0: 1 bytes that are not well-known binary"),
        (
            "ST_Intersects(ST_MakeBox(3, 0, 2, 2), ST_MakeBox(2, 2, 3, 3))",
            "the box begins at 3 and ends at 2",
        ),
    ] {
        let error = error(&session, &format!("SELECT {sql}")).await;
        assert!(error.contains(expected), "{sql}: {error}");
    }
}
