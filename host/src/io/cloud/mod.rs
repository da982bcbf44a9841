//! Point clouds of laser scanners: LAS, LAZ and COPC files.

mod chunks;
mod errors;
mod file;
mod filter;
mod octree;
mod records;
mod source;
mod system;

pub use file::CloudFile;
pub use filter::{CloudFilter, Returns};
pub use records::{AttributeValues, Attributes};
pub use source::CloudPoints;

use crate::error::{Error, FileLocation, Result, check_count};
use crate::io::system::ReferenceSystem;
use crate::memory;
use crate::parallel::{self, joined};
use crate::point::{Lattice, MAX_POINTS};
use crate::threads::lock;
use chunks::{Buffers, Chunk};
use octree::Node;
use records::Record;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Chunks of each thread that are read ahead of the one whose points are delivered.
const CHUNKS_PER_THREAD: usize = 2;

/// One or several files as one point cloud: LAS 1.0 to 1.4, LAZ, COPC. Needs the feature `las`.
///
/// Points are in the order of the files, and within a file in its order. Coordinates are the integers of the file on a [`Lattice`]; files
/// after the first are moved to the lattice of the first by whole steps. All CPU threads decompress.
///
/// ```no_run
/// use kauri::io::{Attributes, CloudFiles, CloudFilter};
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// let files = CloudFiles::open(&["north.laz", "south-*.laz"])?;
/// let ground = files.filter(CloudFilter::default().classes([2]));
/// let cloud = ground.read(&Attributes { intensity: true, ..Attributes::default() })?;
/// let plane: Vec<[i32; 2]> = cloud.points.iter().map(|&[x, y, _]| [x, y]).collect();
/// let tree = Quadtree::build(&Device::best()?, &plane, &QuadtreeOptions::default())?;
/// println!("{:?} in {:?}", cloud.lattice.position(cloud.points[0]), cloud.reference_system);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CloudFiles {
    files: Vec<CloudFile>,
    filter: CloudFilter,
}

/// The points of a cloud, in host memory. [`CloudFiles::read`] returns it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PointCloud {
    /// The points as coordinates on the lattice.
    pub points: Vec<[i32; 3]>,
    /// The attributes that were asked for, in the order of the points.
    pub attributes: AttributeValues,
    /// The lattice of the coordinates.
    pub lattice: Lattice,
    /// The reference system of the positions.
    pub reference_system: Option<ReferenceSystem>,
}

impl PointCloud {
    /// Returns the position of each point, in the units of the reference system.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = [f64; 3]> + '_ {
        self.points.iter().map(|&point| self.lattice.position(point))
    }
}

/// Some points of a cloud. [`CloudFiles::for_each_chunk`] delivers it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CloudChunk {
    /// The points as coordinates on the lattice of the cloud.
    pub points: Vec<[i32; 3]>,
    /// The attributes that were asked for, in the order of the points.
    pub attributes: AttributeValues,
    /// The number of points of the files that have been read for this chunk, with those that the filter left out.
    pub num_read: u64,
    /// The bytes of the files that have been read for this chunk.
    pub bytes: u64,
}

