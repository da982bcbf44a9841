//! An index file, read or mapped, with a verified header and verified checksums.

use bytemuck::Pod;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checksum;
use super::errors::FileErrors;
use super::header::{self, ENTRY_BYTES, HEADER_BYTES, Header, NUM_NODES_AT, NUM_POINTS_AT, PointType};
use crate::error::{Error, Result};
use crate::memory::bytes::{Bytes, Length};
use crate::memory::{FileItems, Items};
use crate::point::MAX_POINTS;

/// The header and sections of an index file.
pub(crate) struct IndexFile {
    path: PathBuf,
    header: Header,
    bytes: Arc<Bytes>,
    /// The number of sections that have been taken.
    taken: usize,
}

/// The expected contents of a file.
pub(crate) struct Expected {
    pub(super) kind: &'static str,
    pub(super) points: PointType,
}

/// An open file with its metadata at that time.
pub(super) struct Opened<'a> {
    path: &'a Path,
    file: File,
    metadata: Metadata,
}

impl<'a> Opened<'a> {
    pub(super) fn new(path: &'a Path) -> Result<Self> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| FileErrors(path).io(error))?;
        Ok(Self { path, file, metadata })
    }

    /// Checks that the file is unchanged since, judging by its length and modification time.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let at = FileErrors(self.path);
        let now = self.file.metadata().map_err(|error| at.io(error))?;
        let is_same =
            now.len() == self.metadata.len() && now.modified().ok() == self.metadata.modified().ok();
        if is_same {
            return Ok(());
        }
        let what = "the file was changed while it was mapped: load it instead";
        Err(at.corrupt(now.len().min(self.metadata.len()), what))
    }
}

/// A section as items, whose values are not validated.
pub(crate) struct Section<T> {
    pub(crate) items: Items<T>,
    path: PathBuf,
    offset: u64,
}

impl<T> Section<T> {
    /// Returns the error of an invalid item `i`.
    pub(crate) fn corrupt(&self, i: usize, what: String) -> Error {
        let offset = self.offset + (i * size_of::<T>()) as u64;
        Error::CorruptFile { path: self.path.clone(), offset, what }
    }
}

impl IndexFile {
    /// Reads a file.
    pub(super) fn load(path: &Path, expected: &Expected) -> Result<Self> {
        let Opened { mut file, metadata, .. } = Opened::new(path)?;
        // Pipes have no length.
        Self::read(path, &mut file, metadata.is_file().then_some(metadata.len()), expected)
    }

    /// Reads an index from a reader, up to the end of the index. `len` is the known length of the input.
    pub(super) fn read(
        path: &Path,
        reader: &mut dyn Read,
        len: Option<u64>,
        expected: &Expected,
    ) -> Result<Self> {
        let at = FileErrors(path);
        let front = read_front(reader, at)?;
        let header = expected.header(&front, at)?;
        if let Some(len) = len {
            check_len(len, header.file_bytes, at)?;
        }
        let too_large =
            |_| at.corrupt(0, format!("{} bytes are more than can be addressed", header.file_bytes));
        let bytes = usize::try_from(header.file_bytes).map_err(too_large)?;
        let length = if len.is_some() { Length::Verified } else { Length::Claimed };
        let bytes = Bytes::read(&front, reader, bytes, length)?.map_err(|error| at.io(error))?;
        Self::checked(path, header, bytes)
    }

    /// Maps a file.
    ///
    /// # Safety
    /// Nothing changes the file while the result, or a section of it, exists.
    pub(super) unsafe fn map(opened: &Opened<'_>, expected: &Expected) -> Result<Self> {
        let Opened { path, file, metadata } = opened;
        let at = FileErrors(path);
        // An empty file cannot be mapped; a folder can be opened, but not mapped.
        if metadata.is_dir() {
            return Err(at.io(io::ErrorKind::IsADirectory.into()));
        }
        if metadata.len() == 0 {
            read_front(&mut io::empty(), at)?;
        }
        // SAFETY: passed on to the caller.
        let bytes = unsafe { Bytes::map(file) }.map_err(|error| at.io(error))?;
        let header = expected.header(&read_front(&mut &bytes[..], at)?, at)?;
        Self::checked(path, header, bytes)
    }

    /// Checks all bytes behind the section table.
    fn checked(path: &Path, header: Header, bytes: Bytes) -> Result<Self> {
        let at = FileErrors(path);
        check_len(bytes.len() as u64, header.file_bytes, at)?;
        // Every section follows the previous one, and the first follows the table.
        let mut end = HEADER_BYTES + ENTRY_BYTES * header.sections.len();
        for section in &header.sections {
            let offset = section.offset as usize;
            if let Some(i) = bytes[end..offset].iter().position(|&byte| byte != 0) {
                return Err(at.corrupt((end + i) as u64, "a byte between sections is not 0"));
            }
            end = offset + section.bytes as usize;
            if checksum::of_pieces(&bytes[offset..end]) != section.checksum {
                let what = format!("the checksum of the section '{}' does not match", section.tag);
                return Err(at.corrupt(section.offset, what));
            }
        }
        Ok(Self { path: path.into(), header, bytes: Arc::new(bytes), taken: 0 })
    }

    /// Returns the number of points, at most [`MAX_POINTS`].
    pub(crate) fn num_points(&self) -> Result<usize> {
        self.number(NUM_POINTS_AT, self.header.num_points, 0..=MAX_POINTS, "points")
    }

    /// Returns the number of nodes, which must be in `range`.
    pub(crate) fn num_nodes(&self, range: RangeInclusive<usize>) -> Result<usize> {
        let (least, most) = (*range.start() as u64, *range.end() as u64);
        self.number(NUM_NODES_AT, self.header.num_nodes, least..=most, "nodes")
    }

