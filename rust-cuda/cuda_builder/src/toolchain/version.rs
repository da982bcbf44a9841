//! Parses `rustc -vV`, and checks that the compiler can build kernels.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{CudaBuilderError, Result, process};

/// The first release whose nightlies compile kernels correctly, because of two changes: functions are marked convergent on
/// GPU targets (rust#153995, April 2026), and jump threading is off for them (rust#149637).
const FIRST_MINOR: u32 = 97;
/// Earliest valid date of that release's nightlies; older ones lack the first change.
const FIRST_DATE: &str = "2026-05-01";

/// A compiler's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustcVersion {
    /// `1.97.0-nightly`
    pub release: String,
    /// The commit's hash.
    pub commit: String,
    /// The commit's date, `2026-05-19`.
    pub date: String,
    /// 97 of `1.97.0-nightly`.
    pub minor: u32,
}

impl RustcVersion {
    /// Runs a compiler for its version.
    pub(super) fn of(rustc: &Path) -> Result<RustcVersion> {
        let mut command = Command::new(rustc);
        // `rustc` may be rustup's proxy, which must neither install a toolchain nor use that of the calling process.
        command.arg("-vV").env("RUSTUP_AUTO_INSTALL", "0").env_remove("RUSTUP_TOOLCHAIN");
        let output = process::run_ok(&mut command, Duration::from_secs(60))?;
        RustcVersion::parse(&output.stdout).ok_or_else(|| CudaBuilderError::Command {
            command: process::describe(&command),
            reason: format!("unknown answer {:?}", output.stdout),
        })
    }

    fn parse(text: &str) -> Option<RustcVersion> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.strip_prefix(':')?.trim().to_owned())
        };
        let release = field("release")?;
        let minor = release.split('.').nth(1)?.parse().ok()?;
        Some(RustcVersion { release, commit: field("commit-hash")?, date: field("commit-date")?, minor })
    }

    /// Refuses a compiler that cannot build kernels or builds them wrongly.
    pub(super) fn check(&self, toolchain: &str) -> Result<()> {
        let toolchain = toolchain.to_owned();
        if !self.release.ends_with("-nightly") && !self.release.ends_with("-dev") {
            return Err(CudaBuilderError::NotNightly { toolchain, release: self.release.clone() });
        }
        let dated = self.date != "unknown"; // a self-built compiler may not know
        if self.minor < FIRST_MINOR || (dated && self.date.as_str() < FIRST_DATE) {
            let (release, date) = (self.release.clone(), self.date.clone());
            return Err(CudaBuilderError::TooOld { toolchain, release, date });
        }
        Ok(())
    }

    /// Returns the first digits of the commit, as `rustc --version` prints them.
    pub(super) fn short_commit(&self) -> &str {
        self.commit.get(..9).unwrap_or(&self.commit)
    }
}

impl fmt::Display for RustcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rustc {} {} {}", self.release, self.short_commit(), self.date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHTLY: &str = "rustc 1.97.0-nightly (e50aa6fba 2026-05-19)\nbinary: rustc\n\
        commit-hash: e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a\ncommit-date: 2026-05-19\n\
        host: x86_64-unknown-linux-gnu\nrelease: 1.97.0-nightly\nLLVM version: 22.1.4\n";

    #[test]
    fn a_new_nightly_will_do() {
        let version = RustcVersion::parse(NIGHTLY).unwrap();
        assert_eq!(version.to_string(), "rustc 1.97.0-nightly e50aa6fba 2026-05-19");
        assert_eq!(version.minor, 97);
        version.check("nightly").unwrap();
    }

    #[test]
    fn old_and_stable_ones_are_refused_with_the_reason() {
        let reason = |from: &str, to: &str| {
            let version = RustcVersion::parse(&NIGHTLY.replace(from, to)).unwrap();
            version.check("mine").unwrap_err().to_string()
        };
        assert!(reason("1.97.0", "1.96.0").contains("divergent"));
        assert!(reason("2026-05-19", "2026-04-12").contains("divergent"));
        assert!(reason("1.97.0-nightly", "1.97.0").contains("needs a nightly"));
    }
}
