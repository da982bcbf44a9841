//! `kauri dem`: elevation models of point clouds.

mod ground;
mod method;
mod plan;
mod points;
mod summary;

use clap::Args;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::device::{DeviceOption, Work};
use super::memory::vec_with_capacity;
use super::names::{PICTURE, RASTER, has_extension, with_extension};
use super::progress::Steps;
use super::{CliError, Result, Streams};
use ground::GroundOptions;
use kauri::io::{CloudFiles, GeoTiffOptions, write_ascii_grid, write_geotiff, write_hillshade_png};
use kauri::terrain::{HillshadeOptions, Method, Raster, RasterGrid, Terrain, TerrainOptions};
use kauri::{Device, Error, PointSource};
use method::MethodOptions;
use points::{Layer, LayerPoints, Model, PointsRead};
use summary::Summary;

/// Cells of a band of a raster, after which progress is shown. Smaller bands take longer, because each has a margin of points.
const BAND_CELLS: u32 = 1 << 24;
/// Meters of a degree at the equator, with which a hillshade of degrees compares heights.
const DEGREE: f64 = 111_120.0;

#[derive(Args)]
pub(super) struct Dem {
    /// LAS, LAZ or COPC files, or patterns such as 'tiles/*.laz': all together are one point cloud
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write the raster to this file: a GeoTIFF (.tif, .tiff) or an ESRI ASCII grid (.asc)
    #[arg(long, value_name = "FILE.tif", value_parser = with_extension(RASTER))]
    out: PathBuf,
    /// Side of a cell, in the units of the coordinates
    #[arg(long, value_name = "LENGTH", default_value_t = 1.0, allow_negative_numbers = true)]
    resolution: f64,
    /// Surface that the raster describes
    #[arg(long, value_enum, default_value = "dtm")]
    model: Model,
    #[command(flatten)]
    method: MethodOptions,
    /// Classes of the points, separated by commas: 2 is ground, 6 buildings, 9 water. With --model chm, classes of the ground [default: the classes
    /// of the model]
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    class: Vec<u8>,
    #[command(flatten)]
    ground: GroundOptions,
    /// Area of the raster [default: the area that the files declare, or that of the points if they are not within it]
    #[arg(long, value_name = "XMIN,YMIN,XMAX,YMAX", allow_hyphen_values = true)]
    bounds: Option<Bounds>,
    /// Read only the points in --bounds and in a margin of this width around them; heights may then depend on the bounds [default: read all
    /// points, so that neighboring rasters fit together]
    #[arg(long, value_name = "LENGTH", requires = "bounds")]
    buffer: Option<f64>,
    /// Value of cells without a value, in the file [default: nan, or -9999 for .asc]
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    nodata: Option<f32>,
    /// Write a hillshade of the raster to this file
    #[arg(long, value_name = "FILE.png", value_parser = with_extension(PICTURE))]
    hillshade: Option<PathBuf>,
    /// Direction of the light of the hillshade, in degrees from north to east
    #[arg(
        long,
        value_name = "DEGREES",
        default_value_t = 315.0,
        requires = "hillshade",
        allow_negative_numbers = true
    )]
    azimuth: f64,
    /// Degrees of the light above the horizon
    #[arg(
        long,
        value_name = "DEGREES",
        default_value_t = 45.0,
        requires = "hillshade",
        allow_negative_numbers = true
    )]
    altitude: f64,
    /// Factor of the heights in the hillshade [default: 1, or for degrees 1/111120]
    #[arg(long, value_name = "FACTOR", requires = "hillshade", allow_negative_numbers = true)]
    z_factor: Option<f64>,
    /// Accept coordinates in degrees: the resolution and all lengths are in degrees, too
    #[arg(long)]
    degrees: bool,
    #[command(flatten)]
    device: DeviceOption,
    /// Print what would be done (points, cells, memory, device), and do nothing
    #[arg(long)]
    plan: bool,
    /// Hide the progress bar (which is shown only on a terminal)
    #[arg(long, short)]
    quiet: bool,
}

/// The least and the greatest x and y.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds([[f64; 2]; 2]);

impl FromStr for Bounds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[x, y, to_x, to_y])
                if x < to_x && y < to_y && [x, y, to_x, to_y].iter().all(|at| at.is_finite()) =>
            {
                Ok(Self([[x, y], [to_x, to_y]]))
            }
            _ => Err(
                "expected XMIN,YMIN,XMAX,YMAX with XMIN < XMAX and YMIN < YMAX, such as 450000,4400000,451000,4401000",
            ),
        }
    }
}

