//! `kauri join`, `kauri knn` and `kauri self-join`: tables of places by distance.

use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::length::Metres;
use super::score::ScoreText;
use super::{CliError, Result};
use crate::device::Device;
use crate::io::{Numbers, Table, write_atomically};
use crate::join::{DistanceJoin, KnnJoin, PairScore, Scored, TopKDistanceJoin};
use crate::point::LonLat;

/// Where results go, and how.
#[derive(Args)]
pub(super) struct Output {
    /// Write an array of {"left": row, "right": row, "distance_m": d, "score": s}, rows counted from 0
    #[arg(long)]
    json: bool,
    /// Write to a file [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// One table.
#[derive(Args)]
pub(super) struct Left {
    /// CSV file with a header, with columns of longitudes and latitudes in degrees
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// Column of the left longitudes [default: lon, lng, long, longitude or x]
    #[arg(long, value_name = "COLUMN")]
    left_lon: Option<String>,
    /// Column of the left latitudes [default: lat, latitude or y]
    #[arg(long, value_name = "COLUMN")]
    left_lat: Option<String>,
}

/// The other table.
#[derive(Args)]
pub(super) struct Right {
    /// CSV file of the right places, as --left
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Column of the right longitudes
    #[arg(long, value_name = "COLUMN")]
    right_lon: Option<String>,
    /// Column of the right latitudes
    #[arg(long, value_name = "COLUMN")]
    right_lat: Option<String>,
}

/// A table and its places.
struct Places {
    table: Table,
    points: Vec<LonLat>,
}

impl Places {
    fn read(path: &Path, lon: Option<&str>, lat: Option<&str>) -> Result<Self> {
        let table = Table::read_csv(path)?;
        let points = table.places(table.lon_lat_columns(lon, lat)?)?;
        Ok(Self { table, points })
    }
}

impl Left {
    fn read(&self) -> Result<Places> {
        Places::read(&self.left, self.left_lon.as_deref(), self.left_lat.as_deref())
    }
}

impl Right {
    fn read(&self) -> Result<Places> {
        Places::read(&self.right, self.right_lon.as_deref(), self.right_lat.as_deref())
    }
}

/// A pair of rows.
struct Found {
    left: usize,
    right: usize,
    metres: f64,
    score: Option<PairScore>,
}

#[derive(Args)]
pub(super) struct Join {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    /// Pairs up to this distance: 50km, 800m, 3mi, 10nmi, 500ft
    #[arg(long, value_name = "DISTANCE")]
    within: Metres,
    /// Only the N pairs with the best scores [default: all pairs]
    #[arg(long, value_name = "N", requires = "score")]
    top: Option<usize>,
    /// What is best: left.COLUMN+right.COLUMN, also with *, min(…,…), max(…,…), or weights as in 2*left.COLUMN-right.COLUMN
    #[arg(long, value_name = "SCORE", requires = "top")]
    score: Option<ScoreText>,
    /// Where to run: best, cpu, cuda, cuda:N or sim
    #[arg(long, default_value = "best")]
    device: String,
    #[command(flatten)]
    output: Output,
}

impl Join {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        let device = Device::from_name(&self.device)?;
        let (left, right) = (self.left.read()?, self.right.read()?);
        let found = match (self.top, &self.score) {
            (Some(k), Some(score)) => best(&device, &left, &right, self.within.0, k, score)?,
            _ => all(&device, &left, &right, self.within.0)?,
        };
        self.output.write(out, &left.table, &right.table, &found)
    }
}

/// The pairs with the best scores.
fn best(
    device: &Device,
    left: &Places,
    right: &Places,
    metres: f64,
    k: usize,
    score: &ScoreText,
) -> Result<Vec<Found>> {
    let join = TopKDistanceJoin::new(metres, k).score(score.function);
    let join = match score.function {
        crate::join::ScoreFunction::Weighted => join.weighted(score.weights[0], score.weights[1]),
        _ => join,
    };
    let numbers = |places: &Places, column: &Option<String>| match column {
        Some(name) => places.table.numbers(places.table.column(name)?),
        None => Ok(Numbers::Integers(vec![0; places.points.len()])),
    };
    let scores = [numbers(left, &score.columns[0])?, numbers(right, &score.columns[1])?];
    let pairs = match scores {
        [Numbers::Integers(a), Numbers::Integers(b)] => {
            join.run(device, Scored::new(&left.points, &a)?, Scored::new(&right.points, &b)?)?
        }
        [a, b] => {
            let (a, b) = (a.into_floats(), b.into_floats());
            join.run(device, Scored::new(&left.points, &a)?, Scored::new(&right.points, &b)?)?
        }
    };
    let found = pairs.into_pairs().into_iter().map(|pair| {
        let (l, r) = (pair.left as usize, pair.right as usize);
        let metres = left.points[l].metres_to(&right.points[r]);
        Found { left: l, right: r, metres, score: Some(pair.score) }
    });
    Ok(found.collect())
}

