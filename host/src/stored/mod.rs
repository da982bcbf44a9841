//! Index files: header, sections, checksums, atomic writes.
//!
//! An index implements [`Stored`]: it lists its sections for saving, and validates the sections when it is loaded.
//! `docs/file-format.md` has the layout.

mod atomic;
mod checksum;
mod errors;
mod file;
mod header;
mod unfinished;

pub(crate) use atomic::{folder_of, write_in_place};
pub use atomic::{write_atomically, write_atomically_or};
pub(crate) use file::{IndexFile, Section};
pub(crate) use header::PointType;
pub use unfinished::remove_temporary_files;

use std::io::{self, Read, Write};
use std::path::Path;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::file_part::FilePart;
use crate::point::Point;
use crate::stats::Stats;
use errors::FileErrors;
pub(crate) use file::Expected;
use file::Opened;
use header::{ALIGNMENT, ENTRY_BYTES, HEADER_BYTES, Header};
use kauri_kernels::thread::coord::Coord;

#[cfg(target_endian = "big")]
compile_error!(
    "files of indexes are little-endian, and their sections used as they are: leave out the feature `io`"
);

/// An index that can be saved to a file.
pub(crate) trait Stored: Sized {
    /// Its name in files, at most 16 bytes.
    const KIND: &'static str;
    /// The type of its points.
    type Point: Point;
    /// The type of the coordinates that it stores.
    type Coord: Coord;

    /// Passes the contents of the file to `write`.
    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()>;

    /// Loads the index from a file with this kind and these points.
    fn from_file(device: &Device, file: IndexFile, stats: Stats) -> Result<Self>;
}

/// The contents of a file.
pub(crate) struct Contents<'a> {
    pub(crate) num_points: usize,
    pub(crate) num_nodes: usize,
    /// The sections with their tags of at most 8 bytes.
    pub(crate) sections: &'a [(&'static str, &'a [u8])],
}

impl Contents<'_> {
    /// Returns the header of a file with these sections, behind others that have been written.
    fn header(&self, expected: Expected, mut sections: Vec<header::Section>) -> Header {
        let front = HEADER_BYTES + ENTRY_BYTES * (sections.len() + self.sections.len());
        let mut file_bytes = sections.last().map_or(front as u64, |last| last.offset + last.bytes);
        sections.extend(self.sections.iter().map(|&(tag, bytes)| {
            let len = bytes.len() as u64;
            let (offset, end) = header::after(file_bytes, len).expect("sections in memory have a size");
            file_bytes = end;
            header::Section { tag: tag.into(), offset, bytes: len, checksum: checksum::of_pieces(bytes) }
        }));
        Header {
            kind: expected.kind.into(),
            points: expected.points,
            num_points: self.num_points as u64,
            num_nodes: self.num_nodes as u64,
            sections,
            file_bytes,
        }
    }

    fn write(&self, header: &Header, writer: &mut dyn Write) -> io::Result<()> {
        let front = header.to_bytes();
        writer.write_all(&front)?;
        let mut end = front.len() as u64;
        for (section, (_, bytes)) in header.sections.iter().zip(self.sections) {
            writer.write_all(&[0; ALIGNMENT as usize][..(section.offset - end) as usize])?;
            writer.write_all(bytes)?;
            end = section.offset + section.bytes;
        }
        writer.flush()
    }
}

impl Expected {
    /// Returns what the files of an index contain.
    pub(crate) fn of<I: Stored>() -> Self {
        const {
            assert!(
                is_name(I::KIND, 16) && is_name(I::Point::NAME, 16),
                "names are ASCII of at most 16 bytes"
            );
        }
        let (name, coord) = (I::Point::NAME.into(), I::Coord::NAME.into());
        Self { kind: I::KIND, points: PointType { name, coord, dims: I::Point::DIMS as u32 } }
    }
}

/// Returns true for a valid name in a file.
const fn is_name(name: &str, max: usize) -> bool {
    let mut i = 0;
    while i < name.len() {
        if !name.as_bytes()[i].is_ascii_graphic() {
            return false;
        }
        i += 1;
    }
    name.len() <= max
}

/// Writes a file atomically.
pub(crate) fn save<I: Stored>(index: &I, path: &Path) -> Result<()> {
    index.contents(&mut |contents| {
        let header = contents.header(Expected::of::<I>(), Vec::new());
        write_atomically(path, |writer| contents.write(&header, writer))
    })
}

