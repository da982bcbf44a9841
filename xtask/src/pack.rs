//! Packs of kernels: cuts the PTX of each family into its entries, assembles machine code, and writes a file for each set of kernels,
//! architecture and form.

use crate::parallel;
use crate::ptx::{RESEARCH, TEST_FAMILY};
use anyhow::{Context, Result, bail};
use cuda_builder::ptx::{SourceLines, split};
use cuda_builder::{Arch, Ptxas};
use cuda_pack::{Form, Pack, Packed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// An entry's PTX.
struct Text {
    family: String,
    ptx: String,
    hash: u64,
}

/// Entries by name.
type Texts = BTreeMap<String, Text>;

/// Machine code to assemble: the architectures and the assembler.
pub(crate) struct MachineCode<'a> {
    pub(crate) archs: &'a [Arch],
    pub(crate) ptxas: &'a Ptxas,
}

/// Returns the set of kernels that a family belongs to. A default build of the host embeds the set `kernels`.
fn set_of(family: &str) -> &'static str {
    match family {
        TEST_FAMILY => "test",
        _ if family.starts_with(RESEARCH) => "research",
        _ => "kernels",
    }
}

/// Writes the packs of a folder of PTX files. Packs of former PTX are removed, also the machine code of an entry whose PTX has changed.
pub(crate) fn write(dir: &Path, lines: SourceLines, machine_code: Option<&MachineCode<'_>>) -> Result<()> {
    let old = Old::read_dir(dir)?;
    let mut new = BTreeMap::new();
    for (set, archs) in read_texts(dir, lines)? {
        let archs = without_repetitions(archs);
        for (&arch, texts) in &archs {
            let name = cuda_pack::file_name(set, arch, Form::Ptx);
            let pack = |(entry, text): (&String, &Text)| {
                let old = old.get(&name).and_then(|old| old.find(entry, text));
                old.unwrap_or_else(|| text.compressed(entry, text.ptx.as_bytes()))
            };
            let kernels = parallel::map(texts.iter().collect(), pack);
            new.insert(name.clone(), cuda_pack::write(Form::Ptx, arch, "", &kernels));
        }
        new.extend(assemble(set, &archs, &old, machine_code)?);
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        fs::remove_file(dir.join(name)).with_context(|| format!("cannot remove {name}"))?;
    }
    for (name, bytes) in &new {
        // An unchanged pack keeps its time, so that the programs that it is compiled into are not compiled again.
        if old.get(name).is_none_or(|old| old.bytes != *bytes) {
            fs::write(dir.join(name), bytes).with_context(|| format!("cannot write {name}"))?;
        }
        println!("{name:<32} {:>7} KB", bytes.len().div_ceil(1000));
    }
    Ok(())
}

/// Reads the PTX files of a folder: the entries of each set and architecture.
fn read_texts(dir: &Path, lines: SourceLines) -> Result<BTreeMap<&'static str, BTreeMap<u32, Texts>>> {
    let mut sets = BTreeMap::<_, BTreeMap<u32, Texts>>::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let Some((family, arch)) = family_and_arch(&path) else { continue };
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let texts = sets.entry(set_of(&family)).or_default().entry(arch).or_default();
        for entry in split(&text, lines) {
            let text = Text { family: family.clone(), hash: cuda_pack::hash(&entry.ptx), ptx: entry.ptx };
            if let Some(other) = texts.insert(entry.name.clone(), text) {
                bail!("the families {} and {family} have both an entry {}", other.family, entry.name);
            }
        }
    }
    Ok(sets)
}

/// Parses a file name `<family>.sm_<arch>.ptx` of a plain architecture.
fn family_and_arch(path: &Path) -> Option<(String, u32)> {
    let (family, arch) = path.file_name()?.to_str()?.strip_suffix(".ptx")?.split_once(".sm_")?;
    Some((family.to_owned(), arch.parse().ok()?))
}

/// Removes entries that equal those of the next lower architecture: a device runs these as well.
fn without_repetitions(mut archs: BTreeMap<u32, Texts>) -> BTreeMap<u32, Texts> {
    let mut below = BTreeMap::<String, u64>::new();
    for texts in archs.values_mut() {
        texts.retain(|entry, text| {
            let hash = cuda_pack::hash(&without_version(&text.ptx));
            below.insert(entry.clone(), hash) != Some(hash)
        });
    }
    archs
}