impl CloudFiles {
    /// Opens files, given by paths or patterns such as `tiles/*.laz`, and reads what describes their points.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read; [`Error::InvalidFile`] for a file that is no LAS file or contradicts itself, for a scale or an
    /// offset that is not a finite number, for a pattern without a match, and for files with different reference systems or with lattices
    /// whose points do not lie on that of the first.
    pub fn open(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let mut files: Vec<CloudFile> = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            for path in expanded(path)? {
                let file = CloudFile::open(&path)?;
                if let Some(first) = files.first() {
                    check_alike(first, &file)?;
                }
                files.push(file);
            }
        }
        if files.is_empty() {
            return Err(Error::OutOfRange {
                what: "files of a point cloud",
                value: 0,
                least: 1,
                most: u64::MAX,
            });
        }
        Ok(Self { files, filter: CloudFilter::default() })
    }

    /// Reads only the points that a filter accepts.
    pub fn filter(mut self, filter: CloudFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Returns the files, at least one.
    pub fn files(&self) -> &[CloudFile] {
        &self.files
    }

    /// Returns the lattice of the points that are read: that of the first file.
    pub fn lattice(&self) -> Lattice {
        self.files[0].lattice()
    }

    /// Returns the reference system of all files, if they name one.
    pub fn reference_system(&self) -> Option<&ReferenceSystem> {
        self.files[0].reference_system()
    }

    /// Returns the number of points in all files, with those that the filter leaves out.
    pub fn num_points(&self) -> u64 {
        self.files.iter().map(CloudFile::num_points).sum()
    }

    /// Reads all points. Takes 12 bytes a point and the bytes of its attributes, and while they are put in order up to twice that.
    ///
    /// # Errors
    /// The errors of [`for_each_chunk`](Self::for_each_chunk); [`Error::TooManyItems`] beyond 2^32 - 2 points; [`Error::OutOfMemory`].
    pub fn read(&self, attributes: &Attributes) -> Result<PointCloud> {
        let (mut points, mut values, mut num_points, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
        self.for_each_chunk(attributes, |chunk| {
            num_points += chunk.points.len() as u64;
            bytes += size_of_val(&*chunk.points) as u64 + chunk.attributes.bytes();
            check_count("points", num_points, MAX_POINTS)?;
            memory::check(bytes, "points of a cloud")?;
            points.push(chunk.points);
            values.push(chunk.attributes);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(PointCloud {
            points: joined(points, "points of a cloud")?,
            attributes: AttributeValues::joined(values)?,
            lattice: self.lattice(),
            reference_system: self.reference_system().cloned(),
        })
    }

    /// Calls `visit` with the points in order, some at a time, until it breaks. The cloud may be larger than memory: a few chunks of each CPU
    /// thread are in memory at a time. The other threads read on while `visit` runs.
    ///
    /// # Errors
    /// The errors of `visit`; [`Error::InvalidFile`], with the number of the point, for points that cannot be decompressed or are out of the
    /// range of the lattice, for an attribute that a file does not have, and for levels of a file without an octree; [`Error::Io`];
    /// [`Error::OutOfMemory`].
    pub fn for_each_chunk(
        &self,
        attributes: &Attributes,
        mut visit: impl FnMut(CloudChunk) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.check(attributes)?;
        let mut chosen = Vec::new();
        for file in &self.files {
            chosen.extend(self.chosen(file)?.into_iter().map(|chunk| (file, chunk)));
        }
        let unused: Mutex<Vec<Buffers>> = Mutex::default();
        let read = |i: usize| {
            let (file, chunk) = chosen[i];
            let mut buffers = lock(&unused).pop().unwrap_or_default();
            let read = self.read_chunk(file, chunk, attributes, &mut buffers);
            lock(&unused).push(buffers);
            read
        };
        let ahead = CHUNKS_PER_THREAD * rayon::current_num_threads();
        parallel::in_order(chosen.len(), ahead, read, |chunk| visit(chunk?))
    }

    /// Checks that all files have these attributes.
    fn check(&self, attributes: &Attributes) -> Result<()> {
        let missing = |file: &CloudFile| {
            let name = attributes.missing(file.layout)?;
            Some(file.invalid(format!("points of format {} have no {name}", file.point_format())))
        };
        self.files.iter().find_map(missing).map_or(Ok(()), Err)
    }

    /// Returns the points as a source in chunks.
    pub fn points(&self) -> CloudPoints<'_, 3> {
        CloudPoints { files: self }
    }

    /// Returns x and y of the points as a source in chunks.
    pub fn plane(&self) -> CloudPoints<'_, 2> {
        CloudPoints { files: self }
    }

    /// Returns the chunks of a file that may have points which the filter accepts.
    fn chosen<'a>(&self, file: &'a CloudFile) -> Result<Vec<&'a Chunk>> {
        let levels = self.filter.chosen_levels();
        let Some(nodes) = &file.octree else {
            return match levels {
                Some(_) => Err(file
                    .invalid("it has no levels, since it is no COPC file; leave out the choice of levels")),
                None => Ok(file.chunks.all.iter().collect()),
            };
        };
        let is_chosen = |node: &&Node| {
            levels.is_none_or(|levels| levels.contains(&node.level)) && self.filter.may_be_in(node.bounds)
        };
        Ok(nodes.iter().filter(is_chosen).map(|node| &node.chunk).collect())
    }

    /// Returns the number of points in all of these chunks.
    fn num_chosen_points(&self) -> Result<u64> {
        let of_file = |file| Ok(self.chosen(file)?.iter().map(|chunk| chunk.num_points).sum::<u64>());
        self.files.iter().map(of_file).sum()
    }

    fn read_chunk(
        &self,
        file: &CloudFile,
        chunk: &Chunk,
        attributes: &Attributes,
        buffers: &mut Buffers,
    ) -> Result<CloudChunk> {
        let records = file.records(chunk, buffers)?;
        let num = records.len() / file.layout.len;
        let (mut points, mut values) =
            (memory::vec_with_capacity(num, "points of a cloud")?, AttributeValues::default());
        values.reserve(num, attributes)?;
        let lattice = file.lattice();
        let shift = self.lattice().shift_of(&lattice).filter(|shift| *shift != [0; 3]);
        for (i, record) in Record::of(file.layout, records).enumerate() {
            if !self.filter.accepts(record, &lattice) {
                continue;
            }
            let point = match shift {
                None => record.point(),
                Some(shift) => shifted(record.point(), shift).ok_or_else(|| {
                    let first = self.files[0].path().display();
                    file.invalid_point(
                        chunk.first + i as u64,
                        format!(
                            "it is out of the range of the coordinates of {first}; read the files one by one"
                        ),
                    )
                })?,
            };
            points.push(point);
            values.push(record, attributes);
        }
        Ok(CloudChunk { points, attributes: values, num_read: chunk.num_points, bytes: chunk.bytes })
    }
}

