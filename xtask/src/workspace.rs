//! Paths of the workspace, its target folder, and the folders of PTX.

use anyhow::{Context, Result};
use std::env;
use std::path::{Path, PathBuf};

/// The workspace that this program belongs to.
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Workspace> {
        // Cargo sets the variable for `cargo run` and `cargo test`; the path of compile time may be of another checkout.
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
        let root =
            Path::new(&manifest_dir).parent().context("xtask lies in the workspace's folder")?.to_owned();
        let target = target_dir(&root)?;
        Ok(Workspace { root, target })
    }

    /// Returns the folder from which `host/build.rs` takes PTX, or the folder of PTX with bounds checks.
    pub(crate) fn ptx_dir(&self, checked: bool) -> PathBuf {
        self.target.join(if checked { "kauri-ptx-checked" } else { "kauri-ptx" })
    }

    /// Returns a path for messages: relative to the workspace if inside it.
    pub(crate) fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

/// Returns the target folder: the ancestor of this program that cargo marked. This works with every setting that moves the folder.
fn target_dir(root: &Path) -> Result<PathBuf> {
    let program = env::current_exe().context("cannot find this program's own path")?;
    let marked = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    Ok(marked.map_or_else(|| root.join("target"), Path::to_owned))
}
