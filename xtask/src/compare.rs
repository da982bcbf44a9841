//! `compare`: measures variants of kauri against each other in one process, and searches values of the policy.
//!
//! Each variant is built as a dynamic library of the benchmarks' suites. This program loads all of them and lets their runs take turns.

mod gpu;
#[allow(dead_code, unreachable_pub, reason = "the benchmarks' crate compiles this file, too")]
#[path = "../../benches/src/interface.rs"]
mod interface;
mod kernels;
mod library;
mod ncu;
mod policy;
mod rows;
mod statistics;
mod sweep;
mod turns;
mod variant;

use crate::ptx;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use cuda_builder::{Arch, Ptxas};
use gpu::Gpu;
use library::{Outcome, Selected};
use policy::Setting;
use rows::Rows;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use variant::{Build, Requested, Source, Variant};

/// Compare variants of kauri in one process, run by run: times with intervals, kernels, and values of the policy
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// Two or more variants: a git revision; `.` for the working tree; NAME=VALUE[,NAME=VALUE] for the working tree with other values of
    /// kernels/src/policy.rs; a report FILE.json of `cargo xtask bench --out`
    #[arg(value_name = "VARIANT")]
    variants: Vec<String>,
    /// The suite of `cargo xtask bench` [default: a saved report's]
    #[arg(long)]
    suite: Option<String>,
    /// Where to run: best, cpu, cuda or cuda:N [default: best]
    #[arg(long)]
    device: Option<String>,
    /// Numbers of points, or of triangles [default: 1e5,1e6]
    #[arg(long, value_delimiter = ',', value_parser = interface::size)]
    n: Vec<usize>,
    /// Measure and show only rows whose work, input and size, as the table shows them, contain this text
    #[arg(long, value_name = "TEXT")]
    row: Option<String>,
    /// Runs of each measurement in each variant [default: 30]
    #[arg(long)]
    runs: Option<usize>,
    /// Seconds of a variant after which a measurement ends with the runs it has [default: 4]
    #[arg(long)]
    seconds: Option<f64>,
    /// Seed of the random input [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Meshes to measure in addition to the generated ones: OBJ or PLY files
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// Compare values of the policy with the present one, as JOIN_THREADS=64,256, QUERIES.threads=64 or
    /// 'radix_sort[(8, 0 | 4)]=(12, 16)'; several for all combinations
    #[arg(long, value_name = "NAME=VALUE,…")]
    sweep: Vec<String>,
    /// Write the best values of a sweep, with their row, to kernels/src/policy.rs if they are faster; FILE is the --out of a sweep that
    /// ran elsewhere
    #[arg(long, value_name = "FILE.json")]
    write: Option<Option<PathBuf>>,
    /// Say what bounds the kernels of the rows of --row, by Nsight Compute
    #[arg(long)]
    ncu: bool,
    /// List all kernels, not only different ones
    #[arg(long)]
    all_kernels: bool,
    /// Compile kernels for these architectures, as 80,90 [default: the device's]
    #[arg(long, value_delimiter = ',', value_name = "SM")]
    cubin: Vec<Arch>,
    /// Compile only these families of kernels, as kdtree,query [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    family: Vec<String>,
    /// Build only, into a folder to copy to a machine without Rust: its program `compare` takes these options
    #[arg(long, value_name = "FOLDER")]
    prepare: Option<PathBuf>,
    /// Write the reports of all variants as JSON
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Run what this folder has; its program `compare` passes it
    #[arg(long, hide = true)]
    prepared: Option<PathBuf>,
    /// Run the request once for a profiler, with the variant in this folder
    #[arg(long, hide = true, requires = "request")]
    profile: Option<PathBuf>,
    #[arg(long, hide = true)]
    request: Option<String>,
}

/// The file of a prepared folder that describes it; marks folders that this task may replace.
const PREPARED: &str = "prepared.json";

/// A suite that starts a process for each measurement, which a library cannot.
const OWN_PROCESSES: &str = "first-call";

/// The variants that are built, and the saved reports.
struct Plan {
    variants: Vec<Variant>,
    /// Their places among all variants.
    saved: Vec<(usize, Requested)>,
    /// Settings of the suite, as the library reads them.
    settings: Value,
    row: String,
    is_sweep: bool,
}

