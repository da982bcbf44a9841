//! SpatialBench's queries Q8 (pickups near each building) and Q12 (the five nearest buildings of each pickup) in SQL.
//!
//! `cargo run --release --example spatialbench -- --data DIR` reads `trip.parquet` and `building.parquet` of SpatialBench's generator,
//! `spatialbench-cli --scale-factor 1 --tables trip,building --output-dir DIR`. `--generated SF` makes both tables in memory, with
//! points of the generator's distributions. `--check` compares the answers of kauri in SQL, of kauri's library and of a plan without kauri:
//! for Q8 a hash join of cells with all trips, for Q12 all pairs of a few trips and the buildings.
//!
//! kauri-sql has points and boxes, so a building is the center of its polygon's bounding box: answers differ from SpatialBench's own, in
//! which distances are to polygons. The centers are computed before the queries. Trips are read in the measured time.
//!
//! Each query prints one line of JSON. Its checksum adds a hash of two columns over all rows ([`answer`]), so that it does not depend on
//! the order of rows; `spatialbench_sedona.py` prints equal ones of SedonaDB.

mod answer;
mod clock;
mod generate;
mod library;
mod queries;
mod tables;

use answer::Answer;
use clap::{Parser, ValueEnum};
use clock::{Begin, Times};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use kauri::Device;
use library::{Points, near_by_join, near_by_tree};
use queries::{Plan, Query};
use std::path::PathBuf;

/// The trips for which `--check` compares all pairs.
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
    /// Compare the answers of engines, and fail if they differ
    #[arg(long)]
    check: bool,
}

/// The system that answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// kauri's joins in SQL.
    Kauri,
    /// The SQL engine without kauri: all pairs of rows, for Q12 with `row_number()`.
    Datafusion,
    /// The SQL engine without kauri: for Q8 a hash join of cells.
    Cells,
    /// kauri's library with points in host memory, without SQL: `DistanceJoin` for Q8, a k-d tree of the buildings for Q12.
    Library,
    /// As `library`; a k-d tree of the buildings for both queries.
    Tree,
}

impl Args {
    /// Returns the engines and the number of trips of a query.
    fn plan(&self, query: Query) -> (Vec<Engine>, Option<u64>) {
        match query {
            _ if !self.check => (self.engine.clone(), self.trips),
            Query::Q8 => (vec![Engine::Kauri, Engine::Cells, Engine::Library], self.trips),
            Query::Q12 => {
                (vec![Engine::Kauri, Engine::Datafusion, Engine::Library], self.trips.or(Some(CHECKED_TRIPS)))
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let device = Device::from_name(&args.device).map_err(|error| DataFusionError::External(error.into()))?;
    let session = kauri_sql::session()?;
    session.sql(&format!("SET kauri.device = '{}'", args.device)).await?;
    match (&args.data, args.generated) {
        (Some(folder), _) => tables::read(&session, folder).await?,
        (None, scale) => tables::generate(&session, scale.expect("clap requires it"))?,
    }
    for &query in &args.queries {
        let (engines, trips) = args.plan(query);
        tables::take_trips(&session, trips).await?;
        let mut answers = Vec::new();
        for engine in engines {
            let (times, answer) = match engine {
                Engine::Library => Points::of(&session).await?.time(query, &device, near_by_join, args.runs),
                Engine::Tree => Points::of(&session).await?.time(query, &device, near_by_tree, args.runs),
                Engine::Kauri => time(&session, query, Plan::Kauri, &args).await?,
                Engine::Datafusion => time(&session, query, Plan::AllPairs, &args).await?,
                Engine::Cells => time(&session, query, Plan::Cells, &args).await?,
            };
            let line = serde_json::json!({
                "query": format!("{query:?}").to_lowercase(),
                "engine": format!("{engine:?}").to_lowercase(),
                "device": device.to_string(),
                "seconds": times.wall,
                "cpu_seconds": times.cpu,
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

/// Returns the best times of the runs of a query in SQL, and its answer. The time includes the checksum.
async fn time(session: &SessionContext, query: Query, plan: Plan, args: &Args) -> Result<(Times, Answer)> {
    session.sql(&format!("SET kauri.enabled = {}", plan == Plan::Kauri)).await?;
    let sql = query.sql(plan, args.unordered);
    let (mut times, mut answer) = (Times::NONE, Answer::default());
    for _ in 0..args.runs.max(1) {
        let begin = Begin::now();
        let stream = session.sql(&sql).await?.execute_stream().await?;
        answer = Answer::of(stream, query.checked_columns()).await?;
        times.add(&begin);
    }
    Ok((times, answer))
}
