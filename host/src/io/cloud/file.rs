//! A LAS, LAZ or COPC file: what its header says, checked against the file before anything relies on it.

use super::chunks::{Buffers, Chunk, Chunks};
use super::errors::FileOf;
use super::octree::{self, Node};
use super::records::{Attributes, Layout};
use super::system::system_of;
use crate::error::{Error, Result};
use crate::io::guarded::guarded;
use crate::io::system::ReferenceSystem;
use crate::memory::{self, file_part::read_exact_at};
use crate::point::Lattice;
use las::Header;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The first bytes of a file.
const SIGNATURE: &[u8] = b"LASF";
/// Bytes of an extended record before its data.
const EXTENDED_HEADER: u64 = 60;

/// A file of a point cloud: LAS 1.0 to 1.4, LAZ or COPC. [`CloudFiles::files`](super::CloudFiles::files) returns it.
#[derive(Clone, Debug)]
pub struct CloudFile {
    path: PathBuf,
    header: Header,
    pub(super) layout: Layout,
    pub(super) chunks: Chunks,
    /// The nodes of the octree, if this is a COPC file. Their chunks are those above.
    pub(super) octree: Option<Vec<Node>>,
    lattice: Lattice,
    system: Option<ReferenceSystem>,
}

impl CloudFile {
    /// Reads and checks what precedes and follows the points.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let of = FileOf { path };
        let file = File::open(path).map_err(|source| of.io(source))?;
        let num_bytes = file.metadata().map_err(|source| of.io(source))?.len();
        let mut file = BufReader::new(file);
        let (header, extended_wkt) = read_header(of, &mut file, num_bytes)?;
        let format = header.point_format();
        let layout = Layout {
            // The highest bits say that the points are compressed.
            format: format.to_u8().map_err(|error| of.las(error))? & 0x3F,
            len: format.len().into(),
        };
        let transforms = header.transforms();
        let of_axes = [transforms.x, transforms.y, transforms.z];
        let lattice =
            Lattice { scale: of_axes.map(|axis| axis.scale), offset: of_axes.map(|axis| axis.offset) };
        for axis in 0..3 {
            let (scale, offset) = (lattice.scale[axis], lattice.offset[axis]);
            if !(scale > 0.0 && scale.is_finite() && offset.is_finite()) {
                let what = format!(
                    "on axis {axis} the scale is {scale} and the offset {offset}; expected a finite scale above 0 and a finite offset"
                );
                return Err(of.invalid(what));
            }
        }
        let system = system_of(&header, extended_wkt.as_deref()).map_err(|what| of.invalid(what))?;
        let chunks = Chunks::of(&mut file, of, &header, layout, num_bytes)?;
        let octree = octree::nodes(&mut file, of, &header, num_bytes)?;
        Ok(Self { path: path.into(), header, layout, chunks, octree, lattice, system })
    }

    /// Returns true if a file begins as a LAS, LAZ or COPC file does.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read.
    pub fn is_at(path: impl AsRef<Path>) -> Result<bool> {
        let of = FileOf { path: path.as_ref() };
        let mut bytes = Vec::new();
        let file = File::open(of.path).map_err(|source| of.io(source))?;
        file.take(SIGNATURE.len() as u64).read_to_end(&mut bytes).map_err(|source| of.io(source))?;
        Ok(bytes == SIGNATURE)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version of LAS, such as "1.4".
    pub fn version(&self) -> String {
        self.header.version().to_string()
    }

    /// Returns the point format, from 0 to 10.
    pub fn point_format(&self) -> u8 {
        self.layout.format
    }

    /// Returns the attributes that its points have.
    pub fn attributes(&self) -> Attributes {
        Attributes::of(self.layout)
    }

    /// Returns true if the points are compressed.
    pub fn is_compressed(&self) -> bool {
        self.header.point_format().is_compressed
    }

    /// Returns the number of levels of the octree of a COPC file.
    pub fn num_levels(&self) -> Option<u32> {
        let levels = self.octree.as_ref()?.iter().map(|node| node.level);
        Some(levels.max().map_or(0, |deepest| deepest + 1))
    }

    /// Returns the number of points that the header declares, which is that of the points in the file.
    pub fn num_points(&self) -> u64 {
        self.header.number_of_points()
    }

    /// Returns the least and the greatest position as the header declares them, which need not be true.
    pub fn declared_bounds(&self) -> [[f64; 3]; 2] {
        let bounds = self.header.bounds();
        [bounds.min, bounds.max].map(|corner| [corner.x, corner.y, corner.z])
    }

    /// Returns the lattice of the coordinates in the file.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }

    /// Returns the reference system of the coordinates, if the file names one.
    pub fn reference_system(&self) -> Option<&ReferenceSystem> {
        self.system.as_ref()
    }

    /// Reads the records of a chunk into the buffers.
    pub(super) fn records<'a>(&self, chunk: &Chunk, buffers: &'a mut Buffers) -> Result<&'a [u8]> {
        let of = FileOf { path: &self.path };
        let bytes = buffers.bytes.first(chunk.bytes as usize)?;
        let read = File::open(&self.path).and_then(|file| read_exact_at(&file, bytes, chunk.offset));
        read.map_err(|source| of.io(source))?;
        let broken =
            |what| of.at_point(chunk.first, format!("the compressed points from here on are broken: {what}"));
        let records = self.chunks.decompress(bytes, chunk, self.layout, &mut buffers.records);
        records.map_err(|error| error.into_error(broken))
    }

    /// Returns the error of a point.
    pub(super) fn invalid_point(&self, index: u64, what: impl Into<String>) -> Error {
        FileOf { path: &self.path }.at_point(index, what)
    }

    /// Returns the error of the file as a whole.
    pub(super) fn invalid(&self, what: impl Into<String>) -> Error {
        FileOf { path: &self.path }.invalid(what)
    }
}

/// Reads the header and the records that describe the points, and the well-known text of the reference system if it is in an extended
/// record behind the first: the crate `las` does not read those. The lengths of records are checked before they are read.
fn read_header(
    of: FileOf<'_>,
    file: &mut BufReader<File>,
    num_bytes: u64,
) -> Result<(Header, Option<Vec<u8>>)> {
    let raw = las::raw::Header::read_from(&mut *file).map_err(|error| of.las(error))?;
    let extended = raw.evlr.map(|evlr| (evlr.start_of_first_evlr, evlr.number_of_evlrs));
    let ((mut begin, num_records), mut wkt) = (extended.unwrap_or_default(), None);
    for number in 0..num_records {
        let mut head = [0; EXTENDED_HEADER as usize];
        file.seek(SeekFrom::Start(begin))
            .and_then(|_| file.read_exact(&mut head))
            .map_err(|source| of.io(source))?;
        let len = u64::from_le_bytes(std::array::from_fn(|i| head[20 + i]));
        let end = begin.saturating_add(EXTENDED_HEADER).saturating_add(len);
        if end > num_bytes {
            return Err(
                of.invalid(format!("the extended record at byte {begin} ends at byte {end} of {num_bytes}"))
            );
        }
        if number > 0 && head[2..20] == *b"LASF_Projection\0\x40\x08" {
            let mut text = memory::filled(len as usize, 0, "the reference system of a file")?;
            file.read_exact(&mut text).map_err(|source| of.io(source))?;
            wkt = Some(text);
        }
        begin = end;
    }
    file.rewind().map_err(|source| of.io(source))?;
    let header = guarded(|| Ok(Header::new(&mut *file)));
    let header =
        header.map_err(|error| error.into_error(|what| of.invalid(what)))?.map_err(|error| of.las(error))?;
    Ok((header, wkt))
}