impl Compare {
    pub(crate) fn run(mut self) -> Result<()> {
        if let (Some(folder), Some(request)) = (&self.profile, &self.request) {
            return profile_one(folder, request);
        }
        if let Some(folder) = self.prepared.take() {
            return self.run_prepared(&folder);
        }
        let workspace = Workspace::find()?;
        if let Some(Some(file)) = &self.write {
            if !self.variants.is_empty() || !self.sweep.is_empty() {
                bail!("`--write FILE.json` takes the result of an earlier sweep, and no variants");
            }
            return write_policy(&workspace, &read_result(file)?, self.row.as_deref().unwrap_or_default());
        }
        let requested = self.requested(&workspace)?;
        let settings = self.settings(&workspace, &requested)?;
        self.check_options()?;
        let gpu = match &self.prepare {
            Some(folder) if !is_ours(folder) => {
                bail!("{} is there and was not made by `cargo xtask compare --prepare`", folder.display())
            }
            Some(_) => None,
            None => Gpu::of(settings["device"].as_str().unwrap_or("best"))?,
        };
        let archs = self.archs(gpu.as_ref())?;
        ptx::check_families(&workspace.root, &self.family)?;
        let suite = settings["suite"].as_str().unwrap_or_default().to_owned();
        let has_rows = self.prepare.is_some()
            || gpu.is_some()
            || interface::CPU_SUITES.contains(&suite.as_str())
            || requested.iter().all(|one| matches!(one.source, Source::Saved(_)));
        if !has_rows && (archs.is_empty() || self.write.is_some() || self.ncu || self.out.is_some()) {
            bail!(
                "the suite {suite} needs a GPU: --cubin 90 alone prints the kernels that differ, --prepare FOLDER builds for a machine \
                 with a GPU, and {} have rows on the CPU",
                interface::CPU_SUITES.join(" and ")
            );
        }
        let build = Build { archs: &archs, families: &self.family, has_library: has_rows };

        let (mut variants, mut saved) = (Vec::new(), Vec::new());
        for (place, one) in requested.into_iter().enumerate() {
            if matches!(one.source, Source::Saved(_)) {
                saved.push((place, one));
            } else {
                variants.push(one.build(&workspace, &build)?);
            }
        }
        let row = self.row.clone().unwrap_or_default();
        let plan = Plan { variants, saved, settings, row, is_sweep: !self.sweep.is_empty() };
        if let Some(folder) = &self.prepare {
            return plan.prepare(&workspace, folder);
        }
        let ptxas =
            if gpu.is_none() && !archs.is_empty() { Ptxas::locate(&workspace.target).ok() } else { None };
        let kernels = kernels::Source::Assembler(ptxas);
        if !has_rows {
            let table = kernels::table(&plan.variants, &plan.letters(), &kernels, self.all_kernels)?;
            println!("no rows: the suite {suite} needs a GPU");
            print!("{}", if table.is_empty() { "all kernels are equal in all variants\n" } else { &table });
            return Ok(());
        }
        let result = self.measure(&plan, gpu.as_ref(), kernels, !archs.is_empty())?;
        if self.write.is_some() {
            write_policy(&workspace, &result, &plan.row)?;
        }
        Ok(())
    }

    /// Parses and checks the variants. A sweep begins with the present values.
    fn requested(&self, workspace: &Workspace) -> Result<Vec<Requested>> {
        if self.sweep.is_empty() {
            if self.write.is_some() {
                bail!("`--write` needs `--sweep`, or the FILE.json of a sweep that ran elsewhere");
            }
            if self.variants.len() < 2 {
                bail!(
                    "name at least two variants, such as `cargo xtask compare HEAD . --suite join`, or --sweep NAME=VALUE,VALUE"
                );
            }
            return self.variants.iter().map(|text| Requested::parse(workspace, text)).collect();
        }
        if !self.variants.is_empty() {
            bail!("`--sweep` compares values with the working tree, and takes no variants");
        }
        let text = variant::policy_of(workspace)?;
        let variants = sweep::variants(&text, &self.sweep)?.into_iter();
        let requested = |settings: Vec<Setting>| Requested {
            label: policy::shown(&settings),
            source: Source::Policy(settings),
        };
        Ok(variants.map(requested).collect())
    }

