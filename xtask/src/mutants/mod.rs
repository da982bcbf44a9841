//! `mutants`: mutation tests. Each mutant is a small mistake in a kernel; the simulator's suite must notice it.

mod list;

use crate::cargo::{Failed, cargo};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail, ensure};
use list::{Kernel, MUTANTS, Mutant};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Run the simulator's suite against kernels with known mistakes; it must fail each time
#[derive(clap::Args)]
pub(crate) struct Mutants {
    /// Only mutants whose description contains this text
    filter: Option<String>,
}

/// Result of the suite for a mutant.
#[derive(PartialEq)]
enum Verdict {
    Killed,
    Survived,
    DoesNotCompile,
}

impl Mutants {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let tree = Tree::copy_of(&workspace)?;
        let filter = |m: &&Mutant| self.filter.as_ref().is_none_or(|f| m.what.contains(f.as_str()));
        let chosen: Vec<_> = MUTANTS.iter().filter(filter).collect();
        let own = chosen.iter().flat_map(|m| m.kernel.tests).copied();
        let tests: Vec<_> =
            if self.filter.is_some() { ["--"].into_iter().chain(own).collect() } else { vec![] };
        ensure!(succeeds(&tree.root, &tests, ALL_ORDERS)?, "the suite fails without any mutant");
        println!("the suite passes without mutants");

        let mut bad = 0;
        for mutant in chosen {
            let verdict = tree.verdict(mutant)?;
            let text = match verdict {
                Verdict::Killed => "killed",
                Verdict::Survived => "SURVIVED",
                Verdict::DoesNotCompile => "DOES NOT COMPILE",
            };
            println!("{text:<17} {}", mutant.what);
            bad += usize::from(verdict != Verdict::Killed);
        }
        if bad > 0 { Err(Failed(1).into()) } else { Ok(()) }
    }
}

/// A copy of the sources, so that no mistake is ever in the real sources.
struct Tree {
    root: PathBuf,
}

impl Tree {
    fn copy_of(workspace: &Workspace) -> Result<Self> {
        let root = workspace.target.join("mutants").join("tree");
        let _ = fs::remove_dir_all(&root);
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&workspace.root)
            .output()
            .context("cannot run git")?;
        ensure!(list.status.success(), "git does not know this folder");
        for name in String::from_utf8(list.stdout)?.split_terminator('\0') {
            let (from, to) = (workspace.root.join(name), root.join(name));
            if from.is_file() {
                fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
                fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
            }
        }
        Ok(Self { root })
    }

    /// Runs the suite with one mutant, and restores the tree.
    fn verdict(&self, mutant: &Mutant) -> Result<Verdict> {
        let Kernel { file, tests } = mutant.kernel;
        let path = self.root.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        match text.matches(mutant.from).count() {
            1 => {}
            n => bail!("{}: its text is {n} times in {file}: correct the list", mutant.what),
        }
        fs::write(&path, text.replace(mutant.from, mutant.to))?;
        let verdict = self.suite(tests);
        fs::write(&path, text)?;
        verdict
    }

    fn suite(&self, tests: &[&str]) -> Result<Verdict> {
        if !succeeds(&self.root, &["--no-run"], ALL_ORDERS)? {
            return Ok(Verdict::DoesNotCompile);
        }
        let own: Vec<_> = [&["--"], tests].concat();
        // Most mistakes show under any schedule in the kernel's own tests; the others get all.
        for (args, orders) in [(&*own, "2"), (&*own, ALL_ORDERS), (&[], ALL_ORDERS)] {
            if !succeeds(&self.root, args, orders)? {
                return Ok(Verdict::Killed);
            }
        }
        Ok(Verdict::Survived)
    }
}

/// Default number of schedules of the suite.
const ALL_ORDERS: &str = "20";

fn succeeds(root: &Path, args: &[&str], orders: &str) -> Result<bool> {
    let status = cargo()
        .args(["test", "--quiet", "--package", "kauri-tests", "--test", "sim"])
        .args(args)
        .current_dir(root)
        .env("CARGO_TARGET_DIR", root.with_file_name("target"))
        .env("KAURI_SIM_ORDERS", orders)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels change; without this test a mutant whose text is gone is noticed only when somebody runs the mutants.
    #[test]
    fn every_mutant_has_its_text() {
        let workspace = Workspace::find().unwrap();
        for Mutant { what, kernel, from, to } in MUTANTS {
            let text = fs::read_to_string(workspace.root.join(kernel.file)).unwrap();
            assert_eq!(text.matches(from).count(), 1, "{what}");
            assert_ne!(from, to, "{what}");
        }
    }
}
