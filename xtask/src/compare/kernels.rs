//! Kernels of variants: registers, local and shared memory, occupancy, and the sizes of PTX and machine code.

use super::gpu::{Figures, Gpu};
use super::library::Launch;
use super::variant::Variant;
use crate::parallel;
use anyhow::{Context, Result};
use cuda_builder::{Arch, Ptxas};
use cuda_pack::{EXTENSION, Form, Pack};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// The packs of a variant, the highest architecture first.
struct Packs(Vec<(Pack, Vec<u8>)>);

/// A kernel's image.
struct Image {
    hash: u64,
    arch: u32,
    bytes: Vec<u8>,
}

impl Packs {
    fn read(folder: &Path) -> Result<Packs> {
        let mut packs = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let pack = Pack::read(&mut &bytes[..]).with_context(|| path.display().to_string())?;
                packs.push((pack, bytes));
            }
        }
        packs.sort_by_key(|(pack, _)| std::cmp::Reverse(pack.arch()));
        Ok(Packs(packs))
    }

    /// Returns the image of a kernel for a device, or of the highest architecture.
    fn find(&self, form: Form, kernel: &str, device: Option<u32>) -> Option<Image> {
        let runs = |arch: u32| {
            device.is_none_or(|device| arch <= device && (form == Form::Ptx || arch / 10 == device / 10))
        };
        let mut packs = self.0.iter().filter(|(pack, _)| pack.form() == form && runs(pack.arch()));
        packs.find_map(|(pack, file)| {
            let member = pack.get(kernel)?;
            let range = member.range();
            let bytes = member.unpack(file.get(range.start as usize..range.end as usize)?).ok()?;
            Some(Image { hash: member.hash(), arch: pack.arch(), bytes })
        })
    }

    fn names(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|(pack, _)| pack.members().map(|(name, _)| name.to_owned())).collect()
    }
}

/// Where the resources of kernels come from.
pub(super) enum Source<'a> {
    /// A GPU, and the launches in each variant.
    Gpu(&'a Gpu, Vec<BTreeSet<Launch>>),
    /// The assembler, for all kernels whose PTX differs; `None` if it is not installed.
    Assembler(Option<Ptxas>),
}

/// Returns the resources of the kernels that differ between variants, or of all kernels, as Markdown.
pub(super) fn table(
    variants: &[Variant],
    letters: &[String],
    source: &Source<'_>,
    all: bool,
) -> Result<String> {
    let packs = variants.iter().map(|variant| Packs::read(&variant.folder)).collect::<Result<Vec<_>>>()?;
    let kernels = match source {
        Source::Gpu(gpu, launches) => on_gpu(&packs, gpu, launches)?,
        Source::Assembler(ptxas) => assembled(&packs, ptxas.as_ref(), all)?,
    };
    Ok(shown(&kernels, letters, all))
}

/// The resources of each kernel in each variant.
type Kernels = BTreeMap<String, Vec<Figures>>;

fn on_gpu(packs: &[Packs], gpu: &Gpu, launches: &[BTreeSet<Launch>]) -> Result<Kernels> {
    let device = Some(gpu.arch());
    let mut kernels = Kernels::new();
    for (variant, (packs, own)) in packs.iter().zip(launches).enumerate() {
        for launch in own {
            let ptx = packs.find(Form::Ptx, &launch.kernel, device);
            let hash = ptx.as_ref().map(|ptx| ptx.hash);
            let code = packs.find(Form::MachineCode, &launch.kernel, device);
            let code = code.filter(|code| Some(code.hash) == hash);
            let mut figures = match code.as_ref().or(ptx.as_ref()) {
                Some(image) => gpu.resources(&image.bytes, launch)?,
                None => Figures::default(),
            };
            figures.ptx_bytes = ptx.as_ref().map(|ptx| ptx.bytes.len());
            figures.code_bytes = code.as_ref().map(|code| code.bytes.len());
            figures.hash = hash;
            let of_kernel = kernels.entry(launch.kernel.clone());
            of_kernel.or_insert_with(|| vec![Figures::default(); launches.len()])[variant] = figures;
        }
    }
    Ok(kernels)
}

fn assembled(packs: &[Packs], ptxas: Option<&Ptxas>, all: bool) -> Result<Kernels> {
    let names: BTreeSet<String> = packs.iter().flat_map(Packs::names).collect();
    let mut kernels = Kernels::new();
    for name in names {
        let figures = |packs: &Packs| {
            let ptx = packs.find(Form::Ptx, &name, None);
            let code = packs.find(Form::MachineCode, &name, None);
            Figures {
                hash: ptx.as_ref().map(|ptx| ptx.hash),
                ptx_bytes: ptx.map(|ptx| ptx.bytes.len()),
                code_bytes: code.map(|code| code.bytes.len()),
                ..Figures::default()
            }
        };
        let figures: Vec<Figures> = packs.iter().map(figures).collect();
        if all || differ(&figures) {
            kernels.insert(name, figures);
        }
    }
    let Some(ptxas) = ptxas else { return Ok(kernels) };
    let images = distinct(packs, kernels.keys()).into_iter().collect();
    let assembled = parallel::map(images, |((name, hash), ptx): ((String, u64), Image)| -> Result<_> {
        let file = env::temp_dir().join(format!("kauri-{}-{name}-{hash:016x}.ptx", std::process::id()));
        fs::write(&file, &ptx.bytes).with_context(|| format!("cannot write {}", file.display()))?;
        let arch: Arch = format!("sm_{}", ptx.arch).parse()?;
        let resources = ptxas.assemble(&file, arch);
        let _ = fs::remove_file(&file);
        Ok((resources?.into_iter().find(|resources| resources.name == name), (name, hash)))
    });
    for assembled in assembled {
        let (Some(resources), (name, hash)) = assembled? else { continue };
        let figures = kernels.get_mut(&name).into_iter().flatten();
        for figures in figures.filter(|figures| figures.hash == Some(hash)) {
            figures.registers = Some(resources.registers);
            figures.local = Some(resources.stack);
            figures.shared = Some(resources.shared);
        }
    }
    Ok(kernels)
}

