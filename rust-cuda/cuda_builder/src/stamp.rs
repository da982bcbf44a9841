//! The stamp file next to each PTX file, which records its inputs, so that unchanged kernels cost nothing.
//!
//! A stamp holds a key (options, toolchain, this crate's version) and the hash of every input and output file. If all
//! match, cargo is not started. Contents are compared, not times: a fresh checkout with an old target folder is unchanged.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::{Result, files};

const HEADER: &str = "kauri-stamp 1";

/// True if the stamp at `path` has this key and all its files are unchanged.
pub(crate) fn holds(path: &Path, key: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text_holds(&text, key).unwrap_or(false))
}

fn text_holds(text: &str, key: &str) -> Option<bool> {
    let mut lines = text.lines();
    if lines.next()? != HEADER || lines.next()?.strip_prefix("key ")? != key {
        return Some(false);
    }
    for line in lines {
        let (hash, file) = line.split_once(' ')?;
        if files::hash_file(Path::new(file)).as_deref() != Some(hash) {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns the files that a stamp lists.
pub(crate) fn files_in(path: &Path) -> Result<Vec<PathBuf>> {
    let text = files::read(path)?;
    Ok(text.lines().skip(2).filter_map(|line| Some(PathBuf::from(line.split_once(' ')?.1))).collect())
}

/// Writes the stamp of a compilation that began at `begin`. If an input is gone or changed while the compiler ran, the
/// stamp never holds, because it is unknown which contents were compiled.
pub(crate) fn write(
    path: &Path,
    key: &str,
    begin: SystemTime,
    inputs: &[PathBuf],
    outputs: &[&Path],
) -> Result<()> {
    let mut text = format!("{HEADER}\nkey {key}\n");
    let inputs = inputs.iter().map(|input| (input.as_path(), is_settled(input, begin)));
    for (file, settled) in inputs.chain(outputs.iter().map(|output| (*output, true))) {
        let hash = files::hash_file(file).filter(|_| settled).unwrap_or_else(|| "changed".to_owned());
        text.push_str(&format!("{hash} {}\n", file.display()));
    }
    files::write_atomic(path, text.as_bytes())
}

fn is_settled(input: &Path, begin: SystemTime) -> bool {
    // Cargo itself writes this one, before it compiles.
    input.ends_with("Cargo.lock")
        || std::fs::metadata(input).and_then(|data| data.modified()).is_ok_and(|time| time < begin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_stamp_holds_until_something_changes() {
        let folder = std::env::temp_dir().join(format!("cuda-builder-stamp-{}", std::process::id()));
        let (input, stamp) = (folder.join("in put.rs"), folder.join("k.stamp"));
        files::write_atomic(&input, b"one").unwrap();
        let later = SystemTime::now() + Duration::from_secs(1);
        write(&stamp, "key", later, std::slice::from_ref(&input), &[]).unwrap();
        assert!(holds(&stamp, "key"));
        assert!(!holds(&stamp, "other"));
        files::write_atomic(&input, b"two").unwrap();
        assert!(!holds(&stamp, "key"));
        files::write_atomic(&input, b"one").unwrap();
        assert!(holds(&stamp, "key"));
        // Written after the compiler began.
        let earlier = SystemTime::now() - Duration::from_secs(60);
        write(&stamp, "key", earlier, std::slice::from_ref(&input), &[]).unwrap();
        assert!(!holds(&stamp, "key"));
        write(&stamp, "key", earlier, &[], &[&input]).unwrap();
        assert!(holds(&stamp, "key"));
        std::fs::remove_file(&input).unwrap();
        assert!(!holds(&stamp, "key"));
        assert!(!holds(&folder.join("none"), "key"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
