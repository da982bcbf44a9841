//! The program `kauri`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let code = kauri::cli::main_with(std::env::args_os(), &mut out, &mut io::stderr().lock());
    // A reader that has left is no error, and for any other there is nobody to tell.
    let _ = out.flush();
    ExitCode::from(code)
}