fn shifted(point: [i32; 3], shift: [i64; 3]) -> Option<[i32; 3]> {
    let mut shifted = [0; 3];
    for axis in 0..3 {
        shifted[axis] = i32::try_from(i64::from(point[axis]) + shift[axis]).ok()?;
    }
    Some(shifted)
}

/// Returns the files of a path or a pattern, in the order of their names.
fn expanded(path: &Path) -> Result<Vec<PathBuf>> {
    let invalid = |what: String| Error::InvalidFile {
        path: path.into(),
        location: FileLocation::Whole,
        column: None,
        what,
    };
    let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists());
    let Some(pattern) = pattern else { return Ok(vec![path.into()]) };
    let found = glob::glob(pattern).map_err(|error| invalid(format!("a broken pattern: {error}")))?;
    let found: Result<Vec<PathBuf>, _> = found.collect();
    let found = found.map_err(|error| Error::Io { path: error.path().into(), source: error.into() })?;
    if found.is_empty() { Err(invalid("no file matches this pattern".into())) } else { Ok(found) }
}

/// Checks that a file can be read as one cloud with the first.
fn check_alike(first: &CloudFile, file: &CloudFile) -> Result<()> {
    let name = |file: &CloudFile| file.reference_system().map_or("none".to_owned(), ToString::to_string);
    let path = first.path().display();
    if first.reference_system() != file.reference_system() {
        let what = format!(
            "its reference system (CRS) is {}, that of {path} is {}; convert one of them, or read them one by one",
            name(file),
            name(first)
        );
        return Err(file.invalid(what));
    }
    if first.lattice().shift_of(&file.lattice()).is_none() {
        let [of, expected] = [file, first].map(|file| file.lattice());
        let what = format!(
            "its coordinates (scale {:?}, offset {:?}) do not lie on those of {path} (scale {:?}, offset {:?}); read the files one by one",
            of.scale, of.offset, expected.scale, expected.offset
        );
        return Err(file.invalid(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
