//! The kernels of this build: packs of PTX and of machine code, from which a kernel is taken at its first launch.

#![cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only CUDA loads images"))]

use super::KernelForm;
use crate::error::{Error, Result};
use crate::once::Once;
use cuda_pack::{Form, Member, Pack, PackError};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync;

/// Packs of PTX that the build script found.
static PTX: &[&[u8]] = &include!(concat!(env!("OUT_DIR"), "/packs.rs"));

/// Packs of machine code.
static MACHINE_CODE: &[&[&[u8]]] = &[
    #[cfg(feature = "sm-80")]
    kauri_sm_80::PACKS,
    #[cfg(feature = "sm-86")]
    kauri_sm_86::PACKS,
    #[cfg(feature = "sm-89")]
    kauri_sm_89::PACKS,
    #[cfg(feature = "sm-90")]
    kauri_sm_90::PACKS,
    #[cfg(feature = "sm-100")]
    kauri_sm_100::PACKS,
    #[cfg(feature = "sm-120")]
    kauri_sm_120::PACKS,
];

/// Returns the packs of this build.
fn embedded() -> impl Iterator<Item = &'static [u8]> {
    PTX.iter().chain(MACHINE_CODE.iter().copied().flatten()).copied()
}

/// A pack, and the place of its kernels.
struct Source {
    pack: Pack,
    bytes: Bytes,
}

enum Bytes {
    Embedded(&'static [u8]),
    File(PathBuf),
}

/// The packs of this process. If several architectures fit a device, the first pack is the best.
struct Catalog {
    sources: Vec<Source>,
    /// The folder that replaces the embedded packs.
    folder: Option<PathBuf>,
}

/// Returns the packs of kernels in this build: the form of their kernels, their architecture (compute capability as major * 10 + minor),
/// and the number of kernels.
pub fn embedded_kernels() -> impl Iterator<Item = (KernelForm, u32, usize)> {
    let packs = embedded().filter_map(|mut bytes| Pack::read(&mut bytes).ok());
    packs.map(|pack| (pack.form().into(), pack.arch(), pack.members().count()))
}

/// Warns if there are no kernels for a GPU that is opened.
#[cfg(feature = "cuda")]
pub(super) fn warn_if_none() {
    static WARNED: sync::Once = sync::Once::new();
    if PTX.is_empty() && std::env::var_os("KAURI_PTX_DIR").is_none() {
        WARNED.call_once(|| {
            tracing::warn!(
                "this build of kauri has no kernels for a GPU: run `cargo xtask ptx` and build again"
            );
        });
    }
}

impl From<Form> for KernelForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Ptx => Self::Ptx,
            Form::MachineCode => Self::MachineCode,
        }
    }
}

/// Returns the packs of the folder `KAURI_PTX_DIR`, or of this build if the variable is not set. With `KAURI_MACHINE_CODE=0` machine code is left
/// out.
fn catalog() -> Result<&'static Catalog> {
    static CATALOG: Once<Catalog> = Once::new();
    CATALOG.get_or_try_init(|| {
        let folder = std::env::var_os("KAURI_PTX_DIR").map(PathBuf::from);
        let mut catalog = match folder {
            Some(folder) => Catalog::of_folder(folder)?,
            None => Catalog::of_build()?,
        };
        if std::env::var_os("KAURI_MACHINE_CODE").is_some_and(|value| value == "0") {
            catalog.sources.retain(|source| source.pack.form() == Form::Ptx);
        }
        catalog.sources.sort_by_key(|source| std::cmp::Reverse(source.pack.arch()));
        Ok(catalog)
    })
}

