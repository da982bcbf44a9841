//! The header and the section table of an index file.

use super::checksum;

/// The first bytes: no text file begins with them, and a conversion of line ends changes them.
const MAGIC: [u8; 8] = *b"\x89KAURI\r\n";
/// The only version so far.
const VERSION: u32 = 1;
/// The bytes before the section table, and of each of its entries.
pub(super) const HEADER_BYTES: usize = 128;
pub(super) const ENTRY_BYTES: usize = 32;
/// The most sections of a file, so that a wrong number is detected.
const MAX_SECTIONS: u32 = 16;
/// The alignment of sections.
pub(super) const ALIGNMENT: u64 = 64;

// The offset of each field.
const VERSION_AT: usize = 8;
const SECTIONS_AT: usize = 12;
const KIND_AT: usize = 16;
const POINTS_AT: usize = 32;
const COORD_AT: usize = 48;
const DIMS_AT: usize = 56;
pub(super) const NUM_POINTS_AT: usize = 64;
pub(super) const NUM_NODES_AT: usize = 72;
const FILE_BYTES_AT: usize = 80;
const CHECKSUM_AT: usize = 120;
/// The bytes that must be zero.
const ZEROS: [std::ops::Range<usize>; 2] = [60..64, 88..CHECKSUM_AT];

/// The type of the points of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointType {
    /// [`Point::NAME`](crate::Point::NAME).
    pub(crate) name: String,
    /// The type of the coordinates inside the index.
    pub(crate) coord: String,
    pub(crate) dims: u32,
}

impl std::fmt::Display for PointType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
}

/// An entry of the section table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) tag: String,
    pub(super) bytes: u64,
    pub(super) checksum: u64,
}

/// The error of an invalid header.
#[derive(Debug)]
pub(super) enum HeaderError {
    /// An invalid value at an offset.
    Corrupt(u64, String),
    /// Another version of the format.
    Version(u32),
}

use HeaderError::Corrupt;

impl Header {
    /// Encodes header and table.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.front_bytes()];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(SECTIONS_AT, &(self.sections.len() as u32).to_le_bytes());
        put(KIND_AT, self.kind.as_bytes());
        put(POINTS_AT, self.points.name.as_bytes());
        put(COORD_AT, self.points.coord.as_bytes());
        put(DIMS_AT, &self.points.dims.to_le_bytes());
        put(NUM_POINTS_AT, &self.num_points.to_le_bytes());
        put(NUM_NODES_AT, &self.num_nodes.to_le_bytes());
        let (offsets, file_bytes) = self.layout().expect("sections in memory have a size");
        put(FILE_BYTES_AT, &file_bytes.to_le_bytes());
        for (i, (section, offset)) in self.sections.iter().zip(offsets).enumerate() {
            let at = HEADER_BYTES + i * ENTRY_BYTES;
            put(at, section.tag.as_bytes());
            put(at + 8, &offset.to_le_bytes());
            put(at + 16, &section.bytes.to_le_bytes());
            put(at + 24, &section.checksum.to_le_bytes());
        }
        let checksum = checksum_of(&bytes);
        bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes header and table, which have [`front_bytes`] bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, HeaderError> {
        if u64_at(bytes, CHECKSUM_AT) != checksum_of(bytes) {
            return Err(Corrupt(CHECKSUM_AT as u64, "the checksum of the header does not match".into()));
        }
        for range in ZEROS {
            if let Some(i) = bytes[range.clone()].iter().position(|&byte| byte != 0) {
                return Err(Corrupt((range.start + i) as u64, "a reserved byte is not 0".into()));
            }
        }
        let entry = |entry: &[u8], at: usize| -> Result<(Section, u64), HeaderError> {
            let tag = name_at(entry, 0, 8).ok_or_else(|| invalid_name(at))?;
            let section = Section { tag, bytes: u64_at(entry, 16), checksum: u64_at(entry, 24) };
            Ok((section, u64_at(entry, 8)))
        };
        let entries = bytes[HEADER_BYTES..].chunks_exact(ENTRY_BYTES).enumerate();
        let (sections, stored_offsets): (Vec<_>, Vec<_>) = entries
            .map(|(i, bytes)| entry(bytes, HEADER_BYTES + i * ENTRY_BYTES))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .unzip();
        let name = |at, len| name_at(bytes, at, len).ok_or_else(|| invalid_name(at));
        let points =
            PointType { name: name(POINTS_AT, 16)?, coord: name(COORD_AT, 8)?, dims: u32_at(bytes, DIMS_AT) };
        let header = Self {
            kind: name(KIND_AT, 16)?,
            points,
            num_points: u64_at(bytes, NUM_POINTS_AT),
            num_nodes: u64_at(bytes, NUM_NODES_AT),
            sections,
        };
        // Every section has exactly one valid offset, so that sections neither overlap nor leave gaps.
        let Some((offsets, file_bytes)) = header.layout() else {
            return Err(Corrupt(HEADER_BYTES as u64, "sections are longer than any file".into()));
        };
        if let Some(i) = (0..offsets.len()).find(|&i| offsets[i] != stored_offsets[i]) {
            let at = (HEADER_BYTES + i * ENTRY_BYTES + 8) as u64;
            let (expected, found) = (offsets[i], stored_offsets[i]);
            return Err(Corrupt(at, format!("section {i} should begin at {expected}, not at {found}")));
        }
        let found = u64_at(bytes, FILE_BYTES_AT);
        if found != file_bytes {
            let what = format!("header and sections have {file_bytes} bytes, not {found}");
            return Err(Corrupt(FILE_BYTES_AT as u64, what));
        }
        Ok(header)
    }

