//! The program `kauri-sql`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let code = kauri_sql::cli::main_with(std::env::args_os(), &mut out, &mut io::stderr());
    // A closed pipe is not an error, and other failures cannot be reported.
    let _ = out.flush();
    ExitCode::from(code)
}