impl Catalog {
    fn of_build() -> Result<Self> {
        let source = |bytes: &'static [u8]| {
            let pack =
                Pack::read(&mut &bytes[..]).map_err(damaged(Path::new("the kernels of this program")))?;
            Ok(Source { pack, bytes: Bytes::Embedded(bytes) })
        };
        Ok(Self { sources: embedded().map(source).collect::<Result<_>>()?, folder: None })
    }

    fn of_folder(folder: PathBuf) -> Result<Self> {
        let mut sources = Vec::new();
        let entries = fs::read_dir(&folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        for entry in entries.map_err(|source| Error::Io { path: folder.clone(), source })? {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == cuda_pack::EXTENSION) {
                let file = File::open(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
                let pack = Pack::read(&mut BufReader::new(file)).map_err(damaged(&path))?;
                sources.push(Source { pack, bytes: Bytes::File(path) });
            }
        }
        Ok(Self { sources, folder: Some(folder) })
    }

    /// Returns the PTX of a kernel with the highest architecture that a device can run.
    fn ptx(&self, kernel: KernelId<'_>, device: u32) -> Option<Image<'_>> {
        let usable = |source: &&Source| source.pack.form() == Form::Ptx && source.pack.arch() <= device;
        self.sources.iter().filter(usable).find_map(|source| source.image(kernel))
    }

    /// Returns the machine code of a kernel that a device can run: that of its architecture, or of an earlier one of its generation.
    fn machine_code(&self, kernel: KernelId<'_>, device: u32, hash: u64) -> Option<Image<'_>> {
        let is_usable = |source: &&Source| {
            let arch = source.pack.arch();
            source.pack.form() == Form::MachineCode && arch / 10 == device / 10 && arch <= device
        };
        let mut images =
            self.sources.iter().filter(is_usable).filter_map(|source| source.image(kernel)).peekable();
        let is_there = images.peek().is_some();
        let image = images.find(|image| image.member.hash() == hash);
        if is_there && image.is_none() {
            warn_once(
                "machine code is of another build, so the driver compiles PTX: build both from one `cargo xtask ptx --cubin`",
            );
        }
        image
    }

    /// Returns the error for a kernel without PTX.
    fn missing(&self, kernel: KernelId<'_>, capability: (u32, u32)) -> Error {
        let device = capability.0 * 10 + capability.1;
        let of_family = |source: &&Source| {
            source.pack.form() == Form::Ptx
                && source.pack.members().any(|(_, member)| member.family() == kernel.family)
        };
        let archs = || self.sources.iter().filter(of_family).map(|source| source.pack.arch());
        if archs().any(|arch| arch <= device) {
            return Error::MissingKernel { kernel: kernel.name.into(), family: kernel.family };
        }
        let advice = match (archs().min(), &self.folder) {
            (Some(least), _) => {
                format!("the oldest architecture of its PTX is sm_{least}; use a newer device")
            }
            (None, Some(folder)) => {
                format!(
                    "KAURI_PTX_DIR ({}) has no pack with this family; `cargo xtask ptx --out` writes packs",
                    folder.display()
                )
            }
            (None, None) if self.sources.is_empty() => {
                "this build has no kernels; run `cargo xtask ptx` and build again".into()
            }
            (None, None) => {
                "this build has no such family; kernels of your own are loaded by `Gpu::load_module`".into()
            }
        };
        Error::NoPtx { family: kernel.family, capability, advice }
    }
}

/// The name of a kernel: its entry and its family.
#[derive(Clone, Copy)]
pub(super) struct KernelId<'a> {
    pub(super) family: &'static str,
    pub(super) name: &'a str,
}

/// A form of a kernel in a pack.
#[derive(Clone, Copy)]
pub(super) struct Image<'a> {
    source: &'a Source,
    member: &'a Member,
}

