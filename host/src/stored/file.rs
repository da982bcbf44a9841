//! An index file, read or mapped, with a verified header and verified checksums.

use bytemuck::Pod;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checksum;
use super::header::{
    self, ALIGNMENT, ENTRY_BYTES, HEADER_BYTES, Header, HeaderError, NUM_NODES_AT, NUM_POINTS_AT, PointType,
};
use crate::error::{Error, Result};
use crate::memory::bytes::{Bytes, Length, read_full};
use crate::memory::{FileItems, Items};
use crate::point::MAX_POINTS;

/// The header and sections of an index file.
pub(crate) struct IndexFile {
    path: PathBuf,
    header: Header,
    /// The begin of each section.
    offsets: Vec<u64>,
    bytes: Arc<Bytes>,
    /// The number of sections that have been taken.
    taken: usize,
}

/// The expected contents of a file.
pub(super) struct Expected {
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
        let what = "the file was changed while it was mapped: load it instead".into();
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
        let io_error = |source| Error::Io { path: path.into(), source };
        let mut file = File::open(path).map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
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
        let (front, front_bytes) = at.read_front(reader)?;
        let (header, offsets, file_bytes) = at.expected_header(&front, front_bytes, expected)?;
        if let Some(len) = len {
            at.check_len(len, file_bytes)?;
        }
        let bytes = usize::try_from(file_bytes).map_err(|_| at.too_large(file_bytes))?;
        let length = if len.is_some() { Length::Verified } else { Length::Claimed };
        let bytes = Bytes::read(&front, reader, bytes, length)?.map_err(|error| at.io(error))?;
        Self::checked(path, header, offsets, file_bytes, bytes)
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
            header::front_bytes(&[]).map_err(|error| at.header_error(error))?;
        }
        // SAFETY: passed on to the caller.
        let bytes = unsafe { Bytes::map(file) }.map_err(|error| at.io(error))?;
        let start = &bytes[..bytes.len().min(HEADER_BYTES)];
        let front_bytes = header::front_bytes(start).map_err(|error| at.header_error(error))?;
        let front = &bytes[..bytes.len().min(front_bytes)];
        let (header, offsets, file_bytes) = at.expected_header(front, front_bytes, expected)?;
        Self::checked(path, header, offsets, file_bytes, bytes)
    }

    /// Checks all bytes behind the section table.
    fn checked(
        path: &Path,
        header: Header,
        offsets: Vec<u64>,
        file_bytes: u64,
        bytes: Bytes,
    ) -> Result<Self> {
        let at = FileErrors(path);
        at.check_len(bytes.len() as u64, file_bytes)?;
        // Every section follows the previous one, and the first follows the table.
        let mut end = (HEADER_BYTES + ENTRY_BYTES * header.sections.len()) as u64;
        for (section, &offset) in header.sections.iter().zip(&offsets) {
            debug_assert!(offset % ALIGNMENT == 0);
            let between = &bytes[end as usize..offset as usize];
            if let Some(i) = between.iter().position(|&byte| byte != 0) {
                return Err(at.corrupt(end + i as u64, "a byte between sections is not 0".into()));
            }
            end = offset + section.bytes;
            if checksum::of_pieces(&bytes[offset as usize..end as usize]) != section.checksum {
                let tag = &section.tag;
                return Err(at.corrupt(offset, format!("the checksum of the section '{tag}' does not match")));
            }
        }
        Ok(Self { path: path.into(), header, offsets, bytes: Arc::new(bytes), taken: 0 })
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
        let offset = self.offsets[i];
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
    let mut start = [0; 8];
    let got = read_full(&mut file, &mut start).map_err(|error| at.io(error))?;
    if !header::begins_index(&start[..got]) {
        return Ok(None);
    }
    let (front, front_bytes) = at.read_front(&mut start.as_slice().chain(&mut file))?;
    let (header, _, file_bytes) = at.header(&front, front_bytes)?;
    at.check_len(metadata.len(), file_bytes)?;
    Ok(Some(header))
}

/// Constructs the errors of a file.
struct FileErrors<'a>(&'a Path);

impl FileErrors<'_> {
    fn io(&self, source: io::Error) -> Error {
        Error::Io { path: self.0.into(), source }
    }

    fn corrupt(&self, offset: u64, what: String) -> Error {
        Error::CorruptFile { path: self.0.into(), offset, what }
    }

    fn header_error(&self, error: HeaderError) -> Error {
        match error {
            HeaderError::Corrupt(offset, what) => self.corrupt(offset, what),
            HeaderError::Version(version) => {
                self.other("version of the format", header::version(), version.to_string())
            }
        }
    }

    fn other(&self, what: &'static str, expected: String, found: String) -> Error {
        Error::WrongFile { path: self.0.into(), what, expected, found }
    }

    fn too_large(&self, bytes: u64) -> Error {
        self.corrupt(0, format!("{bytes} bytes are more than can be addressed"))
    }

    /// Reads header and table as far as they exist. Returns them, and the number of bytes that they should have.
    fn read_front(&self, reader: &mut dyn Read) -> Result<(Vec<u8>, usize)> {
        let mut front = vec![0; HEADER_BYTES];
        let got = read_full(reader, &mut front).map_err(|error| self.io(error))?;
        front.truncate(got);
        let front_bytes = header::front_bytes(&front).map_err(|error| self.header_error(error))?;
        front.resize(front_bytes, 0);
        let got = read_full(reader, &mut front[HEADER_BYTES..]).map_err(|error| self.io(error))?;
        front.truncate(HEADER_BYTES + got);
        Ok((front, front_bytes))
    }

    /// Returns the header of a file, the begins of its sections, and its length.
    fn header(&self, front: &[u8], front_bytes: usize) -> Result<(Header, Vec<u64>, u64)> {
        if front.len() < front_bytes {
            let what = format!("the file ends here, within a table up to byte {front_bytes}");
            return Err(self.corrupt(front.len() as u64, what));
        }
        let header = Header::from_bytes(front).map_err(|error| self.header_error(error))?;
        let (offsets, file_bytes) = header.layout().expect("the header has been checked");
        Ok((header, offsets, file_bytes))
    }

    /// Like [`header`](Self::header), and checks that the contents are the expected ones.
    fn expected_header(
        &self,
        front: &[u8],
        front_bytes: usize,
        expected: &Expected,
    ) -> Result<(Header, Vec<u64>, u64)> {
        let (header, offsets, file_bytes) = self.header(front, front_bytes)?;
        if header.kind != expected.kind {
            return Err(self.other("kind of index", expected.kind.into(), header.kind));
        }
        if header.points != expected.points {
            let (expected, found) = (expected.points.to_string(), header.points.to_string());
            return Err(self.other("type of points", expected, found));
        }
        Ok((header, offsets, file_bytes))
    }

    fn check_len(&self, len: u64, expected: u64) -> Result<()> {
        if len == expected {
            return Ok(());
        }
        let what = match len < expected {
            true => format!("the file ends here, but should have {expected} bytes"),
            false => format!("the file continues here, but should have {expected} bytes"),
        };
        Err(self.corrupt(len.min(expected), what))
    }
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
