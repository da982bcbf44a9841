//! Names of output files: the extension selects the format, and a format is never written with another extension.

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// Extensions of pictures.
pub(super) const PICTURE: &[&str] = &["png"];
/// Extensions of CSV files.
pub(super) const CSV: &[&str] = &["csv"];

/// Parses the name of a file to write, which must have one of these extensions. Devices and pipes, such as `/dev/stdout`, and what is
/// there and no file may have any name.
pub(super) fn with_extension(known: &'static [&'static str]) -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(move |name| {
        let path = PathBuf::from(name);
        if is_stream(&path) || path.is_dir() || known.iter().any(|one| has_extension(&path, one)) {
            return Ok(path);
        }
        let known: Vec<String> = known.iter().map(|one| format!(".{one}")).collect();
        Err(format!("no such form is written; the name must end in {}", known.join(" or ")))
    })
}

/// True if the name of a file ends in a dot and this extension, in any case.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|given| given.eq_ignore_ascii_case(extension))
}

/// True for a pipe or a device, whose name does not select a format.
pub(super) fn is_stream(path: &Path) -> bool {
    path.starts_with("/dev") || path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_form() {
        let command = clap::Command::new("x")
            .arg(clap::Arg::new("out").long("out").value_parser(with_extension(PICTURE)));
        let parse = |name: &str| command.clone().try_get_matches_from(["x", "--out", name]);
        for name in ["a.png", "A.PNG", "/dev/null", "/dev/stdout", "."] {
            assert!(parse(name).is_ok(), "{name}");
        }
        for name in ["a", "png", "a.jpg", "a.png.gz", ".png", ""] {
            let text = parse(name).unwrap_err().to_string();
            assert!(
                text.contains("--out") && (text.contains("must end in .png") || name.is_empty()),
                "{text}"
            );
        }
    }
}
