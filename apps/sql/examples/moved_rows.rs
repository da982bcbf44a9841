//! Counts the rows that the executors of a cluster on this machine move for a kNN join of uniform points, for 1, 2 and 4 executors.
//!
//! `cargo build --release && cargo run --release --example moved_rows -- target/release/kauri-sql 1000000` prints a line of JSON for each
//! number of executors. All fetch over the network of this machine what another one wrote.

use datafusion::error::Result;
use kauri_sql::cluster::ballista;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, fs};

/// The partitions of an executor.
const SLOTS: usize = 4;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    let (Some(program), Some(rows)) = (args.next(), args.next().and_then(|rows| rows.parse::<u64>().ok()))
    else {
        eprintln!("usage: moved_rows PROGRAM ROWS");
        std::process::exit(2);
    };
    let folder = env::temp_dir().join(format!("moved-rows-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    write_tables(&folder, rows).await?;
    for executors in [1, 2, 4] {
        println!("{}", measure(&program, &folder, executors, rows).await?);
    }
    Ok(fs::remove_dir_all(folder)?)
}

/// Writes tables `a` and `b` of uniform points.
async fn write_tables(folder: &Path, rows: u64) -> Result<()> {
    let session = kauri_sql::session()?;
    for name in ["a", "b"] {
        let file = folder.join(format!("{name}.parquet"));
        let sql = format!(
            "COPY (SELECT value AS id, random() AS x, random() AS y FROM generate_series(1, {rows})) TO '{}'",
            file.display()
        );
        session.sql(&sql).await?.collect().await?;
    }
    Ok(())
}

/// Runs the join in a cluster, and returns the sums of the reports of its executors.
async fn measure(program: &str, folder: &Path, executors: usize, rows: u64) -> Result<Value> {
    let partitions = executors * SLOTS;
    let address = format!("127.0.0.1:{}", free_port()?);
    let mut processes = vec![serve(program, &["scheduler", "--address", &address])?];
    let mut reports = Vec::new();
    for executor in 0..executors {
        let path = |name: &str| folder.join(format!("{name}-{executors}-{executor}"));
        let (work, report) = (path("work"), path("report"));
        fs::create_dir_all(&work)?;
        let [port, task_port] = [free_port()?.to_string(), free_port()?.to_string()];
        let (slots, work, file) =
            (SLOTS.to_string(), work.display().to_string(), report.display().to_string());
        processes.push(serve(
            program,
            &[
                "executor",
                "--scheduler",
                &address,
                "--port",
                &port,
                "--task-port",
                &task_port,
                "--slots",
                &slots,
                "--work-dir",
                &work,
                "--report",
                &file,
            ],
        )?);
        reports.push(report);
    }
    let config = ballista::config().with_target_partitions(partitions);
    let session = ballista::session_with(&format!("ballista://{address}"), config)?;
    session.sql("SET kauri.shared_rows = 0").await?;
    let file = |name: &str| folder.join(format!("{name}.parquet")).display().to_string();
    let sql = format!("SELECT count(*), sum(distance) FROM knn_join('{}', '{}', 5)", file("a"), file("b"));
    let begin = Instant::now();
    session.sql(&sql).await?.collect().await?;
    let seconds = begin.elapsed().as_secs_f64();
    for process in &mut processes {
        process.kill()?;
        process.wait()?;
    }
    let tasks: Vec<Value> = reports
        .iter()
        .flat_map(|report| {
            fs::read_to_string(report).unwrap_or_default().lines().map(str::to_string).collect::<Vec<_>>()
        })
        .map(|line| serde_json::from_str(&line).unwrap_or_default())
        .collect();
    // The last job is the join; those before it cut the sides into parts.
    let number = |task: &Value, name: &str| task[name].as_u64().unwrap_or(0);
    let stages =
        |job: &Value| tasks.iter().filter(|task| task["job"] == *job).map(|task| number(task, "stage")).max();
    let join = tasks.iter().map(|task| task["job"].clone()).max_by_key(|job| stages(job)).unwrap_or_default();
    let sum = |name: &str, is_join: bool| {
        tasks
            .iter()
            .filter(|task| (task["job"] == join) == is_join)
            .map(|task| number(task, name))
            .sum::<u64>()
    };
    Ok(json!({
        "rows_of_each_side": rows,
        "executors": executors,
        "partitions": partitions,
        "rows_written": sum("rows_written", true),
        "bytes_written": sum("bytes_written", true),
        "bytes_from_others": sum("bytes_from_others", true),
        "rows_written_before": sum("rows_written", false),
        "bytes_from_others_before": sum("bytes_from_others", false),
        "seconds": seconds,
    }))
}

fn serve(program: &str, args: &[&str]) -> Result<Child> {
    Ok(Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
