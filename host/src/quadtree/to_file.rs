//! Trees that are built straight into files, so that neither points nor tree need to fit in memory.

use crate::device::{Device, Gpu, gpu_of};
use crate::error::{Error, Result};
use crate::host_coords::{HostCoords, InHost};
use crate::memory::{self, file_part::FilePart};
use crate::point::{
    Dispatch, NoValue, PerCoordinate, PointSource, Typed, checked_coordinates, read_chunks, with_coordinate,
};
use crate::primitives::cpu::bounds::bounds;
use crate::progress::Progress;
use crate::quadtree::build;
use crate::quadtree::dims::{CartesianPoint, with_2_or_3};
use crate::quadtree::frame::{file_words, frame_of_bounds};
use crate::quadtree::gpu::streamed::columns::{InputColumn, OutputColumn};
use crate::quadtree::gpu::streamed::{InputPoints, TreePoints, build_nodes};
use crate::quadtree::options::QuadtreeOptions;
use crate::quadtree::stored::{COORDS, IDS, NUM_SECTIONS, options_in_file, sections_of_nodes};
use crate::quadtree::tree::CellTree;
use crate::stats::Stats;
use crate::stored::{Contents, Expected, folder_of, save_in_place};
use kauri_kernels::thread::coord::Coord;
use std::fs::File;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::slice;

impl<P: CartesianPoint<D>, const D: usize> CellTree<P, D> {
    /// Builds the tree over the points of a source, and writes it to a file: the bytes that [`save`](CellTree::save) would write.
    /// [`map`](CellTree::map) gives the tree to queries.
    ///
    /// The points may be more than host memory holds. They are read once, to a temporary file in the folder of `path`. A GPU then builds
    /// the tree [out of core](super::OutOfCore::Streamed), whatever the options say. `progress` hears of the phases "points" (read from
    /// the source), "counts", "batches" and "subtrees"; each has the number of points and their bytes.
    ///
    /// - Host memory: the chunks of the source, 48 MiB of page-locked memory, up to 4 MiB of counts for each 16M points, and the nodes of
    ///   24 bytes (28 in an octree), twice while they are put in order. A quadtree of a laser scan with n points has 2.8 n / `leaf_points`
    ///   nodes (`quadtree-to-file-h200`).
    /// - Device memory: what is free, at most.
    /// - Disk: the coordinates of the points, and the file.
    /// - CPU: builds in memory, as [`build`](CellTree::build) does.
    ///
    /// The file is written under another name, and replaces `path` at the end. After an error `path` is unchanged.
    ///
    /// ```
    /// use kauri::quadtree::{Quadtree, QuadtreeOptions};
    /// use kauri::{Device, Result};
    /// # let folder = tempfile::tempdir().map_err(|source| kauri::Error::Io { path: Default::default(), source })?;
    /// # let path = folder.path().join("scan.kauri");
    /// let device = Device::cpu();
    /// let chunks = (0..4).map(|i| -> Result<Vec<[i32; 2]>> { Ok((0..100).map(|k| [i, k]).collect()) });
    /// let mut progress = |_| std::ops::ControlFlow::Continue(());
    /// Quadtree::build_to_file(&device, chunks, &path, &QuadtreeOptions::default(), &mut progress)?;
    /// assert_eq!(Quadtree::<[i32; 2]>::load(&device, &path)?.len(), 400);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`build`](CellTree::build), where the index of a point counts from the first chunk on; the errors of the source;
    /// [`Error::Stopped`] if `progress` stopped the build; [`Error::Io`] with `path` for a folder that is missing or a disk that is full.
    pub fn build_to_file(
        device: &Device,
        mut source: impl PointSource<Point = P>,
        path: impl AsRef<Path>,
        options: &QuadtreeOptions,
        progress: &mut dyn Progress,
    ) -> Result<Stats> {
        options.check()?;
        let (path, mut stats) = (path.as_ref(), Stats::new(device));
        let _span = tracing::debug_span!("quadtree_build_to_file", dims = D).entered();
        let mut points = TemporaryPoints::<P::Coord>::new(path)?;
        stats.phase("points", || {
            read_chunks(&mut source, progress, &mut |chunk, _| {
                points.append(&checked_coordinates(chunk, "point")?, Self::DIMS)
            })
        })?;
        let points = P::Coord::wrap::<OfPoints>(points);
        let Some(gpu) = gpu_of!(device) else {
            let coords = P::Coord::unwrap::<OfVec>(with_coordinate!(points, C, points => points.to_vec()?));
            let coords = P::Coord::wrap::<InHost<'_>>(HostCoords::of_checked(&coords, Self::DIMS));
            let tree = build::build(device, coords, options, progress, &mut stats)?;
            let tree = Self::new(device.clone(), stats, P::Coord::unwrap(tree));
            tree.save(path)?;
            return Ok(tree.stats().clone());
        };
        write(gpu, &points, Self::DIMS, (path, Expected::of::<Self>()), options, progress, &mut stats)?;
        Ok(stats)
    }
}

