//! Packs: files of compressed kernels. A pack has a member for each kernel of an architecture, as PTX or as machine code, so that a
//! program loads one kernel without its family.
//!
//! ```
//! use cuda_pack::{Form, Member, Pack, Packed, hash};
//!
//! let ptx = ".version 7.8\n.target sm_90\n…";
//! let member = Packed::compress("scan_up", "scan", hash(ptx), ptx.as_bytes());
//! let file = cuda_pack::write(Form::Ptx, 90, "", &[member]);
//!
//! let pack = Pack::read(&mut &file[..])?;
//! let member = pack.get("scan_up").unwrap();
//! let range = member.range();
//! assert_eq!(member.unpack(&file[range.start as usize..range.end as usize])?, ptx.as_bytes());
//! # Ok::<(), cuda_pack::PackError>(())
//! ```
//!
//! # Format
//! Two lines of text and a line for each member, in the order of the names; then the members, each a raw deflate stream. `tool` is
//! the program that made machine code; it may be empty and may have spaces.
//!
//! ```text
//! kauri-pack 1 <ptx or cubin> sm_<architecture> <tool>
//! <members> <bytes of the lines that follow>
//! <entry> <family> <hash of the PTX> <offset from the first member> <compressed bytes> <bytes>
//! ```
//!
//! Each member is compressed alone, so that reading one of them takes less than a millisecond.

mod embed;

pub use embed::embed;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, BufRead, Read};
use std::ops::Range;

/// Extension of the files.
pub const EXTENSION: &str = "pack";

const MAGIC: &str = "kauri-pack 1";
/// Maximum length of a line and of the index: a damaged file takes no more memory.
const MAX_LINE: u64 = 1 << 12;
const MAX_INDEX: u64 = 1 << 24;
/// Maximum size of an unpacked member.
const MAX_MEMBER: usize = 1 << 28;
const LEVEL: u8 = 9;

/// The form of the kernels in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// PTX text, which the driver compiles.
    Ptx,
    /// Machine code of one architecture.
    MachineCode,
}

impl Form {
    /// Returns the name in files: `ptx` or `cubin`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::MachineCode => "cubin",
        }
    }
}

/// The reason for which a pack cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no pack, or it is damaged.
    #[error("{0}")]
    Damaged(&'static str),
}

type Result<T> = std::result::Result<T, PackError>;

/// Returns the name of the file with a set of kernels: `kernels.sm_90.ptx.pack`.
pub fn file_name(set: &str, arch: u32, form: Form) -> String {
    format!("{set}.sm_{arch}.{}.{EXTENSION}", form.name())
}

/// Returns the hash of a PTX text (FNV-1a). It detects changes; it is not cryptographic.
pub fn hash(ptx: &str) -> u64 {
    ptx.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The index of a pack.
#[derive(Clone, Debug)]
pub struct Pack {
    form: Form,
    arch: u32,
    tool: String,
    members: BTreeMap<String, Member>,
}

/// A kernel in a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    family: String,
    hash: u64,
    start: u64,
    packed: u64,
    bytes: usize,
}

impl Pack {
    /// Reads the index from the beginning of a file.
    ///
    /// # Errors
    /// Errors of the reader, and [`PackError::Damaged`].
    pub fn read(reader: &mut impl BufRead) -> Result<Self> {
        let head = line(reader)?;
        let fields = head.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(' '));
        let mut fields =
            fields.ok_or(PackError::Damaged("this is no pack of kernels of this version"))?.splitn(3, ' ');
        let damaged = PackError::Damaged("its first lines are damaged");
        let form = match fields.next() {
            Some("ptx") => Form::Ptx,
            Some("cubin") => Form::MachineCode,
            _ => return Err(damaged),
        };
        let arch = fields.next().and_then(|arch| arch.strip_prefix("sm_")?.parse().ok());
        let tool = fields.next().unwrap_or_default().to_owned();
        let sizes = line(reader)?;
        let sizes = sizes.split_once(' ').and_then(|(n, bytes)| Some((n.parse().ok()?, bytes.parse().ok()?)));
        let (Some(arch), Some((num_members, index_bytes))) = (arch, sizes) else { return Err(damaged) };
        if index_bytes > MAX_INDEX {
            return Err(damaged);
        }
        let mut index = String::new();
        reader.take(index_bytes).read_to_string(&mut index)?;
        let first = head.len() as u64 + 1 + index_bytes + sizes_len(num_members, index_bytes);
        let members =
            index.lines().map(|line| Member::parse(line, first)).collect::<Option<BTreeMap<_, _>>>();
        let members = members
            .filter(|members| members.len() as u64 == num_members && index.len() as u64 == index_bytes);
        Ok(Self { form, arch, tool, members: members.ok_or(PackError::Damaged("its index is damaged"))? })
    }

    /// Returns the form of the kernels.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the architecture, as major * 10 + minor of the compute capability.
    pub fn arch(&self) -> u32 {
        self.arch
    }

    /// Returns the name of the program that made the machine code.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the member of an entry.
    pub fn get(&self, entry: &str) -> Option<&Member> {
        self.members.get(entry)
    }

    /// Returns all entries and their members.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.members.iter().map(|(entry, member)| (entry.as_str(), member))
    }
}

/// Reads a line without its end.
fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    reader.take(MAX_LINE).read_line(&mut line)?;
    line.strip_suffix('\n').map(str::to_owned).ok_or(PackError::Damaged("this is no pack of kernels"))
}

/// Returns the length of the second line.
fn sizes_len(num_members: u64, index_bytes: u64) -> u64 {
    format!("{num_members} {index_bytes}\n").len() as u64
}

