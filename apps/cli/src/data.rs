//! Finds the data files that come with kauri.

use std::env;
use std::path::{Path, PathBuf};

use super::{CliError, Result};

/// Environment variable that names the folder of the data.
pub(super) const FOLDER_VARIABLE: &str = "KAURI_DATA";
/// Explains the data folder in the help of the demos.
pub(super) const FOLDER_HELP: &str = "The data folder is the value of the environment variable KAURI_DATA. If it is not set, it is the \
    first of these folders that has the file: data in the current folder, data beside the program, data one level above the program.";

/// Returns the file given with `flag`, or else `file` in the first of these folders that has it: `KAURI_DATA`, `data` in the
/// current folder, `data` beside the program, `data` one level above the program.
pub(super) fn find(given: Option<&Path>, file: &'static str, flag: &'static str) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.into());
    }
    first_with(file, flag, candidates())
}

fn candidates() -> Vec<PathBuf> {
    // If KAURI_DATA is set, no other folder is searched.
    if let Some(folder) = env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()) {
        return vec![folder.into()];
    }
    let program = env::current_exe().unwrap_or_default();
    let above = program.ancestors().skip(1).take(2).map(|folder| folder.join("data"));
    std::iter::once(PathBuf::from("data")).chain(above).collect()
}

fn first_with(file: &'static str, flag: &'static str, folders: Vec<PathBuf>) -> Result<PathBuf> {
    match folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => Err(CliError::NoData { file, flag, searched: folders }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_that_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        for place in [&a, &b] {
            std::fs::create_dir(place).unwrap();
        }
        let find = || first_with("cities.csv", "--cities", vec![a.clone(), b.clone()]);
        let text = find().unwrap_err().to_string();
        assert!(
            text.contains("no cities.csv in ") && text.contains("--cities") && text.contains("KAURI_DATA"),
            "{text}"
        );
        for place in [&b, &a] {
            std::fs::write(place.join("cities.csv"), "").unwrap();
            assert_eq!(find().unwrap(), place.join("cities.csv"));
        }
        assert_eq!(
            super::find(Some(Path::new("x.csv")), "cities.csv", "--cities").unwrap(),
            Path::new("x.csv")
        );
    }
}
