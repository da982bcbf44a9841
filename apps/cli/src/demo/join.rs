//! `kauri demo join`: the best pairs of a city and an airport.

use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

use super::write_summary;
use crate::device::{DeviceOption, Work};
use crate::length::Meters;
use crate::names::{PICTURE, with_extension};
use crate::text::{milliseconds, shortened, table, thousands};
use crate::{Result, Streams, data, map};
use kauri::LonLat;
use kauri::io::{Numbers, Table};
use kauri::join::{PairScore, Scored, TopKDistanceJoin};

/// The longest printed name, in characters.
const NAME: usize = 30;

#[derive(Args)]
#[command(after_help = data::FOLDER_HELP)]
pub(super) struct Join {
    #[command(flatten)]
    device: DeviceOption,
    /// Number of pairs to find
    #[arg(long, default_value_t = 12)]
    top: usize,
    /// Largest distance of a pair, with its unit: km, m, mi, nmi or ft
    #[arg(long, value_name = "DISTANCE", default_value = "50km")]
    within: Meters,
    /// CSV file with the columns lon, lat, population and optionally name [default: cities.csv in the data folder]
    #[arg(long, value_name = "FILE")]
    cities: Option<PathBuf>,
    /// CSV file with the columns lon, lat, altitude_ft and optionally name [default: airports.csv in the data folder]
    #[arg(long, value_name = "FILE")]
    airports: Option<PathBuf>,
    /// Draw a map of the world with all cities and airports and a line for each pair
    #[arg(long, value_name = "FILE.png", value_parser = with_extension(PICTURE))]
    map: Option<PathBuf>,
}

/// A table, and the columns that the demo uses.
struct Places {
    points: Vec<LonLat>,
    names: Vec<String>,
    scores: Vec<i64>,
}

impl Places {
    fn read(path: PathBuf, score: &str) -> Result<Self> {
        let table = Table::read(path)?;
        let points = table.places(table.place_columns(None, None)?)?;
        let names = match table.find(&["name"]) {
            Some(column) => table.texts(column)?,
            None => (0..table.len()).map(|row| format!("#{row}")).collect(),
        };
        let scores = match table.numbers(table.column(score)?)? {
            Numbers::Integers(scores) => scores,
            Numbers::Floats(scores) => scores.into_iter().map(|score| score as i64).collect(),
        };
        Ok(Self { points, names, scores })
    }
}

impl Join {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let device = self.device.choice()?;
        let cities =
            Places::read(data::find(self.cities.as_deref(), "cities.csv", "--cities")?, "population")?;
        let airports =
            Places::read(data::find(self.airports.as_deref(), "airports.csv", "--airports")?, "altitude_ft")?;
        let work = Work::of_join(cities.points.len(), airports.points.len(), self.within.0);
        let device = device.for_work(work, streams.err)?;
        let begin = Instant::now();
        // Large population and a low airport: one foot counts as much as a hundred people.
        let join = TopKDistanceJoin::new(self.within.0, self.top).weighted(1.0, -100.0);
        let sets =
            [Scored::new(&cities.points, &cities.scores)?, Scored::new(&airports.points, &airports.scores)?];
        let best = join.run(&device, sets[0], sets[1])?;
        let time = begin.elapsed();
        if let Some(path) = &self.map {
            let lines: Vec<_> = best
                .pairs()
                .iter()
                .map(|pair| (airports.points[pair.right as usize], cities.points[pair.left as usize]))
                .collect();
            map::write(path, &cities.points, &airports.points, &lines)?;
        }
        let mut rows = vec![["city", "people", "airport", "feet", "km", "score"].map(String::from)];
        for pair in best.pairs() {
            let (city, airport) = (pair.left as usize, pair.right as usize);
            let PairScore::Float(score) = pair.score else { unreachable!("weighted scores are floats") };
            rows.push([
                shortened(&cities.names[city], NAME),
                thousands(cities.scores[city].unsigned_abs() as usize),
                shortened(&airports.names[airport], NAME),
                airports.scores[airport].to_string(),
                format!("{:.1}", cities.points[city].meters_to(&airports.points[airport]) / 1e3),
                format!("{score}"),
            ]);
        }
        let out = &mut *streams.out;
        writeln!(
            out,
            "{} cities, {} airports, the best {} pairs\n",
            thousands(cities.points.len()),
            thousands(airports.points.len()),
            thousands(best.pairs().len()),
        )?;
        out.write_all(table(&rows).as_bytes())?;
        write_summary(out, &device, &format!("join {}", milliseconds(time)), &self.map)
    }
}
