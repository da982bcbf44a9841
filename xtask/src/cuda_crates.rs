//! A part of `test`: each crate of `rust-cuda` builds and passes its tests as a package outside of the workspace, without kauri.

use crate::cargo;
use crate::outside::cargo_in;
use crate::package::{self, Crate};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Instant;

/// Folders of the target folder that hold the device toolchain and the library `core` for devices.
const KEPT: [&str; 2] = ["kauri-toolchain", "cuda-builder"];

/// Packages the crates, unpacks them, and tests each by itself; a crate finds the packages of the others by a patch of the registry.
/// Returns the names of the crates and the seconds that each took.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let outside = Outside::new(workspace)?;
    let crates = package::unpack(package::package_cuda(workspace)?, &outside.folder)?;
    outside.write_patches(&crates)?;
    let mut seconds = Vec::new();
    for (krate, folder) in &crates {
        let begin = Instant::now();
        let mut test = cargo_in(folder, &outside.target);
        test.args(["test", "--quiet"]).env("CARGO_NET_OFFLINE", "true");
        // The simulator names lines in its reports, which is all that is read of debug information.
        test.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        let variables = env::vars_os()
            .filter(|(name, _)| name == "CI" || name.to_str().is_some_and(|name| name.starts_with("KAURI_")));
        cargo::run(test.envs(variables)).with_context(|| format!("{} by itself", krate.name))?;
        seconds.push(format!("{} {:.0} s", krate.name, begin.elapsed().as_secs_f32()));
    }
    Ok(seconds.join(", "))
}

/// A folder for the packages, which is removed in the end.
struct Outside {
    folder: PathBuf,
    /// Within the folder: tests that build crates do so below the target folder, and find the patches from there.
    target: PathBuf,
}

impl Outside {
    fn new(workspace: &Workspace) -> Result<Self> {
        // Not below the workspace, whose settings cargo would read.
        let folder = env::temp_dir().join(format!("kauri-cuda-crates-{}", std::process::id()));
        let target = folder.join("target");
        fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
        for name in KEPT {
            let kept = workspace.target.join(name);
            fs::create_dir_all(&kept).with_context(|| format!("cannot make {}", kept.display()))?;
            symlink(&kept, target.join(name)).with_context(|| format!("cannot link {}", kept.display()))?;
        }
        Ok(Self { folder, target })
    }

    fn write_patches(&self, crates: &[(Crate, PathBuf)]) -> Result<()> {
        let lines =
            crates.iter().map(|(krate, folder)| format!("{} = {{ path = {folder:?} }}\n", krate.name));
        let config = self.folder.join(".cargo/config.toml");
        fs::create_dir_all(self.folder.join(".cargo"))?;
        fs::write(&config, format!("[patch.crates-io]\n{}", lines.collect::<String>()))
            .with_context(|| format!("cannot write {}", config.display()))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