/// Writes a file of `num_sections` sections atomically, the first of which are too large for memory: `first` has their tags and bytes.
/// `build` gets the place of each of them in the file, writes it there, and passes the other sections on.
pub(crate) fn save_in_place(
    path: &Path,
    expected: Expected,
    num_sections: usize,
    first: &[(&'static str, u64)],
    build: impl FnOnce(&[FilePart<'_>], &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()>,
) -> Result<()> {
    write_in_place(path, |file| {
        let part = |begin| FilePart { file, path, begin };
        let (mut parts, mut end) = (Vec::new(), (HEADER_BYTES + ENTRY_BYTES * num_sections) as u64);
        for &(_, len) in first {
            let (offset, after) = header::after(end, len).ok_or_else(|| Error::host_memory(len, "a file"))?;
            parts.push(part(offset));
            end = after;
        }
        let mut expected = Some(expected);
        build(&parts, &mut |contents| {
            let mut written = Vec::new();
            for (&part, &(tag, bytes)) in parts.iter().zip(first) {
                let checksum = checksum::of_part(part, bytes as usize)?;
                written.push(header::Section { tag: tag.into(), offset: part.begin, bytes, checksum });
            }
            let expected = expected.take().expect("sections are passed on once");
            let header = contents.header(expected, written);
            file.set_len(header.file_bytes).map_err(|error| FileErrors(path).io(error))?;
            for (section, (_, bytes)) in header.sections[parts.len()..].iter().zip(contents.sections) {
                part(section.offset).write(0, bytes)?;
            }
            part(0).write(0, &header.to_bytes())
        })
    })
}

/// Writes the bytes of a file to a writer.
pub(crate) fn write_to<I: Stored>(index: &I, writer: &mut dyn Write) -> Result<()> {
    index.contents(&mut |contents| {
        let header = contents.header(Expected::of::<I>(), Vec::new());
        let written = contents.write(&header, writer);
        written.map_err(|source| Error::Io { path: Default::default(), source })
    })
}

/// Reads a file.
pub(crate) fn load<I: Stored>(device: &Device, path: &Path) -> Result<I> {
    opened(device, || IndexFile::load(path, &Expected::of::<I>()))
}

/// Reads the bytes of a file from a reader.
pub(crate) fn read_from<I: Stored>(device: &Device, reader: &mut dyn Read) -> Result<I> {
    opened(device, || IndexFile::read(Path::new(""), reader, None, &Expected::of::<I>()))
}

/// Maps a file.
///
/// # Safety
/// Nothing changes the file while the index exists.
pub(crate) unsafe fn map<I: Stored>(device: &Device, path: &Path) -> Result<I> {
    let file = Opened::new(path)?;
    // SAFETY: passed on to the caller.
    let index = opened(device, || unsafe { IndexFile::map(&file, &Expected::of::<I>()) })?;
    file.check_unchanged()?;
    Ok(index)
}

/// The header of an index file.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions};
///
/// # let folder = std::env::temp_dir().join(format!("kauri-info-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let path = folder.join("points.kauri");
/// KdTree::build(&Device::cpu(), &[[0.0f32, 1.0]], &KdTreeOptions::default())?.save(&path)?;
/// let info = kauri::io::index_info(&path)?.expect("an index file");
/// assert_eq!((info.kind.as_str(), info.num_points), ("kdtree", 1));
/// assert_eq!(info.points(), "f32 as 2 x f32");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexInfo {
    /// The kind of index: `kdtree`, `balanced`, `rtree` or `quadtree`.
    pub kind: String,
    /// The name of the type of the points ([`Point::NAME`]).
    pub point_type: String,
    /// The type of the coordinates inside the index, `f32`, `f64` or `i32`.
    pub coordinate_type: String,
    /// The number of coordinates of a point.
    pub dims: u32,
    /// The number of points.
    pub num_points: u64,
    /// The number of nodes; 0 for an R-tree, whose file has only the points.
    pub num_nodes: u64,
    /// The tag and the bytes of each section.
    pub sections: Vec<(String, u64)>,
}

impl IndexInfo {
    /// Returns the type of the points as text, for example "i64 as 2 x f64".
    pub fn points(&self) -> String {
        format!("{} as {} x {}", self.point_type, self.dims, self.coordinate_type)
    }
}

/// Reads the header of an index file; `None` if the file is not one. Sections are not checked.
///
/// # Errors
/// [`Error::Io`]; [`Error::CorruptFile`] for a broken header.
pub fn index_info(path: &Path) -> Result<Option<IndexInfo>> {
    let Some(Header { kind, points, num_points, num_nodes, sections, .. }) = file::header_of(path)? else {
        return Ok(None);
    };
    let sections = sections.into_iter().map(|section| (section.tag, section.bytes)).collect();
    let PointType { name: point_type, coord: coordinate_type, dims } = points;
    Ok(Some(IndexInfo { kind, point_type, coordinate_type, dims, num_points, num_nodes, sections }))
}

fn opened<I: Stored>(device: &Device, open: impl FnOnce() -> Result<IndexFile>) -> Result<I> {
    let _span = tracing::debug_span!("load", kind = I::KIND).entered();
    let mut stats = Stats::new(device);
    let file = stats.phase("read", open)?;
    I::from_file(device, file, stats)
}

/// Implements the file methods of an index over points. The parameters are the parts of their documentation that
/// differ: the checks beyond the points, the memory that loading takes beyond the file, and an example.
macro_rules! files_of_index {
    (
        $Index:ident<P: $Points:path $(, const $D:ident: usize)?>;
        checks: $checks:literal;
        memory: $memory:literal;
        $(example: $example:literal;)?
    ) => {
        impl<P: $Points $(, const $D: usize)?> $Index<P $(, $D)?> {
            /// Writes the index to a file. [`load`](Self::load) and [`map`](Self::map) read it on any device.
            ///
            /// The file has the same bytes whichever device built the index; the [format] is documented. It is written
            /// under another name in the same folder, and replaces `path` at the end: after an error `path` is
            /// unchanged, and a program that has the old file mapped keeps it. An index on a GPU is first copied to
            /// host memory, which takes up to twice its size while it is reordered.
            ///
            /// [format]: https://github.com/kauri-rs/kauri/blob/main/docs/file-format.md
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io) for a missing folder or a full disk;
            /// [`Error::NonFinite`](crate::Error::NonFinite) or
            /// [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) for a point that came from device memory
            /// and could not be loaded, or for the grid of an R-tree that was built over such a point; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
            $(
                ///
                #[doc = $example]
            )?
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> $crate::Result<()> {
                $crate::stored::save(self, path.as_ref())
            }

            /// Writes the bytes of a file to a writer, which may continue behind the index.
            ///
            /// # Errors
            /// Errors of [`save`](Self::save), with an empty path; part of the bytes may be written then.
            pub fn write_to(&self, mut writer: impl std::io::Write) -> $crate::Result<()> {
                $crate::stored::write_to(self, &mut writer)
            }

            /// Loads a file as an index on `device`, whichever device it was saved from.
            ///
            /// Queries give the same results as the saved index, to the bit. Checksums are compared, and everything
            /// that queries rely on is checked, so that no file can make them misbehave: that every point occurs once,
            /// that its coordinates are finite,
            #[doc = $checks]
            ///
            /// Cost: O(n). Memory: the file in host memory, which the CPU keeps and a GPU copies, and in addition
            #[doc = $memory]
            /// No allocation of host memory exceeds the size of the file.
            ///
            /// # Errors
            /// [`Error::Io`](crate::Error::Io); [`Error::WrongFile`](crate::Error::WrongFile) for another kind of
            /// index, another type of points or another version of the format;
            /// [`Error::CorruptFile`](crate::Error::CorruptFile) with the offset in the file;
            /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
            pub fn load(device: &$crate::Device, path: impl AsRef<std::path::Path>) -> $crate::Result<Self> {
                $crate::stored::load(device, path.as_ref())
            }

            /// Loads an index from the bytes of a reader, up to the end of the index. Memory grows with the bytes, up
            /// to three times their size.
            ///
            /// # Errors
            /// Errors of [`load`](Self::load), with an empty path.
            pub fn read_from(
                device: &$crate::Device,
                mut reader: impl std::io::Read,
            ) -> $crate::Result<Self> {
                $crate::stored::read_from(device, &mut reader)
            }

            /// Maps a file instead of reading it: on the CPU the nodes of the index stay in the pages of the file,
            /// which processes share, but a k-d tree and an R-tree order their points anew in memory of their own; a GPU copies them from there. They are checked as
            /// by [`load`](Self::load), which reads all of them.
            ///
            /// # Errors
            /// Errors of [`load`](Self::load); also an error if the length or the modification time of the file changes
            /// during the checks.
            ///
            /// # Safety
            /// Nothing writes to the file or truncates it while the index exists; on a GPU, until this returns, except for a quadtree
            /// that the GPU has no memory for, which stays in the pages of the file.
            /// Checksums are compared once, and queries rely on them: bytes that change later are undefined behavior,
            /// and a missing page ends the process (`SIGBUS`). No system protects mapped pages from other writers:
            /// private mappings show their changes too, and locks are advisory. Replacing the file by another one is
            /// fine, and [`save`](Self::save) does so. If others may write to the file itself, use
            /// [`load`](Self::load).
            pub unsafe fn map(
                device: &$crate::Device,
                path: impl AsRef<std::path::Path>,
            ) -> $crate::Result<Self> {
                // SAFETY: passed on to the caller.
                unsafe { $crate::stored::map(device, path.as_ref()) }
            }
        }
    };
}
pub(crate) use files_of_index;
