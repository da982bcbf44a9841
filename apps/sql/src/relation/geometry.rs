//! Finds the geometry column of a table.
//!
//! | points | boxes |
//! |---|---|
//! | columns with the extension names `geoarrow.point` and `geoarrow.wkb`, and the primary column of a GeoParquet file | columns with the extension name `geoarrow.box` |
//! | columns of type `Struct(x, y)` or `FixedSizeList(…, 2)` | columns of type `Struct(xmin, ymin, xmax, ymax)` |
//! | columns of bytes named `geometry`, `geom` or `wkb` | |
//! | columns `lon` and `lat`, `longitude` and `latitude`, `x` and `y` | columns `xmin`, `ymin`, `xmax`, `ymax` |
//!
//! The first row of the table that applies counts. Case is ignored.

use super::arguments::names;
use crate::functions::{StMakeBox, StPoint, StSetCrs};
use crate::geometry::{CORNERS, CRS_KEY, CRS84, crs_of_geoparquet, is_box_type, is_point_type};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ScalarUDF, lit};

/// Names of columns of coordinates, and whether these are degrees.
const COORDINATES: [([&str; 2], bool); 3] =
    [(["lon", "lat"], true), (["longitude", "latitude"], true), (["x", "y"], false)];

/// Names of columns of points in well-known binary.
const WKB: [&str; 3] = ["geometry", "geom", "wkb"];

/// Returns the points of a table: the column `name`, or the only candidate. `side` names the table in errors.
///
/// # Errors
/// A plan error that lists the columns if there is no candidate, and the candidates if there are several.
pub fn point_column(schema: &DFSchema, name: Option<&str>, side: &str) -> Result<Expr> {
    let geoparquet = geoparquet(schema)?;
    let point = |field: &Field, column: Column| match &geoparquet {
        Some((primary, Some(crs))) if primary == field.name() && !has_crs(field) => {
            ScalarUDF::from(StSetCrs::default()).call(vec![Expr::Column(column), lit(crs.as_str())])
        }
        _ => Expr::Column(column),
    };
    if let Some(name) = name {
        let (field, column) = named(schema, name, side)?;
        return match is_point_type(field.data_type()) {
            true => Ok(point(field, column)),
            false => plan_err!("{side}: column '{name}' has type {}, expected points", field.data_type()),
        };
    }
    let is_primary = |field: &Field| geoparquet.as_ref().is_some_and(|(primary, _)| primary == field.name());
    let is_annotated = |field: &Field| {
        matches!(extension(field), Some("geoarrow.point" | "geoarrow.wkb")) || is_primary(field)
    };
    let is_point = |field: &Field| {
        matches!(field.data_type(), DataType::Struct(_) | DataType::FixedSizeList(..))
            && is_point_type(field.data_type())
    };
    let is_wkb = |field: &Field| {
        field.data_type().is_binary() && WKB.iter().any(|name| name.eq_ignore_ascii_case(field.name()))
    };
    for tier in [&is_annotated as &dyn Fn(&Field) -> bool, &is_point, &is_wkb] {
        let candidates = fields(schema).filter(|(field, _)| tier(field));
        let candidates =
            candidates.map(|(field, column)| (field.name().clone(), point(field, column))).collect();
        if let Some(expr) = only(candidates, side)? {
            return Ok(expr);
        }
    }
    match only(coordinates(schema), side)? {
        Some(expr) => Ok(expr),
        None => plan_err!(
            "{side}: no column of points, and no columns lon and lat, longitude and latitude, or x and y; the columns are: {}",
            names(schema)
        ),
    }
}

