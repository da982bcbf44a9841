//! The program `kauri`: a module per command. It is a library so that tests can run it without a process; it is not an interface for programs, and
//! may change in any version.

mod data;
mod demo;
mod device;
mod doctor;
mod error;
mod info;
mod interrupt;
mod join;
mod length;
mod map;
mod memory;
mod names;
mod output;
mod picture;
mod places;
mod progress;
mod render;
mod score;
mod text;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};

use error::CliError;

/// Exit code of every failure.
const FAILURE: u8 = 2;

#[derive(Parser)]
#[command(name = "kauri", version, about = "Spatial indexes and spatial joins on NVIDIA GPUs and CPUs")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pairs of places of two tables within a distance: all, or those with the best scores
    #[command(
        after_help = "Example: kauri join --left cities.csv --right airports.csv --within 50km --top 10 --score left.population+right.altitude_ft"
    )]
    Join(Box<join::Join>),
    /// The nearest places of the right table for each place of the left one
    #[command(
        after_help = "Example: kauri knn --left airports.csv --right cities.csv --k 3 --out nearest.parquet"
    )]
    Knn(Box<join::Knn>),
    /// Pairs of places of one table within a distance, each once
    SelfJoin(Box<join::SelfJoin>),
    /// Say what is in a table, its columns and their ranges, or in the file of an index
    Info(info::Info),
    /// Draw a mesh of triangles by rays, still or moving
    #[command(after_help = "Example: kauri render dragon.ply --out dragon.png --azimuth 30 --samples 4")]
    Render(Box<render::Render>),
    /// Run on real data that come with kauri, or on a laser scan that is made up
    Demo(Box<demo::Demo>),
    /// Say what kauri finds on this machine
    Doctor(doctor::Doctor),
}

type Result<T, E = CliError> = std::result::Result<T, E>;

/// Where a command writes to.
struct Streams<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Standard error is drawn on while a command runs.
    shows_progress: bool,
}

/// Runs the program with these arguments, the first of which is its name, and returns its exit code: 0 if all went well,
/// 2 with one message on `err` if not. A reader of `out` that has left is no error.
pub fn main_with(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    run(args, Streams { out, err, shows_progress: false })
}

/// Runs the program as a process of its own: with standard error, which is not locked, progress on it if it is a terminal, and without
/// temporary files that stay behind when a signal ends it.
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
            // Help and the version come as errors, too. Those that are errors begin with "error: ".
            let (stream, code): (&mut dyn Write, u8) =
                if error.use_stderr() { (*err, FAILURE) } else { (*out, 0) };
            // Nothing can be done if it cannot be written.
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
