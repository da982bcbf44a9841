//! The geometries of a Parquet file: the columns that hold them, and their reference system.

use parquet::basic::LogicalType;
use serde_json::Value;

use super::super::geo::{self, Encoding, GeometryColumn, MetadataError};
use super::super::{BoxColumns, PointColumns, Source};
use super::Parquet;
use crate::error::{Error, FileLocation, Result};

impl Parquet {
    /// Chooses the column whose geometries are read.
    pub(in super::super) fn set_geometry(&mut self, column: usize) {
        self.geometry = Some(column);
    }

    /// Returns true if a geometry column was chosen.
    pub(in super::super) fn has_chosen_geometry(&self) -> bool {
        self.geometry.is_some()
    }

    /// Returns the columns of the points of a GeoParquet file in longitudes and latitudes; `None` for other files.
    pub(in super::super) fn place_columns(&self, source: &Source) -> Result<Option<PointColumns>> {
        match (self.described(source)?, self.typed()) {
            (Some(described), _) => described.check_lon_lat().map_err(|error| of_metadata(source, error))?,
            (None, Some(Typed { column, crs: Some(crs), .. })) if !geo::is_lon_lat(&crs) => {
                return Err(source.invalid_cell(FileLocation::Whole, column, geo::wrong_crs(&crs)));
            }
            _ => {}
        }
        self.point_columns(source)
    }

    /// Returns the columns of the points of a GeoParquet file in any reference system; `None` for other files.
    pub(in super::super) fn point_columns(&self, source: &Source) -> Result<Option<PointColumns>> {
        let Some(described) = self.described(source)? else {
            return Ok(self.typed().map(|typed| PointColumns::Geometries(typed.column)));
        };
        let encoding = described.encoding("points, as WKB or 'point'");
        Ok(Some(match encoding.map_err(|error| of_metadata(source, error))? {
            Encoding::Wkb => PointColumns::Geometries(find(source, &described.name)?),
            Encoding::Point => PointColumns::Coordinates(point_fields(source, &described.name)?),
        }))
    }

    /// Returns the columns of the boxes of a GeoParquet file; `None` for other files.
    pub(in super::super) fn boxes(&self, source: &Source) -> Result<Option<BoxColumns>> {
        let spherical = |column: usize| {
            let what = "its edges are not straight lines, so they may leave the bounding boxes of its geometries; expected planar edges";
            source.invalid_cell(FileLocation::Whole, column, what)
        };
        let Some(described) = self.described(source)? else {
            return match self.typed() {
                Some(Typed { column, is_spherical: true, .. }) => Err(spherical(column)),
                typed => Ok(typed.map(|typed| BoxColumns::Geometries(typed.column))),
            };
        };
        let invalid = |error| of_metadata(source, error);
        if let Some([x0, y0, x1, y1]) = described.covering().map_err(invalid)? {
            let find = |path: &str| find(source, path);
            return Ok(Some(BoxColumns::Covering([find(&x0)?, find(&y0)?, find(&x1)?, find(&y1)?])));
        }
        match described.encoding("geometries as WKB, or points as 'point'").map_err(invalid)? {
            Encoding::Wkb => match find(source, &described.name)? {
                column if described.is_spherical() => Err(spherical(column)),
                column => Ok(Some(BoxColumns::Geometries(column))),
            },
            Encoding::Point => {
                let [x, y] = point_fields(source, &described.name)?;
                Ok(Some(BoxColumns::Corners([x, y, x, y])))
            }
        }
    }

