//! Reference systems of columns, and the measure of distances that follows from them.

use crate::error::Error;
use crate::options::CrsOption;
use datafusion::arrow::datatypes::Field;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// The reference system of longitudes and latitudes in degrees.
pub const CRS84: &str = "OGC:CRS84";

/// The key of the metadata of a column of coordinates, such as `x` of a LAS file, with the name of their reference system.
pub const CRS_KEY: &str = "crs";

const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// How distances are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// In the plane, in the unit of the coordinates.
    Planar,
    /// In meters on the sphere between longitudes and latitudes in degrees.
    LonLat,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Planar => "planar",
            Self::LonLat => "lonlat",
        })
    }
}

/// Returns the metadata of a field of this extension type and reference system.
pub fn extension_metadata(extension: &str, crs: Option<&str>) -> HashMap<String, String> {
    let mut metadata = HashMap::from([(EXTENSION_NAME.into(), extension.into())]);
    if let Some(crs) = crs {
        let json = serde_json::json!({ "crs": crs, "crs_type": "authority_code" });
        metadata.insert(EXTENSION_METADATA.into(), json.to_string());
    }
    metadata
}

/// Returns the name of a field's reference system, if its metadata have one.
///
/// # Errors
/// [`Error::InvalidMetadata`], and [`Error::UnknownUnit`] for other systems in degrees.
pub fn crs_of(field: &Field) -> Result<Option<String>, Error> {
    let Some(text) = field.metadata().get(EXTENSION_METADATA).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let metadata: Value = serde_json::from_str(text).map_err(|error| Error::InvalidMetadata {
        column: field.name().clone(),
        name: EXTENSION_METADATA,
        reason: error.to_string(),
    })?;
    metadata.get("crs").map_or(Ok(None), |crs| name_of(crs, field.name()))
}

/// Returns the primary geometry column of GeoParquet metadata, and the name of its reference system.
///
/// # Errors
/// The errors of [`crs_of`].
pub fn crs_of_geoparquet(geo: &str) -> Result<Option<(String, Option<String>)>, Error> {
    let metadata: Value = serde_json::from_str(geo).map_err(|error| Error::InvalidMetadata {
        column: "geometry".into(),
        name: "geo",
        reason: error.to_string(),
    })?;
    let Some(primary) = metadata.get("primary_column").and_then(Value::as_str) else { return Ok(None) };
    // Without an entry the file is in longitudes and latitudes; null is an unknown system.
    let crs = match metadata.pointer(&format!("/columns/{primary}/crs")) {
        None => Some(CRS84.into()),
        Some(crs) => name_of(crs, primary)?,
    };
    Ok(Some((primary.into(), crs)))
}

/// Returns the name of a reference system: a text, or the identifier of a PROJJSON object.
fn name_of(crs: &Value, column: &str) -> Result<Option<String>, Error> {
    let name = match crs {
        Value::Null => return Ok(None),
        Value::String(name) => name.clone(),
        crs => match (crs.pointer("/id/authority").and_then(Value::as_str), crs.pointer("/id/code")) {
            (Some(authority), Some(Value::String(code))) => format!("{authority}:{code}"),
            (Some(authority), Some(code)) => format!("{authority}:{code}"),
            _ => crs.get("name").and_then(Value::as_str).unwrap_or("a system without a name").into(),
        },
    };
    let is_geographic =
        crs.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains("Geographic"));
    if is_geographic && !is_lon_lat(&name) {
        return Err(Error::UnknownUnit { column: column.into(), crs: name });
    }
    Ok(Some(name))
}

fn is_lon_lat(crs: &str) -> bool {
    ["OGC:CRS84", "EPSG:4326", "WGS 84 (CRS84)"].iter().any(|name| name.eq_ignore_ascii_case(crs))
}

/// Returns the measure of distances between the points of two fields.
///
/// # Errors
/// [`Error::DifferentCrs`], and the errors of [`crs_of`], which an option other than `auto` avoids.
pub fn measure_of(left: &Field, right: &Field, option: CrsOption) -> Result<Measure, Error> {
    match option {
        CrsOption::Planar => return Ok(Measure::Planar),
        CrsOption::LonLat => return Ok(Measure::LonLat),
        CrsOption::Auto => {}
    }
    match (crs_of(left)?, crs_of(right)?) {
        (Some(a), Some(b))
            if is_lon_lat(&a) != is_lon_lat(&b) || !is_lon_lat(&a) && !a.eq_ignore_ascii_case(&b) =>
        {
            Err(Error::DifferentCrs {
                left: left.name().clone(),
                left_crs: a,
                right: right.name().clone(),
                right_crs: b,
            })
        }
        (Some(crs), _) | (None, Some(crs)) if is_lon_lat(&crs) => Ok(Measure::LonLat),
        _ => Ok(Measure::Planar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::DataType;

    fn field(name: &str, crs: Option<&str>) -> Field {
        let field = Field::new(name, DataType::Binary, true);
        match crs {
            None => field,
            Some(crs) => field.with_metadata(HashMap::from([(
                EXTENSION_METADATA.to_string(),
                format!("{{\"crs\": {crs}}}"),
            )])),
        }
    }

    #[test]
    fn measures_follow_from_metadata() {
        let measure = |a, b| measure_of(&field("a", a), &field("b", b), CrsOption::Auto);
        assert_eq!(measure(None, None).unwrap(), Measure::Planar);
        assert_eq!(measure(Some("\"OGC:CRS84\""), None).unwrap(), Measure::LonLat);
        let projjson = "{\"type\": \"GeographicCRS\", \"id\": {\"authority\": \"EPSG\", \"code\": 4326}}";
        assert_eq!(measure(Some("\"OGC:CRS84\""), Some(projjson)).unwrap(), Measure::LonLat);
        assert_eq!(measure(Some("\"EPSG:3857\""), Some("\"EPSG:3857\"")).unwrap(), Measure::Planar);
        let error = measure(Some("\"EPSG:3857\""), Some("\"EPSG:25833\"")).unwrap_err().to_string();
        assert!(error.starts_with("column 'a' is in EPSG:3857 and column 'b' in EPSG:25833"), "{error}");
        let degrees = "{\"type\": \"GeographicCRS\", \"id\": {\"authority\": \"EPSG\", \"code\": 4267}}";
        assert!(matches!(measure(None, Some(degrees)), Err(Error::UnknownUnit { .. })));
        assert!(matches!(measure(Some("{"), None), Err(Error::InvalidMetadata { .. })));
    }

    #[test]
    fn geoparquet_has_longitudes_by_default() {
        let geo = |crs: &str| format!("{{\"primary_column\": \"g\", \"columns\": {{\"g\": {{{crs}}}}}}}");
        let found = |crs: &str| crs_of_geoparquet(&geo(crs)).unwrap().unwrap();
        assert_eq!(found(""), ("g".to_string(), Some(CRS84.to_string())));
        assert_eq!(found("\"crs\": null").1, None);
    }
}