/// Returns a PTX text without what may differ where the code is equal: the lines that name its architecture and version, and the name that
/// versions before 7.1 need for a half of a pair that nothing reads.
fn without_version(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(".target") && !line.starts_with(".version"));
    let line = |line: &str| match line.split_once(" tmp; ") {
        Some((_, unpack)) => unpack.replace("{tmp,", "\t{_,").replace("; }", ";"),
        None => line.trim().to_owned(),
    };
    lines.map(line).collect()
}

/// Returns the packs of a set's machine code: for the requested architectures whole, and for those that the folder has the entries whose
/// PTX is unchanged.
fn assemble(
    set: &'static str,
    texts: &BTreeMap<u32, Texts>,
    old: &BTreeMap<String, Old>,
    request: Option<&MachineCode<'_>>,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut packs = BTreeMap::new();
    let version = request.map(|request| request.ptxas.version()).transpose()?;
    let archs = request.map_or(&[][..], |request| request.archs);
    for &arch in archs {
        let name = cuda_pack::file_name(set, number(arch), Form::MachineCode);
        let tool = format!("ptxas {}", version.as_deref().unwrap_or_default());
        let old = old.get(&name).filter(|old| old.pack.tool() == tool);
        let pack = |(entry, text): (&String, &Text)| {
            if let Some(packed) = old.and_then(|old| old.find(entry, text)) {
                return Ok(packed);
            }
            let ptxas = request.context("machine code was requested")?.ptxas;
            let code = ptxas.machine_code(&text.ptx, arch).with_context(|| format!("{entry} for {arch}"))?;
            Ok(text.compressed(entry, &code))
        };
        let kernels = parallel::map(newest(texts, number(arch)).into_iter().collect(), pack);
        let kernels = kernels.into_iter().collect::<Result<Vec<_>>>()?;
        packs.insert(name, cuda_pack::write(Form::MachineCode, number(arch), &tool, &kernels));
    }
    for old in old.values().filter(|old| old.pack.form() == Form::MachineCode) {
        let arch = old.pack.arch();
        let name = cuda_pack::file_name(set, arch, Form::MachineCode);
        let unchanged = newest(texts, arch).into_iter().filter_map(|(entry, text)| old.find(entry, text));
        let kernels: Vec<_> = unchanged.collect();
        if !kernels.is_empty() && !packs.contains_key(&name) {
            packs.insert(name, cuda_pack::write(Form::MachineCode, arch, old.pack.tool(), &kernels));
        }
    }
    Ok(packs)
}

/// Returns the PTX of each entry that a device of an architecture runs: that of the highest architecture up to its own.
fn newest(texts: &BTreeMap<u32, Texts>, arch: u32) -> BTreeMap<&String, &Text> {
    texts.range(..=arch).flat_map(|(_, texts)| texts).collect()
}

fn number(arch: Arch) -> u32 {
    let (major, minor) = arch.compute_capability();
    u32::from(major * 10 + minor)
}

impl Text {
    /// Compresses a form of the kernel.
    fn compressed(&self, entry: &str, kernel: &[u8]) -> Packed {
        Packed::compress(entry, &self.family, self.hash, kernel)
    }
}

/// A pack that the folder has. Kernels of unchanged PTX are taken from it.
struct Old {
    pack: Pack,
    bytes: Vec<u8>,
}