    /// Returns the settings of the suite, checked.
    fn settings(&self, workspace: &Workspace, requested: &[Requested]) -> Result<Value> {
        let saved: Vec<&Value> = requested
            .iter()
            .filter_map(|one| match &one.source {
                Source::Saved(report) => Some(report),
                _ => None,
            })
            .collect();
        let saved_suite = saved.first().and_then(|report| report["suite"].as_str());
        let suite = self.suite.as_deref().or(saved_suite).context("name a suite with --suite")?;
        check_suite(&suites(workspace)?, suite)?;
        if let Some(other) = saved.iter().find(|report| report["suite"] != suite) {
            bail!("a saved report is of the suite {}, not of {suite}", other["suite"]);
        }
        let seed = self.seed.or(saved.first().and_then(|report| report["seed"].as_u64())).unwrap_or(1);
        if let Some(other) = saved.iter().find(|report| report["seed"] != seed) {
            bail!("a saved report has the seed {}, not {seed}", other["seed"]);
        }
        let mut settings = json!({ "suite": suite, "device": "best", "sizes": [100_000, 1_000_000], "runs": 30, "seconds": 4.0,
            "seed": seed, "models": [] });
        self.override_settings(&mut settings)?;
        Ok(settings)
    }

    /// Replaces settings by the options that are given.
    fn override_settings(&self, settings: &mut Value) -> Result<()> {
        if let Some(device) = &self.device {
            gpu::ordinal(device)?;
            settings["device"] = json!(device);
        }
        if !self.n.is_empty() {
            settings["sizes"] = json!(self.n);
        }
        if let Some(runs) = self.runs {
            settings["runs"] = json!(runs);
        }
        if let Some(seconds) = self.seconds {
            if !(0.0..=86_400.0).contains(&seconds) {
                bail!("--seconds {seconds} is not a time of up to a day");
            }
            settings["seconds"] = json!(seconds);
        }
        if let Some(seed) = self.seed {
            settings["seed"] = json!(seed);
        }
        if let Some(missing) = self.model.iter().find(|model| !model.is_file()) {
            bail!("there is no mesh {}", missing.display());
        }
        if !self.model.is_empty() {
            settings["models"] = json!(self.model);
        }
        Ok(())
    }

    /// Checks combinations of options.
    fn check_options(&self) -> Result<()> {
        if self.prepare.is_some() {
            if self.write.is_some() || self.ncu || self.out.is_some() || self.all_kernels {
                bail!(
                    "`--prepare` only builds: pass --write, --ncu, --all-kernels and --out to the program in its folder"
                );
            }
            if self.cubin.is_empty() {
                bail!("`--prepare` needs the other machine's architecture, such as --cubin 90");
            }
            if self.variants.iter().any(|variant| variant.ends_with(".json")) {
                bail!("a saved report is compared where it is: `--prepare` takes no .json");
            }
        }
        if self.ncu {
            if self.row.is_none() {
                bail!("`--ncu` profiles a few rows: choose them with --row TEXT");
            }
            let mut version = Command::new("ncu");
            version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            if !version.status().is_ok_and(|status| status.success()) {
                bail!(
                    "`--ncu` needs Nsight Compute: add the folder with `ncu`, such as /usr/local/cuda/bin, to PATH"
                );
            }
        }
        if let Some(folder) = self.out.as_deref().and_then(Path::parent)
            && !folder.as_os_str().is_empty()
            && !folder.is_dir()
        {
            bail!("there is no folder {} for --out", folder.display());
        }
        Ok(())
    }

    /// Returns the architectures to compile kernels for.
    fn archs(&self, gpu: Option<&Gpu>) -> Result<Vec<Arch>> {
        match gpu {
            Some(gpu) if self.cubin.is_empty() => Ok(vec![format!("sm_{}", gpu.arch()).parse()?]),
            _ => Ok(self.cubin.clone()),
        }
    }