    /// Returns the column of geometries in well-known binary of a GeoParquet file, and the reference system of the file; `None` is
    /// longitudes and latitudes.
    pub(in super::super) fn geometry_column(&self, source: &Source) -> (Option<usize>, Option<Value>) {
        match (self.described(source), self.typed()) {
            (Ok(Some(described)), _) => {
                let is_wkb = described.encoding("") == Ok(Encoding::Wkb);
                let column = if is_wkb { find(source, &described.name).ok() } else { None };
                (column, described.crs().cloned())
            }
            (Ok(None), Some(typed)) => {
                let is_lon_lat = typed.crs.is_none_or(|crs| geo::is_lon_lat(&crs));
                // The names of other systems in Parquet's own types are no names in GeoParquet metadata.
                (Some(typed.column), if is_lon_lat { None } else { Some(Value::Null) })
            }
            _ => (None, Some(Value::Null)),
        }
    }

    /// Returns the name of the reference system of a GeoParquet file; `None` if it is unknown.
    pub(in super::super) fn reference_system(&self, source: &Source) -> Option<String> {
        match self.described(source).ok()? {
            Some(described) => described.crs_name(),
            None => match self.typed()?.crs {
                Some(crs) if !geo::is_lon_lat(&crs) => Some(crs),
                _ => Some(geo::LON_LAT.to_owned()),
            },
        }
    }

    /// Returns true if a GeoParquet file is in a projected reference system.
    pub(in super::super) fn is_planar(&self, source: &Source) -> bool {
        match (self.described(source), self.typed()) {
            (Ok(Some(described)), _) => {
                !described.is_spherical() && described.crs().is_some_and(geo::is_projected)
            }
            (Ok(None), Some(Typed { crs: Some(crs), is_spherical: false, .. })) => !geo::is_lon_lat(&crs),
            _ => false,
        }
    }

    /// Returns the chosen geometry column, or else the primary one of GeoParquet metadata, if there are any.
    fn described(&self, source: &Source) -> Result<Option<GeometryColumn>> {
        let pairs = self.metadata.file_metadata().key_value_metadata().into_iter().flatten();
        let text = pairs.filter(|pair| pair.key == geo::KEY).find_map(|pair| pair.value.as_deref());
        let column = match self.geometry {
            None => text.map(GeometryColumn::primary).transpose(),
            Some(column) => GeometryColumn::named(&source.columns[column], text)
                .map(|column| Some(column).filter(|column| column.is_described() || self.typed().is_none())),
        };
        column.map_err(|error| of_metadata(source, error))
    }

    /// Returns the chosen column, or else the first column, with Parquet's own type `GEOMETRY` or `GEOGRAPHY`, if there is one.
    fn typed(&self) -> Option<Typed> {
        let mut columns =
            (0..self.leaves.len()).filter(|&column| self.geometry.is_none_or(|one| one == column));
        columns.find_map(|column| match self.leaf(column).logical_type_ref()? {
            LogicalType::Geometry(of) => Some(Typed { column, crs: of.crs.clone(), is_spherical: false }),
            LogicalType::Geography(of) => Some(Typed { column, crs: of.crs.clone(), is_spherical: true }),
            _ => None,
        })
    }
}

/// A column with Parquet's own type of geometries.
struct Typed {
    column: usize,
    crs: Option<String>,
    is_spherical: bool,
}

/// Returns the column that GeoParquet metadata name.
fn find(source: &Source, name: &str) -> Result<usize> {
    source.columns.iter().position(|column| column == name).ok_or_else(|| {
        let what = format!("its geo metadata name the column '{name}', which does not exist");
        source.invalid(FileLocation::Whole, None, what)
    })
}

/// Returns the fields x and y of a column of points.
fn point_fields(source: &Source, name: &str) -> Result<[usize; 2]> {
    let field = |axis: &str| source.columns.iter().position(|column| *column == format!("{name}.{axis}"));
    match [field("x"), field("y")] {
        [Some(x), Some(y)] => Ok([x, y]),
        _ => {
            let what = "it has points without the fields x and y";
            Err(source.invalid(FileLocation::Whole, Some(name), what))
        }
    }
}

fn of_metadata(source: &Source, (column, what): MetadataError) -> Error {
    source.invalid(FileLocation::Whole, column.as_deref(), what)
}
