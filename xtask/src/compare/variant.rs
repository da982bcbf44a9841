//! Variants: parses them, and builds each one from its files in one tree below the target folder, so that a variant compiles only the
//! files that differ from the variant before it.

use super::interface;
use super::policy::{self, Setting};
use crate::bench::git_revision;
use crate::cargo::{self, cargo};
use crate::tidy::{self, File, write_tree};
use crate::workspace::Workspace;
use crate::{ptx, setup};
use anyhow::{Context, Result, bail};
use cuda_builder::Arch;
use serde_json::{Value, json};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of a variant's library in its folder.
pub(super) const LIBRARY: &str = "libkauri_benches.so";

/// The source of a variant.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// The working tree.
    Tree,
    /// A commit.
    Commit(String),
    /// The working tree with other values of the policy.
    Policy(Vec<Setting>),
    /// A report that was saved by `cargo xtask bench --out`.
    Saved(Value),
}

/// A variant to compare.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requested {
    pub(super) label: String,
    pub(super) source: Source,
}

/// A variant that is built.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) label: String,
    /// Its values of the policy, if it is one of a sweep.
    pub(super) settings: Vec<Setting>,
    /// The folder with its library and the packs of its kernels.
    pub(super) folder: PathBuf,
}

/// The parts of a variant to build.
pub(super) struct Build<'a> {
    /// The architectures of its kernels; none for the CPU.
    pub(super) archs: &'a [Arch],
    /// The families of its kernels; none for all.
    pub(super) families: &'a [String],
    /// Whether it is run; otherwise its kernels are only compared.
    pub(super) has_library: bool,
}

/// Name of the empty file that is written after a variant's packs.
const PACKS_WRITTEN: &str = "packs-written";

/// Files that no library of benchmarks depends on.
const UNUSED: [&str; 5] = ["benches/results/", "data/", "docs/", "fuzz/", "xtask/src/"];

impl Requested {
    /// Parses a variant, and checks that it exists.
    pub(super) fn parse(workspace: &Workspace, text: &str) -> Result<Requested> {
        let (source, label) = if text == "." {
            (Source::Tree, format!(". ({})", git_revision(workspace)))
        } else if text.ends_with(".json") {
            (Source::Saved(saved(Path::new(text))?), text.to_owned())
        } else if text.contains('=') {
            let settings = policy::settings(text)?;
            policy::with(&policy_of(workspace)?, &settings)?;
            (Source::Policy(settings), text.to_owned())
        } else {
            let commit = commit(workspace, text)?;
            let label = format!("{text} ({})", commit.get(..12).unwrap_or(&commit));
            (Source::Commit(commit), label)
        };
        Ok(Requested { label, source })
    }

    /// Returns the files of the variant.
    fn files(&self, workspace: &Workspace) -> Result<Vec<File>> {
        let mut files = match &self.source {
            Source::Commit(commit) => files_of_commit(workspace, commit)?,
            _ => tidy::files(&workspace.root)?,
        };
        files.retain(|file| !UNUSED.iter().any(|unused| file.path.starts_with(unused)));
        if let Source::Policy(settings) = &self.source {
            let file = files.iter_mut().find(|file| file.path == policy::FILE);
            let file = file.with_context(|| format!("there is no {}", policy::FILE))?;
            file.bytes = policy::with(&String::from_utf8_lossy(&file.bytes), settings)?.into_bytes();
        }
        // Cargo expects the task's crate in the workspace, but its code is not compiled.
        files.push(File::new("xtask/src/main.rs", "fn main() {}\n"));
        Ok(files)
    }

    /// Builds the variant, unless an earlier call has.
    pub(super) fn build(&self, workspace: &Workspace, parts: &Build<'_>) -> Result<Variant> {
        let files = self.files(workspace)?;
        if !files.iter().any(|file| file.path == "benches/src/interface.rs") {
            bail!("{} is older than `cargo xtask compare`: it has no benches/src/interface.rs", self.label);
        }
        let settings = match &self.source {
            Source::Policy(settings) => settings.clone(),
            _ => Vec::new(),
        };
        let scratch = Scratch::lock(workspace)?;
        let folder = scratch.variant(&files, parts);
        // The library is written last. It does not depend on the kernels.
        if !folder.join(if parts.has_library { LIBRARY } else { PACKS_WRITTEN }).is_file() {
            eprintln!("building {}", self.label);
            scratch.build(workspace, &files, parts).with_context(|| format!("variant {}", self.label))?;
        }
        Ok(Variant { label: self.label.clone(), settings, folder })
    }
}