/// Returns the PTX of kernels, by name and hash. Variants with equal PTX share an image, which is assembled once.
fn distinct<'a>(packs: &[Packs], names: impl Iterator<Item = &'a String>) -> BTreeMap<(String, u64), Image> {
    let images = names.flat_map(|name| {
        let ptx = packs.iter().filter_map(move |packs| packs.find(Form::Ptx, name, None));
        ptx.map(move |ptx| ((name.clone(), ptx.hash), ptx))
    });
    images.collect()
}

/// True if the kernels are of different PTX or are launched differently.
fn differ(figures: &[Figures]) -> bool {
    let key = |figures: &Figures| (figures.hash, figures.threads, figures.shared);
    figures.windows(2).any(|pair| key(&pair[0]) != key(&pair[1]))
}

fn shown(kernels: &Kernels, letters: &[String], all: bool) -> String {
    let selected: Vec<_> = kernels.iter().filter(|(_, figures)| all || differ(figures)).collect();
    if selected.is_empty() {
        return match kernels.len() {
            0 => String::new(),
            n => format!(
                "\nThe {n} kernels of these rows are equal in all variants (--all-kernels lists them).\n"
            ),
        };
    }
    let which = if all { "Kernels" } else { "Kernels that differ" };
    let mut text = format!("\n{which}, in {}:\n\n", letters.join(", "));
    text += "| kernel | block | registers | local bytes | shared bytes | occupancy % | PTX bytes | code bytes |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for (name, figures) in selected {
        let cell = |value: &dyn Fn(&Figures) -> Option<String>| {
            let mut values: Vec<String> =
                figures.iter().map(|figures| value(figures).unwrap_or("-".to_owned())).collect();
            if values.windows(2).all(|pair| pair[0] == pair[1]) {
                values.truncate(1);
            }
            values.join(", ")
        };
        let number = |value: fn(&Figures) -> Option<u32>| cell(&|figures| Some(value(figures)?.to_string()));
        let bytes = |value: fn(&Figures) -> Option<usize>| cell(&|figures| Some(value(figures)?.to_string()));
        writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            number(|f| f.threads),
            number(|f| f.registers),
            number(|f| f.local),
            number(|f| f.shared),
            cell(&|f| Some(format!("{:.0}", f.occupancy? * 100.0))),
            bytes(|f| f.ptx_bytes),
            bytes(|f| f.code_bytes),
        )
        .expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_pack::Packed;

    fn variant(dir: &Path, name: &str, kernels: &[(&str, &str)]) -> Variant {
        let folder = dir.join(name);
        fs::create_dir_all(&folder).unwrap();
        for (form, extra) in [(Form::Ptx, ""), (Form::MachineCode, "code")] {
            let packed = |(kernel, ptx): &(&str, &str)| {
                Packed::compress(kernel, "scan", cuda_pack::hash(ptx), format!("{ptx}{extra}").as_bytes())
            };
            let packed: Vec<_> = kernels.iter().map(packed).collect();
            let file = folder.join(cuda_pack::file_name("kernels", 90, form));
            fs::write(file, cuda_pack::write(form, 90, "", &packed)).unwrap();
        }
        Variant { label: name.to_owned(), settings: Vec::new(), folder }
    }

    #[test]
    fn kernels_that_differ_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let variants = [
            variant(dir.path(), "one", &[("equal", "ptx"), ("changed", "12"), ("old", "1")]),
            variant(dir.path(), "two", &[("equal", "ptx"), ("changed", "1234"), ("new", "1")]),
        ];
        let letters = ["A".to_owned(), "B".to_owned()];
        let text = table(&variants, &letters, &Source::Assembler(None), false).unwrap();
        let line = |name: &str| text.lines().find(|line| line.starts_with(&format!("| {name} |")));
        assert_eq!(line("changed"), Some("| changed | - | - | - | - | - | 2, 4 | 6, 8 |"));
        assert_eq!(line("old"), Some("| old | - | - | - | - | - | 1, - | 5, - |"));
        assert!(line("new").is_some() && line("equal").is_none(), "{text}");
        let all = table(&variants, &letters, &Source::Assembler(None), true).unwrap();
        assert!(all.contains("| equal | - | - | - | - | - | 3 | 7 |"), "{all}");
    }

    #[test]
    fn equal_ptx_is_assembled_once() {
        let dir = tempfile::tempdir().unwrap();
        let variants = [
            variant(dir.path(), "one", &[("equal", "ptx"), ("changed", "12")]),
            variant(dir.path(), "two", &[("equal", "ptx"), ("changed", "1234")]),
        ];
        let packs = variants.map(|variant| Packs::read(&variant.folder).unwrap());
        let names = packs[0].names();
        let images = distinct(&packs, names.iter());
        let names: Vec<_> = images.keys().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["changed", "changed", "equal"]);
    }

    #[test]
    fn images_are_those_of_the_device() {
        let dir = tempfile::tempdir().unwrap();
        let packs = Packs::read(&variant(dir.path(), "one", &[("up", "ptx")]).folder).unwrap();
        let has = |form, device| packs.find(form, "up", device).is_some();
        assert!(has(Form::Ptx, Some(90)) && has(Form::Ptx, Some(120)) && !has(Form::Ptx, Some(80)));
        assert!(has(Form::MachineCode, Some(90)) && !has(Form::MachineCode, Some(100)));
    }
}