impl Source {
    fn image(&self, kernel: KernelId<'_>) -> Option<Image<'_>> {
        let member = self.pack.get(kernel.name).filter(|member| member.family() == kernel.family)?;
        Some(Image { source: self, member })
    }
}

impl Image<'_> {
    /// Reads and unpacks the image.
    pub(super) fn read(&self) -> Result<Vec<u8>> {
        let range = self.member.range();
        let (packed, path) = match &self.source.bytes {
            Bytes::Embedded(bytes) => {
                let packed = bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
                (Ok(Cow::Borrowed(packed)), Path::new("the kernels of this program"))
            }
            Bytes::File(path) => {
                let read = || {
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(range.start))?;
                    let mut packed = Vec::new();
                    file.take(range.end - range.start).read_to_end(&mut packed)?;
                    Ok(Cow::Owned(packed))
                };
                (read(), path.as_path())
            }
        };
        packed.map_err(PackError::Io).and_then(|packed| self.member.unpack(&packed)).map_err(damaged(path))
    }
}

/// The forms of a kernel for a device.
pub(super) struct Images {
    pub(super) ptx: Image<'static>,
    pub(super) machine_code: Option<Image<'static>>,
}

/// Finds a kernel for a device.
///
/// # Errors
/// [`Error::NoPtx`], [`Error::MissingKernel`], and [`Error::Io`] if the packs cannot be read.
pub(super) fn find(kernel: KernelId<'_>, capability: (u32, u32)) -> Result<Images> {
    let (catalog, device) = (catalog()?, capability.0 * 10 + capability.1);
    let ptx = catalog.ptx(kernel, device).ok_or_else(|| catalog.missing(kernel, capability))?;
    Ok(Images { ptx, machine_code: catalog.machine_code(kernel, device, ptx.member.hash()) })
}