/// The folder below the target folder where variants are built.
struct Scratch {
    folder: PathBuf,
    /// Calls of this task share the folder.
    _lock: fs::File,
}

impl Scratch {
    fn lock(workspace: &Workspace) -> Result<Scratch> {
        let folder = workspace.target.join("compare");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let lock = fs::File::create(folder.join("lock")).context("cannot write target/compare/lock")?;
        lock.lock().context("cannot lock target/compare")?;
        Ok(Scratch { folder, _lock: lock })
    }

    /// Returns the folder of a variant.
    fn variant(&self, files: &[File], parts: &Build<'_>) -> PathBuf {
        self.folder.join("variants").join(identity(files, parts))
    }

    fn build(&self, workspace: &Workspace, files: &[File], parts: &Build<'_>) -> Result<()> {
        let on_cpu = Build { archs: &[], families: &[], ..*parts };
        let (out, of_cpu) = (self.variant(files, parts), self.variant(files, &on_cpu));
        for folder in [&out, &of_cpu] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        write_tree(&self.folder.join("tree"), files)?;
        if parts.has_library && !of_cpu.join(LIBRARY).is_file() {
            let partial = of_cpu.join("partial");
            copy(&self.build_library()?, &partial)?;
            // Without this tool the library is larger.
            let _ = Command::new("strip").arg("--strip-unneeded").arg(&partial).status();
            fs::rename(&partial, of_cpu.join(LIBRARY)).context("cannot name the library")?;
        }
        if !parts.archs.is_empty() && !out.join(PACKS_WRITTEN).is_file() {
            self.build_kernels(workspace, parts, &out)?;
            fs::write(out.join(PACKS_WRITTEN), "").context("cannot mark the packs as written")?;
        }
        if parts.has_library && out != of_cpu {
            fs::hard_link(of_cpu.join(LIBRARY), out.join(LIBRARY)).context("cannot link the library")?;
        }
        Ok(())
    }

    /// Compiles the kernels of the tree, and copies their packs.
    fn build_kernels(&self, workspace: &Workspace, parts: &Build<'_>, out: &Path) -> Result<()> {
        let toolchain = setup::device_toolchain(workspace)?;
        let tree = Workspace { root: self.folder.join("tree"), target: workspace.target.clone() };
        let archs = parts.archs.iter().map(Arch::to_string);
        let names: Vec<String> = archs.chain(parts.families.iter().cloned()).collect();
        let packs = self.folder.join("ptx").join(names.join("-"));
        fs::create_dir_all(&packs).with_context(|| format!("cannot make {}", packs.display()))?;
        ptx::build_for(&tree, &toolchain, parts.archs, parts.families, &packs)?;
        for entry in fs::read_dir(&packs)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(cuda_pack::EXTENSION) && !name.starts_with(ptx::TEST_FAMILY) {
                copy(&path, &out.join(name))?;
            }
        }
        Ok(())
    }

    /// Compiles the library of the tree, and returns its path.
    fn build_library(&self) -> Result<PathBuf> {
        let target = self.folder.join("build");
        let mut command = cargo();
        command.current_dir(self.folder.join("tree")).env("CARGO_TARGET_DIR", &target);
        // The kernels are files beside the library.
        command.env("KAURI_EMBED_PTX", "0");
        command.args(["rustc", "--release", "--package", "kauri-benches", "--lib", "--crate-type", "cdylib"]);
        cargo::run(&mut command)?;
        Ok(target.join("release").join(LIBRARY))
    }
}

impl Variant {
    /// Returns the variant as JSON, with its folder's name.
    pub(super) fn to_json(&self) -> Value {
        let settings = self.settings.iter().map(|set| json!([set.path, set.value])).collect::<Vec<_>>();
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        json!({ "label": self.label, "settings": settings, "folder": folder })
    }

