//! `doctor`: shows which tools and devices for kauri this machine has.

use crate::cargo;
use crate::demo::kauri;
use crate::workspace::Workspace;
use anyhow::Result;
use cuda_builder::{Ptxas, Toolchain, toolchain};
use std::fs;

/// Show what this machine has: device toolchain, ptxas, PTX, driver, devices
#[derive(clap::Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        match Toolchain::locate(&toolchain::Options::from_env(&workspace.target)) {
            Ok(toolchain) => println!("toolchain   {toolchain}"),
            Err(error) => println!("toolchain   {error}"),
        }
        match Ptxas::locate(&workspace.target) {
            Ok(ptxas) => println!("ptxas       {}", workspace.shown(ptxas.path())),
            Err(error) => println!("ptxas       {error}"),
        }
        for checked in [false, true] {
            let kind = if checked { "PTX checked" } else { "PTX" };
            println!("{kind:<11} {}", ptx_files(&workspace, checked));
        }
        // The rest is the program's command, for users of the library.
        cargo::run(kauri(&workspace, "cuda").arg("doctor"))
    }
}

fn ptx_files(workspace: &Workspace, checked: bool) -> String {
    let names = fs::read_dir(workspace.ptx_dir(checked)).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".ptx"));
    names.sort();
    let command = if checked { "cargo xtask ptx --checked" } else { "cargo xtask ptx" };
    if names.is_empty() { format!("none; `{command}` builds it") } else { names.join(" ") }
}
