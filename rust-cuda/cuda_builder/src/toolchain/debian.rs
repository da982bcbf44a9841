//! Fetches Debian's `rust-src` package, for machines that reach a Debian mirror but not the Rust project's downloads.
//!
//! All files are in a private folder with its own package lists and cache; it needs no root and installs nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::RustcVersion;
use crate::{CudaBuilderError, Result, files, process};

/// Suites with a recent Rust, oldest first.
const SUITES: [&str; 2] = ["testing", "unstable"];
const LIMIT: Duration = Duration::from_secs(180);

/// An unpacked package.
pub(super) struct Package {
    /// The file's name, which contains the version.
    pub(super) name: String,
    /// The folder that contains `library/`.
    pub(super) folder: PathBuf,
}

/// Downloads and unpacks the package of the compiler's release into `root`. The caller owns and removes that folder.
pub(super) fn fetch(root: &Path, version: &RustcVersion) -> Result<Package> {
    let source = machine_source()?;
    let mut found = Vec::new();
    for suite in SUITES {
        let folder = root.join(suite);
        let apt = Apt::new(&folder, &source.with_suite(suite))?;
        process::run_ok(&mut apt.get(&["update"]), LIMIT)?;
        let answer = process::run_ok(&mut apt.get(&["download", "--print-uris", "rust-src"]), LIMIT)?;
        let Some(name) = package_name(&answer.stdout) else { continue };
        if !is_release(name, version.minor) {
            found.push(format!("{name} in {suite}"));
            continue;
        }
        let name = name.to_owned();
        process::run_ok(apt.get(&["download", "rust-src"]).current_dir(&folder), LIMIT)?;
        return unpack(&folder, name);
    }
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    Err(failed(format!("no rust-src of 1.{} (found {found})", version.minor)))
}

fn failed(reason: String) -> CudaBuilderError {
    CudaBuilderError::Command { command: "apt-get download rust-src".to_owned(), reason }
}

fn unpack(folder: &Path, name: String) -> Result<Package> {
    let unpacked = folder.join("unpacked");
    // The file's name may escape a colon or tilde of the version, so the folder is searched.
    let archive = fs::read_dir(folder)
        .map_err(CudaBuilderError::io("read", folder))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| failed("no package came".to_owned()))?;
    process::run_ok(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&unpacked), LIMIT)?;
    // usr/src/rustc-1.97.1/library
    let sources = unpacked.join("usr/src");
    let inside = fs::read_dir(&sources)
        .map_err(CudaBuilderError::io("read", &sources))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.join("library/core/src/lib.rs").is_file())
        .ok_or_else(|| failed(format!("{name} holds no library sources")))?;
    Ok(Package { name, folder: inside })
}

/// `'https://…' rust-src_1.97.1+dfsg1-1_all.deb 1234 SHA256:…` -> the second word.
fn package_name(answer: &str) -> Option<&str> {
    answer.split_whitespace().find(|word| word.starts_with("rust-src_") && word.ends_with(".deb"))
}

fn is_release(package: &str, minor: u32) -> bool {
    package.strip_prefix("rust-src_").is_some_and(|version| version.starts_with(&format!("1.{minor}.")))
}

/// A Debian package source.
struct Source {
    uri: String,
    signed_by: Option<String>,
}

impl Source {
    fn with_suite(&self, suite: &str) -> String {
        let mut text = format!("Types: deb\nURIs: {}\nSuites: {suite}\nComponents: main\n", self.uri);
        if let Some(keys) = &self.signed_by {
            text.push_str(&format!("Signed-By: {keys}\n"));
        }
        text
    }
}

/// Returns the machine's main Debian source.
fn machine_source() -> Result<Source> {
    let apt = Path::new("/etc/apt");
    let mut lists: Vec<PathBuf> = fs::read_dir(apt.join("sources.list.d"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    lists.sort();
    lists.push(apt.join("sources.list"));
    lists
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            match path.extension()?.to_str()? {
                "sources" => from_stanzas(&text),
                "list" => from_lines(&text),
                _ => None,
            }
        })
        .next()
        .ok_or_else(|| failed("this machine has no Debian package source".to_owned()))
}

/// The deb822 format: stanzas of `Field: value`.
fn from_stanzas(text: &str) -> Option<Source> {
    text.split("\n\n").find_map(|stanza| {
        let field = |name: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            Some(line.trim().to_owned())
        };
        let uri = field("URIs")?.split_whitespace().next()?.to_owned();
        is_main_debian(&uri)
            .then(|| Source { uri, signed_by: field("Signed-By").filter(|keys| !keys.is_empty()) })
    })
}

/// The older format: `deb [options] uri suite component…`.
fn from_lines(text: &str) -> Option<Source> {
    text.lines().find_map(|line| {
        let line = line.trim().strip_prefix("deb ")?.trim();
        let (options, rest) = match line.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once(']')?,
            None => ("", line),
        };
        let uri = rest.split_whitespace().next()?.to_owned();
        let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
        is_main_debian(&uri).then(|| Source { uri, signed_by: signed_by.map(str::to_owned) })
    })
}

fn is_main_debian(uri: &str) -> bool {
    let uri = uri.trim_end_matches('/');
    uri.ends_with("/debian")
}

/// apt-get with private folders.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(folder: &Path, sources: &str) -> Result<Apt> {
        // Files of an earlier run may be of another release.
        let _ = fs::remove_dir_all(folder);
        for part in ["lists/partial", "cache/archives/partial"] {
            files::create_dir(&folder.join(part))?;
        }
        let folder = folder.canonicalize().map_err(CudaBuilderError::io("read", folder))?;
        // The extension tells apt the format.
        let list = folder.join("kauri.sources");
        files::write_atomic(&list, sources.as_bytes())?;
        let options = vec![
            format!("Dir::Etc::sourcelist={}", list.display()),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", folder.join("lists").display()),
            format!("Dir::Cache={}", folder.join("cache").display()),
            // As root, apt would download as a user without access to the target folder.
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        Ok(Apt { options })
    }

    fn get(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("apt-get");
        for option in &self.options {
            command.arg("-o").arg(option);
        }
        command.args(arguments);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_source_is_found_in_both_formats() {
        let stanzas = "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\n\n\
            Types: deb\n# a comment\nURIs: http://mirror.example/debian/\nSuites: bookworm\nSigned-By: /keys.gpg\n";
        let source = from_stanzas(stanzas).unwrap();
        assert_eq!(
            source.with_suite("testing"),
            "Types: deb\nURIs: http://mirror.example/debian/\nSuites: testing\nComponents: main\nSigned-By: /keys.gpg\n"
        );
        let lines = "# deb http://no.example/debian x main\ndeb [arch=amd64 signed-by=/k] http://a.example/debian b main\n";
        let source = from_lines(lines).unwrap();
        assert_eq!(
            (source.uri.as_str(), source.signed_by.as_deref()),
            ("http://a.example/debian", Some("/k"))
        );
        assert!(from_stanzas("URIs: http://mirror.example/ubuntu\n").is_none());
    }

    #[test]
    fn a_package_is_taken_by_its_minor_version() {
        let answer =
            "'http://a/pool/rust-src_1.97.1%2bdfsg1-1_all.deb' rust-src_1.97.1+dfsg1-1_all.deb 9 SHA256:0\n";
        let name = package_name(answer).unwrap();
        assert_eq!(name, "rust-src_1.97.1+dfsg1-1_all.deb");
        assert!(is_release(name, 97));
        assert!(!is_release(name, 9) && !is_release(name, 98));
    }
}