/// Builds a tree over temporary points, and writes its file.
fn write(
    gpu: &Gpu,
    points: &Typed<OfPoints>,
    dims: usize,
    (path, expected): (&Path, Expected),
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<Typed<NoValue>> {
    Ok(with_coordinate!(points, C, points => with_2_or_3!(dims, D => {
        let [low, high] = bounds(points.corners.as_chunks::<D>().0);
        let frame = frame_of_bounds([low, high], points.num_coords == 0, options)?;
        let num_points = points.num_coords / D;
        let lens = [(COORDS, points.num_coords * size_of::<C>()), (IDS, num_points * size_of::<u32>())];
        let lens = lens.map(|(tag, bytes)| (tag, bytes as u64));
        save_in_place(path, expected, NUM_SECTIONS, &lens, |parts, finish| {
            let input = InputPoints { len: num_points, coords: InputColumn::File(points.part()), ids: None };
            let output = TreePoints::<C> {
                coords: OutputColumn::File(parts[0]),
                ids: OutputColumn::File(parts[1]),
            };
            let part = build_nodes::<C, D>(slice::from_ref(gpu), input, &output, &frame, options, progress, stats)?;
            let (frame, options) = (file_words(&frame, options.root), options_in_file(options));
            let sections = &sections_of_nodes(&part.nodes, &frame, &options);
            stats.phase("file", || finish(&Contents { num_points, num_nodes: part.nodes.len(), sections }))
        })?;
    })))
}

/// The coordinates of a source in a temporary file, which has no name.
struct TemporaryPoints<C> {
    file: File,
    /// The path that errors name.
    path: PathBuf,
    num_coords: usize,
    /// The least and the greatest corner of the points so far.
    corners: Vec<C>,
    coords: PhantomData<C>,
}

impl<C: Coord> TemporaryPoints<C> {
    /// Creates the file in the folder of a path.
    fn new(path: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder_of(path));
        // Errors of the temporary file would name it instead of `path`.
        let file = file.map_err(|error| Error::Io { path: path.into(), source: error.kind().into() })?;
        Ok(Self { file, path: path.into(), num_coords: 0, corners: Vec::new(), coords: PhantomData })
    }

    fn part(&self) -> FilePart<'_> {
        FilePart { file: &self.file, path: &self.path, begin: 0 }
    }

    /// Appends points.
    fn append(&mut self, coords: &[C], dims: usize) -> Result<()> {
        if coords.is_empty() {
            return Ok(());
        }
        with_2_or_3!(dims, D => {
            self.corners.extend(bounds(coords.as_chunks::<D>().0).as_flattened());
            self.corners = bounds(self.corners.as_chunks::<D>().0).as_flattened().into();
        });
        self.part().write(self.num_coords, coords)?;
        self.num_coords += coords.len();
        Ok(())
    }

    /// Returns all coordinates.
    fn to_vec(&self) -> Result<Vec<C>> {
        let mut coords = memory::filled(self.num_coords, C::ZERO, "points")?;
        self.part().read(0, &mut coords)?;
        Ok(coords)
    }
}

/// [`TemporaryPoints`] for each type of coordinates.
struct OfPoints;

impl PerCoordinate for OfPoints {
    type Of<C: Coord> = TemporaryPoints<C>;
}

/// A vector of coordinates, for each type of coordinates.
struct OfVec;

impl PerCoordinate for OfVec {
    type Of<C: Coord> = Vec<C>;
}
