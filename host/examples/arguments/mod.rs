//! Arguments of the examples: each is used, or refused with exit code 2.

use std::fmt::Display;
use std::process::exit;

/// Parses up to `most` arguments. For more arguments, options, and arguments that `parse` refuses it prints the reason and `usage`, and ends
/// the program.
pub(crate) fn arguments<T, E: Display>(
    usage: &str,
    most: usize,
    mut parse: impl FnMut(&str) -> Result<T, E>,
) -> Vec<T> {
    let refuse = |argument: &str, reason: &dyn Display| -> ! {
        eprintln!("error: argument '{argument}': {reason}\nusage: {usage}");
        exit(2)
    };
    let mut parsed = |(i, argument): (usize, std::ffi::OsString)| {
        let argument = argument.to_string_lossy();
        if i >= most || argument.starts_with("--") {
            refuse(&argument, &"not expected");
        }
        parse(&argument).unwrap_or_else(|error| refuse(&argument, &error))
    };
    std::env::args_os().skip(1).enumerate().map(&mut parsed).collect()
}
