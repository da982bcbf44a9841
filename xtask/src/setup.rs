//! `setup`: prepares a toolchain for device code, and NVIDIA's assembler for the tests.

use crate::workspace::Workspace;
use anyhow::Result;
use cuda_builder::{Ptxas, Toolchain, toolchain};
use std::process::{Command, Stdio};

/// Prepare the device toolchain and ptxas; prints each step
#[derive(clap::Args)]
pub(crate) struct Setup {}

impl Setup {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let prepared = Toolchain::prepare(&toolchain::Options::from_env(&workspace.target))?;
        for step in &prepared.steps {
            println!("toolchain: {step}");
        }
        println!("toolchain: ready, {}", prepared.toolchain);
        match Ptxas::prepare(&workspace.target) {
            Ok((_, steps)) => steps.iter().for_each(|step| println!("ptxas: {step}")),
            // Only a check of the tests needs it.
            Err(error) => {
                println!("ptxas: {error}");
                if !has_pip() {
                    println!("ptxas: Python's pip, which could bring it, is not there");
                }
            }
        }
        Ok(())
    }
}

fn has_pip() -> bool {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the device toolchain, and prepares it if needed. Prints each step that was necessary.
pub(crate) fn device_toolchain(workspace: &Workspace) -> cuda_builder::Result<Toolchain> {
    let options = toolchain::Options::from_env(&workspace.target);
    if let Ok(toolchain) = Toolchain::locate(&options) {
        return Ok(toolchain);
    }
    let prepared = Toolchain::prepare(&options)?;
    for step in &prepared.steps {
        println!("toolchain: {step}");
    }
    Ok(prepared.toolchain)
}
