//! Checks of the whole workspace: dependencies in use, the README's commands, links between documents, the sizes of the PTX.

use super::{File, Finding};
use crate::cargo::{self, cargo};
use crate::ptx;
use crate::workspace::Workspace;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates that the workspace is to use, not only to name.
const IN_USE: [&str; 4] = ["cust", "cust_derive", "bytemuck", "criterion"];

/// The commands that README promises.
const COMMANDS: [&str; 2] = ["cargo xtask demo", "cargo xtask test"];

pub(super) fn check(workspace: &Workspace, files: &[File]) -> Result<Vec<Finding>> {
    let mut findings = readme(files);
    findings.extend(dead_links(files));
    findings.extend(dependencies()?);
    findings.extend(machine_code(files));
    let dir = workspace.ptx_dir(false);
    let of_ptx = |what| Finding { file: workspace.shown(&dir).to_string(), line: 1, what };
    findings.extend(ptx::over_limits(&ptx::totals_of_dir(&dir)?).into_iter().map(of_ptx));
    Ok(findings)
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

/// Returns the relative links of documents to paths that do not exist.
fn dead_links(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (i, line) in String::from_utf8_lossy(&file.bytes).lines().enumerate() {
            let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            for link in links.filter(|link| !link.is_empty() && !link.contains(':')) {
                let target = resolved(&file.path, link);
                if !files.iter().any(|file| Path::new(&file.path).starts_with(&target)) {
                    let what = format!("the link to `{link}` leads nowhere");
                    findings.push(Finding { file: file.path.clone(), line: i + 1, what });
                }
            }
        }
    }
    findings
}

/// Returns the path, from the workspace's root, of a link in a document.
fn resolved(document: &str, link: &str) -> PathBuf {
    let mut path = PathBuf::from(document);
    path.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(path.pop()),
            "." | "" => {}
            _ => path.push(part),
        }
    }
    path
}

/// The manifests of the crates of machine code differ in the architecture only; their sources are links.
fn machine_code(files: &[File]) -> Vec<Finding> {
    let manifest =
        |file: &&File| file.path.starts_with("machine-code/sm-") && file.path.ends_with("/Cargo.toml");
    let general = |file: &File| {
        let arch = file.path.split(['-', '/']).nth(3).unwrap_or_default();
        String::from_utf8_lossy(&file.bytes)
            .replace(&format!("sm-{arch}"), "")
            .replace(&format!("sm_{arch}"), "")
    };
    let manifests: Vec<_> = files.iter().filter(manifest).collect();
    let others = manifests.iter().filter(|file| general(file) != general(manifests[0]));
    let what = || "differs from the manifest of another architecture".to_owned();
    others.map(|file| Finding { file: file.path.clone(), line: 1, what: what() }).collect()
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

    #[test]
    fn links_lead_to_files_and_folders() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), bytes: text.into() };
        let text = "[a](../host/b.rs#L1) [b](.), [c](https://x.y)\n[d](c.md)\n";
        let found = dead_links(&[file("docs/a.md", text), file("host/b.rs", "")]);
        assert_eq!((found.len(), found[0].line), (1, 2));
    }

    #[test]
    fn manifests_of_machine_code() {
        let file = |arch: &str, text: &str| File {
            path: format!("machine-code/sm-{arch}/Cargo.toml"),
            bytes: text.into(),
        };
        let (a, b) =
            (file("80", "name = \"kauri-sm-80\" # sm_80"), file("100", "name = \"kauri-sm-100\" # sm_100"));
        assert!(machine_code(&[a, b]).is_empty());
        let (a, b) = (file("80", "name = \"kauri-sm-80\""), file("90", "name = \"kauri-sm-80\""));
        assert_eq!(machine_code(&[a, b]).len(), 1);
    }

    #[test]
    fn commands_of_the_readme() {
        assert_eq!(readme(&[]).len(), COMMANDS.len());
        let bytes = COMMANDS.join("\n").into_bytes();
        assert!(readme(&[File { path: "README.md".to_owned(), bytes }]).is_empty());
    }
}
