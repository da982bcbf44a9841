//! What is checked between files: folders that mirror each other, dependencies in use, the README's commands, the sizes of
//! the PTX.

use super::{File, Finding};
use crate::cargo::{self, cargo};
use crate::ptx;
use crate::workspace::Workspace;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeSet;

/// Folders of `kernels/src` that are building blocks of kernels; every other one has its half in `host/src`.
const BUILDING_BLOCKS: [&str; 3] = ["thread", "warp", "block"];

/// Crates that the workspace is to use, not only to name.
const IN_USE: [&str; 4] = ["cust", "cust_derive", "bytemuck", "criterion"];

/// The commands that README promises.
const COMMANDS: [&str; 2] = ["cargo xtask demo", "cargo xtask test"];

pub(super) fn check(workspace: &Workspace, files: &[File]) -> Result<Vec<Finding>> {
    let mut findings = mirror(files);
    findings.extend(readme(files));
    findings.extend(dependencies()?);
    let dir = workspace.ptx_dir(false);
    let of_ptx = |what| Finding { file: workspace.shown(&dir).to_string(), line: 1, what };
    findings.extend(ptx::over_limits(&ptx::totals_of_dir(&dir)?).into_iter().map(of_ptx));
    Ok(findings)
}

/// A folder of kernels and the folder of the same name in the host are the two halves of one thing.
fn mirror(files: &[File]) -> Vec<Finding> {
    let folders = |root: &str| -> BTreeSet<String> {
        let below = files.iter().filter_map(|file| file.path.strip_prefix(root)?.split_once('/'));
        below.map(|(folder, _)| folder.to_owned()).collect()
    };
    let host = folders("host/src/");
    let kernels =
        folders("kernels/src/").into_iter().filter(|folder| !BUILDING_BLOCKS.contains(&folder.as_str()));
    let lonely = kernels.filter(|folder| !host.contains(folder));
    lonely
        .map(|folder| Finding {
            file: format!("kernels/src/{folder}"),
            line: 1,
            what: format!("has no other half host/src/{folder}"),
        })
        .collect()
}

fn readme(files: &[File]) -> Vec<Finding> {
    let readme = files.iter().find(|file| file.path == "README.md");
    let text = readme.map(|file| String::from_utf8_lossy(&file.bytes)).unwrap_or_default();
    let missing = COMMANDS.iter().filter(|command| !text.contains(**command));
    missing
        .map(|command| Finding {
            file: "README.md".to_owned(),
            line: 1,
            what: format!("does not name `{command}`"),
        })
        .collect()
}

/// Every crate of [`IN_USE`] is a dependency of a member, as cargo resolves them.
fn dependencies() -> Result<Vec<Finding>> {
    let text = cargo::read(cargo().args(["metadata", "--format-version=1", "--quiet"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let members = array(&metadata["workspace_members"]);
    let nodes = array(&metadata["resolve"]["nodes"]);
    let of_members = nodes.iter().filter(|node| members.contains(&node["id"]));
    let used: BTreeSet<String> = of_members
        .flat_map(|node| array(&node["deps"]))
        .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
        .collect();
    let missing = IN_USE.iter().filter(|name| !used.contains(**name));
    Ok(missing
        .map(|name| Finding {
            file: "Cargo.toml".to_owned(),
            line: 1,
            what: format!("no member uses {name}"),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Vec<File> {
        paths.iter().map(|path| File { path: (*path).to_owned(), bytes: Vec::new() }).collect()
    }

    #[test]
    fn folders_mirror_each_other() {
        let both = [
            "kernels/src/kdtree/a.rs",
            "kernels/src/warp/b.rs",
            "kernels/src/lib.rs",
            "host/src/kdtree/mod.rs",
        ];
        assert!(mirror(&files(&both)).is_empty());
        let found = mirror(&files(&both[..3]));
        assert!(found.len() == 1 && found[0].file == "kernels/src/kdtree", "{found:?}");
    }

    #[test]
    fn commands_of_the_readme() {
        assert_eq!(readme(&files(&["README.md"])).len(), COMMANDS.len());
        let bytes = COMMANDS.join("\n").into_bytes();
        assert!(readme(&[File { path: "README.md".to_owned(), bytes }]).is_empty());
    }
}
