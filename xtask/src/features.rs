//! No warnings with any single feature of the published crates. (With all features, clippy finds them.)

use crate::cargo::{self, cargo};
use anyhow::{Context, Result};
use serde_json::Value;

/// The crate with features that change its code.
const CRATE: &str = "kauri";

/// Checks the crate without features and with each feature alone; a warning is a failure. Returns the number of checks.
pub(crate) fn check() -> Result<usize> {
    let text = cargo::read(cargo().args(["metadata", "--no-deps", "--format-version=1", "--quiet"]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == CRATE).context("the crate is a package")?;
    let features = package["features"].as_object().context("the crate has features")?;
    let alone: Vec<&str> = features.keys().map(String::as_str).filter(|name| *name != "default").collect();
    for feature in alone.iter().chain([&""]) {
        let mut command = cargo();
        // Unlike rustc's flags, clippy's leave the dependencies as other tasks compiled them. Its own lints look at all features.
        command.args([
            "clippy",
            "--quiet",
            "--package",
            CRATE,
            "--no-default-features",
            "--features",
            feature,
        ]);
        cargo::run(command.args(["--", "--allow", "clippy::all", "--deny", "warnings"]))
            .with_context(|| cargo::shown(&command))?;
    }
    Ok(alone.len() + 1)
}