/// Returns the boxes of a table, as [`point_column`] returns the points.
///
/// # Errors
/// The errors of [`point_column`].
pub fn box_column(schema: &DFSchema, name: Option<&str>, side: &str) -> Result<Expr> {
    if let Some(name) = name {
        let (field, column) = named(schema, name, side)?;
        return match is_box_type(field.data_type()) {
            true => Ok(Expr::Column(column)),
            false => plan_err!("{side}: column '{name}' has type {}, expected boxes", field.data_type()),
        };
    }
    let is_annotated = |field: &Field| extension(field) == Some("geoarrow.box");
    let is_box = |field: &Field| !field.data_type().is_null() && is_box_type(field.data_type());
    for tier in [&is_annotated as &dyn Fn(&Field) -> bool, &is_box] {
        let candidates = fields(schema).filter(|(field, _)| tier(field));
        let candidates =
            candidates.map(|(field, column)| (field.name().clone(), Expr::Column(column))).collect();
        if let Some(expr) = only(candidates, side)? {
            return Ok(expr);
        }
    }
    let corners: Option<Vec<Expr>> = CORNERS.iter().map(|name| number(schema, name)).collect();
    match corners {
        Some(corners) => Ok(ScalarUDF::from(StMakeBox::default()).call(corners)),
        None => plan_err!(
            "{side}: no column of boxes, and no columns {}; the columns are: {}",
            CORNERS.join(", "),
            names(schema)
        ),
    }
}

/// Returns the points of pairs of columns of coordinates.
fn coordinates(schema: &DFSchema) -> Vec<(String, Expr)> {
    let point = |([x, y], is_degrees): ([&str; 2], bool)| {
        let mut args = vec![number(schema, x)?, number(schema, y)?];
        let crs = if is_degrees { Some(CRS84) } else { crs_of_number(schema, x) };
        args.extend(crs.map(lit));
        Some((format!("{x} and {y}"), ScalarUDF::from(StPoint::default()).call(args)))
    };
    COORDINATES.into_iter().filter_map(point).collect()
}

/// Returns the only candidate; `None` if there is none.
fn only(mut candidates: Vec<(String, Expr)>, side: &str) -> Result<Option<Expr>> {
    if candidates.len() > 1 {
        let names = candidates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("; ");
        return plan_err!(
            "{side}: several columns may have the geometries: {names}; name one by {side}_geometry => 'column', or select \
             columns by a subquery"
        );
    }
    Ok(candidates.pop().map(|(_, expr)| expr))
}

fn geoparquet(schema: &DFSchema) -> Result<Option<(String, Option<String>)>> {
    let geo = schema.metadata().get("geo");
    geo.map_or(Ok(None), |geo| crs_of_geoparquet(geo).map_err(|error| error.in_plan()))
}

fn extension(field: &Field) -> Option<&str> {
    field.extension_type_name()
}

fn has_crs(field: &Field) -> bool {
    matches!(crate::geometry::crs_of(field), Ok(Some(_)))
}

fn fields(schema: &DFSchema) -> impl Iterator<Item = (&Field, Column)> {
    schema.iter().map(|(qualifier, field)| (field.as_ref(), Column::new(qualifier.cloned(), field.name())))
}

fn named<'a>(schema: &'a DFSchema, name: &str, side: &str) -> Result<(&'a Field, Column)> {
    match fields(schema).find(|(field, _)| field.name().eq_ignore_ascii_case(name)) {
        Some(found) => Ok(found),
        None => plan_err!("{side}: no column '{name}'; the columns are: {}", names(schema)),
    }
}

/// Returns the numeric column of a name.
fn number(schema: &DFSchema, name: &str) -> Option<Expr> {
    number_field(schema, name).map(|(_, column)| Expr::Column(column))
}

/// Returns the reference system in the metadata of a numeric column, as LAS files have it.
fn crs_of_number<'a>(schema: &'a DFSchema, name: &str) -> Option<&'a str> {
    number_field(schema, name)?.0.metadata().get(CRS_KEY).map(String::as_str)
}

fn number_field<'a>(schema: &'a DFSchema, name: &str) -> Option<(&'a Field, Column)> {
    let is_number = |field: &Field| field.name().eq_ignore_ascii_case(name) && field.data_type().is_numeric();
    fields(schema).find(|(field, _)| is_number(field))
}
