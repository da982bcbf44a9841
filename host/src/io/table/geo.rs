//! GeoParquet 1.1: the metadata of geometry columns.

use serde_json::{Value, json};

/// The key of the GeoParquet metadata in a Parquet file.
pub(super) const KEY: &str = "geo";

/// The geometry column of a file, as the metadata describe it.
#[derive(Debug)]
pub(super) struct GeometryColumn {
    pub(super) name: String,
    /// `None` for a column that the metadata do not describe.
    description: Option<Value>,
}

/// The encoding of a geometry column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Encoding {
    /// Well-known binary.
    Wkb,
    /// Points as a struct of x and y.
    Point,
}

/// The reason why a file cannot be read, and the column, if known.
pub(super) type MetadataError = (Option<String>, String);

impl GeometryColumn {
    /// Returns the primary column of a file with this metadata.
    pub(super) fn primary(text: &str) -> Result<Self, MetadataError> {
        let metadata = parse(text)?;
        let name = metadata["primary_column"].as_str().map(str::to_owned);
        let name = name.ok_or_else(|| (None, "its geo metadata name no primary_column".to_owned()))?;
        match metadata["columns"].get(&name).cloned() {
            Some(description) => Ok(Self { name, description: Some(description) }),
            None => Err((Some(name), "the geo metadata do not describe this column".into())),
        }
    }

    /// Returns a chosen column of a file that may have metadata. If they do not describe it, it is in well-known binary and in an unknown
    /// reference system.
    pub(super) fn named(name: &str, text: Option<&str>) -> Result<Self, MetadataError> {
        let metadata = text.map(parse).transpose()?;
        let description = metadata.and_then(|metadata| metadata["columns"].get(name).cloned());
        Ok(Self { name: name.to_owned(), description })
    }

    /// Returns true if the metadata describe the column.
    pub(super) fn is_described(&self) -> bool {
        self.description.is_some()
    }

    /// Returns the reference system; `None` for longitudes and latitudes.
    pub(super) fn crs(&self) -> Option<&Value> {
        let Some(description) = &self.description else { return Some(&Value::Null) };
        // The default is longitudes and latitudes.
        let crs = description.get("crs")?;
        Some(crs).filter(|crs| crs_id(crs).is_none_or(|id| !is_lon_lat(&id)))
    }

    fn field(&self, name: &str) -> &Value {
        self.description.as_ref().map_or(&Value::Null, |description| &description[name])
    }

    /// Checks that the coordinates are longitudes and latitudes. Those of a column without metadata may be.
    pub(super) fn check_lon_lat(&self) -> Result<(), MetadataError> {
        match self.crs() {
            None => Ok(()),
            Some(_) if !self.is_described() => Ok(()),
            Some(_) => self.reject(wrong_crs(self.crs_name().as_deref().unwrap_or("unknown"))),
        }
    }

    /// Returns authority and code of the reference system, or else its name; `None` if it is unknown.
    pub(super) fn crs_name(&self) -> Option<String> {
        let name = |crs: &Value| crs["name"].as_str().unwrap_or("unnamed").to_owned();
        match self.crs() {
            None => Some(LON_LAT.to_owned()),
            Some(Value::Null) => None,
            Some(crs) => Some(crs_id(crs).unwrap_or_else(|| name(crs))),
        }
    }

    /// Returns the encoding. The error says what was `expected`.
    pub(super) fn encoding(&self, expected: &str) -> Result<Encoding, MetadataError> {
        match self.field("encoding").as_str() {
            None if !self.is_described() => Ok(Encoding::Wkb),
            Some("WKB") => Ok(Encoding::Wkb),
            Some("point") => Ok(Encoding::Point),
            Some(other) => self.reject(format!("its encoding is '{other}'; expected {expected}")),
            None => self.reject("the geo metadata have no encoding for this column".into()),
        }
    }

    /// Returns true if edges are not straight lines of the plane, so that they may leave the bounding box of their ends.
    pub(super) fn is_spherical(&self) -> bool {
        self.field("edges") == "spherical"
    }