    /// Returns the bytes of header and table.
    fn front_bytes(&self) -> usize {
        HEADER_BYTES + self.sections.len() * ENTRY_BYTES
    }

    /// Returns the begin of each section and the bytes of the file; `None` if no file can be that large.
    pub(super) fn layout(&self) -> Option<(Vec<u64>, u64)> {
        let mut end = self.front_bytes() as u64;
        let mut offsets = Vec::with_capacity(self.sections.len());
        for section in &self.sections {
            let offset = end.checked_next_multiple_of(ALIGNMENT)?;
            offsets.push(offset);
            end = offset.checked_add(section.bytes)?;
        }
        Some((offsets, end))
    }
}

/// Returns true for the magic bytes of an index file.
pub(super) fn begins_index(bytes: &[u8]) -> bool {
    bytes == MAGIC
}

/// Returns the bytes of header and table. `header` has the first [`HEADER_BYTES`] of a file, or the whole file if it is
/// shorter.
pub(super) fn front_bytes(header: &[u8]) -> Result<usize, HeaderError> {
    let common = header.len().min(MAGIC.len());
    if header[..common] != MAGIC[..common] || header.is_empty() {
        return Err(Corrupt(0, "this is not an index file: the magic bytes are missing".into()));
    }
    if header.len() < HEADER_BYTES {
        let what = format!("the file ends here, within a header of {HEADER_BYTES} bytes");
        return Err(Corrupt(header.len() as u64, what));
    }
    match u32_at(header, VERSION_AT) {
        VERSION => {}
        other => return Err(HeaderError::Version(other)),
    }
    match u32_at(header, SECTIONS_AT) {
        number @ 0..=MAX_SECTIONS => Ok(HEADER_BYTES + number as usize * ENTRY_BYTES),
        number => {
            let what = format!("{number} sections, but there are at most {MAX_SECTIONS}");
            Err(Corrupt(SECTIONS_AT as u64, what))
        }
    }
}

/// Returns the supported version, as text.
pub(super) fn version() -> String {
    VERSION.to_string()
}

/// Returns the checksum of all bytes of header and table except the checksum itself.
fn checksum_of(bytes: &[u8]) -> u64 {
    checksum::short(&[&bytes[..CHECKSUM_AT], &bytes[HEADER_BYTES..]].concat())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Decodes printable ASCII with trailing zeros.
fn name_at(bytes: &[u8], at: usize, len: usize) -> Option<String> {
    let field = &bytes[at..at + len];
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(len);
    let is_name = field[..end].iter().all(u8::is_ascii_graphic) && field[end..].iter().all(|&byte| byte == 0);
    is_name.then(|| field[..end].iter().map(|&byte| char::from(byte)).collect())
}

fn invalid_name(at: usize) -> HeaderError {
    Corrupt(at as u64, "a name is not ASCII with trailing zeros".into())
}
