//! `kauri demo nearest`: the cities nearest to every airport.

use clap::Args;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::times::Times;
use super::write_summary;
use crate::device::{DeviceOption, Work};
use crate::names::{CSV, PICTURE, with_extension};
use crate::text::{shortened, table, thousands};
use crate::{Result, Streams, data, map};
use kauri::io::{LonLatTable, read_lonlat, write_atomically};
use kauri::kdtree::{KdTree, KdTreeOptions};
use kauri::query::Neighbors;
use kauri::{LonLat, SpatialIndex};

/// The number of airports in the printed table, and of cities in each line.
const SHOWN_AIRPORTS: usize = 12;
const SHOWN_CITIES: usize = 3;
/// Well-known airports, which are shown first if the data have them; the last ones are near the date line and a pole.
const WELL_KNOWN: [&str; SHOWN_AIRPORTS] =
    ["LHR", "JFK", "HND", "FRA", "SIN", "GRU", "JNB", "SYD", "DEL", "SFO", "NAN", "LYR"];

#[derive(Args)]
#[command(after_help = data::FOLDER_HELP)]
pub(super) struct Nearest {
    #[command(flatten)]
    device: DeviceOption,
    /// Number of cities to find for each airport
    #[arg(long, default_value_t = 5)]
    k: usize,
    /// CSV file with the columns lon, lat and optionally name [default: cities.csv in the data folder]
    #[arg(long, value_name = "FILE")]
    cities: Option<PathBuf>,
    /// CSV file with the columns lon, lat and optionally name and iata [default: airports.csv in the data folder]
    #[arg(long, value_name = "FILE")]
    airports: Option<PathBuf>,
    /// Use only the first N airports
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write all pairs as CSV with the columns airport_id, rank, city_id and km: ids are row numbers from 0, ranks start at 1
    #[arg(long, value_name = "FILE.csv", value_parser = with_extension(CSV))]
    out: Option<PathBuf>,
    /// Draw a map of the world with all cities and a line from each airport to its nearest city
    #[arg(long, value_name = "FILE.png", value_parser = with_extension(PICTURE))]
    map: Option<PathBuf>,
}

impl Nearest {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let device = self.device.choice()?;
        let mut times = Times::default();

        let (cities, airports) = times.of("read", || self.read())?;
        let k = self.k.min(cities.points.len());
        let work = Work::of_nearest(cities.points.len(), airports.points.len(), k);
        let device = device.for_work(work, streams.err)?;
        let tree = times.of("build", || KdTree::build(&device, &cities.points, &KdTreeOptions::default()))?;
        let near = times.of("query", || tree.nearest(&airports.points, k))?;
        // Files before text, so that they are written even if the pipe is closed early.
        times.of("write", || self.write(&cities, &airports, &near))?;

        let out = &mut *streams.out;
        writeln!(
            out,
            "{} cities, {} airports, {} nearest cities of each\n",
            thousands(cities.points.len()),
            thousands(airports.points.len()),
            thousands(k),
        )?;
        out.write_all(summary(&cities, &airports, &near).as_bytes())?;
        write_summary(out, &device, &times.text(), [&self.out, &self.map].into_iter().flatten())
    }

    fn read(&self) -> Result<(LonLatTable, LonLatTable)> {
        let cities = data::find(self.cities.as_deref(), "cities.csv", "--cities")?;
        let airports = data::find(self.airports.as_deref(), "airports.csv", "--airports")?;
        let (cities, mut airports) = (read_lonlat(cities)?, read_lonlat(airports)?);
        if let Some(limit) = self.limit {
            airports.points.truncate(limit);
        }
        Ok((cities, airports))
    }

    fn write(&self, cities: &LonLatTable, airports: &LonLatTable, near: &Neighbors<LonLat>) -> Result<()> {
        if let Some(path) = &self.out {
            write_pairs(path, near)?;
        }
        if let Some(path) = &self.map {
            let lines: Vec<_> = (airports.points.iter().enumerate())
                .filter_map(|(i, &airport)| {
                    Some((airport, cities.points[*near.row(i).ids().first()? as usize]))
                })
                .collect();
            map::write(path, &cities.points, &airports.points, &lines)?;
        }
        Ok(())
    }
}

/// Writes all pairs by airport, nearest first. The text depends only on ids and squared distances, whose bits are equal on
/// every backend.
fn write_pairs(path: &Path, near: &Neighbors<LonLat>) -> kauri::Result<()> {
    write_atomically(path, |file: &mut dyn Write| -> io::Result<()> {
        writeln!(file, "airport_id,rank,city_id,km")?;
        for airport in 0..near.len() {
            for (rank, (city, km)) in found(near, airport).enumerate() {
                writeln!(file, "{airport},{},{city},{km:.6}", rank + 1)?;
            }
        }
        Ok(())
    })
}

/// Returns the cities of an airport and their distances in km, without padding.
fn found(near: &Neighbors<LonLat>, airport: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
    let ids = near.row(airport).ids().iter().copied();
    ids.zip(near.meters(airport)).take_while(|&(id, _)| id != u32::MAX).map(|(id, meters)| (id, meters / 1e3))
}

/// Formats a table of a dozen airports and their nearest cities.
fn summary(cities: &LonLatTable, airports: &LonLatTable, near: &Neighbors<LonLat>) -> String {
    let mut rows = vec![["airport", "code", "nearest cities"].map(String::from)];
    for airport in shown(airports) {
        let cities: Vec<String> = found(near, airport)
            .take(SHOWN_CITIES)
            .map(|(city, km)| format!("{} {km:.1} km", shortened(&name(cities, city as usize), 24)))
            .collect();
        let code = airports.codes.as_ref().map_or("", |codes| &codes[airport]);
        rows.push([shortened(&name(airports, airport), 36), code.into(), cities.join(", ")]);
    }
    table(&rows)
}

/// Returns the airports to show: well-known ones, then others in the order of the file.
fn shown(airports: &LonLatTable) -> Vec<usize> {
    let count = airports.points.len();
    let by_code = |code: &&str| airports.codes.as_ref()?[..count].iter().position(|have| have == code);
    let mut shown: Vec<usize> = WELL_KNOWN.iter().filter_map(by_code).collect();
    for airport in 0..count.min(SHOWN_AIRPORTS) {
        if shown.len() < SHOWN_AIRPORTS && !shown.contains(&airport) {
            shown.push(airport);
        }
    }
    shown.sort_unstable();
    shown
}

/// Returns the name of a place, or its row number if it has no name.
fn name(table: &LonLatTable, row: usize) -> String {
    match &table.names {
        Some(names) if !names[row].is_empty() => names[row].clone(),
        _ => format!("#{row}"),
    }
}
