//! The program `kauri`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let code = kauri_cli::main_on_terminal(std::env::args_os(), &mut out);
    // A reader that has left is no error, and for any other there is nobody to tell.
    let _ = out.flush();
    ExitCode::from(code)
}