    /// Reads a variant of JSON, whose folder lies in `folder`.
    pub(super) fn from_json(json: &Value, folder: &Path) -> Option<Variant> {
        let setting = |pair: &Value| {
            Some(Setting { path: pair[0].as_str()?.to_owned(), value: pair[1].as_str()?.to_owned() })
        };
        Some(Variant {
            label: json["label"].as_str()?.to_owned(),
            settings: json["settings"].as_array()?.iter().map(setting).collect::<Option<_>>()?,
            folder: folder.join(json["folder"].as_str()?),
        })
    }
}

/// Returns the text of the working tree's policy.
pub(super) fn policy_of(workspace: &Workspace) -> Result<String> {
    fs::read_to_string(workspace.root.join(policy::FILE))
        .with_context(|| format!("cannot read {}", policy::FILE))
}

/// Reads a saved report.
fn saved(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let report: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    if !report["rows"].is_array() || !report["suite"].is_string() {
        bail!("{} is no report of `cargo xtask bench --out`", path.display());
    }
    Ok(report)
}

/// Returns the full name of a commit.
fn commit(workspace: &Workspace, revision: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let output = git.arg(format!("{revision}^{{commit}}")).output().context("cannot run git")?;
    if !output.status.success() {
        bail!(
            "there is no variant `{revision}`: a variant is a git revision, `.` for the working tree, NAME=VALUE for another value of \
             {}, or a report FILE.json of `cargo xtask bench --out`",
            policy::FILE
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the files of a commit, by a worktree that exists only for this.
fn files_of_commit(workspace: &Workspace, commit: &str) -> Result<Vec<File>> {
    let folder = workspace.target.join("compare/revision");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&workspace.root).arg("worktree").args(args).arg(&folder);
        git
    };
    // One is left if an earlier call was interrupted.
    let _ = git(&["remove", "--force"]).output();
    cargo::read(git(&["add", "--quiet", "--force", "--detach"]).arg(commit))?;
    let files = tidy::files(&folder);
    cargo::read(&mut git(&["remove", "--force"]))?;
    files
}

/// Returns a name for files, architectures and families. Documents do not count.
fn identity(files: &[File], parts: &Build<'_>) -> String {
    let mut hasher = DefaultHasher::new();
    let archs: Vec<String> = parts.archs.iter().map(Arch::to_string).collect();
    (interface::VERSION, archs, parts.families).hash(&mut hasher);
    for file in files.iter().filter(|file| !file.path.ends_with(".md")) {
        (&file.path, &file.bytes).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_depend_on_sources() {
        let on_cpu = Build { archs: &[], families: &[], has_library: true };
        let parts = Build { archs: &[Arch::SM_90], ..on_cpu };
        let of = |files: &[File]| identity(files, &parts);
        let one = of(&[File::new("a.rs", "1"), File::new("README.md", "1")]);
        assert_eq!(one, of(&[File::new("a.rs", "1"), File::new("README.md", "2")]));
        assert_ne!(one, of(&[File::new("a.rs", "2")]));
        assert_ne!(one, identity(&[File::new("a.rs", "1")], &on_cpu));
        let families = ["join".to_owned()];
        assert_ne!(one, identity(&[File::new("a.rs", "1")], &Build { families: &families, ..parts }));
    }

    #[test]
    fn variants_that_do_not_exist_are_named() {
        let workspace = Workspace::find().unwrap();
        for (text, part) in [
            ("no-such-revision", "there is no variant `no-such-revision`"),
            ("NO_THREADS=1", "no constant `NO_THREADS`"),
            ("no-such-report.json", "cannot read no-such-report.json"),
        ] {
            let error = format!("{:#}", Requested::parse(&workspace, text).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        let policy = Requested::parse(&workspace, "JOIN_THREADS=64").unwrap();
        assert!(matches!(policy.source, Source::Policy(_)));
        assert_eq!(Requested::parse(&workspace, ".").unwrap().source, Source::Tree);
    }

    #[test]
    fn variants_are_read_as_written() {
        let settings = vec![Setting { path: "A".to_owned(), value: "1".to_owned() }];
        let variant = Variant { label: "A=1".to_owned(), settings, folder: "some/folder".into() };
        let read = Variant::from_json(&variant.to_json(), Path::new("some")).unwrap();
        assert_eq!(
            (read.label, read.settings, read.folder),
            (variant.label, variant.settings, variant.folder)
        );
        assert!(Variant::from_json(&json!({}), Path::new("some")).is_none());
    }
}
