//! LAS and LAZ files as tables.

use crate::data::{assert_one_join, error, plan, rows, session};
use datafusion::arrow::array::RecordBatch;
use datafusion::prelude::SessionContext;
use las::point::{Classification, Format};
use las::{Builder, Color, Point, Transform, Vector, Vlr, Writer};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const STEP: f64 = 0.25;

/// Returns points of a format, at different positions.
fn points(num: usize, format: Format) -> Vec<Point> {
    let point = |i: usize| Point {
        x: 1000.0 + STEP * (i % 500) as f64,
        y: -50.0 - STEP * (i / 500) as f64,
        z: STEP * (i % 7) as f64,
        intensity: (i % 1000) as u16,
        return_number: 1,
        number_of_returns: 2,
        classification: Classification::new([2, 6][i % 2]).unwrap(),
        is_withheld: i.is_multiple_of(10),
        scan_angle: 6.0,
        user_data: 3,
        point_source_id: 77,
        gps_time: format.has_gps_time.then_some(i as f64),
        color: format.has_color.then(|| Color::new(1, 2, i as u16)),
        ..Point::default()
    };
    (0..num).map(point).collect()
}

/// Writes points of a format to a file, compressed if its name says so, in a reference system by its EPSG code.
fn write(path: &Path, format: u8, num: usize, crs: Option<u16>) {
    let mut builder = Builder::from((1, 4));
    if let Some(code) = crs {
        // The keys of GeoTIFF: a projected system, and its code.
        let keys: [u16; 12] = [1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, code];
        let data = keys.into_iter().flat_map(u16::to_le_bytes).collect();
        let (user_id, record_id) = ("LASF_Projection".into(), 34735);
        builder.vlrs.push(Vlr { user_id, record_id, data, ..Vlr::default() });
    }
    builder.point_format = Format::new(format).unwrap();
    builder.point_format.is_compressed =
        path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("laz"));
    let axis = |offset| Transform { scale: STEP, offset };
    builder.transforms = Vector { x: axis(1000.0), y: axis(-50.0), z: axis(0.0) };
    let points = points(num, builder.point_format);
    let mut writer = Writer::from_path(path, builder.into_header().unwrap()).unwrap();
    points.into_iter().for_each(|point| writer.write_point(point).unwrap());
    writer.close().unwrap();
}

/// Writes a file in a folder, and returns its path.
pub(crate) fn file(folder: &TempDir, name: &str, format: u8, num: usize) -> String {
    let path = folder.path().join(name);
    write(&path, format, num, None);
    path.to_str().unwrap().into()
}

async fn batches(session: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    session.sql(sql).await.unwrap().collect().await.unwrap()
}

#[tokio::test]
async fn columns_and_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (las, laz) = (file(&folder, "a.las", 3, 3000), file(&folder, "b.LAZ.laz", 0, 3000));
    let session = session(2, 100);
    let first = format!("SELECT * FROM '{las}' WHERE gps_time = 501");
    assert_eq!(
        rows(&session, &first).await.unwrap(),
        ["1000.25 | -50.25 | 1.0 | 501 | 1 | 2 | 6 | false | 6.0 | 3 | 77 | 501.0 | 1 | 2 | 501"]
    );
    for (path, columns) in [(&las, 15), (&laz, 11)] {
        let all = batches(&session, &format!("SELECT * FROM '{path}'")).await;
        assert_eq!(all.iter().map(RecordBatch::num_rows).sum::<usize>(), 3000);
        assert!(all.iter().all(|batch| batch.num_columns() == columns && batch.num_rows() <= 100));
        let sql = format!(
            "SELECT count(*), sum(x), min(y), max(z), sum(intensity) FROM '{path}' WHERE NOT withheld AND classification = 2"
        );
        let kept: Vec<_> = points(3000, Format::new(0).unwrap()).into_iter().step_by(2).collect();
        let kept: Vec<_> = kept.into_iter().filter(|point| !point.is_withheld).collect();
        let expected = format!(
            "{} | {:?} | -51.25 | 1.5 | {}",
            kept.len(),
            kept.iter().map(|point| point.x).sum::<f64>(),
            kept.iter().map(|point| u64::from(point.intensity)).sum::<u64>()
        );
        assert_eq!(rows(&session, &sql).await.unwrap(), [expected]);
    }
}

