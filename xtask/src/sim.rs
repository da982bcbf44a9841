//! `sim`: runs the tests of one kernel in the simulator, under one schedule or all, optionally in a debugger.

use crate::cargo::{self, FEATURES, cargo};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Run a kernel's tests in the simulator: under all standard schedules, or replay the one that a report names
#[derive(clap::Args)]
pub(crate) struct Sim {
    /// The kernel, as reports name it: `kdtree_widest_axes_f32`, or without its types
    kernel: String,
    /// Replay the schedule with this `SIM_SEED`
    #[arg(long)]
    seed: Option<u64>,
    /// … and this `SIM_ORDER`
    #[arg(long)]
    order: Option<String>,
    /// Run in gdb; it stops where an error is found, and at the earlier access of a race
    #[arg(long)]
    gdb: bool,
    /// Run only the kernel's tests whose name contains this text
    test: Option<String>,
}

/// Folders of kernels, and the tests that run them in the simulator.
const SUITES: [(&str, &str); 2] = [("kernels/src", "sim"), ("tests/kernels/src", "launch")];

impl Sim {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let (suite, modules) = find_tests(&workspace.root, &self.kernel)?;
        let mut command = cargo();
        command.args(["test", FEATURES, "--package", "kauri-tests", "--test", suite]);
        if self.gdb {
            for package in WATCHED {
                for setting in ["debug='full'", "opt-level=1"] {
                    command.arg("--config").arg(format!("profile.dev.package.{package}.{setting}"));
                }
            }
            command.args(["--config", &format!("target.'cfg(all())'.runner={DEBUGGER}")]);
        }
        command.args(["--", "--nocapture", "--test-threads", "1"]);
        let modules = modules.iter().map(|module| format!("{module}::"));
        match &self.test {
            // A test program runs the tests that match one of its arguments: a module and a text take a list of the tests.
            Some(text) => {
                let mut list = cargo();
                list.args(["test", FEATURES, "--package", "kauri-tests", "--test", suite]);
                let list = cargo::read(list.args(["--", "--list"]).args(modules))?;
                command.arg("--exact").args(tests_with(&list, text)?)
            }
            None => command.args(modules),
        };
        if let Some(seed) = self.seed {
            command.env("SIM_SEED", seed.to_string());
        }
        if let Some(order) = self.order {
            command.env("SIM_ORDER", order);
        }
        cargo::run(&mut command)
    }
}

/// Returns the tests of a test program's list whose name contains a text.
fn tests_with<'a>(list: &'a str, text: &str) -> Result<Vec<&'a str>> {
    let tests: Vec<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let found: Vec<&str> = tests.iter().copied().filter(|test| test.contains(text)).collect();
    if found.is_empty() {
        bail!("no test of the kernel has `{text}` in its name, only:\n{}", tests.join("\n"));
    }
    Ok(found)
}

/// Packages whose variables are visible in the debugger.
const WATCHED: [&str; 5] = ["kauri-cuda-sim", "kauri-kernels", "kauri-test-kernels", "kauri", "kauri-tests"];

/// The debugger as cargo's runner.
const DEBUGGER: &str = "['gdb', '-quiet', '-ex', 'break cuda_sim::debug::error_found', \
     '-ex', 'break cuda_sim::debug::earlier_access', '-ex', 'run', '--args']";

/// Returns the test program and its modules with the tests of a kernel.
fn find_tests(root: &Path, kernel: &str) -> Result<(&'static str, Vec<String>)> {
    for (kernels, suite) in SUITES {
        let Some(file) = find_kernel(&root.join(kernels), kernel)? else { continue };
        return Ok((suite, modules_for(&file, &root.join("tests/tests").join(suite))?));
    }
    bail!("no kernel is named `{kernel}`: kernels are named as in reports, such as `query_nearest_one_f32_2`")
}

