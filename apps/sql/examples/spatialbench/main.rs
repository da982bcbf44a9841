//! SpatialBench's queries Q8 (pickups near each building) and Q12 (the five nearest buildings of each pickup) in SQL.
//!
//! `cargo run --release --example spatialbench -- --data DIR` reads `trip.parquet` and `building.parquet` of SpatialBench's generator,
//! `spatialbench-cli --scale-factor 1 --tables trip,building --output-dir DIR`. `--generated SF` makes both tables in memory, with
//! points of the generator's distributions. `--check` compares the answers of all engines on a few trips.
//!
//! kauri-sql has points and boxes, so a building is the center of its polygon's bounding box: answers differ from SpatialBench's own, in
//! which distances are to polygons. The centers are computed before the queries. Trips are read in the measured time.
//!
//! Each query prints one line of JSON. Its checksum adds a hash of two columns over all rows ([`answer`]), so that it does not depend on
//! the order of rows; `spatialbench_sedona.py` prints equal ones of SedonaDB.

mod answer;
mod generate;
mod library;
mod queries;
mod tables;

use answer::Answer;
use clap::{Parser, ValueEnum};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use kauri::Device;
use library::Points;
use queries::Query;
use std::path::PathBuf;
use std::time::Instant;

/// The trips that `--check` compares without `--trips`.
const CHECKED_TRIPS: u64 = 2000;

/// Times SpatialBench's queries Q8 and Q12.
#[derive(Parser)]
struct Args {
    /// The folder of trip.parquet and building.parquet
    #[arg(long, value_name = "DIR", required_unless_present = "generated", conflicts_with = "generated")]
    data: Option<PathBuf>,
    /// Generate the tables of a scale factor of at least 1 in memory
    #[arg(long, value_name = "SF")]
    generated: Option<f64>,
    /// The engines that answer
    #[arg(long, value_enum, value_delimiter = ',', default_value = "kauri")]
    engine: Vec<Engine>,
    /// The queries
    #[arg(long, value_enum, value_delimiter = ',', default_value = "q8,q12")]
    queries: Vec<Query>,
    /// The device that joins: best, cpu, cuda:N or sim
    #[arg(long, default_value = "best")]
    device: String,
    /// The runs of each query, of which the best counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Take only the trips with keys up to this number
    #[arg(long)]
    trips: Option<u64>,
    /// Leave out the ORDER BY of Q12
    #[arg(long)]
    unordered: bool,
    /// Fail if the engines' answers differ
    #[arg(long)]
    check: bool,
}

/// What answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// kauri's joins in SQL.
    Kauri,
    /// The SQL engine without kauri: all pairs of rows, for Q12 with `row_number()`.
    Datafusion,
    /// Calls of kauri with points in host memory, without SQL.
    Library,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = Args::parse();
    if args.check {
        args.engine = Engine::value_variants().to_vec();
        args.trips = args.trips.or(Some(CHECKED_TRIPS));
        args.runs = 1;
    }
    let device = Device::from_name(&args.device).map_err(|error| DataFusionError::External(error.into()))?;
    let session = kauri_sql::session()?;
    session.sql(&format!("SET kauri.device = '{}'", args.device)).await?;
    match (&args.data, args.generated) {
        (Some(folder), _) => tables::read(&session, folder, args.trips).await?,
        (None, scale) => tables::generate(&session, scale.expect("clap requires it"), args.trips)?,
    }
    let points = match args.engine.contains(&Engine::Library) {
        true => Some(Points::of(&session).await?),
        false => None,
    };
    for &query in &args.queries {
        let mut answers = Vec::new();
        for &engine in &args.engine {
            let (seconds, answer) = match (engine, &points) {
                (Engine::Library, Some(points)) => points.time(query, &device, args.runs),
                _ => time(&session, query, engine, args.unordered, args.runs).await?,
            };
            let line = serde_json::json!({
                "query": format!("{query:?}").to_lowercase(),
                "engine": format!("{engine:?}").to_lowercase(),
                "device": device.to_string(),
                "seconds": seconds,
                "rows": answer.rows,
                "checksum": format!("{:016x}", answer.checksum),
            });
            println!("{line}");
            answers.push(answer);
        }
        if args.check && answers.iter().any(|answer| *answer != answers[0]) {
            return Err(DataFusionError::Execution(format!("the answers of {query:?} differ")));
        }
    }
    Ok(())
}

/// Returns the best time of the runs of a query in SQL, and its answer. The time includes the checksum.
async fn time(
    session: &SessionContext,
    query: Query,
    engine: Engine,
    is_unordered: bool,
    runs: u32,
) -> Result<(f64, Answer)> {
    let is_kauri = engine == Engine::Kauri;
    session.sql(&format!("SET kauri.enabled = {is_kauri}")).await?;
    let sql = query.sql(is_kauri, is_unordered);
    let mut best = (f64::INFINITY, Answer::default());
    for _ in 0..runs.max(1) {
        let begin = Instant::now();
        let stream = session.sql(&sql).await?.execute_stream().await?;
        let answer = Answer::of(stream, query.checked_columns()).await?;
        best = (best.0.min(begin.elapsed().as_secs_f64()), answer);
    }
    Ok(best)
}
