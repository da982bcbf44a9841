//! Joins in clusters: in this process, and of several processes.

use crate::data::{Random, add_points, rows, session, set};
use crate::parts::QUERIES;
use datafusion::prelude::{CsvReadOptions, SessionContext};
use kauri_sql::cluster::{ballista, distributed};
use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Writes a table of four CSV files with columns id, x, y and score to a folder, and returns the folder.
fn write_points(folder: &Path, name: &str, seed: u64, rows: usize, extent: u64) -> PathBuf {
    let (table, mut random) = (folder.join(name), Random::new(seed));
    fs::create_dir_all(&table).unwrap();
    for file in 0..4 {
        let mut text = String::from("id,x,y,score\n");
        for row in (file..rows).step_by(4) {
            let (x, y) = (random.below(extent), random.below(extent));
            writeln!(text, "{row},{x},{y},{}", row * 7919 % 1009).unwrap();
        }
        fs::write(table.join(format!("{file}.csv")), text).unwrap();
    }
    table
}

/// Adds tables `a` and `b`.
async fn add_tables(session: &SessionContext, folder: &Path) {
    for name in ["a", "b"] {
        let path = folder.join(format!("{name}/"));
        session
            .register_csv(format!("{name}_"), path.to_str().unwrap(), CsvReadOptions::new())
            .await
            .unwrap();
        let view = format!("CREATE VIEW {name} AS SELECT *, ST_Point(x, y) AS geom FROM {name}_");
        session.sql(&view).await.unwrap();
    }
}

