//! `ptx`: compiles the kernels, one file for each family and architecture, lints them, and packs their entries for the host.

use crate::assemble;
use crate::pack::{self, MachineCode};
use crate::parallel;
use crate::setup;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use cuda_builder::ptx::SourceLines;
use cuda_builder::{Arch, CudaBuilder, Ptxas, Toolchain, lint};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Compile the kernels to PTX and lint them
#[derive(clap::Args, Default)]
pub(crate) struct Ptx {
    /// Architectures, as 75,80,90 (which is the default)
    #[arg(long, value_delimiter = ',', value_name = "SM")]
    arch: Vec<Arch>,
    /// Families of kernels, as kdtree,test [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    family: Vec<String>,
    /// Compile with bounds checks, into a separate folder
    #[arg(long)]
    checked: bool,
    /// Assemble machine code for these architectures too, as 80,90; a GPU of another one compiles the PTX at first calls. With --family,
    /// print the registers, spills and shared memory of the family's kernels
    #[arg(long, value_delimiter = ',', value_name = "SM")]
    cubin: Vec<Arch>,
    /// Pack the PTX that the folder has, and compile nothing
    #[arg(long, conflicts_with_all = ["arch", "family"])]
    pack_only: bool,
    /// Folder for the PTX and the packs [default: kauri-ptx or kauri-ptx-checked in the target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The family of the kernels that test the device library.
pub(crate) const TEST_FAMILY: &str = "test";

/// Prefix of the families that the host embeds only with its feature `research`.
pub(crate) const RESEARCH: &str = "research-";

/// Maximum entries and bytes of PTX, without line numbers, that a default build has for an architecture. Types, dimensions
/// and options multiply, and every program contains them. 75 of the entries are the instances for points of `i32`, 34 are R-trees, 28 are hierarchies, 21 are elevation models.
const MAX_ENTRIES: usize = 696;
const MAX_BYTES: u64 = 23_300_000;

/// A family of kernels: one PTX file for each architecture.
struct Family {
    name: String,
    /// The kernel crate, from the workspace's root.
    krate: &'static str,
    feature: String,
}

/// A PTX file that was built or was up to date.
pub(crate) struct Built {
    pub(crate) family: String,
    pub(crate) ptx: cuda_builder::Ptx,
    pub(crate) bytes: u64,
}

impl Ptx {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::find()?;
        let out = self.out.clone().unwrap_or_else(|| workspace.ptx_dir(self.checked));
        if self.pack_only {
            return self.pack(&workspace, &out);
        }
        let toolchain = setup::device_toolchain(&workspace)?;
        let built = self.build(&workspace, &toolchain, &out)?;
        let findings = lint(&built, self.checked)?;
        for (arch, total) in totals_of_dir(&out)? {
            let Totals { entries, research, .. } = total;
            println!(
                "{arch}: {entries} entries in a default build (at most {MAX_ENTRIES}), {research} more with research"
            );
        }
        if findings > 0 {
            bail!("{findings} findings in the PTX");
        }
        self.pack(&workspace, &out)?;
        println!("lint: clean; {}", workspace.shown(&out));
        if !self.family.is_empty() && !self.cubin.is_empty() {
            let (ptxas, _) = Ptxas::prepare(&workspace.target)?;
            print!("\n{}", assemble::table(&ptxas, &built, &self.cubin)?);
        }
        Ok(())
    }

    fn build(&self, workspace: &Workspace, toolchain: &Toolchain, out: &Path) -> Result<Vec<Built>> {
        let families = selected(families(&workspace.root)?, &self.family)?;
        let archs = if self.arch.is_empty() { Arch::DEFAULT.to_vec() } else { self.arch.clone() };

        println!("{:<20} {:<7} {:>7} {:>7}", "family", "arch", "entries", "KB");
        // The builder compiles a family for all architectures at once. With several families no core waits for the last one.
        let built: Vec<Vec<Built>> = parallel::map(families, |family| {
            let built = self.build_family(workspace, toolchain, &family, &archs, out)?;
            print_rows(&built);
            Ok(built)
        })
        .into_iter()
        .collect::<Result<_>>()?;
        let built: Vec<Built> = built.into_iter().flatten().collect();
        if self.family.is_empty() && self.arch.is_empty() {
            remove_others(out, &built)?;
        }
        Ok(built)
    }

    /// Writes the packs of the folder.
    fn pack(&self, workspace: &Workspace, out: &Path) -> Result<()> {
        let lines = if self.checked { SourceLines::Keep } else { SourceLines::Drop };
        if self.cubin.is_empty() {
            return pack::write(out, lines, None);
        }
        let (ptxas, _) = Ptxas::prepare(&workspace.target)?;
        pack::write(out, lines, Some(&MachineCode { archs: &self.cubin, ptxas: &ptxas }))
    }

