//! Assembles PTX for architectures that can run it, and compares each kernel's resources with the budget.

use crate::budget::{self, Budget};
use crate::parallel;
use crate::ptx::{Built, TEST_FAMILY};
use crate::schedules::number_of_commit;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use cuda_builder::{Arch, Ptxas};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::process::Command;

/// The newest architecture that is assembled for.
const LAST: u16 = 120;
/// The architecture that every test assembles for: that of the recorded benchmarks.
const ALWAYS_TESTED: u16 = 90;
/// Architectures of which a test assembles for one, which depends on the commit. They are the first of each generation, since the others
/// differ by single registers. Each gets the newest PTX that it can run, as in a program. The budget is written for all PTX and
/// architectures.
const TESTED_IN_TURN: [u16; 4] = [75, 80, 100, 120];

/// Result of the check.
pub(crate) struct Outcome {
    /// Reasons to fail, one line each.
    pub(crate) failures: Vec<String>,
    pub(crate) summary: String,
}

/// Assembles everything and compares with the budget, or rewrites the budget.
pub(crate) fn check(workspace: &Workspace, ptxas: &Ptxas, built: &[Built], bless: bool) -> Result<Outcome> {
    let file = workspace.root.join(budget::FILE);
    let allowed = fs::read_to_string(&file).unwrap_or_default();
    let key = key(ptxas, built, &allowed);
    let stamp = workspace.target.join("xtask/ptxas.stamp");
    if !bless && fs::read_to_string(&stamp).is_ok_and(|text| text == key) {
        return Ok(Outcome {
            failures: Vec::new(),
            summary: "unchanged since they were last assembled".to_owned(),
        });
    }

    let mut known = known_architectures(ptxas)?;
    let tested = [ALWAYS_TESTED, TESTED_IN_TURN[number_of_commit(workspace) % TESTED_IN_TURN.len()]];
    known.retain(|sm| bless || tested.contains(sm));
    let mut jobs: Vec<(&Built, u16)> = Vec::new();
    for one in built {
        let own = number(one.ptx.arch);
        let takes = |sm: &&u16| if bless { **sm >= own } else { is_newest(built, one, **sm) };
        jobs.extend(known.iter().filter(takes).map(|sm| (one, *sm)));
    }
    let num_jobs = jobs.len();
    let (taken, mut failures) = assemble_all(ptxas, jobs);

    if bless && failures.is_empty() {
        fs::write(&file, taken.to_text()).with_context(|| format!("cannot write {}", file.display()))?;
        for name in taken.spilling() {
            println!("budget: {name} uses local memory");
        }
    } else {
        let allowed = Budget::parse(&allowed).with_context(|| format!("cannot read {}", budget::FILE))?;
        failures.extend(allowed.violations(&taken));
    }
    if failures.is_empty() && !bless {
        fs::create_dir_all(stamp.parent().context("a folder")?)?;
        fs::write(&stamp, key)?;
    }
    let archs: Vec<String> = known.iter().map(u16::to_string).collect();
    let summary =
        format!("{} kernels for {}, {num_jobs} times PTX and architecture", taken.len(), archs.join(", "));
    Ok(Outcome { failures, summary })
}

/// Returns a table of the resources of kernels on architectures; each runs the newest PTX that it can.
pub(crate) fn table(ptxas: &Ptxas, built: &[Built], archs: &[Arch]) -> Result<String> {
    let jobs = archs.iter().flat_map(|&arch| {
        let newest = built.iter().filter(move |one| is_newest(built, one, number(arch)));
        newest.map(move |one| (one, arch))
    });
    let assembled = parallel::map(jobs.collect(), |(one, arch)| (arch, ptxas.assemble(&one.ptx.path, arch)));
    let mut taken = Budget::default();
    for (arch, kernels) in assembled {
        let kernels = kernels?;
        kernels.iter().filter(|kernel| kernel.is_entry).for_each(|kernel| taken.note(number(arch), kernel));
    }
    Ok(taken.to_table())
}

/// True if a device of an architecture runs this PTX: that of the highest architecture up to its own.
fn is_newest(built: &[Built], one: &Built, sm: u16) -> bool {
    let own = number(one.ptx.arch);
    let mut others = built.iter().filter(|other| other.family == one.family);
    own <= sm && others.all(|other| !(own + 1..=sm).contains(&number(other.ptx.arch)))
}

fn assemble_all(ptxas: &Ptxas, jobs: Vec<(&Built, u16)>) -> (Budget, Vec<String>) {
    let assembled = parallel::map(jobs, |(built, sm)| {
        let arch: Arch = format!("sm_{sm}").parse().expect("a known architecture");
        let kernels = ptxas.assemble(&built.ptx.path, arch);
        (
            built,
            sm,
            kernels.map_err(|error| format!("{}.{} for {arch}: {error}", built.family, built.ptx.arch)),
        )
    });
    let (mut budget, mut failures) = (Budget::default(), Vec::new());
    for (built, sm, kernels) in assembled {
        match kernels {
            Err(failure) => failures.push(failure),
            // The kernels that test the device library have no budget.
            Ok(_) if built.family == TEST_FAMILY => {}
            Ok(kernels) => {
                kernels.iter().filter(|kernel| kernel.is_entry).for_each(|kernel| budget.note(sm, kernel));
            }
        }
    }
    (budget, failures)
}

/// Returns the plain architectures, up to [`LAST`], that this assembler lists in its options.
fn known_architectures(ptxas: &Ptxas) -> Result<Vec<u16>> {
    let output = Command::new(ptxas.path()).arg("--help").output().context("cannot run ptxas")?;
    let help = String::from_utf8_lossy(&output.stdout);
    let named = help.split('\'').filter_map(|word| word.strip_prefix("sm_")?.parse().ok());
    let mut known: Vec<u16> = named.filter(|sm| *sm <= LAST).collect();
    known.sort_unstable();
    known.dedup();
    Ok(known)
}

fn number(arch: Arch) -> u16 {
    let (major, minor) = arch.compute_capability();
    major * 10 + minor
}

/// Returns a text that identifies assembler, PTX and budget.
fn key(ptxas: &Ptxas, built: &[Built], allowed: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), ptxas.path(), allowed).hash(&mut hasher);
    for one in built {
        (&one.family, fs::read(&one.ptx.path).ok()).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
