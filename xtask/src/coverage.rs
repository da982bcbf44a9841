//! `coverage`: measures the lines of the kernels that tests run in the simulator, which no tool measures on a GPU.

use crate::cargo::{self, FEATURES, cargo};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Measure which lines of the kernels the simulator's suites run; needs cargo-llvm-cov
#[derive(clap::Args)]
pub(crate) struct Coverage {
    /// Schedules of each test; lines that run under one run under nearly all
    #[arg(long, default_value_t = 2)]
    orders: usize,
    /// List the lines that were not run
    #[arg(long)]
    missing: bool,
}

/// The suites that run kernels in the simulator.
const SUITES: [&str; 6] = ["--test", "sim", "--test", "launch", "--test", "conformance"];

impl Coverage {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        if !cargo().args(["llvm-cov", "--version"]).output().is_ok_and(|output| output.status.success()) {
            bail!("coverage is measured by cargo-llvm-cov: `cargo install cargo-llvm-cov --locked`");
        }
        let mut tests = cargo();
        tests.args(["llvm-cov", "--no-report", FEATURES, "--package", "kauri-tests"]).args(SUITES);
        cargo::run(tests.env("KAURI_SIM_ORDERS", self.orders.to_string()))?;
        let path = workspace.target.join("coverage.json");
        cargo::run(cargo().args(["llvm-cov", "report", "--json", "--output-path"]).arg(&path))?;
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let report: Value = serde_json::from_str(&text).context("cargo llvm-cov wrote no JSON")?;
        let files = report["data"][0]["files"].as_array().context("cargo llvm-cov tells no files")?;
        self.print(&workspace.root.join("kernels/src"), files);
        Ok(())
    }

    fn print(&self, kernels: &Path, files: &[Value]) {
        let mut total = (0, 0);
        println!("{:<34} {:>6} {:>6} {:>7}", "file", "lines", "run", "");
        for file in files {
            let path = Path::new(file["filename"].as_str().unwrap_or_default());
            let Ok(name) = path.strip_prefix(kernels) else { continue };
            let lines = &file["summary"]["lines"];
            let number = |key: &str| lines[key].as_u64().unwrap_or(0);
            let (all, run) = (number("count"), number("covered"));
            total = (total.0 + all, total.1 + run);
            print_row(&name.display().to_string(), all, run);
            if self.missing {
                missing_lines(file).iter().for_each(|line| println!("    line {line}"));
            }
        }
        print_row("all kernels", total.0, total.1);
    }
}

fn print_row(name: &str, lines: u64, run: u64) {
    let percent = 100.0 * run as f64 / lines.max(1) as f64;
    println!("{name:<34} {lines:>6} {run:>6} {percent:>6.1}%");
}

/// Returns the lines on which a region begins that never ran. A segment is line, column, count, has_count, is_region_entry, …
fn missing_lines(file: &Value) -> Vec<u64> {
    let segments = file["segments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let never = |s: &&Value| s[2] == 0 && s[3] == true && s[4] == true;
    let mut lines: Vec<u64> = segments.iter().filter(never).filter_map(|s| s[0].as_u64()).collect();
    lines.dedup();
    lines
}