    fn build_family(
        &self,
        workspace: &Workspace,
        toolchain: &Toolchain,
        family: &Family,
        archs: &[Arch],
        out: &Path,
    ) -> Result<Vec<Built>> {
        // With several architectures the builder inserts the architecture before the extension.
        let copy = match archs {
            [arch] => format!("{}.{arch}.ptx", family.name),
            _ => format!("{}.ptx", family.name),
        };
        let builder = CudaBuilder::new(workspace.root.join(family.krate))
            .archs(archs.iter().copied())
            .no_default_features(true)
            .features([&family.feature])
            .checked(self.checked)
            // Scans have tiles of 20 rows in registers.
            .unroll_threshold(10_000)
            // Equal PTX on every machine, and no local path in a published package.
            .remap_path_prefix(&workspace.root, ".")
            .remap_path_prefix(toolchain.sysroot().join("lib/rustlib/src/rust"), "rust")
            .target_dir(&workspace.target)
            .copy_to(out.join(copy));
        let built = builder.build().with_context(|| format!("family {}", family.name))?;
        print_diagnostics(&built);
        let bytes = |path: &Path| fs::metadata(path).map(|meta| meta.len()).unwrap_or(0);
        Ok(built
            .into_iter()
            .map(|ptx| Built { family: family.name.clone(), bytes: bytes(&ptx.path), ptx })
            .collect())
    }
}

/// Builds and packs the default of `cargo xtask ptx`, with machine code for `cubin`, and lints it. Prints the findings; returns the
/// files and the number of findings.
pub(crate) fn build_all(
    workspace: &Workspace,
    toolchain: &Toolchain,
    checked: bool,
    cubin: &[Arch],
) -> Result<(Vec<Built>, usize)> {
    let task = Ptx { checked, cubin: cubin.to_vec(), ..Ptx::default() };
    let out = workspace.ptx_dir(checked);
    let built = task.build(workspace, toolchain, &out)?;
    let findings = lint(&built, checked)?;
    task.pack(workspace, &out)?;
    Ok((built, findings))
}

/// Builds and packs kernels of another source tree into a folder, for the given architectures and families alone (all families if none is
/// given), with machine code if there is an assembler.
pub(crate) fn build_for(
    tree: &Workspace,
    toolchain: &Toolchain,
    archs: &[Arch],
    families: &[String],
    out: &Path,
) -> Result<()> {
    let (arch, family) = (archs.to_vec(), families.to_vec());
    let mut task = Ptx { cubin: arch.clone(), arch, family, ..Ptx::default() };
    if let Err(error) = Ptxas::prepare(&tree.target) {
        let reason = error.to_string();
        eprintln!("skipped: machine code, {}", reason.lines().next().unwrap_or_default());
        task.cubin.clear();
    }
    let built = task.build(tree, toolchain, out)?;
    remove_others(out, &built)?;
    task.pack(tree, out)
}

/// The crates with kernels. Each of their features `entries-<family>` is a family.
const KERNEL_CRATES: [&str; 2] = ["kernels", "tests/kernels"];

fn families(root: &Path) -> Result<Vec<Family>> {
    let mut families = Vec::new();
    for krate in KERNEL_CRATES {
        let manifest = root.join(krate).join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
        families.extend(text.lines().filter_map(|line| {
            let feature = line.split_once('=')?.0.trim();
            Some(Family {
                name: feature.strip_prefix("entries-")?.to_owned(),
                krate,
                feature: feature.to_owned(),
            })
        }));
    }
    Ok(families)
}

/// Returns the families with these names, or all if there is none.
fn selected(mut families: Vec<Family>, names: &[String]) -> Result<Vec<Family>> {
    if let Some(name) = names.iter().find(|name| families.iter().all(|family| family.name != **name)) {
        let known: Vec<_> = families.iter().map(|family| family.name.as_str()).collect();
        bail!("there is no family `{name}`, only {}", known.join(", "));
    }
    families.retain(|family| names.is_empty() || names.contains(&family.name));
    Ok(families)
}

/// Checks that the workspace has families of these names.
pub(crate) fn check_families(root: &Path, names: &[String]) -> Result<()> {
    selected(families(root)?, names).map(drop)
}

