//! The kernels embedded in this build: one compressed PTX per family and architecture.

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// An embedded PTX.
struct Embedded {
    family: &'static str,
    /// The compute capability that it was built for, as major * 10 + minor.
    arch: u32,
    /// The deflated text.
    deflated: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/ptx_table.rs"));

/// Returns the family and the architecture (compute capability as major * 10 + minor) of every embedded PTX.
pub fn embedded_kernels() -> impl Iterator<Item = (&'static str, u32)> {
    EMBEDDED.iter().map(|p| (p.family, p.arch))
}

/// Returns the PTX of a family with the highest architecture that the device can run.
///
/// If the environment variable `KAURI_PTX_DIR` names a folder, its `<family>.sm_<arch>.ptx` files are used instead, so
/// that changed or checked kernels run without a rebuild of the host.
pub(super) fn find(family: &'static str, capability: (u32, u32)) -> Result<Cow<'static, str>> {
    let refuse = |advice: String| Error::NoPtx { family, capability, advice };
    let device = capability.0 * 10 + capability.1;
    if let Some(dir) = std::env::var_os("KAURI_PTX_DIR").map(PathBuf::from) {
        let advice = || format!("KAURI_PTX_DIR ({}) has no PTX that this device can run", dir.display());
        let path = best_in(&dir, family, device)
            .map_err(|source| Error::Io { path: dir.clone(), source })?
            .ok_or_else(|| refuse(advice()))?;
        return Ok(fs::read_to_string(&path).map_err(|source| Error::Io { path, source })?.into());
    }
    let built = || EMBEDDED.iter().filter(|ptx| ptx.family == family);
    let Some(best) = built().filter(|ptx| ptx.arch <= device).max_by_key(|ptx| ptx.arch) else {
        return Err(refuse(match built().map(|ptx| ptx.arch).min() {
            None => "this build has no kernels; run `cargo xtask ptx` and build again".into(),
            Some(least) => format!("the oldest architecture in this build is sm_{least}; use a newer device"),
        }));
    };
    let damaged = |what: String| refuse(format!("the embedded PTX is damaged: {what}"));
    let text = inflate(best.deflated).map_err(damaged)?;
    Ok(String::from_utf8(text).map_err(|e| damaged(e.to_string()))?.into())
}

#[cfg(feature = "cuda")]
fn inflate(deflated: &[u8]) -> Result<Vec<u8>, String> {
    miniz_oxide::inflate::decompress_to_vec(deflated).map_err(|error| error.to_string())
}

/// Only builds with CUDA embed kernels.
#[cfg(not(feature = "cuda"))]
fn inflate(_: &[u8]) -> Result<Vec<u8>, String> {
    Err("this build has no CUDA support".into())
}

/// Returns the file `<family>.sm_<arch>.ptx` with the highest architecture that the device can run.
fn best_in(dir: &Path, family: &str, device: u32) -> io::Result<Option<PathBuf>> {
    let arch_of = |name: &str| {
        name.strip_prefix(family)?.strip_prefix(".sm_")?.strip_suffix(".ptx")?.parse::<u32>().ok()
    };
    let mut best = None;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let arch = entry.file_name().to_str().and_then(arch_of);
        best = best.max(arch.filter(|&arch| arch <= device).map(|arch| (arch, entry.path())));
    }
    Ok(best.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_ptx_is_whole() {
        for p in EMBEDDED {
            let text = find(p.family, (p.arch / 10, p.arch % 10)).unwrap();
            assert!(text.contains(&format!(".target sm_{}", p.arch)), "{} sm_{}", p.family, p.arch);
        }
    }

    #[test]
    fn devices_that_are_too_old_get_an_error() {
        let error = find("kdtree", (3, 5)).unwrap_err();
        assert!(matches!(error, Error::NoPtx { family: "kdtree", capability: (3, 5), .. }), "{error}");
    }
}
