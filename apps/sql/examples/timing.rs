//! Times joins of SQL beside the library's calls: `cargo run --release --example timing -- [rows] [device]`.
//!
//! Both sides have `rows` uniform points, 1 million by default. A query reads its tables from memory and counts the rows of its result
//! batches. Each time is the best of three runs. Two lines have the cost of Arrow: the points of both tables from arrays, and the ids of
//! the pairs of the kNN join into record batches.

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StructArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use kauri::join::Scored;
use kauri::query::QueryOptions;
use kauri::{Device, DistanceJoin, KdTree, KdTreeOptions, SpatialIndex, TopKDistanceJoin};
use kauri_sql::geometry::decode_points;
use std::sync::Arc;
use std::time::Instant;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rows = args.next().map_or(1_000_000, |rows| rows.parse().expect("a number of rows"));
    let name = args.next().unwrap_or_else(|| "cpu".into());
    let device = Device::from_name(&name).expect("a device");
    println!("{rows} x {rows} points, {device}");
    let [a, b] = [1, 2].map(|seed| points(seed, rows));
    let scores = [3, 4].map(|seed| scores(seed, rows));
    // Three neighbors for each point on average.
    let radius = (3.0 / (std::f64::consts::PI * rows as f64)).sqrt();

    let session = kauri_sql::session()?;
    session.sql(&format!("SET kauri.device = '{name}'")).await?;
    let tables = [table(&a, &scores[0])?, table(&b, &scores[1])?];
    for (name, batch) in ["a", "b"].into_iter().zip(&tables) {
        let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]])?;
        session.register_table(name, Arc::new(table))?;
    }

    let knn = time(|| {
        let tree = KdTree::build(&device, &b, &KdTreeOptions::default()).expect("a tree");
        tree.nearest(&a, 5).expect("neighbors").ids().len()
    });
    report("library, 5 nearest", knn, knn);
    let input = time(|| {
        let points =
            |table: &RecordBatch| decode_points(table.column(1), "geom", 0).expect("points").values.len();
        tables.iter().map(points).sum()
    });
    report("Arrow in: points of both tables", input, knn);
    let tree = KdTree::build(&device, &b, &KdTreeOptions::default()).expect("a tree");
    let right = UInt32Array::from(tree.nearest(&a, 5).expect("neighbors").ids().to_vec());
    let left = UInt32Array::from_iter_values((0..right.len() as u32).map(|pair| pair / 5));
    report("Arrow out: ids of the pairs", time(|| copy_ids(&tables, [&left, &right])), knn);
    for sql in [
        "SELECT a.id, b.id FROM a JOIN b ON ST_KNN(a.geom, b.geom, 5)",
        "SELECT id, id_right, distance FROM knn_join(a, b, 5)",
        "SELECT count(*) FROM knn_join(a, b, 5)",
    ] {
        report(sql, query(&session, sql).await?, knn);
    }

    let join = time(|| DistanceJoin::new(radius).rows(&device, &a, &b).expect("pairs").ids().len());
    report("library, pairs within a distance", join, join);
    for columns in ["a.id, b.id", "count(*)"] {
        let sql = format!("SELECT {columns} FROM a JOIN b ON ST_DWithin(a.geom, b.geom, {radius})");
        report(&sql, query(&session, &sql).await?, join);
    }
    let within = time(|| {
        let tree = KdTree::build(&device, &b, &KdTreeOptions::default()).expect("a tree");
        tree.within(&a, radius, &QueryOptions::default()).expect("neighbors").ids().len()
    });
    report("library, pairs and their distances", within, within);
    let sql = format!("SELECT id, id_right, distance FROM distance_join(a, b, {radius})");
    report(&sql, query(&session, &sql).await?, within);

    let best = time(|| {
        let [left, right] =
            [Scored::new(&a, &scores[0]), Scored::new(&b, &scores[1])].map(|side| side.expect("scores"));
        TopKDistanceJoin::new(radius, 100).run(&device, left, right).expect("pairs").pairs().len()
    });
    report("library, 100 best pairs", best, best);
    let sql =
        format!("SELECT id, id_right, distance FROM top_k_distance_join(a, b, {radius}, 100, score, score)");
    report(&sql, query(&session, &sql).await?, best);
    Ok(())
}

/// Prints the time and the number of rows of a call, and the ratio to another one.
fn report(name: &str, (seconds, rows): (f64, usize), (base, _): (f64, usize)) {
    println!("{seconds:8.3} s  {:5.2} x  {rows:10} rows  {name}", seconds / base);
}

/// Returns the best time of three runs, and the number of rows.
fn time(mut run: impl FnMut() -> usize) -> (f64, usize) {
    let mut best = (f64::INFINITY, 0);
    for _ in 0..3 {
        let begin = Instant::now();
        let rows = run();
        best = (best.0.min(begin.elapsed().as_secs_f64()), rows);
    }
    best
}

async fn query(session: &SessionContext, sql: &str) -> Result<(f64, usize)> {
    let mut best = (f64::INFINITY, 0);
    for _ in 0..3 {
        let begin = Instant::now();
        let mut stream = session.sql(sql).await?.execute_stream().await?;
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch?.num_rows();
        }
        best = (best.0.min(begin.elapsed().as_secs_f64()), rows);
    }
    Ok(best)
}

/// Returns uniform numbers from 0 to 1.
fn numbers(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    })
}

/// Returns uniform points of the unit square.
fn points(seed: u64, rows: usize) -> Vec<[f64; 2]> {
    let mut numbers = numbers(seed);
    let mut number = || numbers.next().unwrap_or_default();
    (0..rows).map(|_| [number(), number()]).collect()
}

fn scores(seed: u64, rows: usize) -> Vec<f64> {
    numbers(seed).take(rows).collect()
}

/// Copies the ids of pairs of rows into columns of 8192 rows, as a join in SQL does.
fn copy_ids(tables: &[RecordBatch; 2], pairs: [&UInt32Array; 2]) -> usize {
    let rows = pairs[0].len();
    for begin in (0..rows).step_by(8192) {
        for (table, rows_of_side) in tables.iter().zip(pairs) {
            let rows_of_side = rows_of_side.slice(begin, 8192.min(rows - begin));
            std::hint::black_box(take(table.column(0), &rows_of_side, None).expect("rows of the table"));
        }
    }
    rows
}

/// Makes a table of points with the columns id, geom and score.
fn table(points: &[[f64; 2]], scores: &[f64]) -> Result<RecordBatch> {
    let axis = |name: &str| Arc::new(Field::new(name, DataType::Float64, false));
    let fields = Fields::from(vec![axis("x"), axis("y")]);
    let column =
        |axis: usize| Arc::new(points.iter().map(|point| point[axis]).collect::<Float64Array>()) as ArrayRef;
    let geom = StructArray::new(fields.clone(), vec![column(0), column(1)], None);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("geom", DataType::Struct(fields), false),
        Field::new("score", DataType::Float64, false),
    ]);
    let ids = (0..points.len() as i64).collect::<Int64Array>();
    let scores = scores.iter().copied().collect::<Float64Array>();
    let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(geom), Arc::new(scores)];
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}