/// Removes PTX of former families and architectures, which the host would embed.
fn remove_others(out: &Path, built: &[Built]) -> Result<()> {
    for entry in fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))? {
        let path = entry?.path();
        let is_ptx = path.extension().is_some_and(|extension| extension == "ptx");
        if is_ptx && built.iter().all(|built| built.ptx.path != path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Sizes of the PTX of an architecture, without the kernels of tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Entries of the families that a default build of the host embeds.
    entries: usize,
    /// Bytes of their PTX.
    bytes: u64,
    /// Entries of the families that the feature `research` adds.
    research: usize,
}

/// Returns the totals of each architecture in a folder of PTX; empty if the folder does not exist.
pub(crate) fn totals_of_dir(dir: &Path) -> Result<BTreeMap<String, Totals>> {
    let mut totals = BTreeMap::<String, Totals>::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((family, arch)) = name.strip_suffix(".ptx").and_then(|name| name.split_once('.')) else {
            continue;
        };
        if family == TEST_FAMILY {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let entries = text.lines().filter(|line| line.contains(".entry ")).count();
        let total = totals.entry(arch.to_owned()).or_default();
        if family.starts_with(RESEARCH) {
            total.research += entries;
            continue;
        }
        total.entries += entries;
        // Line numbers are for profilers; the driver does not compile them.
        let lines = text.lines().filter(|line| !line.trim_start().starts_with(".loc"));
        total.bytes += lines.map(|line| line.len() as u64 + 1).sum::<u64>();
    }
    Ok(totals)
}

/// Describes the totals that exceed the limits of an architecture.
pub(crate) fn over_limits(totals: &BTreeMap<String, Totals>) -> Vec<String> {
    let mut over = Vec::new();
    for (arch, Totals { entries, bytes, .. }) in totals {
        if *entries > MAX_ENTRIES {
            over.push(format!("a default build has {entries} entries for {arch}, more than {MAX_ENTRIES}"));
        }
        if *bytes > MAX_BYTES {
            over.push(format!("a default build has {bytes} bytes of PTX for {arch}, more than {MAX_BYTES}"));
        }
    }
    over
}

/// Lints every file, prints the findings and returns their number.
fn lint(built: &[Built], checked: bool) -> Result<usize> {
    let mut count = 0;
    for Built { family, ptx, .. } in built {
        if ptx.kernels.is_empty() {
            println!("lint: {family}.{}.ptx: no kernel is in it", ptx.arch);
            count += 1;
        }
        for finding in lint::check_built(ptx)? {
            // Checked kernels need not be fast, and they write fault records to host memory.
            if checked && finding.rule == lint::Rule::GenericAccess {
                continue;
            }
            println!("lint: {family}.{}.ptx: {finding}", ptx.arch);
            count += 1;
        }
    }
    Ok(count)
}

/// Prints the rows of a family together; other families are built at the same time.
fn print_rows(built: &[Built]) {
    let rows = built.iter().map(|Built { family, ptx, bytes }| {
        let state = if ptx.fresh { "" } else { "  built" };
        let (arch, kilobytes) = (ptx.arch.to_string(), bytes.div_ceil(1000));
        format!("{family:<20} {arch:<7} {:>7} {kilobytes:>7}{state}\n", ptx.kernels.len())
    });
    print!("{}", rows.collect::<String>());
}

/// Prints the compiler's diagnostics once; they are equal for every architecture.
fn print_diagnostics(built: &[cuda_builder::Ptx]) {
    let mut said = HashSet::new();
    let paragraphs = built.iter().flat_map(|ptx| ptx.diagnostics.split_inclusive("\n\n"));
    paragraphs
        .filter(|paragraph| said.insert(paragraph.trim_end()))
        .for_each(|paragraph| eprint!("{paragraph}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let over = |entries, bytes, research| {
            over_limits(&BTreeMap::from([("sm_90".to_owned(), Totals { entries, bytes, research })])).len()
        };
        assert_eq!(over(MAX_ENTRIES, MAX_BYTES, 2 * MAX_ENTRIES), 0);
        assert_eq!(over(MAX_ENTRIES + 1, MAX_BYTES + 1, 0), 2);
    }

    #[test]
    fn research_and_tests_do_not_count_as_a_default_build() {
        let dir = std::env::temp_dir().join(format!("kauri-ptx-totals-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let entry = ".visible .entry a(\n";
        for (file, entries) in [("kdtree", 2), ("join", 1), ("research-join", 4), (TEST_FAMILY, 8)] {
            let text = entry.repeat(entries) + "\t.loc 1 2 3\n";
            fs::write(dir.join(format!("{file}.sm_90.ptx")), text).unwrap();
        }
        let totals = totals_of_dir(&dir).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let expected = Totals { entries: 3, bytes: 3 * entry.len() as u64, research: 4 };
        assert_eq!(totals, BTreeMap::from([("sm_90".to_owned(), expected)]));
    }

    #[test]
    fn families_are_features() {
        let families = families(&crate::workspace::Workspace::find().unwrap().root).unwrap();
        let of = |name: &str| families.iter().find(|family| family.name == name).map(|family| family.krate);
        assert_eq!((of("kdtree"), of(TEST_FAMILY)), (Some("kernels"), Some("tests/kernels")));
    }
}
