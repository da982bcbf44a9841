//! `tidy`: checks the invariants of the architecture that a program can check, plain English, and matters of form. Also a test.

mod cycles;
mod language;
mod layout;
mod mirror;
mod order;
mod sources;

use crate::cargo::Failed;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Check what the compiler does not: invariants of the architecture, plain English, form, sizes
#[derive(clap::Args)]
pub(crate) struct Tidy {}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// From the workspace's root.
    file: String,
    /// From 1.
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A file of the repository.
pub(crate) struct File {
    /// From the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<Vec<u8>>) -> File {
        File { path: path.into(), bytes: text.into() }
    }

    /// Returns the lines of code without comments, and without the tests at the end, which may import anything.
    fn code(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        text.lines().flat_map(|line| [line.split("//").next().unwrap_or_default(), "\n"]).collect()
    }
}

impl Tidy {
    pub(crate) fn run(self) -> Result<()> {
        let findings = findings(&Workspace::find()?)?;
        if findings.is_empty() {
            println!("tidy");
            return Ok(());
        }
        findings.iter().for_each(|finding| println!("{finding}"));
        eprintln!("error: {} findings", findings.len());
        Err(Failed(1).into())
    }
}

fn findings(workspace: &Workspace) -> Result<Vec<Finding>> {
    let files = files(&workspace.root)?;
    let mut findings = findings_in(&files);
    findings.extend(layout::check(workspace, &files)?);
    Ok(findings)
}

/// Returns the findings that need the texts only.
fn findings_in(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().flat_map(sources::check).collect();
    findings.extend(files.iter().flat_map(language::check));
    findings.extend(mirror::check(files));
    findings.extend(order::check(files));
    findings.extend(cycles::check(files));
    findings
}

/// Returns the files that are in the repository or would be added by `git add`; without git, all files outside of hidden and target
/// folders.
pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .stderr(Stdio::null());
    let listed = git.output().ok().filter(|output| output.status.success());
    let paths: Vec<String> = match listed {
        Some(output) => String::from_utf8(output.stdout)?.split_terminator('\0').map(str::to_owned).collect(),
        None => {
            let mut paths = Vec::new();
            collect_paths(root, "", &mut paths)?;
            paths
        }
    };
    let read = |path: String| {
        let full = root.join(&path);
        // The file was removed but is still in git's index.
        if !full.is_file() {
            return Ok(None);
        }
        let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        Ok(Some(File { path, bytes }))
    };
    paths.into_iter().filter_map(|path| read(path).transpose()).collect()
}

fn collect_paths(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if !entry.file_type()?.is_dir() {
            paths.push(path);
        } else if !name.starts_with('.') && !entry.path().join("CACHEDIR.TAG").exists() {
            collect_paths(root, &path, paths)?;
        }
    }
    Ok(())
}

/// Writes files to a folder, and removes the other files that an earlier call wrote. Files that do not change keep their time.
pub(crate) fn write_tree(tree: &Path, files: &[File]) -> Result<()> {
    let list = tree.with_extension("files");
    let old = fs::read_to_string(&list).unwrap_or_default();
    let new: HashMap<&str, &File> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    for path in old.lines().filter(|path| !new.contains_key(path)) {
        // It may have been removed by hand.
        let _ = fs::remove_file(tree.join(path));
    }
    for (path, file) in &new {
        let to = tree.join(path);
        if fs::read(&to).is_ok_and(|bytes| bytes == file.bytes) {
            continue;
        }
        let folder = to.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&to, &file.bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    let mut paths: Vec<&str> = new.into_keys().collect();
    paths.sort_unstable();
    fs::write(&list, paths.join("\n")).with_context(|| format!("cannot write {}", list.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_follow_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        write_tree(&tree, &[File::new("a/b.rs", "1"), File::new("c.rs", "1")]).unwrap();
        let time = |path: &str| fs::metadata(tree.join(path)).unwrap().modified().unwrap();
        let before = time("a/b.rs");
        write_tree(&tree, &[File::new("a/b.rs", "1"), File::new("d.rs", "2")]).unwrap();
        assert_eq!(time("a/b.rs"), before);
        assert!(!tree.join("c.rs").exists());
        assert_eq!(fs::read_to_string(tree.join("d.rs")).unwrap(), "2");
    }

    #[test]
    fn the_workspace_is_tidy() {
        let findings = findings(&Workspace::find().unwrap()).unwrap();
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn a_generated_kernel_is_tidy() {
        let root = Workspace::find().unwrap().root;
        let mut files = files(&root).unwrap();
        for (path, text) in crate::new_kernel::in_workspace(&root, "prefix_min").unwrap() {
            files.retain(|file| file.path != path);
            files.push(File { path, bytes: text.into_bytes() });
        }
        let order = files.iter().find(|file| file.path == "xtask/src/tidy/order.rs").unwrap();
        assert!(String::from_utf8_lossy(&order.bytes).contains("    \"prefix_min\",\n"));
        // This program has the former order of modules.
        let findings =
            findings_in(&files).into_iter().filter(|finding| !finding.what.contains("lacks `prefix_min`"));
        let lines: Vec<String> = findings.map(|finding| finding.to_string()).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
