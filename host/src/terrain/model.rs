//! Points with heights, and rasters of them.

use super::backend::{Backend, CellMethod};
use super::cpu::CpuPoints;
use super::frame::TerrainFrame;
use super::gpu::{GpuPoints, bounds_on};
use super::grid::RasterGrid;
use super::method::{Method, Statistic};
use super::raster::Raster;
use crate::device::{Buffer, Device, Stream, Workspace, gpu_of};
use crate::error::{Error, Result, check_count, check_range};
use crate::point::{Lattice, MAX_POINTS};
use crate::primitives::cpu::bounds::bounds;
use crate::primitives::generate::fill;
use kauri_kernels::terrain::disk::statistic;

/// The most points of inverse distance weighting.
pub(super) const MAX_NEAREST: u32 = 32;
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
    backend: Box<dyn Backend>,
}

impl Terrain {
    /// Sorts points, given as integers on a lattice, on a device. If the lattice has another step along x than along y, the positions are
    /// rounded to the smaller step.
    ///
    /// Memory of the device: 36 bytes a point while points are sorted, then 12, and up to 28 while a raster is computed.
    ///
    /// # Errors
    /// [`Error::TooManyItems`] beyond [`MAX_POINTS`]; [`Error::CoordinateTooLarge`] if points are more than 2^28 steps apart along x or y;
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn new(device: &Device, points: &[[i32; 3]], lattice: &Lattice) -> Result<Self> {
        check_count("points", points.len() as u64, MAX_POINTS)?;
        let [x, y, height] = lattice.scale;
        if x != y {
            let scale = x.min(y);
            let square = Lattice { scale: [scale, scale, height], ..*lattice };
            let moved: Result<Vec<_>> =
                points.iter().map(|&point| square.nearest(lattice.position(point))).collect();
            return Self::new(device, &moved?, &square);
        }
        let num_points = points.len();
        let Some(gpu) = gpu_of!(device) else {
            let corners = if num_points == 0 { [[0; 3]; 2] } else { bounds(points) };
            let frame = TerrainFrame::new(*lattice, corners)?;
            return Ok(Self {
                frame,
                num_points,
                backend: Box::new(CpuPoints::new(points, frame.of_points())?),
            });
        };
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let points = Buffer::from_slice(&stream, points, "points of a terrain")?;
        let terrain = Self::new_on(&stream, &mut workspace, &points, lattice)?;
        stream.synchronize()?;
        Ok(terrain)
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
        let corners = if points.is_empty() { [[0; 3]; 2] } else { bounds_on(stream, workspace, points)? };
        let frame = TerrainFrame::new(*lattice, corners)?;
        let sorted = GpuPoints::new(stream, workspace, points, frame.of_points(), corners)?;
        Ok(Self { frame, num_points: points.len(), backend: Box::new(sorted) })
    }

    /// Returns the number of points.
    pub fn num_points(&self) -> usize {
        self.num_points
    }

    /// Computes the value of each cell of a raster. Cells have no value where the method defines none, and all of them without points.
    ///
    /// A position that is not on the lattice of half the points' steps is moved to it: the centers of cells, by up to a quarter of a step.
    ///
    /// # Errors
    /// [`Error::InvalidLength`] for a radius or a length of edges that is negative or NaN; [`Error::OutOfRange`] for `k` or a power that is
    /// not in its range; [`Error::CoordinateTooLarge`] for a raster that is 2^28 steps away from the points; [`Error::OutOfMemory`]; errors
    /// of the device.
    pub fn raster(&self, grid: &RasterGrid, method: &Method) -> Result<Raster> {
        let (cells, method) = (self.frame.cells(grid)?, self.cell_method(method)?);
        let values = if self.num_points == 0 {
            vec![f32::NAN; grid.len()]
        } else {
            self.backend.raster(&cells, &method)?
        };
        Ok(Raster::new(*grid, values))
    }

    /// Computes the values of [`raster`](Self::raster) in device memory, in rows from the north-west corner. Waits for the number of
    /// distinct positions.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`] for points on the CPU; [`Error::WrongDevice`]; the errors of [`raster`](Self::raster).
    pub fn raster_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        grid: &RasterGrid,
        method: &Method,
    ) -> Result<Buffer<f32>> {
        let (cells, method) = (self.frame.cells(grid)?, self.cell_method(method)?);
        if self.num_points == 0 {
            let mut values = Buffer::uninitialized(stream.gpu(), grid.len(), "cells of a raster")?;
            fill(stream, f32::NAN, &mut values)?;
            return Ok(values);
        }
        self.backend.raster_on(stream, workspace, &cells, &method)
    }

    /// Validates a method.
    fn cell_method(&self, method: &Method) -> Result<CellMethod> {
        let (frame, check_power) = (&self.frame, |power| check_range("power", power, 1, MAX_POWER.into()));
        Ok(match *method {
            Method::Statistic { statistic: Statistic::Idw { power }, radius } => {
                check_power(power)?;
                CellMethod::WeightedDisk { radius2: frame.steps2("radius", radius)?, power }
            }
            Method::Statistic { statistic, radius } => {
                let statistic = match statistic {
                    Statistic::Min => statistic::MIN,
                    Statistic::Max => statistic::MAX,
                    Statistic::Mean | Statistic::Idw { .. } => statistic::MEAN,
                    Statistic::Count => statistic::COUNT,
                    Statistic::StandardDeviation => statistic::STANDARD_DEVIATION,
                };
                CellMethod::Statistic { statistic, radius2: frame.steps2("radius", radius)? }
            }
            Method::Nearest { radius } => {
                CellMethod::WeightedNearest { k: 1, radius: frame.steps("radius", radius)?, power: 1 }
            }
            Method::Idw { k, radius, power } => {
                check_range("number of nearest points", k, 1, MAX_NEAREST.into())?;
                check_power(power)?;
                let radius = frame.steps("radius", radius)?;
                CellMethod::WeightedNearest { k: k as usize, radius, power }
            }
            Method::Tin { max_edge } => CellMethod::Tin { max_edge2: frame.steps2("edge", max_edge)? },
            Method::NaturalNeighbor => CellMethod::NaturalNeighbor,
            Method::Spline(_) => {
                return Err(Error::OutOfRange { what: "spline", value: 0, least: 1, most: 1 });
            }
        })
    }
}
