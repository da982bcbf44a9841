//! The command line of `kauri-sql`.

mod progress;
#[cfg(any(feature = "ballista", feature = "distributed"))]
mod serve;

use crate::{cluster, session};
use clap::{Parser, ValueEnum};
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::ArrayWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
#[cfg(feature = "las")]
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext};
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// Exit code of every failure.
const FAILURE: u8 = 2;

/// Runs SQL with spatial joins over CSV, Parquet, LAS and LAZ files.
#[derive(Parser)]
#[command(
    name = "kauri-sql",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Example: kauri-sql \"SELECT * FROM knn_join('airports.csv', 'cities.csv', 3) LIMIT 10\""
)]
struct Cli {
    /// The query
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    query: Option<String>,
    /// Read the query from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The device that joins: best, cpu, cuda:N or sim; of several with commas between them, the one that fewest joins use
    #[arg(long, default_value = "best")]
    device: String,
    /// Run the query in a cluster: ballista://HOST:PORT of a scheduler, or http://HOST:PORT of workers with commas between them
    #[arg(long, value_name = "URL")]
    cluster: Option<String>,
    /// The partitions of the query; by default one for each thread, or 16 in a cluster
    #[arg(long, value_name = "N")]
    partitions: Option<NonZeroUsize>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Name a CSV, Parquet, LAS or LAZ file as a table; may be repeated
    #[arg(long = "table", value_name = "NAME=FILE", value_parser = named_file)]
    tables: Vec<(String, String)>,
    /// Print the time of planning and of the query on standard error
    #[arg(long)]
    timing: bool,
    #[cfg(any(feature = "ballista", feature = "distributed"))]
    #[command(subcommand)]
    serve: Option<serve::Serve>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Table,
    Csv,
    Json,
}

fn named_file(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err("expected NAME=FILE".into()),
    }
}

/// A failure of the program.
#[derive(Debug, thiserror::Error)]
enum CliError {
    /// The query cannot be read, planned or run.
    #[error(transparent)]
    Engine(#[from] DataFusionError),
    /// The file of the query cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A table is not a file of a known format.
    #[error("table '{name}': {file} is not a file with the ending .csv, .parquet, .las or .laz")]
    NotATable {
        /// The name of the table.
        name: String,
        /// The file.
        file: String,
    },
    /// The result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

/// Runs the program with these arguments, the first of which is its name, and returns its exit code: 0 on success, 2 with one message on
/// `err` on failure. A closed pipe at `out` is not an error.
pub fn main_with(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // clap returns help and version as errors, too.
            let (stream, code): (&mut dyn Write, u8) =
                if error.use_stderr() { (err, FAILURE) } else { (out, 0) };
            // A failure to write cannot be reported.
            let _ = write!(stream, "{}", error.render());
            return code;
        }
    };
    match run(&cli, out, err) {
        Ok(()) => 0,
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            FAILURE
        }
    }
}

fn run(cli: &Cli, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    #[cfg(any(feature = "ballista", feature = "distributed"))]
    if let Some(serve) = &cli.serve {
        return Ok(runtime.block_on(serve.run())?);
    }
    let sql = match (&cli.query, &cli.file) {
        (Some(query), _) => query.clone(),
        (None, Some(path)) => {
            std::fs::read_to_string(path).map_err(|error| CliError::File { path: path.clone(), error })?
        }
        (None, None) => unreachable!("clap requires a query or a file"),
    };
    let begin = Instant::now();
    let (schema, batches, planned) = runtime.block_on(query(cli, &sql))?;
    if cli.timing {
        let total = begin.elapsed();
        writeln!(
            err,
            "planned in {:.3} s, finished in {:.3} s",
            planned.duration_since(begin).as_secs_f64(),
            total.as_secs_f64()
        )?;
    }
    write_batches(cli.format, schema, &batches, out)?;
    Ok(out.flush()?)
}

/// Returns the schema and the rows of a query, and the time when it was planned.
async fn query(cli: &Cli, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>, Instant), CliError> {
    let session = match &cli.cluster {
        None => session()?,
        Some(url) => cluster::session(url)?,
    };
    session.sql(&format!("SET kauri.device = '{}'", cli.device.replace('\'', "''"))).await?;
    if let Some(partitions) = cli.partitions {
        session.sql(&format!("SET datafusion.execution.target_partitions = {partitions}")).await?;
    }
    for (name, file) in &cli.tables {
        add_table(&session, name, file).await?;
    }
    let plan = session.sql(sql).await?.create_physical_plan().await?;
    let planned = Instant::now();
    let rows = progress::collect(std::sync::Arc::clone(&plan), session.task_ctx()).await?;
    Ok((plan.schema(), rows, planned))
}

async fn add_table(session: &SessionContext, name: &str, file: &str) -> Result<(), CliError> {
    match file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
        Some("csv") => Ok(session.register_csv(name, file, CsvReadOptions::new()).await?),
        Some("parquet") => {
            Ok(session.register_parquet(name, file, ParquetReadOptions::new().skip_metadata(false)).await?)
        }
        #[cfg(feature = "las")]
        Some("las" | "laz") => {
            session.register_table(name, session.table_provider(TableReference::bare(file)).await?)?;
            Ok(())
        }
        _ => Err(CliError::NotATable { name: name.into(), file: file.into() }),
    }
}

fn write_batches(
    format: Format,
    schema: SchemaRef,
    batches: &[RecordBatch],
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let failed = |error| CliError::Engine(DataFusionError::from(error));
    match format {
        Format::Table => {
            writeln!(out, "{}", pretty_format_batches_with_schema(schema, batches).map_err(failed)?)?
        }
        Format::Csv => {
            let mut text = Vec::new();
            let mut writer = WriterBuilder::new().with_header(true).build(&mut text);
            // An empty batch writes the header.
            writer.write(&RecordBatch::new_empty(schema)).map_err(failed)?;
            for batch in batches {
                writer.write(batch).map_err(failed)?;
            }
            drop(writer);
            out.write_all(&text)?;
        }
        Format::Json => {
            let mut writer = ArrayWriter::new(Vec::new());
            for batch in batches {
                writer.write(batch).map_err(failed)?;
            }
            writer.finish().map_err(failed)?;
            out.write_all(&writer.into_inner())?;
            writeln!(out)?;
        }
    }
    Ok(())
}