/// Returns the kernels of a family that a device can run.
///
/// # Errors
/// [`Error::NoPtx`] if there are none, and [`Error::Io`] if the packs cannot be read.
pub(super) fn of_family(family: &'static str, capability: (u32, u32)) -> Result<Vec<KernelId<'static>>> {
    let (catalog, device) = (catalog()?, capability.0 * 10 + capability.1);
    let usable = |source: &&Source| source.pack.form() == Form::Ptx && source.pack.arch() <= device;
    let members = catalog.sources.iter().filter(usable).flat_map(|source| source.pack.members());
    let names: BTreeSet<_> =
        members.filter(|(_, member)| member.family() == family).map(|(name, _)| name).collect();
    if names.is_empty() {
        return Err(catalog.missing(KernelId { family, name: "" }, capability));
    }
    Ok(names.into_iter().map(|name| KernelId { family, name }).collect())
}

/// Warns of machine code that is not used. A program warns once, because all kernels have the same cause.
pub(super) fn warn_once(reason: &str) {
    static WARNED: sync::Once = sync::Once::new();
    WARNED.call_once(|| tracing::warn!("{reason}"));
}

fn damaged(path: &Path) -> impl Fn(PackError) -> Error {
    move |error| {
        let source = match error {
            PackError::Io(source) => source,
            damaged => io::Error::new(io::ErrorKind::InvalidData, damaged),
        };
        Error::Io { path: path.into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_pack::Packed;

    const UP: KernelId<'static> = KernelId { family: "scan", name: "scan_up" };

    /// Packs with the kernel `scan_up`: form, architecture, hash of the PTX, and the image.
    fn catalog_of(packs: &[(Form, u32, u64, &[u8])]) -> Catalog {
        let source = |(form, arch, hash, image): &(Form, u32, u64, &[u8])| {
            let bytes =
                cuda_pack::write(*form, *arch, "", &[Packed::compress("scan_up", "scan", *hash, image)]);
            let bytes: &'static [u8] = bytes.leak();
            Source { pack: Pack::read(&mut &bytes[..]).unwrap(), bytes: Bytes::Embedded(bytes) }
        };
        let mut sources: Vec<_> = packs.iter().map(source).collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.pack.arch()));
        Catalog { sources, folder: None }
    }

    #[test]
    fn every_embedded_kernel_is_whole() {
        let sources = Catalog::of_build().unwrap().sources;
        for source in sources.into_iter().filter(|source| source.pack.form() == Form::Ptx) {
            for (name, member) in source.pack.members() {
                let image = Image { source: &source, member }.read().unwrap();
                if source.pack.form() == Form::MachineCode {
                    assert!(image.starts_with(b"\x7fELF"), "{name}");
                    continue;
                }
                let text = String::from_utf8(image).unwrap();
                let target = format!(".target sm_{}", source.pack.arch());
                assert!(text.contains(&target) && text.contains(&format!(".entry {name}(")), "{name}");
            }
        }
    }

    #[test]
    fn the_best_image_of_a_device() {
        let catalog = catalog_of(&[
            (Form::Ptx, 75, 1, b"ptx 75"),
            (Form::Ptx, 80, 2, b"ptx 80"),
            (Form::MachineCode, 80, 2, b"code 80"),
            (Form::MachineCode, 86, 2, b"code 86"),
            (Form::MachineCode, 89, 9, b"of another build"),
            (Form::MachineCode, 90, 2, b"code 90"),
        ]);
        let images = |device: u32| {
            let ptx = catalog.ptx(UP, device)?;
            let code = catalog.machine_code(UP, device, ptx.member.hash());
            let text = |image: Image<'_>| String::from_utf8(image.read().unwrap()).unwrap();
            Some((text(ptx), code.map(text).unwrap_or_default()))
        };
        let pair = |ptx: &str, code: &str| Some((ptx.to_owned(), code.to_owned()));
        for (device, expected) in [
            (70, None),
            (75, pair("ptx 75", "")),
            (80, pair("ptx 80", "code 80")),
            (87, pair("ptx 80", "code 86")),
            (89, pair("ptx 80", "code 86")),
            (90, pair("ptx 80", "code 90")),
            (100, pair("ptx 80", "")),
        ] {
            assert_eq!(images(device), expected, "sm_{device}");
        }
    }

    #[test]
    fn missing_kernels_say_what_to_do() {
        let catalog = catalog_of(&[(Form::Ptx, 75, 1, b"ptx")]);
        let other = KernelId { family: "scan", name: "scan_down" };
        let own = KernelId { family: "own", name: "scan_up" };
        assert!(catalog.ptx(other, 90).is_none() && catalog.ptx(own, 90).is_none());
        let text = |catalog: &Catalog, kernel, capability| catalog.missing(kernel, capability).to_string();
        assert!(matches!(catalog.missing(other, (9, 0)), Error::MissingKernel { family: "scan", .. }));
        assert!(text(&catalog, UP, (3, 5)).contains("sm_75"));
        assert!(text(&catalog, own, (9, 0)).contains("load_module"));
        assert!(text(&catalog_of(&[]), UP, (9, 0)).contains("cargo xtask ptx"));
        let folder = Catalog { folder: Some("some/folder".into()), ..catalog_of(&[]) };
        assert!(text(&folder, UP, (9, 0)).contains("some/folder"));
    }

    #[test]
    fn a_folder_of_packs() {
        let folder = std::env::temp_dir().join(format!("kauri-packs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = cuda_pack::write(Form::Ptx, 75, "", &[Packed::compress("scan_up", "scan", 1, b"ptx")]);
        fs::write(folder.join("kernels.sm_75.ptx.pack"), &file).unwrap();
        fs::write(folder.join("scan.sm_75.ptx"), "no pack").unwrap();
        let catalog = Catalog::of_folder(folder.clone()).unwrap();
        assert_eq!(catalog.ptx(UP, 75).unwrap().read().unwrap(), b"ptx");
        fs::write(folder.join("kernels.sm_75.ptx.pack"), &file[..file.len() - 1]).unwrap();
        assert!(matches!(catalog.ptx(UP, 75).unwrap().read(), Err(Error::Io { .. })));
        fs::write(folder.join("kernels.sm_75.ptx.pack"), "damaged").unwrap();
        assert!(matches!(Catalog::of_folder(folder.clone()), Err(Error::Io { .. })));
        fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(Catalog::of_folder(folder), Err(Error::Io { .. })));
    }
}
