//! Errors of commands, in terms of command line options.

use std::io;
use std::path::PathBuf;

use super::data;
use kauri::Error;

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("{}", in_options(.0))]
    Kauri(#[from] Error),
    #[error(
        "there is no {file} in {}; name the file with {flag}, or its folder with the environment variable {}",
        folders(searched),
        data::FOLDER_VARIABLE
    )]
    NoData { file: &'static str, flag: &'static str, searched: Vec<PathBuf> },
    #[error("{0}")]
    Arguments(&'static str),
    /// Planar coordinates in different reference systems, or in a known and an unknown one.
    #[error("{}", different_systems(left.as_deref(), right.as_deref()))]
    Systems { left: Option<String>, right: Option<String> },
    /// An invalid value of an option, in the words of clap.
    #[error("invalid value '{value}' for '{option}': {reason}\n\nFor more information, try '--help'.")]
    Value { option: &'static str, value: String, reason: &'static str },
    /// Points that the options leave out, or that they cannot use.
    #[cfg(feature = "terrain")]
    #[error("{0}")]
    Points(String),
    #[error("the program kauri-sql is not installed: in a clone, cargo install --path apps/sql")]
    NoSqlProgram,
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// Returns true for a closed pipe, which is not a failure.
    pub(super) fn is_reader_gone(&self) -> bool {
        let (Self::Output(source) | Self::Kauri(Error::Io { source, .. })) = self else { return false };
        source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Names of parameters in errors of the library, and the options that set them.
const OPTIONS: [(&str, &str); 15] = [
    ("width of a picture", "--size"),
    ("height of a picture", "--size"),
    ("samples of a pixel", "--samples"),
    ("rays of ambient occlusion", "--ao"),
    ("field of view in degrees", "--field-of-view"),
    ("points of a leaf", "--leaf-points"),
    ("number of nearest points", "--k"),
    ("power", "--power"),
    ("radius", "--radius"),
    ("edge", "--max-edge"),
    ("azimuth of the light in degrees", "--azimuth"),
    ("altitude of the light in degrees", "--altitude"),
    ("factor of heights", "--z-factor"),
    ("size of windows", "--max-window-size"),
    ("slope", "--slope"),
];

/// The items of the error of a raster that is too large.
const CELLS: &str = "cells of a raster";

/// Returns the text of a library error in terms of the command line: it names options instead of function calls.
fn in_options(error: &Error) -> String {
    match error {
        Error::ResultTooLarge { bytes, memory, free, .. }
        | Error::OutOfMemory { requested: bytes, memory, free, .. } => format!(
            "this does not fit in memory: it needs {bytes} bytes more, and {free} bytes of {memory} memory are free; use a smaller \
             --within, --top, --k, --size, --triangles or --points, a larger --resolution, or smaller files"
        ),
        Error::UnknownDevice { .. } | Error::NoSuchDevice { .. } => format!("--device: {error}"),
        Error::InvalidResolution { .. } => format!("--resolution: {error}"),
        Error::TooManyItems { what: CELLS, .. } => {
            format!("--resolution: {error}; choose a larger resolution or smaller --bounds")
        }
        Error::OutOfRange { what, .. } | Error::InvalidLength { what, .. } => {
            match OPTIONS.iter().find(|(named, _)| named == what) {
                Some((_, option)) => format!("{option}: {error}"),
                None => error.to_string(),
            }
        }
        _ => error.to_string(),
    }
}

fn different_systems(left: Option<&str>, right: Option<&str>) -> String {
    match (left, right) {
        (Some(known), None) | (None, Some(known)) => {
            let [of_known, other] = if left.is_some() { ["left", "right"] } else { ["right", "left"] };
            format!(
                "the {of_known} table has the reference system (CRS) {known}, and the {other} table names none; add --crs planar if its \
                 coordinates are in {known} too"
            )
        }
        _ => format!(
            "the tables have different reference systems (CRS), left {}, right {}; convert one of them",
            left.unwrap_or("unknown"),
            right.unwrap_or("unknown")
        ),
    }
}

fn folders(searched: &[PathBuf]) -> String {
    let names: Vec<String> = searched.iter().map(|folder| folder.display().to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_speak_of_options() {
        let text = |error: Error| CliError::from(error).to_string();
        let error = Error::ResultTooLarge { count: 9, bytes: 72, memory: "host", free: 3 };
        let too_large = text(error);
        assert!(
            too_large.contains("72 bytes") && too_large.contains("--top") && !too_large.contains('_'),
            "{too_large}"
        );
        let error = Error::OutOfRange { what: "points of a leaf", value: 0, least: 1, most: 9 };
        assert_eq!(text(error), "--leaf-points: points of a leaf 0: expected 1 to 9");
        let error = Error::UnknownDevice { name: "x".into() };
        assert!(text(error).starts_with("--device: unknown device 'x'"));
    }
}