/// Returns the module of tests with the name of a kernel's file or of a folder of it; otherwise the modules whose head, comment and
/// imports, names the file.
fn modules_for(file: &Path, tests: &Path) -> Result<Vec<String>> {
    let path = file.with_extension("");
    let mut names = path.iter().rev().map_while(|name| name.to_str()).take_while(|name| *name != "src");
    if let Some(module) = names.find(|name| tests.join(name).with_extension("rs").is_file()) {
        return Ok(vec![module.to_owned()]);
    }
    let stem = path.file_name().and_then(|name| name.to_str()).context("a file has a name")?;
    let mut modules = Vec::new();
    for entry in fs::read_dir(tests).with_context(|| format!("cannot read {}", tests.display()))? {
        let path = entry?.path();
        let is_test = path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("main.rs");
        if is_test && names_in_head(&fs::read_to_string(&path)?, stem) {
            modules.extend(path.file_stem().and_then(|name| Some(name.to_str()?.to_owned())));
        }
    }
    if modules.is_empty() {
        bail!("no test in {} names `{stem}`, the file {}", tests.display(), file.display());
    }
    modules.sort();
    Ok(modules)
}

/// True if the module's comment or imports contain a word.
fn names_in_head(source: &str, word: &str) -> bool {
    let is_head = |line: &&str| {
        line.is_empty() || ["//!", "use ", " ", "}"].iter().any(|begin| line.starts_with(begin))
    };
    let mut head = source.lines().take_while(is_head);
    head.any(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word))
}

/// Returns the source file that defines a kernel; an instance's name is the function's name followed by its types.
fn find_kernel(folder: &Path, kernel: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find_kernel(&path, kernel)? {
                return Ok(Some(found));
            }
        } else if defines(&fs::read_to_string(&path)?, kernel) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// True if a source text defines the kernel function.
fn defines(source: &str, kernel: &str) -> bool {
    source.lines().filter_map(|line| line.strip_prefix("pub unsafe fn ")).any(|rest| {
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        kernel.strip_prefix(name).is_some_and(|types| types.is_empty() || is_instance(types))
    })
}

/// True for the suffix of an instance's name: `_f32_2`.
fn is_instance(types: &str) -> bool {
    let is_type = |word: &str| word.len() <= 3 && word.ends_with(|c: char| c.is_ascii_digit());
    types.strip_prefix('_').is_some_and(|types| types.split('_').all(is_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the files with kernels in a folder.
    fn files_with_kernels(folder: &Path) -> Vec<PathBuf> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => files_with_kernels(&path),
                false if fs::read_to_string(&path).unwrap().contains("#[kernel(") => vec![path],
                false => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn every_kernel_has_a_module_of_tests() {
        let root = Workspace::find().unwrap().root;
        for (kernels, suite) in SUITES {
            for file in files_with_kernels(&root.join(kernels)) {
                modules_for(&file, &root.join("tests/tests").join(suite)).unwrap();
            }
        }
        let tests_of = |kernel| find_tests(&root, kernel).unwrap();
        assert_eq!(tests_of("query_nearest_one_f32_2"), ("sim", vec!["query".to_owned()]));
        assert_eq!(tests_of("primitives_tell"), ("sim", vec!["kdtree_batches".to_owned()]));
    }

    #[test]
    fn tests_are_chosen_by_a_part_of_their_name() {
        let list = "scan::many_tiles: test\nscan::one_tile: test\n\n2 tests, 0 benchmarks\n";
        assert_eq!(tests_with(list, "many").unwrap(), ["scan::many_tiles"]);
        assert_eq!(tests_with(list, "tile").unwrap().len(), 2);
        let error = tests_with(list, "none").unwrap_err().to_string();
        assert!(error.contains("scan::one_tile"), "{error}");
    }

    #[test]
    fn kernels_are_found_by_the_names_that_reports_use() {
        let source = "#[kernel]\npub unsafe fn sort<K: Key, const D: usize>(\n";
        for name in ["sort", "sort_u32", "sort_f64_7"] {
            assert!(defines(source, name), "{name}");
        }
        for name in ["sor", "sort_few", "sort_few_u32", "sorted"] {
            assert!(!defines(source, name), "{name}");
        }
    }
}
