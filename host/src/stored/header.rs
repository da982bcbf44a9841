//! The header and the section table of an index file.

use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::mem::offset_of;
use std::ops::Range;

use super::checksum;
use super::errors::FileErrors;
use crate::error::Result;

/// The first bytes: no text file begins with them, and a conversion of line ends changes them.
const MAGIC: [u8; 8] = *b"\x89KAURI\r\n";
/// The only version so far.
const VERSION: u32 = 1;
/// The bytes before the section table, and of each of its entries.
pub(super) const HEADER_BYTES: usize = size_of::<RawHeader>();
pub(super) const ENTRY_BYTES: usize = size_of::<RawSection>();
/// The most sections of a file, so that a wrong number is detected.
const MAX_SECTIONS: u32 = 16;
/// The alignment of sections.
pub(super) const ALIGNMENT: u64 = 64;

/// The offsets of two fields that [`IndexFile`](super::IndexFile) checks.
pub(super) const NUM_POINTS_AT: usize = offset_of!(RawHeader, num_points);
pub(super) const NUM_NODES_AT: usize = offset_of!(RawHeader, num_nodes);
const CHECKSUM_AT: usize = offset_of!(RawHeader, checksum);
/// The bytes that must be zero.
const ZEROS: [Range<usize>; 2] = [
    offset_of!(RawHeader, zeros)..offset_of!(RawHeader, num_points),
    offset_of!(RawHeader, more_zeros)..CHECKSUM_AT,
];

/// The bytes of the header. Files are little-endian, as are all machines that this module compiles for.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawHeader {
    magic: [u8; 8],
    version: u32,
    num_sections: u32,
    kind: [u8; 16],
    point_type: [u8; 16],
    coordinate_type: [u8; 8],
    dims: u32,
    zeros: [u8; 4],
    num_points: u64,
    num_nodes: u64,
    file_bytes: u64,
    more_zeros: [u8; 32],
    checksum: u64,
}

/// The bytes of an entry of the section table.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawSection {
    tag: [u8; 8],
    offset: u64,
    bytes: u64,
    checksum: u64,
}

// SAFETY: integers only.
unsafe impl Zeroable for RawHeader {}
// SAFETY: integers without padding: each field is at a multiple of its size, and so is the end.
unsafe impl Pod for RawHeader {}
// SAFETY: integers only.
unsafe impl Zeroable for RawSection {}
// SAFETY: integers without padding: each field is at a multiple of its size, and so is the end.
unsafe impl Pod for RawSection {}
const _: () = assert!(HEADER_BYTES == 128 && ENTRY_BYTES == 32);

/// The type of the points of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointType {
    /// [`Point::NAME`](crate::Point::NAME).
    pub(crate) name: String,
    /// The type of the coordinates inside the index.
    pub(crate) coord: String,
    pub(crate) dims: u32,
}

impl fmt::Display for PointType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {} x {}", self.name, self.dims, self.coord)
    }
}

/// The fields of the header and the section table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The kind of the index.
    pub(super) kind: String,
    pub(super) points: PointType,
    pub(super) num_points: u64,
    pub(super) num_nodes: u64,
    pub(super) sections: Vec<Section>,
    /// The bytes of the whole file.
    pub(super) file_bytes: u64,
}

/// An entry of the section table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) tag: String,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u64,
}

