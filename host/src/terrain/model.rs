//! Points with heights, and rasters of them.

use super::backend::{Backend, CellMethod};
use super::cpu::{CpuPoints, MAX_NEAREST};
use super::frame::TerrainFrame;
use super::gpu::{GpuPoints, bounds_on};
use super::grid::RasterGrid;
use super::method::{Method, Statistic};
use super::options::TerrainOptions;
use super::raster::Raster;
use super::tiled::{AllPoints, PointStore, TiledPoints};
use crate::device::{Buffer, Device, Stream, Workspace, gpu_of};
use crate::error::{Error, Result, check_count, check_range};
use crate::memory;
use crate::point::{Lattice, MAX_POINTS, PointSource, read_chunks};
use crate::primitives::cpu::bounds::bounds;
use crate::primitives::generate::fill;
use crate::progress::{Progress, Step};
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::disk::statistic;

/// The greatest power of inverse distance weighting.
const MAX_POWER: u32 = 16;

/// Points with heights, from which rasters are computed.
///
/// Results are the same on every device to the last bit, and do not depend on the order of the points.
///
/// ```
/// use kauri::lidar::Lidar;
/// use kauri::terrain::{Method, RasterGrid, Terrain};
/// use kauri::Device;
/// let scan = Lidar::new(10_000, 1);
/// let lattice = scan.lattice();
/// let mut points: Vec<[i32; 3]> = Vec::new();
/// for point in scan.points(0..10_000)? {
///     points.push(lattice.nearest(point.position)?);
/// }
/// let terrain = Terrain::new(&Device::cpu(), &points, &lattice)?;
/// let grid = RasterGrid::covering(scan.bounds(), 1.0)?;
/// let heights = terrain.raster(&grid, &Method::Tin { max_edge: f64::INFINITY })?;
/// assert!(heights.value(10, 10) > 0.0);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct Terrain {
    frame: TerrainFrame,
    num_points: usize,
    /// The least and the greatest x and y.
    corners: Option<[[i32; 2]; 2]>,
    backend: Box<dyn Backend>,
}

impl Terrain {
    /// Sorts points, given as integers on a lattice, on a device. If the lattice has another step along x than along y, the positions are
    /// rounded to the smaller step.
    ///
    /// Memory of the device: 48 bytes a point while points are sorted, then 12, and about 22 more from the first raster on; splines take up to
    /// 1 GiB more.
    ///
    /// # Errors
    /// [`Error::TooManyItems`] beyond [`MAX_POINTS`]; [`Error::CoordinateTooLarge`] if points are more than 2^28 steps apart along x or y;
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn new(device: &Device, points: &[[i32; 3]], lattice: &Lattice) -> Result<Self> {
        check_count("points", points.len() as u64, MAX_POINTS)?;
        if let Some(square) = with_equal_steps(lattice) {
            return Self::new(device, &moved(points, lattice, &square)?, &square);
        }
        let num_points = points.len();
        let Some(gpu) = gpu_of!(device) else {
            let corners = (num_points > 0).then(|| bounds(points));
            let frame = TerrainFrame::new(*lattice, corners.unwrap_or_default())?;
            let sorted = CpuPoints::new(points, frame.of_points())?;
            return Ok(Self { frame, num_points, corners: corners.map(plane), backend: Box::new(sorted) });
        };
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let points = Buffer::from_slice(&stream, points, "points of a terrain")?;
        let terrain = Self::new_on(&stream, &mut workspace, &points, lattice)?;
        stream.synchronize()?;
        Ok(terrain)
    }

