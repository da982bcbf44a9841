//! The simulator's schedules that `cargo xtask test` runs: a few for each change, which depend on the commit, and all with `--thorough`.

use crate::bench::git_revision;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Number of standard schedules.
pub(crate) const ALL: usize = 20;
/// Number of schedules for a change.
const SOME: usize = 3;

/// Variables that choose schedules; if one is set, it is obeyed.
const CHOSEN: [&str; 3] = ["KAURI_SIM_ORDERS", "SIM_SEED", "SIM_ORDER"];

/// The schedules of a run.
pub(crate) enum Schedules {
    All,
    /// [`SOME`] schedules from this one on, modulo [`ALL`].
    Some {
        first: usize,
    },
    /// The environment names the schedules.
    Environment,
}

impl Schedules {
    pub(crate) fn choose(workspace: &Workspace, is_thorough: bool) -> Self {
        if is_thorough {
            return Self::All;
        }
        if CHOSEN.iter().any(|name| env::var_os(name).is_some()) {
            return Self::Environment;
        }
        Self::Some { first: number_of_commit(workspace) % ALL }
    }

    /// Sets the variables that the tests read.
    pub(crate) fn set(&self, command: &mut Command) {
        let (count, first) = match self {
            Self::All => (ALL, 0),
            Self::Some { first } => (SOME, *first),
            Self::Environment => return,
        };
        command.env("KAURI_SIM_ORDERS", count.to_string()).env("KAURI_SIM_FIRST_ORDER", first.to_string());
    }

    /// Describes the schedules, and when all of them ran last.
    pub(crate) fn describe(&self, workspace: &Workspace) -> String {
        let these = match self {
            Self::All => return format!("all {ALL}"),
            Self::Some { first } => format!("{SOME} of {ALL}, from number {first} on"),
            Self::Environment => "as the environment says".to_owned(),
        };
        format!("{these}; {}", last_of_all(workspace))
    }
}

/// Returns a number that chooses what is tested for this commit, where a run tests only a part.
pub(crate) fn number_of_commit(workspace: &Workspace) -> usize {
    let mut hasher = DefaultHasher::new();
    git_revision(workspace).trim_end_matches("-dirty").hash(&mut hasher);
    hasher.finish() as usize
}

/// Records that a run under all schedules passed.
pub(crate) fn record(workspace: &Workspace) -> Result<()> {
    let path = stamp(workspace);
    fs::create_dir_all(path.parent().context("the stamp is in a folder")?)?;
    fs::write(&path, git_revision(workspace)).with_context(|| format!("cannot write {}", path.display()))
}

fn last_of_all(workspace: &Workspace) -> String {
    let path = stamp(workspace);
    let modified = fs::metadata(&path).and_then(|meta| meta.modified());
    match (fs::read_to_string(&path), modified) {
        (Ok(revision), Ok(time)) => {
            let age = SystemTime::now().duration_since(time).unwrap_or_default();
            format!("all passed {} ago at {revision}", in_words(age))
        }
        _ => "all never passed in this target folder (`cargo xtask test --thorough`)".to_owned(),
    }
}

fn in_words(age: Duration) -> String {
    let hours = age.as_secs() / 3600;
    if hours < 48 { format!("{hours} hours") } else { format!("{} days", hours / 24) }
}

fn stamp(workspace: &Workspace) -> PathBuf {
    workspace.target.join("xtask/all-schedules")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_described() {
        let target = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: Workspace::find().unwrap().root, target: target.path().to_owned() };
        let some = Schedules::Some { first: 3 };
        assert!(some.describe(&workspace).contains("never"));
        record(&workspace).unwrap();
        assert!(some.describe(&workspace).contains("all passed 0 hours ago"));
        assert_eq!(in_words(Duration::from_secs(3 * 24 * 3600)), "3 days");
    }
}
