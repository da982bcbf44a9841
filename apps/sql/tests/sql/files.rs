//! Files as arguments of table functions.

use crate::data::{assert_one_join, error, rows, session};
use std::fs;

#[tokio::test]
async fn csv_and_parquet_files_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::write(path("airports.csv"), "code,Lon,LAT\nARN,17.92,59.65\nHEL,24.96,60.32\n").unwrap();
    fs::write(path("cities.csv"), "name,longitude,latitude\nStockholm,18.07,59.33\nHelsinki,24.94,60.17\n")
        .unwrap();
    let session = session(3, 8192);
    let (airports, cities) = (path("airports.csv"), path("cities.csv"));
    let sql = format!("SELECT code, name, round(distance / 1000) FROM knn_join('{airports}', '{cities}', 1)");
    assert_one_join(&session, &sql).await;
    let expected = ["ARN | Stockholm | 37.0", "HEL | Helsinki | 17.0"];
    assert_eq!(rows(&session, &sql).await.unwrap(), expected);

    // Points with metadata keep their reference system in a Parquet file.
    let parquet = path("cities.parquet");
    let copy = format!(
        "COPY (SELECT name, ST_Point(longitude, latitude, 'OGC:CRS84') AS place FROM '{cities}') TO '{parquet}'"
    );
    session.sql(&copy).await.unwrap().collect().await.unwrap();
    let sql =
        format!("SELECT code, name, round(distance / 1000) FROM knn_join('{airports}', '{parquet}', 1)");
    assert_eq!(rows(&session, &sql).await.unwrap(), expected);
}

#[tokio::test]
async fn geometry_columns_that_cannot_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let session = session(1, 8192);
    let plain = path("plain.csv", "x,y\n1,2\n");
    for (file, expected) in [
        (
            path("both.csv", "lon,lat,x,y\n1,2,3,4\n"),
            "left: several columns may have the geometries: lon and lat; x and y",
        ),
        (path("none.csv", "a,b\n1,2\n"), "left: no column of points"),
        (path("text.csv", "x,y\na,b\n"), "the columns are: x, y"),
        ("missing.csv".into(), "table or file 'missing.csv' not found"),
    ] {
        let error = error(&session, &format!("SELECT * FROM knn_join('{file}', '{plain}', 1)")).await;
        assert!(error.contains(expected), "{file}: {error}");
    }
}
