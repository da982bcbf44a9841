//! `kauri-bench`: runs a suite, prints its table and writes its results as JSON.

use anyhow::{Context, Result};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use kauri::Device;
use kauri_benches::hardware::Hardware;
use kauri_benches::interface::size;
use kauri_benches::measure::Effort;
use kauri_benches::plots;
use kauri_benches::report::Report;
use kauri_benches::suites::{self, Settings};
use std::path::PathBuf;
use std::time::Duration;

/// Benchmarks of kauri
#[derive(Parser)]
#[command(name = "kauri-bench", version)]
struct Arguments {
    /// The suite; `primitives` has the rows of `sort`, `scan`, `select`, `moves`, `top-k` and `merge`
    #[arg(long, value_name = "SUITE", value_parser = PossibleValuesParser::new(suites::all().map(|(name, _)| name)))]
    suite: String,
    /// Where to run: best, cpu, cuda, cuda:N, or sim for a dry run without a GPU
    #[arg(long, default_value = "best")]
    device: String,
    /// Numbers of points, or of triangles
    #[arg(long, value_delimiter = ',', default_values = ["1e5", "1e6", "1e7"], value_parser = size)]
    n: Vec<usize>,
    /// Runs of each measurement
    #[arg(long, default_value_t = 30)]
    runs: usize,
    /// Seconds after which a measurement ends with the runs it has
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seed of the random input
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Meshes to measure in addition to the generated ones: OBJ or PLY files
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// Add the rows of other systems: lines of JSON, as the programs of benches/rivals print them
    #[arg(long, value_name = "FILE")]
    rivals: Vec<PathBuf>,
    /// Add a profile of the joins to the figures of join-thesis: the CSV of ncu of join-thesis-once, or of the rival with ONCE=1
    #[arg(long, value_name = "FILE.csv")]
    profile: Vec<PathBuf>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Write the results as a Markdown table
    #[arg(long, value_name = "FILE.md")]
    table: Option<PathBuf>,
    /// Measure one operation of the suite first-call, which starts this program with it
    #[arg(long, hide = true)]
    operation: Option<String>,
    /// Draw throughput against size, a picture for each kind of work
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(operation) = &arguments.operation {
        let n = arguments.n.first().copied().unwrap_or_default();
        return Ok(suites::first_call::operation(operation, &arguments.device, n, arguments.seed)?);
    }
    let suite = suites::all().find(|(name, _)| *name == arguments.suite);
    let (name, suite) = suite.context("the parser has checked the suite's name")?;
    let limit = Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?;
    let settings = Settings {
        device: Device::from_name(&arguments.device)?,
        sizes: arguments.n,
        effort: Effort::new(arguments.runs, limit),
        seed: arguments.seed,
        models: arguments.model,
    };
    eprintln!("{} on {} ({})", name, settings.device, settings.device.reason());
    let mut report = Report::new(name, Hardware::of(&settings.device), settings.seed);
    let result = suite(&settings, &mut report);
    for path in &arguments.rivals {
        let lines =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        report.add_rivals(&lines).map_err(anyhow::Error::msg)?;
    }
    let profiles = arguments.profile.iter().try_for_each(|path| {
        let csv = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        suites::join::add_profile(&mut report, &csv).map_err(anyhow::Error::msg)
    });
    let notes = [
        suites::copies::NOTES,
        suites::kdtree::NOTES,
        suites::join::NOTES,
        suites::primitives::NOTES,
        suites::sah::NOTES,
    ];
    report.explain(&notes.concat());
    // Rows measured before an error are kept, and so are those without a profile.
    print!("{}", report.to_markdown());
    if let Some(path) = &arguments.table {
        std::fs::write(path, report.to_markdown())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(folder) = &arguments.plots {
        plots::write(&report, folder)?;
    }
    if let Some(path) = &arguments.out {
        let json = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    profiles?;
    Ok(result?)
}