impl Member {
    fn parse(line: &str, first: u64) -> Option<(String, Self)> {
        let mut fields = line.split(' ');
        let entry = fields.next()?.to_owned();
        let family = fields.next()?.to_owned();
        let hash = u64::from_str_radix(fields.next()?, 16).ok()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (offset, packed, bytes) = (number()?, number()?, number()?);
        let start = first.checked_add(offset)?;
        start.checked_add(packed)?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MAX_MEMBER)?;
        fields.next().is_none().then_some((entry, Self { family, hash, start, packed, bytes }))
    }

    /// Returns the family of kernels.
    pub fn family(&self) -> &str {
        &self.family
    }

    /// Returns the hash of the entry's PTX. Machine code has the hash of the PTX that it was made of.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the bytes of the file that [`unpack`](Self::unpack) takes.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.packed
    }

    /// Returns the kernel: PTX text or machine code.
    ///
    /// # Errors
    /// [`PackError::Damaged`].
    pub fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let unpacked = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, self.bytes).ok();
        unpacked
            .filter(|unpacked| unpacked.len() == self.bytes)
            .ok_or(PackError::Damaged("a kernel in it is damaged"))
    }
}

/// A kernel for [`write()`].
#[derive(Clone, Debug)]
pub struct Packed {
    entry: String,
    family: String,
    hash: u64,
    bytes: usize,
    packed: Vec<u8>,
}

impl Packed {
    /// Compresses a kernel: its PTX text or machine code. `hash` is that of its PTX.
    pub fn compress(entry: &str, family: &str, hash: u64, kernel: &[u8]) -> Self {
        let packed = miniz_oxide::deflate::compress_to_vec(kernel, LEVEL);
        Self { entry: entry.to_owned(), family: family.to_owned(), hash, bytes: kernel.len(), packed }
    }

    /// Takes a kernel of another pack, whose file has the compressed bytes `packed`.
    pub fn from_member(entry: &str, member: &Member, packed: &[u8]) -> Self {
        let Member { family, hash, bytes, .. } = member.clone();
        Self { entry: entry.to_owned(), family, hash, bytes, packed: packed.to_owned() }
    }
}

/// Returns the file of a pack. Entries have different names; names have no spaces.
pub fn write(form: Form, arch: u32, tool: &str, kernels: &[Packed]) -> Vec<u8> {
    let mut kernels: Vec<_> = kernels.iter().collect();
    kernels.sort_by(|a, b| a.entry.cmp(&b.entry));
    let (mut index, mut offset) = (String::new(), 0);
    for Packed { entry, family, hash, bytes, packed } in &kernels {
        writeln!(index, "{entry} {family} {hash:016x} {offset} {} {bytes}", packed.len())
            .expect("writing to a string");
        offset += packed.len();
    }
    let (num_members, index_bytes) = (kernels.len(), index.len());
    let head = format!("{MAGIC} {} sm_{arch} {tool}\n{num_members} {index_bytes}\n{index}", form.name());
    let mut file = head.into_bytes();
    kernels.iter().for_each(|kernel| file.extend(&kernel.packed));
    file
}

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let kernel = |entry: &str, bytes: &[u8]| Packed::compress(entry, "family", hash(entry), bytes);
        write(
            Form::MachineCode,
            86,
            "ptxas 13.5",
            &[kernel("b", &[7; 5000]), kernel("a", b""), kernel("c", b"c")],
        )
    }

    fn unpacked(file: &[u8], member: &Member) -> Result<Vec<u8>> {
        let range = member.range();
        let packed = file.get(range.start as usize..range.end as usize);
        member.unpack(packed.ok_or(PackError::Damaged("too short"))?)
    }

    #[test]
    fn kernels_come_back() {
        let file = file();
        let pack = Pack::read(&mut &file[..]).unwrap();
        assert_eq!((pack.form(), pack.arch(), pack.tool()), (Form::MachineCode, 86, "ptxas 13.5"));
        assert_eq!(pack.members().map(|(entry, _)| entry).collect::<Vec<_>>(), ["a", "b", "c"]);
        for (entry, bytes) in [("a", &[][..]), ("b", &[7; 5000]), ("c", b"c")] {
            let member = pack.get(entry).unwrap();
            assert_eq!((member.family(), member.hash()), ("family", hash(entry)));
            assert_eq!(unpacked(&file, member).unwrap(), bytes);
        }
        assert!(pack.get("d").is_none());
    }

    #[test]
    fn members_move_to_another_pack() {
        let old = file();
        let pack = Pack::read(&mut &old[..]).unwrap();
        let moved = |(entry, member): (&str, &Member)| {
            let range = member.range();
            Packed::from_member(entry, member, &old[range.start as usize..range.end as usize])
        };
        let kernels: Vec<_> = pack.members().map(moved).collect();
        assert_eq!(write(pack.form(), pack.arch(), pack.tool(), &kernels), old);
    }

    #[test]
    fn damaged_files_are_refused_or_give_other_bytes() {
        let file = file();
        let read = |file: &[u8]| -> Result<()> {
            let pack = Pack::read(&mut &file[..])?;
            for (_, member) in pack.members() {
                unpacked(file, member)?;
            }
            Ok(())
        };
        read(&file).unwrap();
        for len in 0..file.len() {
            assert!(read(&file[..len]).is_err(), "{len} bytes");
        }
        for i in 0..file.len() {
            for byte in [0, b'9', 255] {
                let mut damaged = file.clone();
                damaged[i] = byte;
                // No panic, and no more memory than the index says.
                let _ = read(&damaged);
            }
        }
    }

    #[test]
    fn hashes_do_not_change() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
