//! Work that exceeds the address space returns an error or uses less memory. It never aborts the process.
//!
//! Each test runs itself in another process with a limit of address space.
#![cfg(target_os = "linux")]

use kauri::io::Table;
use kauri::join::{DistanceJoin, KnnJoin, Scored, SelfPairs, TopKDistanceJoin};
use kauri::{Batches, Device, Error};
use std::io::Write;
use std::ops::ControlFlow;
use std::process::Command;

/// The environment variable with the test that a process runs under its limit.
const VARIABLE: &str = "KAURI_TEST_LIMITED";
const DONE: &str = "done under the limit";
const NUM_EQUAL: usize = 40_000;

/// Returns a process that runs a test of this file with at most `kib` KiB of address space.
fn limited_command(test: &str, kib: u64) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$1\" && shift && exec \"$@\"", "sh", &kib.to_string()]).arg(program);
    command.args(["--exact", &format!("limited_memory::{test}"), "--nocapture", "--test-threads=1"]);
    // Each thread and each arena reserve address space.
    command.env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "1").env(VARIABLE, test);
    command
}

/// Runs `work` in a process with at most `mib` MiB of address space.
fn limited(test: &str, mib: u64, work: impl FnOnce()) {
    if std::env::var_os(VARIABLE).is_some() {
        work();
        println!("{DONE}");
        return;
    }
    let output = limited_command(test, mib << 10).output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains(DONE), "{test}: {}\n{out}\n{err}", output.status);
}

fn equal_points(n: usize) -> Vec<[f32; 2]> {
    vec![[1.0, -2.0]; n]
}

#[track_caller]
fn assert_too_large<T>(result: Result<T, Error>, pairs: u64) {
    match result.map(drop) {
        Err(Error::ResultTooLarge { count, .. }) => assert_eq!(count, pairs),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_of_equal_points() {
    limited("rows_of_equal_points", 2000, || {
        let (points, n) = (equal_points(NUM_EQUAL), NUM_EQUAL as u64);
        let (device, join) = (Device::cpu(), DistanceJoin::new(1.0));
        assert_too_large(join.self_rows(&device, &points, SelfPairs::Both), n * (n - 1));
        assert_too_large(join.self_rows(&device, &points, SelfPairs::Once), n * (n - 1) / 2);
        assert_too_large(join.rows(&device, &points, &points), n * n);
        assert_eq!(join.self_count(&device, &points, SelfPairs::Both).unwrap(), n * (n - 1));
        assert_eq!(join.count(&device, &points, &points).unwrap(), n * n);
        assert_eq!(join.estimate(&device, &points, &points, usize::MAX).unwrap(), n * n);
    });
}

#[test]
fn best_pairs_for_any_k() {
    limited("best_pairs_for_any_k", 2000, || {
        let (points, n) = (equal_points(NUM_EQUAL), NUM_EQUAL as u64);
        let scores = vec![1_u32; NUM_EQUAL];
        let set = Scored::new(&points, &scores).unwrap();
        let best = |k| TopKDistanceJoin::new(1.0, k).run(&Device::cpu(), set, set);
        assert_too_large(best(usize::MAX), n * n);
        assert_too_large(best(1 << 30), 1 << 30);
        assert_eq!(best(100_000).unwrap().pairs().len(), 100_000);
        // Few pairs, so that every k succeeds.
        let few = Scored::new(&points[..300], &scores[..300]).unwrap();
        let found = TopKDistanceJoin::new(1.0, usize::MAX).run(&Device::cpu(), few, few).unwrap();
        assert_eq!(found.pairs().len(), 300 * 300);
    });
}

#[test]
fn nearest_points_for_any_k() {
    limited("nearest_points_for_any_k", 2000, || {
        let points = equal_points(1000);
        for k in [usize::MAX, usize::MAX / 1000, 1 << 30] {
            for join in [KnnJoin::new(k), KnnJoin::new(k).within(1.0)] {
                let error = join.run(&Device::cpu(), &points, &points).unwrap_err();
                assert!(matches!(error, Error::ResultTooLarge { .. } | Error::OutOfMemory { .. }), "{error}");
            }
        }
    });
}

#[test]
fn batches_never_hold_all_rows() {
    limited("batches_never_hold_all_rows", 400, || {
        let n = 15_000;
        // The dense points come last, so the first rows do not predict them.
        let mut points = equal_points(n);
        let apart = (0..n).map(|i| [1e6 + 10.0 * i as f32, 0.0]);
        points.splice(0..0, apart);
        let mut pairs = 0;
        let mut batches = Batches::new().bytes(32 << 20);
        let join = DistanceJoin::new(1.0);
        let delivered =
            join.self_rows_batches(&Device::cpu(), &points, SelfPairs::Both, &mut batches, |batch| {
                pairs += batch.ids().len();
                ControlFlow::Continue(())
            });
        assert!(delivered.unwrap().is_complete && pairs == n * (n - 1));
    });
}

/// The environment variable with the table that a process reads.
const TABLE: &str = "KAURI_TEST_TABLE";

#[test]
fn tables_are_read_or_refused() {
    const TEST: &str = "tables_are_read_or_refused";
    if let Some(path) = std::env::var_os(TABLE) {
        println!("\n{} KiB before", address_space());
        if let Ok(table) = Table::read(path) {
            let _ = table.numbers(0).map(drop);
            let _ = table.texts(1).map(drop);
            let _ = table.place_columns(None, None).and_then(|columns| table.places(columns)).map(drop);
        }
        println!("{DONE}");
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let row = b"1,-2\n".repeat(1000);
    file.write_all(b"lon,lat\n").unwrap();
    (0..1000).for_each(|_| file.write_all(&row).unwrap());
    let run = |kib| {
        let output = limited_command(TEST, kib).env(TABLE, file.path()).output().unwrap();
        let [out, err] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success() && out.contains(DONE), "{kib} KiB: {}\n{out}\n{err}", output.status);
        out
    };
    let out = run(4 << 20);
    let before = out.split(" KiB before").next().and_then(|text| text.rsplit('\n').next()).unwrap();
    let before: u64 = before.parse().unwrap();
    for mib in [2, 4, 7, 11, 16, 24, 32, 48, 64, 96] {
        run(before + (mib << 10));
    }
}

/// Returns the address space of this process in KiB.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
