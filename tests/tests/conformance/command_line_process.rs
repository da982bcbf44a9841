//! The program as a process: signals, closed pipes, and little memory.
#![cfg(unix)]

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Returns the path of the program. If the tests were copied to another machine, it is in a folder beside them.
fn program() -> PathBuf {
    let copied = std::env::current_exe().unwrap().with_file_name("../bin/kauri");
    if copied.is_file() { copied } else { env!("CARGO_BIN_EXE_kauri-program").into() }
}

/// A folder with a table `p.csv` of `n` places and a mesh `t.obj`.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new(n: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let places =
            (0..n).map(|i| format!("{},{}\n", f64::from(i % 360) - 180.0, f64::from(i % 180) - 90.0));
        fs::write(folder.path().join("p.csv"), format!("lon,lat\n{}", places.collect::<String>())).unwrap();
        fs::write(folder.path().join("t.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(program());
        command.args(arguments.split_whitespace()).current_dir(self.folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns a command that starts with the action `SIG_DFL` or `SIG_IGN` for SIGHUP, SIGINT and SIGTERM.
    fn command_with_signals(&self, arguments: &str, action: libc::sighandler_t) -> Command {
        let mut command = self.command(arguments);
        let set = move || {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
                // SAFETY: both actions are valid for these signals.
                unsafe { libc::signal(signal, action) };
            }
            Ok(())
        };
        // SAFETY: between fork and exec only `signal` is called, which is allowed there.
        unsafe { command.pre_exec(set) };
        command
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the length of the temporary file, if there is one.
    fn unfinished(&self) -> Option<u64> {
        let name = self.entries().into_iter().find(|name| name.starts_with(".kauri-"))?;
        Some(fs::metadata(self.path(&name)).ok()?.len())
    }
}

/// A process that is killed when its test ends.
struct Running(Child);

impl Running {
    /// Waits for the end of the process. Returns the exit code, as a shell reports it, and standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (code(self.0.wait().unwrap()), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // This fails if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the exit code as a shell reports it.
fn code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| Some(128 + status.signal()?))
}

/// A join of all pairs of places.
const ALL: &str = "join --left p.csv --right p.csv --within 20100km --device cpu";

/// A picture that takes minutes to render.
const PICTURE: &str = "render t.obj --size 4000x4000 --samples 4000 --device cpu";

#[test]
fn signals_leave_no_temporary_file() {
    let cases = [
        (ALL, "out.csv", "INT", 130),
        (ALL, "out.json", "TERM", 143),
        (ALL, "out.parquet", "HUP", 129),
        (PICTURE, "out.png", "TERM", 143),
    ];
    for (arguments, out, signal, expected) in cases {
        let case = Case::new(6000);
        fs::write(case.path(out), "old").unwrap();
        let arguments = format!("{arguments} --out {out}");
        let mut running = Running(case.command_with_signals(&arguments, libc::SIG_DFL).spawn().unwrap());
        let begin = Instant::now();
        // A picture is rendered before its first byte is written.
        while case.unfinished().is_none_or(|len| len == 0 && out != "out.png") {
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing is written: {arguments}");
            assert!(running.0.try_wait().unwrap().is_none(), "{:?}", running.end());
            sleep(Duration::from_millis(2));
        }
        assert!(send(signal, &running));
        assert_eq!(running.end(), (Some(expected), String::new()), "{arguments} {signal}");
        assert_eq!(case.entries(), [out, "p.csv", "t.obj"]);
        assert_eq!(fs::read(case.path(out)).unwrap(), b"old");
    }
}

/// Sends a signal to a process. Returns false if the process has ended.
fn send(signal: &str, running: &Running) -> bool {
    let id = running.0.id().to_string();
    Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success()
}

#[test]
fn ignored_signals_stay_ignored() {
    // `nohup` starts a program with ignored signals, and shells do so for programs in the background.
    let case = Case::new(1500);
    let arguments = format!("{ALL} --out out.csv");
    let mut running = Running(case.command_with_signals(&arguments, libc::SIG_IGN).spawn().unwrap());
    while case.unfinished().is_none() && running.0.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(2));
    }
    for signal in ["HUP", "INT", "TERM"] {
        assert!(send(signal, &running), "the program has ended already");
    }
    assert_eq!(running.end(), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(case.path("out.csv")).unwrap().lines().count(), 1 + 1500 * 1500);
}

/// Runs a command whose standard output is a pipe, which is closed after the first line or at once.
fn to_reader(mut command: Command, takes_line: bool) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut running = Running(command.stdout(writer).spawn().unwrap());
    // The command also holds the writing end of the pipe.
    drop(command);
    if takes_line {
        let mut line = String::new();
        BufReader::with_capacity(1, &reader).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
    }
    drop(reader);
    running.end()
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let case = Case::new(700);
    for (arguments, takes_line) in [
        (ALL.to_owned(), true),
        (format!("{ALL} --json"), false),
        (format!("{ALL} --count"), false),
        (format!("{ALL} --out /dev/stdout"), true),
        ("knn --left p.csv --right p.csv --k 700 --device cpu".to_owned(), true),
        ("self-join --left p.csv --within 20100km --device cpu".to_owned(), true),
        ("info p.csv".to_owned(), false),
        ("doctor".to_owned(), false),
        ("--help".to_owned(), false),
        ("render t.obj --size 9x9 --device cpu --out out.png".to_owned(), false),
        ("demo quadtree --points 100 --device cpu".to_owned(), false),
    ] {
        let ended = to_reader(case.command(&arguments), takes_line);
        assert_eq!(ended, (Some(0), String::new()), "{arguments}");
    }
}

