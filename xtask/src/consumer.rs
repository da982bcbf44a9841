//! The packages as a project outside of the workspace uses them: unpacked, and named by their versions.

use crate::cargo::{self, cargo};
use crate::package::{self, Crate};
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// The example of a project with its own kernels.
const EXAMPLE: &str = "host/examples/own-kernel";

/// A second program of the project: queries a tree in the simulator, and needs the kernels of the package if it has an argument.
const PROGRAM: &str = r#"use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};

fn main() -> kauri::Result<()> {
    let tree = KdTree::build(&Device::from_name("sim")?, &[[0.0f32, 0.0], [3.0, 4.0]], &KdTreeOptions::default())?;
    assert_eq!(tree.nearest(&[[2.5, 4.0]], 1)?.row(0).ids(), [1]);
    let kernels = kauri::device::embedded_kernels().count();
    println!("{kernels} kernel files");
    assert!(kernels > 0 || std::env::args().len() == 1, "the package of kauri has no kernels");
    Ok(())
}
"#;

/// Makes the packages, unpacks them, and runs the programs of a project that depends on them. Returns what was done.
pub(crate) fn check(workspace: &Workspace, has_kernels: bool) -> Result<String> {
    let folder = workspace.target.join("packages");
    let crates = package::unpack(package::package(workspace)?, &folder.join("crates"))?;
    let project = folder.join("project");
    write_project(workspace, &crates, &project)?;
    let run = |program: [&str; 2], argument: Option<&str>| {
        let mut command = cargo();
        command.args(["run", "--quiet", "--offline"]).args(program).arg("--").args(argument);
        command.current_dir(&project).env("CARGO_TARGET_DIR", folder.join("target"));
        // Nobody debugs these programs.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env_remove("KAURI_EMBED_PTX");
        cargo::run(&mut command)
    };
    run(["--bin", "packaged"], has_kernels.then_some("kernels"))?;
    if !has_kernels {
        return Ok(format!("{} crates, without kernels", crates.len()));
    }
    run(["--bin", "own-kernel"], Some("sim"))?;
    run(["--example", "11_own_visitor"], Some("sim"))?;
    Ok(format!("{} crates, {EXAMPLE}", crates.len()))
}

/// Copies the example, with versions in place of paths into this workspace.
fn write_project(workspace: &Workspace, crates: &[(Crate, PathBuf)], project: &Path) -> Result<()> {
    let example = workspace.root.join(EXAMPLE);
    let kernels = ["kernels/src/lib.rs", "kernels/src/photons.rs"];
    for file in ["build.rs", "src/main.rs", "examples/11_own_visitor.rs"].into_iter().chain(kernels) {
        write(&project.join(file), &read(&example.join(file))?)?;
    }
    write(&project.join("src/bin/packaged.rs"), PROGRAM)?;
    let mut patches = String::from("\n[patch.crates-io]\n");
    for (krate, folder) in crates {
        patches += &format!("{} = {{ path = {:?} }}\n", krate.name, folder);
    }
    for manifest in ["Cargo.toml", "kernels/Cargo.toml"] {
        let text = without_paths(&read(&example.join(manifest))?, &example.join(manifest))?;
        write(&project.join(manifest), &if manifest == "Cargo.toml" { text + &patches } else { text })?;
    }
    // Cargo then chooses the versions that this workspace has, without a network.
    write(&project.join("Cargo.lock"), &read(&workspace.root.join("Cargo.lock"))?)
}

/// Replaces paths out of the example by versions; the paths must lead to crates.
fn without_paths(text: &str, manifest: &Path) -> Result<String> {
    let folder = manifest.parent().context("a manifest is in a folder")?;
    let mut result = String::new();
    for line in text.lines() {
        let path = line.split_once("path = \"").and_then(|(_, rest)| rest.split('"').next());
        match path.filter(|path| path.starts_with("../")) {
            Some(path) => {
                let krate = folder.join(path).join("Cargo.toml");
                ensure!(krate.is_file(), "{} names {path}, where no crate is", manifest.display());
                result += &line.replace(&format!("path = {path:?}"), "version = \"0.1\"");
            }
            None => result += line,
        }
        result += "\n";
    }
    Ok(result)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file if it would change, so that cargo compiles no unchanged source again.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_the_example_become_versions() {
        let manifest = Workspace::find().unwrap().root.join(EXAMPLE).join("Cargo.toml");
        let text =
            "a = { path = \"kernels\" }\nb = { package = \"b\", path = \"../..\", features = [\"sim\"] }\n";
        let expected =
            "a = { path = \"kernels\" }\nb = { package = \"b\", version = \"0.1\", features = [\"sim\"] }\n";
        assert_eq!(without_paths(text, &manifest).unwrap(), expected);
        assert!(without_paths("a = { path = \"../../nowhere\" }", &manifest).is_err());
    }
}
