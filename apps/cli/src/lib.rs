//! The program `kauri`: a module per command. It is a library only so that tests can run it without a process; its
//! interface may change in any version.

mod data;
#[cfg(feature = "terrain")]
mod dem;
mod demo;
mod device;
mod doctor;
mod error;
mod info;
mod interrupt;
mod items;
mod join;
mod length;
mod map;
mod memory;
mod names;
mod output;
mod picture;
mod progress;
mod render;
mod score;
mod sql;
mod step;
mod tables;
mod text;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};

use error::CliError;

/// Exit code of every failure.
const FAILURE: u8 = 2;

#[derive(Parser)]
#[command(
    name = "kauri",
    version,
    about = "Joins tables of places or of points of the plane by distance and tables of boxes, computes elevation models of point clouds, and renders triangle meshes, on NVIDIA GPUs and CPUs",
    after_help = "Example: kauri knn --left airports.csv --right cities.csv --k 3"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find the pairs of places or points of two tables within a distance, or the pairs of boxes for which a predicate is true: all pairs, or those with
    /// the highest scores
    #[command(
        after_help = "Examples:\n  kauri join --left cities.csv --right airports.csv --within 50km --top 10 --score left.population+right.altitude_ft\n  \
            kauri join --left parcels.parquet --right roads.csv --predicate intersects"
    )]
    Join(Box<join::Join>),
    /// Find the nearest places or points of the right table for each one of the left table
    #[command(
        after_help = "Example: kauri knn --left airports.csv --right cities.csv --k 3 --out nearest.parquet"
    )]
    Knn(Box<join::Knn>),
    /// Find the pairs of places or points of one table within a distance, or the pairs of boxes for which a predicate is true, each pair once
    #[command(after_help = "Example: kauri self-join --left cities.csv --within 10km --count")]
    SelfJoin(Box<join::SelfJoin>),
    /// Describe a table (columns, types, ranges of values) or the file of a saved index
    Info(info::Info),
    /// Render a triangle mesh by ray tracing, as a picture or an animation
    #[command(after_help = "Example: kauri render dragon.ply --out dragon.png --azimuth 30 --samples 4")]
    Render(Box<render::Render>),
    /// Compute an elevation model (GeoTIFF) from the points of LAS, LAZ and COPC files
    #[cfg(feature = "terrain")]
    #[command(
        after_help = "Examples:\n  kauri dem tiles/*.laz --resolution 1 --out dtm.tif --hillshade dtm.png\n  \
            kauri dem scan.laz --model chm --resolution 0.5 --out chm.tif"
    )]
    Dem(Box<dem::Dem>),
    /// Answer an SQL query with spatial joins, by the program kauri-sql
    #[command(
        after_help = "Example: kauri sql \"SELECT count(*) FROM knn_join('airports.csv', 'cities.csv', 3)\""
    )]
    Sql(sql::Sql),
    /// Run a demo: nearest cities, best pairs, a quadtree or a terrain model of a laser scan, or a ray-traced picture
    Demo(Box<demo::Demo>),
    /// Show what kauri finds on this machine: driver, devices, kernels
    Doctor(doctor::Doctor),
}

type Result<T, E = CliError> = std::result::Result<T, E>;

/// Output streams of a command.
struct Streams<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// True if progress bars may be drawn on standard error.
    shows_progress: bool,
}

/// Runs the program with these arguments, the first of which is its name, and returns its exit code: 0 on success, 2 with
/// one message on `err` on failure. A closed pipe at `out` is not an error.
pub fn main_with(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    run(args, Streams { out, err, shows_progress: false })
}

/// Runs the program as a process: shows progress if standard error is a terminal, and removes temporary files when a signal ends
/// the process. Standard error is not locked.
pub fn main_on_terminal(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
) -> u8 {
    interrupt::remove_files_on_signals();
    run(args, Streams { out, err: &mut io::stderr(), shows_progress: true })
}

fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>, mut streams: Streams<'_>) -> u8 {
    let Streams { out, err, .. } = &mut streams;
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // clap returns help and version as errors, too. Real errors begin with "error: ".
            let (stream, code): (&mut dyn Write, u8) =
                if error.use_stderr() { (*err, FAILURE) } else { (*out, 0) };
            // A failure to write cannot be reported.
            let _ = write!(stream, "{}", error.render());
            return code;
        }
    };
    let result = match cli.command {
        Command::Join(join) => join.run(&mut streams),
        Command::Knn(knn) => knn.run(&mut streams),
        Command::SelfJoin(join) => join.run(&mut streams),
        Command::Info(info) => info.run(streams.out),
        Command::Render(render) => render.run(&mut streams),
        #[cfg(feature = "terrain")]
        Command::Dem(dem) => dem.run(&mut streams),
        Command::Sql(sql) => match sql.run() {
            Ok(false) => return FAILURE,
            result => result.map(drop),
        },
        Command::Demo(demo) => demo.run(&mut streams),
        Command::Doctor(doctor) => doctor.run(streams.out),
    };
    let Streams { out, err, .. } = streams;
    match result.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => 0,
        Err(error) if error.is_reader_gone() => 0,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILURE
        }
    }
}
