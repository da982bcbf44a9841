//! Names of output files: the extension selects the format, and a format is never written with another extension.

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// Extensions of pictures.
pub(super) const PICTURE: &[&str] = &["png"];
/// Extensions of rasters.
#[cfg(feature = "terrain")]
pub(super) const RASTER: &[&str] = &["tif", "tiff", "asc"];
/// Extensions of CSV files.
pub(super) const CSV: &[&str] = &["csv"];

/// The name of standard input and of standard output.
pub(super) const STANDARD_STREAM: &str = "-";

/// Parses the name of an output file, which must have one of these extensions. Devices, pipes and folders may have any name: the first
/// two, such as `/dev/stdout`, have no extension, and a folder gives a clearer error when it is written.
pub(super) fn with_extension(known: &'static [&'static str]) -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(move |name| checked(name.into(), known))
}

/// Parses `-`, or the name of an output file as [`with_extension`].
pub(super) fn standard_or_with_extension(
    known: &'static [&'static str],
) -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(move |name| match name == STANDARD_STREAM {
        true => Ok(name.into()),
        false => checked(name.into(), known),
    })
}

fn checked(path: PathBuf, known: &[&str]) -> Result<PathBuf, String> {
    if is_stream(&path) || path.is_dir() || known.iter().any(|one| has_extension(&path, one)) {
        return Ok(path);
    }
    let known: Vec<String> = known.iter().map(|one| format!(".{one}")).collect();
    Err(format!("unknown format: the name must end in {}", known.join(" or ")))
}

/// Returns true if the name of a file has this extension, in any case.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|given| given.eq_ignore_ascii_case(extension))
}

/// Returns true for a pipe or a device, whose name does not select a format.
pub(super) fn is_stream(path: &Path) -> bool {
    path.starts_with("/dev") || path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_checked() {
        let command = clap::Command::new("x")
            .arg(clap::Arg::new("out").long("out").value_parser(with_extension(PICTURE)));
        let parse = |name: &str| command.clone().try_get_matches_from(["x", "--out", name]);
        for name in ["a.png", "A.PNG", "/dev/null", "/dev/stdout", "."] {
            assert!(parse(name).is_ok(), "{name}");
        }
        for name in ["a", "png", "a.jpg", "a.png.gz", ".png", "-", ""] {
            let text = parse(name).unwrap_err().to_string();
            assert!(
                text.contains("--out") && (text.contains("must end in .png") || name.is_empty()),
                "{text}"
            );
        }
    }
}
