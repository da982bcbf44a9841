//! The program `kauri`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let code = kauri_cli::main_on_terminal(std::env::args_os(), &mut out);
    // A closed pipe is not an error, and other failures cannot be reported.
    let _ = out.flush();
    ExitCode::from(code)
}