impl Dem {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let device = self.device.choice()?;
        self.shading().check()?;
        for path in [Some(&self.out), self.hillshade.as_ref()].into_iter().flatten() {
            check_folder(path)?;
        }
        let files = CloudFiles::open(&self.files)?;
        self.check_units(&files)?;
        let area = self.bounds.map_or_else(|| points::declared_area(&files), |bounds| bounds.0);
        let grid = points::covering(area, &files.lattice(), self.resolution)?;
        check_method(&files, &self.method.method(self.resolution))?;
        if let Some(filter) = self.ground.filter() {
            if matches!(self.model, Model::Dsm | Model::All) {
                return Err(CliError::Arguments(
                    "--ground-filter is for --model dtm or chm, which have a terrain",
                ));
            }
            // Without points it only checks the options.
            filter.run(&Device::cpu(), &[], &files.lattice())?;
        }
        let num_cells = grid.len() * self.model.layers().len();
        let device = device.for_work(Work::of_raster(files.num_points() as usize, num_cells), streams.err)?;
        if self.plan {
            return plan::write(&self, &files, &grid, &device, streams.out);
        }
        if files.reference_system().is_none() {
            // A failure to write to standard error cannot be reported.
            let _ = writeln!(
                streams.err,
                "warning: the files name no reference system (CRS), so the raster has none"
            );
        }
        let steps = Steps { are_shown: streams.shows_progress && !self.quiet };
        let files = points::filtered(files, self.read_area());
        let mut run = Run { dem: &self, files, device, steps, summary: Summary::new() };
        let raster = run.raster(grid, area)?;
        summary::warn_if_empty(&raster, &self.method, streams.err);
        // Files before text, so that they are written even if the pipe is closed early.
        run.write(&raster)?;
        run.summary.write(&self, &raster, &run.device, streams.out)
    }

    /// Refuses coordinates in degrees unless they are expected.
    fn check_units(&self, files: &CloudFiles) -> Result<()> {
        match files.reference_system() {
            Some(system) if system.is_geographic && !self.degrees => Err(CliError::Points(format!(
                "the coordinates are longitudes and latitudes ({system}), so that a resolution of {} is {0} degrees, about {} km; convert \
                 the points to a projected reference system first, or add --degrees if that is meant",
                self.resolution,
                (self.resolution * DEGREE / 1000.0).round(),
            ))),
            _ => Ok(()),
        }
    }

    fn shading(&self) -> HillshadeOptions {
        let z_factor = self.z_factor.unwrap_or(if self.degrees { 1.0 / DEGREE } else { 1.0 });
        HillshadeOptions::default().azimuth(self.azimuth).altitude(self.altitude).z_factor(z_factor)
    }

    /// Returns the area whose points are read, if not all of them.
    fn read_area(&self) -> Option<[[f64; 2]; 2]> {
        let (Bounds([low, high]), buffer) = (self.bounds?, self.buffer?);
        Some([low.map(|at| at - buffer), high.map(|at| at + buffer)])
    }
}

/// A run of the command whose arguments are valid.
struct Run<'a> {
    dem: &'a Dem,
    files: CloudFiles,
    device: Device,
    steps: Steps,
    summary: Summary,
}

