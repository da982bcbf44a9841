//! `sim`: runs the tests of one kernel in the simulator, under one schedule or all, optionally in a debugger.

use crate::cargo::{self, FEATURES, cargo};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Run a kernel's tests in the simulator: under all standard schedules, or replay the one that a report names
#[derive(clap::Args)]
pub(crate) struct Sim {
    /// The kernel, as reports name it: `kdtree_widest_axes_f32`, or without its types. Its source file, or a folder of it, must have
    /// the name of a module of tests
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
    /// Run only tests whose name contains this text
    test: Option<String>,
}

/// Folders of kernels, and the tests that run them in the simulator. The tests of a kernel are found if a module has the name of the
/// kernel's file or folder.
const SUITES: [(&str, &str); 2] = [("kernels/src", "sim"), ("tests/kernels/src", "launch")];

impl Sim {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let (suite, module) = find_tests(&workspace.root, &self.kernel)?;
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
        command.arg(self.test.unwrap_or_else(|| format!("{module}::")));
        if let Some(seed) = self.seed {
            command.env("SIM_SEED", seed.to_string());
        }
        if let Some(order) = self.order {
            command.env("SIM_ORDER", order);
        }
        cargo::run(&mut command)
    }
}

/// Packages whose variables are visible in the debugger.
const WATCHED: [&str; 5] = ["kauri-cuda-sim", "kauri-kernels", "kauri-test-kernels", "kauri", "kauri-tests"];

/// The debugger as cargo's runner.
const DEBUGGER: &str = "['gdb', '-quiet', '-ex', 'break cuda_sim::debug::error_found', \
     '-ex', 'break cuda_sim::debug::earlier_access', '-ex', 'run', '--args']";

/// Returns the test program and its module with the tests of a kernel.
fn find_tests(root: &Path, kernel: &str) -> Result<(&'static str, String)> {
    for (kernels, suite) in SUITES {
        let Some(file) = find_kernel(&root.join(kernels), kernel)? else { continue };
        let tests = root.join("tests/tests").join(suite);
        // The file's name first, then the names of its folders.
        let path = file.with_extension("");
        let mut names = path.iter().rev().map_while(|name| name.to_str()).take_while(|name| *name != "src");
        let module = names.find(|name| tests.join(name).with_extension("rs").is_file());
        let Some(module) = module else { bail!("no test of {} in {}", file.display(), tests.display()) };
        return Ok((suite, module.to_owned()));
    }
    bail!("no kernel is named `{kernel}`: kernels are named as in reports, such as `query_nearest_one_f32_2`")
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