    fn number(&self, at: usize, number: u64, range: RangeInclusive<u64>, what: &str) -> Result<usize> {
        if range.contains(&number) {
            return Ok(number as usize);
        }
        let (least, most) = range.into_inner();
        let what = format!("{number} {what}: expected {least} to {most}");
        Err(FileErrors(&self.path).corrupt(at as u64, what))
    }

    /// Takes the next section, which must have this tag and one of these numbers of items.
    pub(crate) fn section<T: Pod>(&mut self, tag: &str, lens: &[usize]) -> Result<Section<T>> {
        let (i, at) = (self.taken, FileErrors(&self.path));
        self.taken += 1;
        let entry_at = (HEADER_BYTES + ENTRY_BYTES * i) as u64;
        let Some(section) = self.header.sections.get(i).filter(|section| section.tag == tag) else {
            return Err(at.corrupt(entry_at, format!("section {i} should be '{tag}'")));
        };
        let bytes = |len: &usize| *len as u64 * size_of::<T>() as u64;
        if !lens.iter().any(|len| bytes(len) == section.bytes) {
            let (found, expected) = (section.bytes, lens.iter().map(bytes).max().unwrap_or(0));
            let what = format!("the section '{tag}' has {found} bytes, but should have {expected}");
            return Err(at.corrupt(entry_at + 16, what));
        }
        let offset = section.offset;
        let range = offset as usize..(offset + section.bytes) as usize;
        let items =
            FileItems::new(&self.bytes, range).expect("sections are aligned, and their lengths whole");
        Ok(Section { items: Items::InFile(items), path: self.path.clone(), offset })
    }

    /// Checks that all sections have been taken.
    pub(crate) fn end(&self) -> Result<()> {
        match self.header.sections.get(self.taken) {
            None => Ok(()),
            Some(section) => {
                let what = format!("the section '{}' does not belong to this index", section.tag);
                Err(FileErrors(&self.path).corrupt((HEADER_BYTES + ENTRY_BYTES * self.taken) as u64, what))
            }
        }
    }
}

/// Reads the header of any index file, and checks the length of the file; `None` if the file is not an index. Sections
/// are not read.
pub(super) fn header_of(path: &Path) -> Result<Option<Header>> {
    let at = FileErrors(path);
    // Reading from a pipe would consume its data.
    let metadata = path.metadata().map_err(|error| at.io(error))?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(|error| at.io(error))?;
    let mut start = Vec::new();
    (&mut file).take(8).read_to_end(&mut start).map_err(|error| at.io(error))?;
    if !header::begins_index(&start) {
        return Ok(None);
    }
    let front = read_front(&mut start.as_slice().chain(&mut file), at)?;
    let header = Header::from_bytes(&front, at)?;
    check_len(metadata.len(), header.file_bytes, at)?;
    Ok(Some(header))
}

impl Expected {
    /// Decodes a header, and checks that it has the expected contents.
    fn header(&self, front: &[u8], at: FileErrors<'_>) -> Result<Header> {
        let header = Header::from_bytes(front, at)?;
        if header.kind != self.kind {
            return Err(at.other("kind of index", self.kind, header.kind));
        }
        if header.points != self.points {
            return Err(at.other("type of points", &self.points, header.points));
        }
        Ok(header)
    }
}

/// Reads header and table.
fn read_front(mut reader: &mut dyn Read, at: FileErrors<'_>) -> Result<Vec<u8>> {
    let mut front = Vec::new();
    let mut read_to = |front: &mut Vec<u8>, len: usize| {
        let remaining = (len - front.len()) as u64;
        (&mut reader).take(remaining).read_to_end(front).map_err(|error| at.io(error))
    };
    read_to(&mut front, HEADER_BYTES)?;
    let front_bytes = header::front_bytes(&front, at)?;
    read_to(&mut front, front_bytes)?;
    if front.len() < front_bytes {
        let what = format!("the file ends here, within a table up to byte {front_bytes}");
        return Err(at.corrupt(front.len() as u64, what));
    }
    Ok(front)
}

fn check_len(len: u64, expected: u64, at: FileErrors<'_>) -> Result<()> {
    if len == expected {
        return Ok(());
    }
    let verb = if len < expected { "ends" } else { "continues" };
    Err(at.corrupt(len.min(expected), format!("the file {verb} here, but should have {expected} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    /// Pages are not accessed after the change, which may end the process.
    #[test]
    fn files_that_change_while_they_are_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("i.kauri");
        std::fs::write(&path, [7; 100]).unwrap();
        let change = |change: &dyn Fn(&File)| {
            let opened = Opened::new(&path).unwrap();
            opened.check_unchanged().unwrap();
            change(&File::options().write(true).open(&path).unwrap());
            opened.check_unchanged()
        };
        for len in [40, 200] {
            let error = change(&|file| file.set_len(len).unwrap()).unwrap_err();
            assert!(matches!(&error, Error::CorruptFile { offset: 40 | 100, .. }), "{error}");
            assert!(error.to_string().contains("changed while it was mapped"), "{error}");
            std::fs::write(&path, [7; 100]).unwrap();
        }
        let later = SystemTime::now() + Duration::from_secs(5);
        assert!(change(&|file| file.set_modified(later).unwrap()).is_err());
        // Another file in its place is fine.
        let opened = Opened::new(&path).unwrap();
        std::fs::write(folder.path().join("other"), [8; 5]).unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        opened.check_unchanged().unwrap();
    }
}