impl Run<'_> {
    /// Reads the points, and computes the raster of the model.
    fn raster(&mut self, mut grid: RasterGrid, mut area: [[f64; 2]; 2]) -> Result<Raster> {
        let (dem, mut terrains) = (self.dem, Vec::new());
        for name in dem.model.layers() {
            let terrain = self.read(name)?;
            // Headers may declare a smaller area than that of the points.
            area = terrain.bounds().map_or(area, |bounds| points::union(area, bounds));
            terrains.push(terrain);
        }
        if dem.bounds.is_none() {
            grid = points::covering(area, &self.files.lattice(), dem.resolution)?;
        }
        let mut rasters = Vec::new();
        for (i, terrain) in terrains.into_iter().enumerate() {
            // The ground under a canopy height model: the method of the surface may leave cells without a value.
            let method = if i > 0 { dem.method.tin() } else { dem.method.method(dem.resolution) };
            rasters.push(self.interpolate(&terrain, &grid, &method)?);
        }
        Ok(match &rasters[..] {
            [surface, ground] => surface.minus(ground),
            _ => rasters.swap_remove(0),
        })
    }

    /// Reads the points of a layer.
    fn read(&mut self, name: &'static str) -> Result<Terrain> {
        let (files, device, steps) = (&self.files, &self.device, self.steps);
        let filter = self.dem.ground.filter();
        let layer = Layer::new(name, self.dem.model, &self.dem.class, filter.is_some());
        let (filter, mut read) = (filter.filter(|_| layer.is_ground()), PointsRead::new());
        let total = files.num_points() as usize;
        let terrain = self.summary.read.time(|| {
            steps.advancing(&format!("read {name}"), "points", total, |advance| {
                let (lattice, mut progress) = (files.lattice(), reporting(advance));
                let mut source = LayerPoints { files, layer: &layer, read: &mut read };
                let Some(filter) = filter else {
                    let options = TerrainOptions::default();
                    return Ok(Terrain::read(device, source, &lattice, &options, &mut progress)?);
                };
                let mut points = source.read_all(&mut progress)?;
                let mut are_ground = filter.run(device, &points, &lattice)?.into_iter();
                points.retain(|_| are_ground.next() == Some(true));
                Ok(Terrain::new(device, &points, &lattice)?)
            })
        })?;
        self.summary.read.count += read.num_points as usize;
        self.summary.kept.push((name, terrain.num_points(), read.num_points));
        let is_outside = |bounds: Bounds| terrain.bounds().is_some_and(|area| !points::touch(area, bounds.0));
        if self.dem.bounds.is_some_and(is_outside) {
            read = PointsRead::new();
        } else if terrain.num_points() > 0 {
            return Ok(terrain);
        }
        Err(layer.without_points(&read))
    }

    /// Computes the raster of a layer.
    fn interpolate(&mut self, terrain: &Terrain, grid: &RasterGrid, method: &Method) -> Result<Raster> {
        let steps = self.steps;
        let mut values = vec_with_capacity(grid.len(), "cells of a raster")?;
        let rows = (BAND_CELLS / grid.columns()).max(1);
        self.summary.raster.time(|| {
            steps.advancing("interpolate", "cells", grid.len(), |advance| {
                let mut visit = |_, band: &[f32]| {
                    values.extend_from_slice(band);
                    Ok(())
                };
                Ok(terrain.for_each_band(grid, method, rows, &mut reporting(advance), &mut visit)?)
            })
        })?;
        self.summary.raster.count += grid.len();
        Ok(Raster::new(*grid, values))
    }

    fn write(&mut self, raster: &Raster) -> Result<()> {
        let (dem, files, summary, steps) = (self.dem, &self.files, &mut self.summary, self.steps);
        let num_cells = raster.grid().len();
        let write = || Ok(write_raster(&dem.out, raster, dem.nodata, files)?);
        summary.write.time(|| steps.step("write", "cells", write, |()| num_cells))?;
        summary.write.count = num_cells;
        if let Some(path) = &dem.hillshade {
            let shade = || Ok(write_hillshade_png(path, &raster.hillshade(&dem.shading())?)?);
            summary.shade.time(|| steps.step("hillshade", "cells", shade, |()| num_cells))?;
            summary.shade.count = num_cells;
        }
        Ok(())
    }
}

/// Returns the progress of a step of the library, which passes the number that is done since the last report to `advance`.
fn reporting(advance: &mut dyn FnMut(usize)) -> impl FnMut(kauri::Step) -> ControlFlow<()> {
    let mut before = 0;
    move |step| {
        advance((step.done - before) as usize);
        before = step.done;
        ControlFlow::Continue(())
    }
}

/// Refuses an invalid method before points are read: a terrain without points refuses it as well.
fn check_method(files: &CloudFiles, method: &Method) -> Result<()> {
    let lattice = files.lattice();
    let cell = RasterGrid::covering([lattice.position([0, 0]); 2], lattice.scale[0])?;
    Terrain::new(&Device::cpu(), &[], &lattice)?.raster(&cell, method)?;
    Ok(())
}

/// Refuses a file in a folder that does not exist, before the work for it.
fn check_folder(path: &Path) -> kauri::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.metadata().map(drop).map_err(|source| Error::Io { path: path.into(), source })
}

fn write_raster(path: &Path, raster: &Raster, nodata: Option<f32>, files: &CloudFiles) -> kauri::Result<()> {
    if has_extension(path, "asc") {
        return write_ascii_grid(path, raster, nodata.unwrap_or(-9999.0));
    }
    let mut options = GeoTiffOptions::default().nodata(nodata.unwrap_or(f32::NAN));
    options.reference_system = files.reference_system().cloned();
    write_geotiff(path, raster, &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read() {
        assert_eq!("-1, -2,3.5,4".parse(), Ok(Bounds([[-1.0, -2.0], [3.5, 4.0]])));
        for text in ["", "1,2,3", "1,2,3,4,5", "3,2,1,4", "1,2,1,4", "1,2,3,nan", "1,2,3,inf", "a,b,c,d"] {
            assert!(text.parse::<Bounds>().is_err(), "{text}");
        }
    }
}