impl Old {
    /// Reads the packs of a folder by name. A file that is no pack of this version counts as one without kernels.
    fn read_dir(dir: &Path) -> Result<BTreeMap<String, Old>> {
        let mut packs = BTreeMap::new();
        for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != cuda_pack::EXTENSION) {
                continue;
            }
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let empty = cuda_pack::write(Form::Ptx, 0, "", &[]);
            let pack = Pack::read(&mut &bytes[..]).or_else(|_| Pack::read(&mut &empty[..]))?;
            packs.insert(
                path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                Old { pack, bytes },
            );
        }
        Ok(packs)
    }

    /// Returns the entry if it was made of this PTX.
    fn find(&self, entry: &str, text: &Text) -> Option<Packed> {
        let member = self.pack.get(entry).filter(|member| member.hash() == text.hash)?;
        let range = member.range();
        Some(Packed::from_member(entry, member, self.bytes.get(range.start as usize..range.end as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, arch: u32, body: &str) -> String {
        format!(".version 7.8\n.target sm_{arch}\n.visible .entry {name}()\n{{\n\t{body};\n\tret;\n}}\n")
    }

    /// Returns the entries of a pack in a folder.
    fn entries(dir: &Path, name: &str) -> Vec<String> {
        let packs = Old::read_dir(dir).unwrap();
        packs
            .get(name)
            .map(|old| old.pack.members().map(|(entry, _)| entry.to_owned()).collect())
            .unwrap_or_default()
    }

    #[test]
    fn sets_architectures_and_repetitions() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("scan.sm_75", entry("up", 75, "add") + &entry("down", 75, "sub")),
            ("scan.sm_90", entry("up", 90, "add") + &entry("down", 90, "mul")),
            ("kdtree.sm_90", entry("build", 90, "add")),
            ("research-scan.sm_90", entry("other", 90, "add")),
            ("scan.sm_90a", entry("specific", 90, "add")),
        ] {
            fs::write(dir.path().join(format!("{file}.ptx")), text).unwrap();
        }
        fs::write(dir.path().join("old.sm_60.ptx.pack"), "of another version").unwrap();
        write(dir.path(), SourceLines::Drop, None).unwrap();
        let entries = |name: &str| entries(dir.path(), name);
        assert_eq!(entries("kernels.sm_75.ptx.pack"), ["down", "up"]);
        // `up` is that of sm_75.
        assert_eq!(entries("kernels.sm_90.ptx.pack"), ["build", "down"]);
        assert_eq!(entries("research.sm_90.ptx.pack"), ["other"]);
        assert_eq!(Old::read_dir(dir.path()).unwrap().len(), 3);

        let sets = read_texts(dir.path(), SourceLines::Drop).unwrap();
        let texts = without_repetitions(sets.into_iter().next().unwrap().1);
        let archs = |arch| -> Vec<bool> {
            newest(&texts, arch).values().map(|text| text.ptx.contains(".target sm_90")).collect()
        };
        assert_eq!((archs(70), archs(89), archs(120)), (vec![], vec![false, false], vec![true, true, false]));
    }

    #[test]
    fn unused_halves_are_no_difference() {
        let named = "\t{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd2; }\n";
        let unnamed = "\tmov.b64 \t{_, %r1}, %rd2;\n";
        let other = "\tmov.b64 \t{_, %r1}, %rd3;\n";
        let text = |arch, line| without_version(&format!(".version 7.8\n.target {arch}\n{line}\tret;\n"));
        assert_eq!(text("sm_80", named), text("sm_90", unnamed));
        assert_ne!(text("sm_80", named), text("sm_90", other));
    }

    #[test]
    fn machine_code_of_changed_ptx_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("scan.sm_90.ptx");
        let text = entry("up", 90, "add") + &entry("down", 90, "sub");
        fs::write(&file, &text).unwrap();
        let name = cuda_pack::file_name("kernels", 100, Form::MachineCode);
        let kernels: Vec<_> = split(&text, SourceLines::Drop)
            .iter()
            .map(|entry| Packed::compress(&entry.name, "scan", cuda_pack::hash(&entry.ptx), b"code"))
            .collect();
        fs::write(dir.path().join(&name), cuda_pack::write(Form::MachineCode, 100, "tool", &kernels))
            .unwrap();
        for (text, left) in
            [(text, vec!["down", "up"]), (entry("up", 90, "add") + &entry("down", 90, "mul"), vec!["up"])]
        {
            fs::write(&file, text).unwrap();
            write(dir.path(), SourceLines::Drop, None).unwrap();
            assert_eq!(entries(dir.path(), &name), left);
        }
    }

    #[test]
    fn an_entry_is_of_one_family() {
        let dir = tempfile::tempdir().unwrap();
        for family in ["a", "b"] {
            fs::write(dir.path().join(format!("{family}.sm_90.ptx")), entry("twice", 90, "add")).unwrap();
        }
        let error = write(dir.path(), SourceLines::Drop, None).unwrap_err().to_string();
        assert!(error.contains("twice"), "{error}");
    }
}