    /// Runs the variants of a prepared folder.
    fn run_prepared(&mut self, folder: &Path) -> Result<()> {
        let text = fs::read_to_string(folder.join(PREPARED))
            .with_context(|| format!("cannot read {PREPARED} in {}", folder.display()))?;
        let prepared: Value = serde_json::from_str(&text).context(PREPARED)?;
        if self.prepare.is_some()
            || !self.sweep.is_empty()
            || !self.cubin.is_empty()
            || !self.family.is_empty()
        {
            bail!(
                "this folder has its variants: --prepare, --sweep, --cubin and --family are for `cargo xtask compare`"
            );
        }
        if self.write.is_some() {
            bail!(
                "write the policy where its sources are: `cargo xtask compare --write FILE.json` with the file of --out"
            );
        }
        let read = |json: &Value| Variant::from_json(json, folder);
        let variants: Option<Vec<Variant>> =
            prepared["variants"].as_array().and_then(|variants| variants.iter().map(read).collect());
        let mut variants = variants.with_context(|| format!("{PREPARED} is damaged"))?;
        if !self.variants.is_empty() {
            let known: Vec<String> = variants.iter().map(|variant| variant.label.clone()).collect();
            let find = |name: &String| {
                let found = variants.iter().find(|variant| {
                    variant.label == *name
                        || variant.label.strip_prefix(name).is_some_and(|rest| rest.starts_with(" ("))
                });
                found.cloned().with_context(|| {
                    format!("this folder has no variant `{name}`, only {}", known.join("; "))
                })
            };
            variants = self.variants.iter().map(find).collect::<Result<_>>()?;
        }
        if variants.len() < 2 {
            bail!("name at least two variants of this folder, or none for all");
        }
        let mut settings = prepared["settings"].clone();
        if let Some(suite) = &self.suite {
            let suites = prepared["suites"].as_array().into_iter().flatten().filter_map(Value::as_str);
            check_suite(&suites.map(str::to_owned).collect::<Vec<_>>(), suite)?;
            settings["suite"] = json!(suite);
        }
        self.override_settings(&mut settings)?;
        let row = self.row.clone().or(prepared["row"].as_str().map(str::to_owned)).unwrap_or_default();
        self.row = Some(row.clone()).filter(|row| !row.is_empty());
        self.check_options()?;
        let gpu = Gpu::of(settings["device"].as_str().unwrap_or("best"))?;
        let is_sweep = prepared["sweep"] == true;
        let plan = Plan { variants, saved: Vec::new(), settings, row, is_sweep };
        self.measure(&plan, gpu.as_ref(), kernels::Source::Assembler(None), false).map(drop)
    }

    /// Measures, prints and saves a comparison, and returns its result. Without a GPU, `kernels` are shown if `has_kernels`.
    fn measure(
        &self,
        plan: &Plan,
        gpu: Option<&Gpu>,
        kernels: kernels::Source<'_>,
        has_kernels: bool,
    ) -> Result<Value> {
        let outcomes = plan.run()?;
        let mut reports: Vec<Value> = Vec::new();
        for (variant, outcome) in plan.variants.iter().zip(&outcomes) {
            if let Some(error) = &outcome.error {
                eprintln!("{} ended early: {error}", variant.label);
            }
            let mut json = variant.to_json();
            json["report"] = outcome.report.clone();
            json["saved"] = json!(false);
            reports.push(json);
        }
        for (place, saved) in &plan.saved {
            let Source::Saved(report) = &saved.source else { continue };
            let json = json!({ "label": saved.label, "settings": [], "report": report, "saved": true });
            reports.insert(*place, json);
        }
        let result = json!({ "sweep": plan.is_sweep, "variants": reports });
        if let Some(path) = &self.out {
            fs::write(path, result.to_string() + "\n")
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let rows = rows_of(&result);
        let (table, matched) = rows::table(&rows, &plan.row);
        print!("{table}");
        let source = match gpu {
            Some(gpu) => {
                let launches = outcomes.iter().map(|outcome| outcome.launches_of(&plan.row)).collect();
                kernels::Source::Gpu(gpu, launches)
            }
            None => kernels,
        };
        if gpu.is_some() || has_kernels {
            print!("{}", kernels::table(&plan.variants, &plan.letters(), &source, self.all_kernels)?);
        }
        if matched.is_empty() {
            let reason = outcomes.iter().find_map(|outcome| outcome.error.clone());
            let reason = reason.map_or(String::new(), |reason| format!("; {reason}"));
            bail!("the variants have no common row{reason}");
        }
        if self.ncu {
            for (variant, outcome) in plan.variants.iter().zip(&outcomes) {
                let profiles = ncu::profile(variant, &plan.settings, &outcome.measurements_of(&plan.row))?;
                print!("{}", ncu::table(&variant.label, &profiles));
            }
        }
        if plan.is_sweep && self.write.is_none() {
            println!("\n{}", sweep::verdict(&rows, &plan.row).describe(&rows));
        }
        Ok(result)
    }
}

impl Plan {
    /// Runs the suite in all variants.
    fn run(&self) -> Result<Vec<Outcome>> {
        if self.variants.is_empty() {
            return Ok(Vec::new());
        }
        let mut settings = self.settings.clone();
        // The clock of a measurement goes on while others have their turns.
        let seconds = settings["seconds"].as_f64().unwrap_or(4.0);
        settings["seconds"] = json!(seconds * self.variants.len() as f64);
        let suites = library::load(&self.variants, settings["device"].as_str().unwrap_or("best"))?;
        if self.row.is_empty() {
            return library::run(&suites, &settings, Selected::All, None);
        }
        eprintln!("finding the rows of `{}`", self.row);
        let first = library::run(&suites[..1], &settings, Selected::Only(&BTreeSet::new()), None)?;
        let first = first.first().context("a suite has an outcome")?;
        let measurements = first.measurements_of(&self.row);
        if measurements.is_empty() {
            let error = first.error.as_ref().map_or(String::new(), |error| format!(" ({error})"));
            bail!("no row has `{}`{error}; the rows are:\n{}", self.row, first.keys().join("\n"));
        }
        eprintln!("measuring");
        library::run(&suites, &settings, Selected::Only(&measurements), None)
    }

