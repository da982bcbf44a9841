//! The two halves of a family: each file of kernels has the host file of that name that launches them.

use super::{File, Finding};
use std::collections::BTreeSet;

/// Folders of `kernels/src` that are building blocks of kernels and have no host half.
const BUILDING_BLOCKS: [&str; 3] = ["thread", "warp", "block"];

/// Kernel files and folders that a host file of another name launches, and why.
const EXCEPTIONS: [(&str, &str); 1] =
    [("balanced/subtrees", "the last step of the partition, which balanced/gpu/paths.rs launches")];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = folders(files);
    findings.extend(members(files));
    findings
}

/// Each folder of kernels has a folder of that name in the host.
fn folders(files: &[File]) -> Vec<Finding> {
    let folders = |root: &str| -> BTreeSet<String> {
        let below = files.iter().filter_map(|file| file.path.strip_prefix(root)?.split_once('/'));
        below.map(|(folder, _)| folder.to_owned()).collect()
    };
    let host = folders("host/src/");
    let kernels = folders("kernels/src/");
    let kernels = kernels.iter().filter(|folder| !BUILDING_BLOCKS.contains(&folder.as_str()));
    let lonely = kernels.filter(|folder| !host.contains(*folder));
    lonely.map(|folder| finding(&format!("kernels/src/{folder}"), &format!("host/src/{folder}"))).collect()
}

/// Each file or folder in a folder of kernels that has entries has a file or folder of that name somewhere in the host's half.
fn members(files: &[File]) -> Vec<Finding> {
    let with_entries = files.iter().filter(|file| String::from_utf8_lossy(&file.bytes).contains("#[kernel"));
    let kernels: BTreeSet<(&str, &str)> = with_entries
        .filter_map(|file| {
            let (folder, rest) = file.path.strip_prefix("kernels/src/")?.split_once('/')?;
            let name = stem(rest.split('/').next()?);
            Some((folder, if name == "mod" { folder } else { name }))
        })
        .filter(|(folder, _)| !BUILDING_BLOCKS.contains(folder))
        .collect();
    let has_host_half = |folder: &str, name: &str| {
        let paths = files.iter().filter_map(|file| file.path.strip_prefix("host/src/"));
        let mut below = paths.filter(|path| path.split('/').next() == Some(folder));
        below.any(|path| path.split('/').any(|part| stem(part) == name))
    };
    let is_exception =
        |folder: &str, name: &str| EXCEPTIONS.iter().any(|(path, _)| *path == format!("{folder}/{name}"));
    kernels
        .into_iter()
        .filter(|(folder, name)| !has_host_half(folder, name) && !is_exception(folder, name))
        .map(|(folder, name)| {
            finding(&format!("kernels/src/{folder}/{name}"), &format!("host/src/{folder}/**/{name}"))
        })
        .collect()
}

fn stem(name: &str) -> &str {
    name.strip_suffix(".rs").unwrap_or(name)
}

fn finding(kernels: &str, host: &str) -> Finding {
    Finding { file: kernels.to_owned(), line: 1, what: format!("has no other half {host}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kernels: &[&str], others: &[&str]) -> Vec<String> {
        let file =
            |path: &&str, text: &str| File { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() };
        let mut files: Vec<File> =
            kernels.iter().map(|path| file(path, "\n#[kernel(block = 1)]\n")).collect();
        files.extend(others.iter().map(|path| file(path, "")));
        check(&files).into_iter().map(|finding| finding.file).collect()
    }

    #[test]
    fn folders_mirror_each_other() {
        let kernels = ["kernels/src/render/a.rs", "kernels/src/warp/b.rs"];
        assert!(found(&kernels, &["kernels/src/lib.rs", "host/src/render/gpu/a.rs"]).is_empty());
        assert_eq!(found(&[], &["kernels/src/render/a.rs", "host/src/lib.rs"]), ["kernels/src/render"]);
    }

    #[test]
    fn files_with_entries_mirror_each_other() {
        let host = ["host/src/render/frame.rs", "host/src/render/rows/mod.rs", "host/src/join/other.rs"];
        let kernels =
            ["kernels/src/render/frame.rs", "kernels/src/render/rows/first.rs", "kernels/src/render/mod.rs"];
        assert!(found(&kernels, &host).is_empty());
        assert_eq!(found(&["kernels/src/render/other.rs"], &host), ["kernels/src/render/other"]);
        // A file without entries has no half in the host.
        assert!(found(&[], &["kernels/src/render/vector.rs", "host/src/render/frame.rs"]).is_empty());
    }

    #[test]
    fn exceptions_have_reasons() {
        assert!(EXCEPTIONS.iter().all(|(_, why)| !why.is_empty()));
    }
}