    /// Returns the paths of the columns that have the bounding boxes of the geometries: least x and y, greatest x and y.
    pub(super) fn covering(&self) -> Result<Option<[String; 4]>, MetadataError> {
        let Some(bbox) = self.field("covering").get("bbox") else { return Ok(None) };
        let path = |corner: &str| {
            let names = bbox[corner].as_array()?.iter().map(Value::as_str);
            Some(names.collect::<Option<Vec<_>>>()?.join("."))
        };
        match ["xmin", "ymin", "xmax", "ymax"].map(path) {
            [Some(x0), Some(y0), Some(x1), Some(y1)] => Ok(Some([x0, y0, x1, y1])),
            _ => self.reject("its covering has no paths of xmin, ymin, xmax and ymax".into()),
        }
    }

    fn reject<T>(&self, what: String) -> Result<T, MetadataError> {
        Err((Some(self.name.clone()), what))
    }
}

fn parse(text: &str) -> Result<Value, MetadataError> {
    serde_json::from_str(text).map_err(|error| (None, format!("its geo metadata are not JSON: {error}")))
}

/// Returns authority and code of a reference system, such as `EPSG:4326`.
fn crs_id(crs: &Value) -> Option<String> {
    let part = |name: &str| match &crs["id"][name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    crs["id"].is_object().then(|| [part("authority"), part("code")].join(":"))
}

/// The reference system of longitudes and latitudes on WGS84.
pub(super) const LON_LAT: &str = "OGC:CRS84";

/// Returns true for a reference system of longitudes and latitudes on WGS84. Longitudes come first in files, whatever
/// the axis order of the system.
pub(super) fn is_lon_lat(id: &str) -> bool {
    // With a height, which is ignored, or without.
    [LON_LAT, "OGC:CRS84h", "EPSG:4326", "EPSG:4979", "srid:4326"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(id))
}

/// Returns false for an unknown reference system, and for coordinates in degrees on any ellipsoid, by their type in PROJJSON.
pub(super) fn is_projected(crs: &Value) -> bool {
    let parts = [&crs["components"][0], &crs["source_crs"]];
    match parts.into_iter().find(|part| part.is_object()) {
        Some(part) => is_projected(part),
        None => crs.is_object() && !crs["type"].as_str().is_some_and(|name| name.contains("Geo")),
    }
}

/// Returns the error of another reference system.
pub(super) fn wrong_crs(name: &str) -> String {
    format!("its reference system (CRS) is {name}; expected longitudes and latitudes: OGC:CRS84 or EPSG:4326")
}

/// Returns key and value of the metadata of a file with these geometry columns, all in well-known binary, each with its reference system;
/// `None` is longitudes and latitudes. The first column has geometries of one type, the others of any.
pub(crate) fn metadata(first_type: &str, columns: &[(String, Option<Value>)]) -> (String, String) {
    let column = |(i, (name, crs)): (usize, &(String, Option<Value>))| {
        let types: &[&str] = if i == 0 { &[first_type] } else { &[] };
        let mut description = json!({ "encoding": "WKB", "geometry_types": types });
        if let Some(crs) = crs {
            description["crs"] = crs.clone();
        }
        (name.clone(), description)
    };
    let column_metadata: serde_json::Map<String, Value> = columns.iter().enumerate().map(column).collect();
    let primary = columns.first().map(|(name, _)| name);
    let text = json!({ "version": "1.1.0", "primary_column": primary, "columns": column_metadata });
    (KEY.to_owned(), text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_metadata() {
        let columns = ["geometry", "left.geometry"].map(|name| (name.to_owned(), None));
        let (key, text) = metadata("Point", &columns);
        let primary = GeometryColumn::primary(&text).unwrap();
        assert_eq!((key.as_str(), primary.name.as_str()), ("geo", "geometry"));
        assert_eq!((primary.check_lon_lat(), primary.encoding("")), (Ok(()), Ok(Encoding::Wkb)));
        let with = |column: &str| {
            GeometryColumn::primary(&format!(
                "{{\"primary_column\": \"g\", \"columns\": {{\"g\": {{{column}}}}}}}"
            ))
        };
        let encoding = |column: &str| with(column).and_then(|primary| primary.encoding(""));
        let crs = |id: &str| with(&format!("\"crs\": {id}")).and_then(|primary| primary.check_lon_lat());
        assert_eq!(crs("{\"id\": {\"authority\": \"EPSG\", \"code\": 4326}}"), Ok(()));
        assert_eq!(crs("{\"id\": {\"authority\": \"OGC\", \"code\": \"CRS84\"}}"), Ok(()));
        let refused = |found: Result<(), MetadataError>| found.unwrap_err().1;
        assert!(refused(crs("{\"id\": {\"authority\": \"EPSG\", \"code\": 3857}}")).contains("EPSG:3857"));
        assert!(refused(crs("{\"name\": \"my own\"}")).contains("my own"));
        assert!(refused(crs("null")).contains("unknown"));
        assert_eq!(encoding("\"encoding\": \"point\""), Ok(Encoding::Point));
        assert!(encoding("\"encoding\": \"polygon\"").unwrap_err().1.contains("'polygon'"));
        assert!(encoding("").unwrap_err().1.contains("no encoding"));
        for text in ["", "[]", "{}", "{\"primary_column\": \"g\"}"] {
            assert!(GeometryColumn::primary(text).is_err(), "{text}");
        }
        let projected = |crs: &str| is_projected(&serde_json::from_str(crs).unwrap());
        for crs in [
            "{\"id\": {\"authority\": \"EPSG\", \"code\": 3857}}",
            "{\"type\": \"ProjectedCRS\"}",
            "{\"type\": \"EngineeringCRS\"}",
            "{\"type\": \"BoundCRS\", \"source_crs\": {\"type\": \"DerivedProjectedCRS\"}}",
        ] {
            assert!(projected(crs), "{crs}");
        }
        for crs in [
            "null",
            "{\"type\": \"GeographicCRS\"}",
            "{\"type\": \"GeodeticCRS\"}",
            "{\"type\": \"DerivedGeographicCRS\"}",
            "{\"type\": \"CompoundCRS\", \"components\": [{\"type\": \"GeographicCRS\"}, {\"type\": \"VerticalCRS\"}]}",
        ] {
            assert!(!projected(crs), "{crs}");
        }
        // A chosen column.
        let chosen = |name: &str| GeometryColumn::named(name, Some(&text)).unwrap();
        assert!(chosen("left.geometry").is_described() && !chosen("other").is_described());
        let other = chosen("other");
        assert_eq!((other.encoding(""), other.check_lon_lat()), (Ok(Encoding::Wkb), Ok(())));
        assert_eq!((other.crs_name(), other.covering()), (None, Ok(None)));
        assert!(GeometryColumn::named("a", Some("{")).is_err());
        // Columns of other reference systems keep them.
        let meters = with("\"crs\": {\"id\": {\"authority\": \"EPSG\", \"code\": 25833}}").unwrap();
        let (_, text) = metadata("Polygon", &[("g".into(), meters.crs().cloned())]);
        assert!(text.contains("25833") && GeometryColumn::primary(&text).unwrap().crs() == meters.crs());
        let covering = |text: &str| with(&format!("\"covering\": {text}")).unwrap().covering();
        let paths = covering(
            "{\"bbox\": {\"xmin\": [\"b\", \"w\"], \"xmax\": [\"b\", \"e\"], \"ymin\": [\"b\", \"s\"], \"ymax\": [\"n\"]}}",
        );
        assert_eq!(paths, Ok(Some(["b.w", "b.s", "b.e", "n"].map(String::from))));
        assert_eq!(covering("{}"), Ok(None));
        for text in ["{\"bbox\": {}}", "{\"bbox\": {\"xmin\": \"b\"}}", "{\"bbox\": 3}"] {
            assert!(covering(text).unwrap_err().1.contains("its covering has no paths"), "{text}");
        }
    }
}