/// Only columns that are used are read, and rows are counted without reading any.
#[tokio::test]
async fn scans_read_what_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "a.laz", 1, 20_000);
    let session = session(2, 8192);
    let scan = plan(&session, &format!("SELECT max(intensity) FROM '{path}'")).await;
    assert!(scan.contains("projection=[intensity]") && scan.contains("file_type=las"), "{scan}");
    let count = format!("SELECT count(*) AS n FROM '{path}'");
    assert!(!plan(&session, &count).await.contains("DataSourceExec: file_groups"));
    assert_eq!(rows(&session, &count).await.unwrap(), ["20000"]);
    let limited = format!("SELECT x FROM '{path}' LIMIT 3");
    assert_eq!(rows(&session, &limited).await.unwrap(), ["1000.0", "1000.25", "1000.5"]);
    let counted = format!("SELECT count(*) FROM (SELECT x FROM '{path}' WHERE random() >= 0)");
    assert_eq!(rows(&session, &counted).await.unwrap(), ["20000"]);
}

#[tokio::test]
async fn joins_of_points() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "a.laz", 6, 2000);
    fs::write(folder.path().join("p.csv"), "id,x,y\n1,1000.3,-50.3\n2,2000,-50\n").unwrap();
    let csv = folder.path().join("p.csv").to_str().unwrap().to_string();
    let session = session(3, 500);
    let sql =
        format!("SELECT id, x_right, y_right, intensity FROM knn_join('{csv}', '{path}', 1, within => 5)");
    assert_one_join(&session, &sql).await;
    assert_eq!(rows(&session, &sql).await.unwrap(), ["1 | 1000.25 | -50.25 | 501"]);
}

/// The table functions know the reference systems of files.
#[tokio::test]
async fn reference_systems() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    write(Path::new(&path("a.las")), 1, 10, Some(25833));
    write(Path::new(&path("b.las")), 1, 10, Some(25832));
    fs::write(path("p.csv"), "lon,lat\n1,2\n").unwrap();
    let session = session(1, 8192);
    let count =
        |a: &str, b: &str| format!("SELECT count(*) FROM distance_join('{}', '{}', 0)", path(a), path(b));
    assert_eq!(rows(&session, &count("a.las", "a.las")).await.unwrap(), ["10"]);
    for (other, crs) in [("b.las", "EPSG:25832"), ("p.csv", "OGC:CRS84")] {
        let message = error(&session, &count("a.las", other)).await;
        assert!(message.contains("is in EPSG:25833 and column"), "{message}");
        assert!(message.contains(crs), "{message}");
    }
    let sql = format!("CREATE EXTERNAL TABLE t STORED AS LAS LOCATION '{}/'", folder.path().display());
    let message = error(&session, &sql).await;
    assert!(message.contains("read them as two tables"), "{message}");
}

#[tokio::test]
async fn folders_of_files() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder, "a.las", 2, 100);
    file(&folder, "b.las", 1, 50);
    let session = session(2, 8192);
    let location = folder.path().to_str().unwrap();
    let sql = format!("CREATE EXTERNAL TABLE tiles STORED AS LAS LOCATION '{location}/'");
    batches(&session, &sql).await;
    let sql = "SELECT count(*), count(red), count(gps_time), count(DISTINCT x), max(gps_time) FROM tiles";
    assert_eq!(rows(&session, sql).await.unwrap(), ["150 | 100 | 50 | 100 | 49.0"]);
}

#[tokio::test]
async fn files_that_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "a.las", 1, 100);
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 1);
    fs::write(&path, bytes).unwrap();
    let session = session(2, 8192);
    let message = error(&session, &format!("SELECT * FROM '{path}'")).await;
    assert!(message.contains("a.las: cut short"), "{message}");
    assert!(error(&session, "SELECT * FROM 'missing.laz'").await.contains("missing.laz"));
}

#[test]
fn the_program_reads_files() {
    let folder = tempfile::tempdir().unwrap();
    let table = format!("scan={}", file(&folder, "a.copc.LAZ", 6, 300));
    let sql = "SELECT count(*) AS n, count(gps_time) AS times FROM scan WHERE classification = 6";
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["kauri-sql", sql, "--table", &table, "--format", "csv"];
    let code = kauri_sql::cli::main_with(args, &mut out, &mut err);
    let [out, err] = [out, err].map(|text| String::from_utf8(text).unwrap());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "n,times\n150,150\n", ""));
}