    /// Reads the points of a source, which may be more than the memory of the device or of the host holds. More than
    /// [`TerrainOptions::device_bytes`] has room for are stored in blocks, in a temporary file if they exceed
    /// [`TerrainOptions::host_bytes`]; then rasters are computed in windows, and equal those of [`new`](Self::new).
    /// `progress` hears of the phase "points".
    ///
    /// ```
    /// use kauri::terrain::{Method, RasterGrid, Terrain, TerrainOptions};
    /// use kauri::{Device, Lattice, Result};
    /// let lattice = Lattice { scale: [0.01; 3], offset: [0.0; 3] };
    /// let chunks = (0..100).map(|x| -> Result<Vec<[i32; 3]>> { Ok((0..100).map(|y| [100 * x, 100 * y, x + y]).collect()) });
    /// let mut progress = |_| std::ops::ControlFlow::Continue(());
    /// let options = TerrainOptions::default();
    /// let terrain = Terrain::read(&Device::cpu(), chunks, &lattice, &options, &mut progress)?;
    /// let grid = RasterGrid::covering([[0.0; 2], [99.0; 2]], 1.0)?;
    /// let raster = terrain.raster(&grid, &Method::Tin { max_edge: 10.0 })?;
    /// assert!((raster.value(0, 98) - 0.01).abs() < 1e-6);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::CoordinateTooLarge`] for a point that is 2^27 steps or more away from the first one along x or y; the errors of the source and of
    /// [`new`](Self::new); [`Error::Io`] with the folder of the temporary file; [`Error::Stopped`] if `progress` stopped the call.
    pub fn read(
        device: &Device,
        mut source: impl PointSource<Point = [i32; 3]>,
        lattice: &Lattice,
        options: &TerrainOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let square = with_equal_steps(lattice);
        let folder = options.folder.clone().unwrap_or_else(std::env::temp_dir);
        let host_bytes = options.host_bytes.unwrap_or_else(|| memory::available().unwrap_or(u64::MAX) / 2);
        let device_bytes = match (options.device_bytes, gpu_of!(device)) {
            (Some(bytes), _) => bytes,
            (None, Some(gpu)) => gpu.free_memory()? / 2,
            (None, None) => host_bytes / 2,
        };
        let max_points = TiledPoints::max_points(device_bytes);
        // While points move into blocks, both are in memory.
        let max_whole = max_points.min((host_bytes / (2 * size_of::<[i32; 3]>() as u64)) as usize);
        let (mut frame, mut store) = (None, PointStore::new(host_bytes, max_whole, &folder));
        read_chunks(&mut source, progress, &mut |chunk, _| {
            let moved = square.map(|square| moved(chunk, lattice, &square)).transpose()?;
            let chunk = moved.as_deref().unwrap_or(chunk);
            let Some(&first) = chunk.first() else { return Ok(()) };
            let frame = frame.get_or_insert_with(|| TerrainFrame::around(square.unwrap_or(*lattice), first));
            frame.check(bounds(chunk))?;
            store.append(chunk)
        })?;
        let frame = frame.unwrap_or_else(|| TerrainFrame::around(*lattice, [0; 3]));
        let points = match store.finish()? {
            AllPoints::Whole(points) => return Self::new(device, &points, &frame.lattice),
            AllPoints::Blocks(points) => TiledPoints::new(device, frame, points, max_points),
        };
        Ok(Self {
            frame,
            num_points: points.num_points(),
            corners: points.corners(),
            backend: Box::new(points),
        })
    }

    /// Sorts points in device memory, as [`new`](Self::new) sorts points of the host. Waits for the bounds of the points, and not for the
    /// sort.
    ///
    /// # Errors
    /// [`Error::UnequalSteps`] for a lattice with another step along x than along y; [`Error::WrongDevice`]; the errors of [`new`](Self::new).
    pub fn new_on(
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[i32; 3]>,
        lattice: &Lattice,
    ) -> Result<Self> {
        check_count("points", points.len() as u64, MAX_POINTS)?;
        points.check_device(stream)?;
        let [x, y, _] = lattice.scale;
        if x != y {
            return Err(Error::UnequalSteps { x, y });
        }
        let some = !points.is_empty();
        let corners = some.then(|| bounds_on(stream, workspace, points)).transpose()?;
        let frame = TerrainFrame::new(*lattice, corners.unwrap_or_default())?;
        let sorted =
            GpuPoints::new(stream, workspace, points, frame.of_points(), corners.unwrap_or_default())?;
        let (num_points, corners) = (points.len(), corners.map(plane));
        Ok(Self { frame, num_points, corners, backend: Box::new(sorted) })
    }

    /// Returns the number of points.
    pub fn num_points(&self) -> usize {
        self.num_points
    }

    /// Returns the least and the greatest x and y of the points; `None` without points.
    pub fn bounds(&self) -> Option<[[f64; 2]; 2]> {
        self.corners.map(|corners| corners.map(|corner| self.frame.lattice.position(corner)))
    }

    /// Computes the value of each cell of a raster. Cells have no value where the method defines none, and all of them without points.
    ///
    /// A position that is not on the lattice of half the points' steps is moved to it: the centers of cells, by up to a quarter of a step.
    ///
    /// # Errors
    /// [`Error::InvalidLength`] for a radius, a length of edges, a tension or a smoothing that is negative or NaN; [`Error::OutOfRange`] for `k`,
    /// a power or the points of a leaf that are not in their ranges; [`Error::CoordinateTooLarge`] for a raster that is 2^28 steps away from the points; [`Error::OutOfMemory`]; errors
    /// of the device.
    pub fn raster(&self, grid: &RasterGrid, method: &Method) -> Result<Raster> {
        let (cells, method) = self.checked(grid, method)?;
        Ok(Raster::new(*grid, self.values(&cells, &method)?))
    }

    fn values(&self, cells: &Cells, method: &CellMethod) -> Result<Vec<f32>> {
        if self.num_points == 0 {
            return memory::filled(cells.len(), f32::NAN, "cells of a raster");
        }
        self.backend.raster(cells, method)
    }