/// Checks that all queries have the same rows in a cluster as here, part by part and with a right side that all share.
async fn assert_equal(cluster: &SessionContext, folder: &Path, shared_rows: &[&str]) {
    let here = session(2, 8192);
    for session in [&here, cluster] {
        add_tables(session, folder).await;
    }
    set(cluster, "sample_rows", "100").await;
    for sql in QUERIES {
        let sql = sql.replace("(a, b,", "((SELECT id, geom, score FROM a), (SELECT id, geom, score FROM b),");
        let expected = rows(&here, &sql).await.unwrap();
        for shared_rows in shared_rows {
            set(cluster, "shared_rows", shared_rows).await;
            let found = rows(cluster, &sql).await.unwrap();
            assert_eq!(found.len(), expected.len(), "{sql}, shared_rows = {shared_rows}");
            assert!(found == expected, "{sql}, shared_rows = {shared_rows}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ballista_in_this_process() {
    let folder = tempfile::tempdir().unwrap();
    write_points(folder.path(), "a", 71, 900, 60);
    write_points(folder.path(), "b", 72, 1500, 60);
    let url = ballista::standalone(2, 2).await.unwrap();
    let session = ballista::session_with(&url, ballista::config().with_target_partitions(4)).unwrap();
    assert_equal(&session, folder.path(), &["0", "1000000"]).await;
    let error =
        rows(&session, "SELECT * FROM knn_join(a, (SELECT ST_Point(x / 0.0, y) AS p FROM b), 2)").await;
    assert!(error.unwrap_err().to_string().contains("is not finite"));
    add_points(&session, "c", 73, 300, 40, true);
    assert_eq!(rows(&session, "SELECT count(*) FROM knn_join(c, c, 2)").await.unwrap().len(), 1);
    #[cfg(feature = "las")]
    {
        let file = crate::las::file(&folder, "scan.laz", 3, 2000);
        let sql = format!("SELECT count(*), max(z_right) FROM knn_join('{file}', '{file}', 3)");
        let here = rows(&crate::data::session(2, 8192), &sql).await.unwrap();
        assert_eq!(rows(&session, &sql).await.unwrap(), here);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_datafusion_distributed() {
    let folder = tempfile::tempdir().unwrap();
    write_points(folder.path(), "a", 71, 900, 60);
    write_points(folder.path(), "b", 72, 1500, 60);
    let mut workers = Vec::new();
    for _ in 0..3 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        workers.push(format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(distributed::serve_worker(listener));
    }
    let session = distributed::session(&workers).unwrap();
    session.sql("SET distributed.file_scan_config_bytes_per_partition = 1").await.unwrap();
    assert_equal(&session, folder.path(), &["0", "1000000"]).await;
}

/// A scheduler and executors as processes.
struct Cluster {
    folder: tempfile::TempDir,
    url: String,
    scheduler: Child,
    executors: Vec<Child>,
}

impl Cluster {
    fn start(executors: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let serve = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kauri-sql"));
            command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let scheduler = serve(&["scheduler", "--address", &address, "--executor-timeout", "8"]);
        let executor = |index: usize| {
            let path =
                |name: &str| folder.path().join(format!("{name}{index}")).to_str().unwrap().to_string();
            let ports = [free_port().to_string(), free_port().to_string()];
            let (work, report) = (path("work"), path("report"));
            fs::create_dir(&work).unwrap();
            serve(&[
                "executor",
                "--scheduler",
                &address,
                "--port",
                &ports[0],
                "--task-port",
                &ports[1],
                "--slots",
                "1",
                "--device",
                "cpu",
                "--work-dir",
                &work,
                "--report",
                &report,
            ])
        };
        let executors = (0..executors).map(executor).collect();
        Self { url: format!("ballista://{address}"), folder, scheduler, executors }
    }

    /// Waits until an executor has finished a task of the job with this number.
    fn wait_for_task(&self, executor: usize, job: usize) {
        let jobs_of = |executor: usize| -> Vec<String> {
            let report = self.folder.path().join(format!("report{executor}"));
            let text = fs::read_to_string(report).unwrap_or_default();
            let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            lines.map(|task| task["job"].to_string()).collect()
        };
        let (begin, mut jobs) = (Instant::now(), Vec::new());
        while jobs.get(job).is_none_or(|job| !jobs_of(executor).contains(job)) {
            for found in (0..self.executors.len()).flat_map(jobs_of) {
                if !jobs.contains(&found) {
                    jobs.push(found);
                }
            }
            assert!(begin.elapsed() < Duration::from_secs(120), "the jobs are {jobs:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_is_killed_changes_no_row() {
    let mut cluster = Cluster::start(2);
    let folder = cluster.folder.path().to_path_buf();
    write_points(&folder, "a", 74, 40_000, 3000);
    write_points(&folder, "b", 75, 60_000, 3000);
    let here = session(2, 8192);
    add_tables(&here, &folder).await;
    let config = ballista::config()
        .with_target_partitions(6)
        .set_str("ballista.client.io_retries_times", "1")
        .set_str("ballista.client.io_retry_wait_time_ms", "200");
    let session = ballista::session_with(&cluster.url, config).unwrap();
    add_tables(&session, &folder).await;
    set(&session, "shared_rows", "0").await;
    let sql =
        "SELECT id, id_right, distance FROM knn_join((SELECT id, geom FROM a), (SELECT id, geom FROM b), 5)";
    let expected = rows(&here, sql).await.unwrap();
    let running = tokio::spawn(async move { rows(&session, sql).await });
    let killed = tokio::task::spawn_blocking(move || {
        // After the queries for the number of right rows, their sample and the regions of left rows.
        cluster.wait_for_task(1, 3);
        cluster.executors[1].kill().unwrap();
        cluster
    });
    let cluster = killed.await.unwrap();
    assert!(!running.is_finished(), "the executor was killed too late");
    let found = running.await.unwrap().unwrap();
    assert!(found == expected, "{} and {} rows", found.len(), expected.len());

    // The program asks the executor that is left.
    let files = ["a", "b"].map(|name| folder.join(name).join("0.csv").display().to_string());
    let sql = format!("SELECT count(*) AS n FROM knn_join('{}', '{}', 2)", files[0], files[1]);
    let mut program = Command::new(env!("CARGO_BIN_EXE_kauri-sql"));
    let output = program.args(["--cluster", &cluster.url, "--format", "csv", &sql]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n20000\n", "{output:?}");
}
