//! Facts about a kernel crate that are read without cargo: its names, its manifests, its target folder. Starting cargo for
//! these would cost more than a whole unchanged build.

use std::env;
use std::path::{Path, PathBuf};

use crate::{CudaBuilderError, Result, files};

/// A crate on disk.
pub(crate) struct Krate {
    /// The folder of its Cargo.toml, absolute.
    pub(crate) folder: PathBuf,
    /// The package's name.
    pub(crate) package: String,
    /// The library's name, as rustc writes it in file names.
    pub(crate) library: String,
}

impl Krate {
    pub(crate) fn open(path: &Path) -> Result<Krate> {
        let bad = |reason: String| CudaBuilderError::NotACrate { path: path.to_owned(), reason };
        let folder = path.canonicalize().map_err(|error| bad(error.to_string()))?;
        let manifest = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).map_err(|error| bad(format!("Cargo.toml: {error}")))?;
        let package = string_in(&text, "package", "name")
            .ok_or_else(|| bad("its Cargo.toml has no package name".to_owned()))?;
        let library = string_in(&text, "lib", "name").unwrap_or(package).replace('-', "_");
        Ok(Krate { package: package.to_owned(), library, folder })
    }

    /// Returns the target folder: `CARGO_TARGET_DIR`, else that of the calling build script, else the workspace's.
    pub(crate) fn target_dir(&self) -> PathBuf {
        if let Some(folder) = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty()) {
            return std::path::absolute(&folder).unwrap_or_else(|_| folder.into());
        }
        if let Some(folder) = env::var_os("OUT_DIR").and_then(|out| target_of_build_script(Path::new(&out))) {
            return folder;
        }
        self.workspace().join("target")
    }

    /// Returns the nearest ancestor whose manifest is a workspace, else the crate's folder.
    fn workspace(&self) -> &Path {
        self.folder
            .ancestors()
            .find(|folder| {
                std::fs::read_to_string(folder.join("Cargo.toml"))
                    .is_ok_and(|text| has_section(&text, "workspace"))
            })
            .unwrap_or(&self.folder)
    }

    /// Returns the files that influence the build and that rustc does not read.
    pub(crate) fn manifests(&self) -> Vec<PathBuf> {
        let upwards = self.folder.ancestors().take(8);
        upwards
            .flat_map(|folder| {
                ["Cargo.toml", "Cargo.lock", ".cargo/config.toml"].map(|name| folder.join(name))
            })
            .filter(|path| path.is_file())
            .collect()
    }
}

/// `OUT_DIR` is `<target>/[<triple>/]<profile>/build/<package>-<hash>/out`; cargo marks `<target>` with a tag file.
fn target_of_build_script(out: &Path) -> Option<PathBuf> {
    out.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_owned)
}

/// Returns the manifest next to or above a source file.
pub(crate) fn manifest_of(source: &Path) -> Option<PathBuf> {
    source.ancestors().skip(1).map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file())
}

/// Returns the source files that cargo lists in a dep-info file, including those of path dependencies.
pub(crate) fn dep_info(path: &Path) -> Result<Vec<PathBuf>> {
    let text = files::read(path)?;
    // `output: source source…` with spaces in names escaped by a backslash.
    let sources = text.lines().filter_map(|line| Some(line.split_once(": ")?.1)).flat_map(|list| {
        let list = list.replace("\\ ", "\0");
        list.split(' ').map(|name| PathBuf::from(name.replace('\0', " "))).collect::<Vec<_>>()
    });
    let mut sources: Vec<PathBuf> = sources.filter(|path| !path.as_os_str().is_empty()).collect();
    sources.sort();
    sources.dedup();
    Ok(sources)
}

/// Returns the value of `key = "value"` in a section of a manifest. Suffices for names, which are always written so.
fn string_in<'a>(manifest: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = is_header(line, section);
        } else if inside
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            return value.trim().strip_prefix(['"', '\''])?.split(['"', '\'']).next();
        }
    }
    None
}

fn has_section(manifest: &str, section: &str) -> bool {
    manifest.lines().any(|line| is_header(line.trim(), section))
}

fn is_header(line: &str, section: &str) -> bool {
    line.strip_prefix('[').and_then(|line| line.split(']').next()).is_some_and(|name| name.trim() == section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_their_sections() {
        let manifest = "[dependencies]\nname = \"no\"\n[package] # comment\nname = \"my-kernels\"\n\n[lib]\n\
            crate-type = [\"lib\"]\nname='kernels'\n[workspace]\n";
        assert_eq!(string_in(manifest, "package", "name"), Some("my-kernels"));
        assert_eq!(string_in(manifest, "lib", "name"), Some("kernels"));
        assert_eq!(string_in(manifest, "features", "name"), None);
        assert!(has_section(manifest, "workspace") && !has_section(manifest, "lib.name"));
    }

    #[test]
    fn dep_info_names_may_hold_spaces() {
        let folder = env::temp_dir().join(format!("cuda-builder-depinfo-{}", std::process::id()));
        let path = folder.join("k.d");
        files::write_atomic(&path, b"/t/k.ptx: /a/lib.rs /b\\ c/x.rs /a/lib.rs\n").unwrap();
        assert_eq!(dep_info(&path).unwrap(), [PathBuf::from("/a/lib.rs"), PathBuf::from("/b c/x.rs")]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_without_manifest_is_no_crate() {
        let error = Krate::open(&env::temp_dir().join("no-such-crate")).err().unwrap();
        assert!(error.to_string().contains("is not a kernel crate"));
    }
}