#[test]
fn tables_on_standard_input() {
    let case = Case::new(700);
    let run = |arguments: &str, input: Stdio| {
        let Output { status, stdout, stderr } = case.command(arguments).stdin(input).output().unwrap();
        assert_eq!(
            (code(status), String::from_utf8(stderr).unwrap()),
            (Some(0), String::new()),
            "{arguments}"
        );
        String::from_utf8(stdout).unwrap()
    };
    let file = || fs::File::open(case.path("p.csv")).unwrap().into();
    let pipe = |name: &str| {
        let (reader, mut writer) = io::pipe().unwrap();
        let bytes = fs::read(case.path(name)).unwrap();
        // A program that stops reading closes the pipe.
        thread::spawn(move || writer.write_all(&bytes));
        Stdio::from(reader)
    };
    let knn = "knn --left p.csv --right p.csv --k 2 --device cpu";
    let expected = run(knn, Stdio::null());
    for input in [file(), pipe("p.csv")] {
        assert_eq!(run(&knn.replace("--left p.csv", "--left -"), input), expected);
    }
    assert_eq!(run(&knn.replace("--right p.csv", "--right /dev/stdin"), pipe("p.csv")), expected);
    let count = "self-join --left p.csv --within 20100km --count --device cpu";
    assert_eq!(run(&count.replace("p.csv", "-"), pipe("p.csv")), run(count, Stdio::null()));
    let info = run("info -", pipe("p.csv"));
    assert!(info.starts_with("-: 700 rows") && info.contains("longitudes"), "{info}");
    // Parquet needs positions in a file, which a pipe has not.
    run(&format!("{knn} --out t.parquet"), Stdio::null());
    let rows = run("knn --left - --right p.csv --device cpu", pipe("t.parquet"));
    assert_eq!(rows.lines().count(), 1 + 1400);
    fs::write(case.path("p.csv"), "lon,lat\n1,x\n").unwrap();
    let mut refused = case.command(&count.replace("p.csv", "-"));
    let Output { status, stderr, .. } = refused.stdin(pipe("p.csv")).output().unwrap();
    let error = "error: standard input:2: column 'lat': 'x' is not a number\n";
    assert_eq!((code(status), String::from_utf8(stderr).unwrap().as_str()), (Some(2), error));
}

/// Runs a script of the shell in the folder. No file is open for writing in this process, which would keep others from running it.
fn shell(case: &Case, script: &str) {
    let status = Command::new("sh").args(["-ec", script]).current_dir(case.folder.path()).status();
    assert!(status.unwrap().success(), "{script}");
}

/// `kauri sql` runs the program `kauri-sql` that lies beside it, or else the first one of the search path.
#[test]
fn sql_is_answered_by_another_program() {
    let case = Case::new(1);
    shell(&case, &format!("mkdir bin path; cp '{}' bin/kauri", program().display()));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(case.path("bin/kauri"));
        command.arg("sql").args(arguments).env("PATH", case.path("path"));
        let Output { status, stdout, stderr } = command.output().unwrap();
        (code(status), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let missing =
        "error: the program kauri-sql is not installed: in a clone, cargo install --path apps/sql\n";
    assert_eq!(run(&["SELECT 1"]), (Some(2), String::new(), missing.to_owned()));
    let script = r##"printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' > path/kauri-sql; chmod +x path/kauri-sql"##;
    shell(&case, script);
    let arguments = ["SELECT 'a b'", "--format", "csv", "--help", "--table=p=p.csv"];
    let passed = "<SELECT 'a b'><--format><csv><--help><--table=p=p.csv>";
    assert_eq!(run(&arguments), (Some(0), passed.to_owned(), String::new()));
    // A failure is 2, whatever the other program returns, and that program has reported it.
    let script =
        r##"printf '#!/bin/sh\necho "error: beside" >&2\nexit 7\n' > bin/kauri-sql; chmod +x bin/kauri-sql"##;
    shell(&case, script);
    assert_eq!(run(&["SELECT 1"]), (Some(2), String::new(), "error: beside\n".to_owned()));
}

/// Runs the program with an address space of `kib` KiB.
fn limited(case: &Case, kib: u64, arguments: &str) -> Output {
    // Few threads and one arena, because their stacks and heaps need address space.
    let script = format!("ulimit -v {kib}; exec {} {arguments}", program().display());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(case.folder.path());
    command.env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "1").output().unwrap()
}

#[test]
fn results_larger_than_memory() {
    const N: u32 = 1800;
    let case = Case::new(N);
    let kib = 120 << 10;
    for (arguments, lines) in [
        (format!("{ALL} --out /dev/null"), 0),
        (format!("{ALL} --out out.csv"), 1 + u64::from(N) * u64::from(N)),
        (
            format!("knn --left p.csv --right p.csv --k {N} --device cpu --out out.csv"),
            1 + u64::from(N) * u64::from(N),
        ),
        (
            "self-join --left p.csv --within 20100km --device cpu --out out.csv".to_owned(),
            1 + u64::from(N * (N - 1) / 2),
        ),
        (format!("{ALL} --out out.parquet"), 0),
    ] {
        let Output { status, stderr, .. } = limited(&case, kib, &arguments);
        assert_eq!(
            (code(status), String::from_utf8(stderr).unwrap()),
            (Some(0), String::new()),
            "{arguments}"
        );
        if lines > 0 {
            let file = fs::read(case.path("out.csv")).unwrap();
            assert_eq!(file.iter().filter(|&&byte| byte == b'\n').count() as u64, lines, "{arguments}");
        }
    }
    let table = kauri::io::Table::read(case.path("out.parquet")).unwrap();
    assert_eq!(table.len() as u64, u64::from(N) * u64::from(N));
}