    /// Computes the raster in bands of up to `rows` rows, from north to south. Calls `visit` with the first row of each band and its values.
    /// `progress` hears of the phase "cells".
    ///
    /// # Errors
    /// The errors of [`raster`](Self::raster) and of `visit`; [`Error::OutOfRange`] for 0 rows; [`Error::Stopped`] if `progress` stopped the call.
    pub fn for_each_band(
        &self,
        grid: &RasterGrid,
        method: &Method,
        rows: u32,
        progress: &mut dyn Progress,
        visit: &mut dyn FnMut(u32, &[f32]) -> Result<()>,
    ) -> Result<()> {
        check_range("rows of a band", rows, 1, u32::MAX.into())?;
        let (cells, method) = self.checked(grid, method)?;
        let mut step = Step { phase: "cells", done: 0, total: Some(grid.len() as u64), bytes: 0 };
        for first_row in (0..cells.rows).step_by(rows as usize) {
            if progress.report(step).is_break() {
                return Err(Error::Stopped { phase: step.phase, done: step.done, total: step.total });
            }
            let band = Cells { first_row, rows: rows.min(cells.rows - first_row), ..cells };
            visit(first_row, &self.values(&band, &method)?)?;
            step.done += band.len() as u64;
            step.bytes += size_of::<f32>() as u64 * band.len() as u64;
        }
        // The last report has everything done.
        let _ = progress.report(step);
        Ok(())
    }

    /// Computes the values of [`raster`](Self::raster) in device memory, in rows from the north-west corner. Waits for the number of
    /// distinct positions.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`] for points on the CPU and for those that [`read`](Self::read) has stored in blocks; [`Error::WrongDevice`]; the errors of [`raster`](Self::raster).
    pub fn raster_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        grid: &RasterGrid,
        method: &Method,
    ) -> Result<Buffer<f32>> {
        let (cells, method) = self.checked(grid, method)?;
        if self.num_points == 0 {
            let mut values = Buffer::uninitialized(stream.gpu(), grid.len(), "cells of a raster")?;
            fill(stream, f32::NAN, &mut values)?;
            return Ok(values);
        }
        self.backend.raster_on(stream, workspace, &cells, &method)
    }

    /// Validates a raster and a method. Counts are no heights, and deviations do not depend on where heights begin.
    fn checked(&self, grid: &RasterGrid, method: &Method) -> Result<(Cells, CellMethod)> {
        let (mut cells, method) = (self.frame.cells(grid)?, self.cell_method(method)?);
        if let CellMethod::Statistic { statistic, .. } = method {
            match statistic {
                statistic::COUNT => (cells.height_offset, cells.height_scale) = (0.0, 1.0),
                statistic::STANDARD_DEVIATION => cells.height_offset = 0.0,
                _ => {}
            }
        }
        Ok((cells, method))
    }

    /// Validates a method.
    fn cell_method(&self, method: &Method) -> Result<CellMethod> {
        let (frame, check_power) = (&self.frame, |power| check_range("power", power, 1, MAX_POWER.into()));
        Ok(match *method {
            Method::Statistic { statistic, radius } => {
                let radius2 = frame.steps2("radius", radius)?;
                let of = |statistic| CellMethod::Statistic { statistic, radius2 };
                match statistic {
                    Statistic::Min => of(statistic::MIN),
                    Statistic::Max => of(statistic::MAX),
                    Statistic::Mean => of(statistic::MEAN),
                    Statistic::Count => of(statistic::COUNT),
                    Statistic::StandardDeviation => of(statistic::STANDARD_DEVIATION),
                    Statistic::Idw { power } => {
                        check_power(power)?;
                        CellMethod::WeightedDisk { radius2, power }
                    }
                }
            }
            Method::Nearest { radius } => {
                CellMethod::WeightedNearest { k: 1, radius2: frame.steps2("radius", radius)?, power: 1 }
            }
            Method::Idw { k, radius, power } => {
                check_range("number of nearest points", k, 1, MAX_NEAREST as u64)?;
                check_power(power)?;
                CellMethod::WeightedNearest { k, radius2: frame.steps2("radius", radius)?, power }
            }
            Method::Tin { max_edge } => CellMethod::Tin { max_edge2: frame.steps2("edge", max_edge)? },
            Method::NaturalNeighbor => CellMethod::NaturalNeighbor,
            Method::Spline(options) => {
                options.check()?;
                let corners =
                    self.corners.unwrap_or_default().map(|corner| frame.of_points().position(corner));
                CellMethod::Spline { options, corners, num_points: self.num_points }
            }
        })
    }
}

/// Returns the corners without heights.
fn plane(corners: [[i32; 3]; 2]) -> [[i32; 2]; 2] {
    corners.map(|[x, y, _]| [x, y])
}

/// Returns the lattice with the smaller of both steps along x and y, if they differ.
fn with_equal_steps(lattice: &Lattice) -> Option<Lattice> {
    let [x, y, height] = lattice.scale;
    (x != y).then(|| Lattice { scale: [x.min(y), x.min(y), height], ..*lattice })
}

/// Returns points on another lattice.
fn moved(points: &[[i32; 3]], from: &Lattice, to: &Lattice) -> Result<Vec<[i32; 3]>> {
    points.iter().map(|&point| to.nearest(from.position(point))).collect()
}