/// All pairs, by left and then by right row.
fn all(device: &Device, left: &Places, right: &Places, metres: f64) -> Result<Vec<Found>> {
    let rows = DistanceJoin::new(metres).rows(device, &left.points, &right.points)?;
    Ok(pairs_of(&rows, &left.points, &right.points))
}

fn pairs_of(rows: &crate::join::JoinedRows, left: &[LonLat], right: &[LonLat]) -> Vec<Found> {
    let mut found = Vec::with_capacity(rows.ids().len());
    for l in 0..rows.len() {
        let mut ids = rows.row(l).to_vec();
        ids.sort_unstable();
        found.extend(ids.into_iter().map(|r| {
            let metres = left[l].metres_to(&right[r as usize]);
            Found { left: l, right: r as usize, metres, score: None }
        }));
    }
    found
}

#[derive(Args)]
pub(super) struct Knn {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    /// Nearest left places of each right place
    #[arg(long, default_value_t = 1)]
    k: usize,
    /// Only those up to this distance
    #[arg(long, value_name = "DISTANCE")]
    within: Option<Metres>,
    /// Where to run: best, cpu, cuda, cuda:N or sim
    #[arg(long, default_value = "best")]
    device: String,
    #[command(flatten)]
    output: Output,
}

impl Knn {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        let device = Device::from_name(&self.device)?;
        let (left, right) = (self.left.read()?, self.right.read()?);
        let mut join = KnnJoin::new(self.k);
        if let Some(Metres(metres)) = self.within {
            join = join.within(metres);
        }
        let near = join.run(&device, &left.points, &right.points)?;
        let mut found = Vec::new();
        for r in 0..near.len() {
            let ids = near.row(r).0.iter().zip(near.metres(r));
            let ids = ids.take_while(|(id, _)| **id != u32::MAX);
            found.extend(ids.map(|(&id, metres)| Found { left: id as usize, right: r, metres, score: None }));
        }
        self.output.write(out, &left.table, &right.table, &found)
    }
}

#[derive(Args)]
pub(super) struct SelfJoin {
    #[command(flatten)]
    left: Left,
    /// Pairs up to this distance: 50km, 800m, 3mi, 10nmi, 500ft
    #[arg(long, value_name = "DISTANCE")]
    within: Metres,
    /// Only say how many pairs there are, each counted once
    #[arg(long)]
    count: bool,
    /// Where to run: best, cpu, cuda, cuda:N or sim
    #[arg(long, default_value = "best")]
    device: String,
    #[command(flatten)]
    output: Output,
}

impl SelfJoin {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        let device = Device::from_name(&self.device)?;
        let places = self.left.read()?;
        let join = DistanceJoin::new(self.within.0);
        if self.count {
            writeln!(out, "{}", join.self_count(&device, &places.points, true)?)?;
            return Ok(());
        }
        let rows = join.self_rows(&device, &places.points, true)?;
        let mut found = pairs_of(&rows, &places.points, &places.points);
        // A row has the places before it.
        found.iter_mut().for_each(|pair| std::mem::swap(&mut pair.left, &mut pair.right));
        found.sort_unstable_by_key(|pair| (pair.left, pair.right));
        self.output.write(out, &places.table, &places.table, &found)
    }
}

impl Output {
    fn write(&self, out: &mut dyn Write, left: &Table, right: &Table, found: &[Found]) -> Result<()> {
        let text =
            |to: &mut dyn Write| if self.json { as_json(to, found) } else { as_csv(to, left, right, found) };
        match &self.out {
            Some(path) => Ok(write_atomically(path, text)?),
            None => text(out).map_err(CliError::Output),
        }
    }
}

fn as_json(to: &mut dyn Write, found: &[Found]) -> io::Result<()> {
    let pair = |pair: &Found| {
        let Found { left, right, metres, score } = pair;
        let mut value = json!({ "left": left, "right": right, "distance_m": metres });
        if let Some(score) = score {
            value["score"] = match score {
                PairScore::Integer(score) => Value::from(*score),
                PairScore::Float(score) => Value::from(*score),
            };
        }
        value
    };
    let values: Vec<Value> = found.iter().map(pair).collect();
    serde_json::to_writer(&mut *to, &values)?;
    writeln!(to)
}

/// Row numbers, distance and score, then the columns of both tables.
fn as_csv(to: &mut dyn Write, left: &Table, right: &Table, found: &[Found]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    let has_scores = found.iter().any(|pair| pair.score.is_some());
    let mut header = ["left_row", "right_row", "distance_m"].map(String::from).to_vec();
    if has_scores {
        header.push("score".into());
    }
    header.extend(left.columns().iter().map(|name| format!("left.{name}")));
    header.extend(right.columns().iter().map(|name| format!("right.{name}")));
    writer.write_record(&header)?;
    for pair in found {
        let mut record = vec![pair.left.to_string(), pair.right.to_string(), format!("{:.3}", pair.metres)];
        if let Some(score) = pair.score {
            record.push(match score {
                PairScore::Integer(score) => score.to_string(),
                PairScore::Float(score) => score.to_string(),
            });
        }
        record.extend(left.row(pair.left));
        record.extend(right.row(pair.right));
        writer.write_record(&record)?;
    }
    writer.flush()
}