impl Header {
    /// Encodes header and table.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let header = RawHeader {
            magic: MAGIC,
            version: VERSION,
            num_sections: self.sections.len() as u32,
            kind: padded(&self.kind),
            point_type: padded(&self.points.name),
            coordinate_type: padded(&self.points.coord),
            dims: self.points.dims,
            num_points: self.num_points,
            num_nodes: self.num_nodes,
            file_bytes: self.file_bytes,
            ..RawHeader::zeroed()
        };
        let mut bytes = bytemuck::bytes_of(&header).to_vec();
        for &Section { ref tag, offset, bytes: len, checksum } in &self.sections {
            let entry = RawSection { tag: padded(tag), offset, bytes: len, checksum };
            bytes.extend_from_slice(bytemuck::bytes_of(&entry));
        }
        let checksum = checksum_of(&bytes);
        bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes header and table, which have [`front_bytes`] bytes.
    pub(super) fn from_bytes(bytes: &[u8], at: FileErrors<'_>) -> Result<Self> {
        let raw: RawHeader = bytemuck::pod_read_unaligned(&bytes[..HEADER_BYTES]);
        if raw.checksum != checksum_of(bytes) {
            return Err(at.corrupt(CHECKSUM_AT as u64, "the checksum of the header does not match"));
        }
        for range in ZEROS {
            if let Some(i) = bytes[range.clone()].iter().position(|&byte| byte != 0) {
                return Err(at.corrupt((range.start + i) as u64, "a reserved byte is not 0"));
            }
        }
        let name = |field: &[u8], offset: usize| {
            let invalid = || at.corrupt(offset as u64, "a name is not ASCII with trailing zeros");
            unpadded(field).ok_or_else(invalid)
        };
        // Every section has exactly one valid offset, so that sections neither overlap nor leave gaps.
        let (mut sections, mut end) = (Vec::new(), bytes.len() as u64);
        for (i, entry) in bytes[HEADER_BYTES..].chunks_exact(ENTRY_BYTES).enumerate() {
            let entry_at = HEADER_BYTES + i * ENTRY_BYTES;
            let raw: RawSection = bytemuck::pod_read_unaligned(entry);
            let tag = name(&raw.tag, entry_at)?;
            let Some((offset, next_end)) = after(end, raw.bytes) else {
                return Err(at.corrupt(HEADER_BYTES as u64, "sections are longer than any file"));
            };
            if raw.offset != offset {
                let what = format!("section {i} should begin at {offset}, not at {}", raw.offset);
                return Err(at.corrupt((entry_at + offset_of!(RawSection, offset)) as u64, what));
            }
            sections.push(Section { tag, offset, bytes: raw.bytes, checksum: raw.checksum });
            end = next_end;
        }
        if raw.file_bytes != end {
            let what = format!("header and sections have {end} bytes, not {}", raw.file_bytes);
            return Err(at.corrupt(offset_of!(RawHeader, file_bytes) as u64, what));
        }
        let points = PointType {
            name: name(&raw.point_type, offset_of!(RawHeader, point_type))?,
            coord: name(&raw.coordinate_type, offset_of!(RawHeader, coordinate_type))?,
            dims: raw.dims,
        };
        let kind = name(&raw.kind, offset_of!(RawHeader, kind))?;
        let RawHeader { num_points, num_nodes, file_bytes, .. } = raw;
        Ok(Self { kind, points, num_points, num_nodes, sections, file_bytes })
    }
}

/// Returns the offset and the end of a section of `bytes` bytes, behind one that ends at `end`; `None` if no file can be
/// that large.
pub(super) fn after(end: u64, bytes: u64) -> Option<(u64, u64)> {
    let offset = end.checked_next_multiple_of(ALIGNMENT)?;
    Some((offset, offset.checked_add(bytes)?))
}

/// Returns true for the magic bytes of an index file.
pub(super) fn begins_index(bytes: &[u8]) -> bool {
    bytes == MAGIC
}

/// Returns the bytes of header and table. `header` has the first [`HEADER_BYTES`] of a file, or the whole file if it is
/// shorter.
pub(super) fn front_bytes(header: &[u8], at: FileErrors<'_>) -> Result<usize> {
    let common = header.len().min(MAGIC.len());
    if header[..common] != MAGIC[..common] || header.is_empty() {
        return Err(at.corrupt(0, "this is not an index file: the magic bytes are missing"));
    }
    if header.len() < HEADER_BYTES {
        let what = format!("the file ends here, within a header of {HEADER_BYTES} bytes");
        return Err(at.corrupt(header.len() as u64, what));
    }
    let RawHeader { version, num_sections, .. } = bytemuck::pod_read_unaligned(header);
    if version != VERSION {
        return Err(at.other("version of the format", VERSION, version));
    }
    if num_sections > MAX_SECTIONS {
        let what = format!("{num_sections} sections, but there are at most {MAX_SECTIONS}");
        return Err(at.corrupt(offset_of!(RawHeader, num_sections) as u64, what));
    }
    Ok(HEADER_BYTES + num_sections as usize * ENTRY_BYTES)
}

/// Returns the checksum of all bytes of header and table except the checksum itself.
fn checksum_of(bytes: &[u8]) -> u64 {
    checksum::short(&[&bytes[..CHECKSUM_AT], &bytes[HEADER_BYTES..]].concat())
}

/// Encodes a name of at most `N` bytes with trailing zeros.
fn padded<const N: usize>(name: &str) -> [u8; N] {
    let mut field = [0; N];
    field[..name.len()].copy_from_slice(name.as_bytes());
    field
}

/// Decodes printable ASCII with trailing zeros.
fn unpadded(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    let (name, zeros) = field.split_at(end);
    let is_name = name.iter().all(u8::is_ascii_graphic) && zeros.iter().all(|&byte| byte == 0);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}
