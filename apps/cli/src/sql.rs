//! `kauri sql`: SQL queries by the program `kauri-sql`, a package of its own.

use super::{CliError, Result};
use clap::Args;
use std::ffi::OsString;
use std::process::Command;
use std::{env, io};

const PROGRAM: &str = "kauri-sql";

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(super) struct Sql {
    /// The arguments of kauri-sql
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Sql {
    /// Runs the program that lies beside this one, or else one that the environment finds. Returns false if it fails; it has said why.
    pub(super) fn run(self) -> Result<bool> {
        let beside = env::current_exe().ok().map(|program| program.with_file_name(PROGRAM));
        let program = beside.filter(|program| program.is_file()).unwrap_or_else(|| PROGRAM.into());
        match Command::new(program).args(self.arguments).status() {
            Ok(status) => Ok(status.success()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CliError::NoSqlProgram),
            Err(error) => Err(error.into()),
        }
    }
}