    /// Returns the letters of the variants that are built, as in the table of rows.
    fn letters(&self) -> Vec<String> {
        let places = 0..self.variants.len() + self.saved.len();
        places.filter(|place| self.saved.iter().all(|(saved, _)| saved != place)).map(rows::letter).collect()
    }

    /// Writes the folder for another machine.
    fn prepare(&self, workspace: &Workspace, out: &Path) -> Result<()> {
        if out.exists() {
            fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
        }
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let json = json!({
            "settings": self.settings,
            "row": self.row,
            "sweep": self.is_sweep,
            "suites": suites(workspace)?,
            "variants": self.variants.iter().map(Variant::to_json).collect::<Vec<_>>(),
        });
        fs::write(out.join(PREPARED), json.to_string() + "\n")?;
        let program = std::env::current_exe().context("cannot find this program's own path")?;
        variant::copy(&program, &out.join("xtask"))?;
        // Without this tool the program is larger.
        let _ = Command::new("strip").arg(out.join("xtask")).status();
        let script = out.join("compare");
        fs::write(
            &script,
            "#!/bin/sh\nhere=$(dirname \"$0\")\nexec \"$here/xtask\" compare --prepared \"$here\" \"$@\"\n",
        )?;
        crate::bundle::make_executable(&script)?;
        let mut bytes = fs::metadata(out.join("xtask"))?.len();
        for variant in &self.variants {
            let to = out.join(variant.folder.file_name().context("a folder has a name")?);
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(&variant.folder)? {
                let path = entry?.path();
                let name = path.file_name().context("a file has a name")?;
                variant::copy(&path, &to.join(name))?;
                bytes += fs::metadata(&path)?.len();
            }
        }
        println!("{}: {:.1} MB", out.display(), bytes as f64 / 1e6);
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        println!("copy it to the other machine and run there: {name}/compare --out result.json");
        if self.is_sweep {
            println!("then here: cargo xtask compare --write result.json");
        }
        Ok(())
    }
}

/// Returns the rows of all variants of a result.
fn rows_of(result: &Value) -> Vec<Rows> {
    let variants = result["variants"].as_array().into_iter().flatten();
    variants
        .map(|variant| {
            let label = variant["label"].as_str().unwrap_or_default();
            Rows::of(label, &variant["report"], variant["saved"] != true)
        })
        .collect()
}

/// Reads the result that `--out` wrote.
fn read_result(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let result: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    if result["sweep"] != true {
        bail!("{} is not the --out of a sweep", path.display());
    }
    Ok(result)
}

/// Writes the best values of a sweep to the policy, if they are faster.
fn write_policy(workspace: &Workspace, result: &Value, row: &str) -> Result<()> {
    let variants = result["variants"].as_array().into_iter().flatten();
    let read = |json: &Value| Variant::from_json(json, Path::new("")).map(|variant| variant.settings);
    let settings: Option<Vec<Vec<Setting>>> = variants.map(read).collect();
    let settings = settings.context("the result has no settings")?;
    let rows = rows_of(result);
    let verdict = sweep::verdict(&rows, row);
    println!("\n{}", verdict.describe(&rows));
    let text = variant::policy_of(workspace)?;
    if let Some(text) = sweep::written(&text, &rows, &settings, &verdict)? {
        fs::write(workspace.root.join(policy::FILE), text)
            .with_context(|| format!("cannot write {}", policy::FILE))?;
        println!("written to {}", policy::FILE);
    }
    Ok(())
}

/// Runs measurements of a variant once, with the profiler on during them.
fn profile_one(folder: &Path, request: &str) -> Result<()> {
    let request: Value = serde_json::from_str(request).context("--request")?;
    let mut settings = request["settings"].clone();
    settings["runs"] = json!(1);
    let measurements =
        request["measurements"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let variant =
        Variant { label: folder.display().to_string(), settings: Vec::new(), folder: folder.to_owned() };
    let suites = library::load(&[variant], settings["device"].as_str().unwrap_or("best"))?;
    let outcomes = library::run(&suites, &settings, Selected::Only(&measurements), Some(&gpu::profile))?;
    match outcomes.into_iter().find_map(|outcome| outcome.error) {
        Some(error) => bail!("{error}"),
        None => Ok(()),
    }
}

/// Returns the names of the suites: the text of each `SUITES` constant of the benchmarks has them.
fn suites(workspace: &Workspace) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![workspace.root.join("benches/src/suites")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let lists = text.split("const SUITES: ").skip(1).filter_map(|rest| rest.split("];").next());
            let quoted = lists.flat_map(|list| list.split('"').skip(1).step_by(2));
            names.extend(quoted.map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

fn check_suite(known: &[String], suite: &str) -> Result<()> {
    if suite == OWN_PROCESSES {
        bail!(
            "the suite {suite} starts a process for each measurement, so its variants cannot share one: use `cargo xtask bench`"
        );
    }
    if !known.iter().any(|name| name == suite) {
        bail!("there is no suite `{suite}`, only {}", known.join(", "));
    }
    Ok(())
}

/// True if the folder does not exist, is empty, or was prepared by this task.
fn is_ours(folder: &Path) -> bool {
    let is_empty = || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    !folder.exists() || folder.join(PREPARED).is_file() || is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        compare: Compare,
    }

    /// Returns the error of arguments that are wrong.
    fn refused(line: &str) -> String {
        let words = std::iter::once("compare").chain(line.split(' ').filter(|word| !word.is_empty()));
        match Line::try_parse_from(words) {
            Ok(line) => format!("{:#}", line.compare.run().unwrap_err()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn wrong_arguments_are_refused_before_anything_is_built() {
        for (line, part) in [
            ("", "at least two variants"),
            ("HEAD --suite join", "at least two variants"),
            (". . --suite joins", "there is no suite `joins`, only"),
            (". .", "name a suite"),
            (". . --suite first-call", "use `cargo xtask bench`"),
            (". no-such-branch --suite join", "no variant `no-such-branch`"),
            (". JOIN_THREAD=64 --suite join", "no constant `JOIN_THREAD`"),
            (". JOIN_THREADS=64 --suite join --device gpu", "no device `gpu`"),
            (". JOIN_THREADS=64 --suite join --n 1.5", "not a count"),
            (". JOIN_THREADS=64 --suite join --seconds -1", "unexpected argument"),
            (". JOIN_THREADS=64 --suite join --seconds 1e9", "up to a day"),
            (". JOIN_THREADS=64 --suite sah --model none.ply", "no mesh none.ply"),
            (". JOIN_THREADS=64 --suite join --device cpu", "the suite join needs a GPU: --cubin 90"),
            (". JOIN_THREADS=64 --suite join --device cpu --cubin 90 --out a.json", "needs a GPU"),
            (
                ". JOIN_THREADS=64 --suite join --device cpu --cubin 90 --family joins",
                "no family `joins`, only",
            ),
            (". JOIN_THREADS=64 --suite join --ncu", "--row"),
            (". JOIN_THREADS=64 --suite join --write", "needs `--sweep`"),
            (". JOIN_THREADS=64 --suite join --prepare x", "--cubin 90"),
            (". JOIN_THREADS=64 --suite join --prepare x --cubin 90 --out a.json", "only builds"),
            (". JOIN_THREADS=64 --suite join --out no/such/a.json", "no folder no/such"),
            (". HEAD --suite join --sweep JOIN_THREADS=64", "takes no variants"),
            ("--suite join --sweep JOIN_THREADS", "NAME=VALUE"),
            ("--suite join --sweep JOIN_THREADS=128", "has the present value"),
            ("--write none.json", "cannot read none.json"),
            (". . --suite join --write x.json", "no variants"),
        ] {
            let error = refused(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn suites_of_the_sources() {
        let suites = suites(&Workspace::find().unwrap()).unwrap();
        assert!(
            ["join", "join-cpu", "kdtree", "sah", "primitives"]
                .iter()
                .all(|name| suites.iter().any(|s| s == name)),
            "{suites:?}"
        );
        assert!(suites.iter().all(|name| !name.contains(' ')), "{suites:?}");
    }
}
