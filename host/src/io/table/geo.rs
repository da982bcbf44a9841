//! GeoParquet 1.1: the column of the points, and points in well-known binary.

use serde_json::{Value, json};

/// The key of the GeoParquet metadata in a Parquet file.
pub(super) const KEY: &str = "geo";

/// The primary geometry column of a file, by encoding.
#[derive(Debug, PartialEq)]
pub(super) enum Primary {
    /// Well-known binary.
    Wkb(String),
    /// A struct of x and y.
    Point(String),
}

/// Returns the primary column of the metadata. The error has the column, if known, and the reason why it cannot be read.
pub(super) fn primary(text: &str) -> Result<Primary, (Option<String>, String)> {
    let metadata: Value = serde_json::from_str(text)
        .map_err(|error| (None, format!("its geo metadata are not JSON: {error}")))?;
    let name = metadata["primary_column"].as_str();
    let name = name.ok_or_else(|| (None, "its geo metadata name no primary_column".to_owned()))?;
    let reject = |what| Err((Some(name.to_owned()), what));
    let Some(column) = metadata["columns"].get(name) else {
        return reject("the geo metadata do not describe this column".into());
    };
    match column.get("crs") {
        // The default is longitudes and latitudes.
        None => {}
        Some(Value::Null) => return reject(wrong_crs("unknown")),
        Some(crs) => {
            let id = [&crs["id"]["authority"], &crs["id"]["code"]].map(|part| match part {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            if !is_lon_lat(&id.join(":")) {
                let name = crs["name"].as_str().unwrap_or("unnamed");
                let id = crs["id"].is_object().then(|| id.join(":"));
                return reject(wrong_crs(id.as_deref().unwrap_or(name)));
            }
        }
    }
    match column["encoding"].as_str() {
        Some("WKB") => Ok(Primary::Wkb(name.to_owned())),
        Some("point") => Ok(Primary::Point(name.to_owned())),
        Some(other) => reject(format!("its encoding is '{other}'; expected points, as WKB or 'point'")),
        None => reject("the geo metadata have no encoding for this column".into()),
    }
}

/// Returns true for a reference system of longitudes and latitudes on WGS84. Longitudes come first in files, whatever
/// the axis order of the system.
pub(super) fn is_lon_lat(id: &str) -> bool {
    // With a height, which is ignored, or without.
    ["OGC:CRS84", "OGC:CRS84h", "EPSG:4326", "EPSG:4979", "srid:4326"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(id))
}

/// Returns the error of another reference system.
pub(super) fn wrong_crs(name: &str) -> String {
    format!("its reference system (CRS) is {name}; expected longitudes and latitudes: OGC:CRS84 or EPSG:4326")
}

/// Returns key and value of the metadata of a file. The first of these columns has points, and the others have any
/// geometries, all in well-known binary.
pub(crate) fn metadata(columns: &[String]) -> (String, String) {
    let column = |(i, name): (usize, &String)| {
        let types: &[&str] = if i == 0 { &["Point"] } else { &[] };
        (name.clone(), json!({ "encoding": "WKB", "geometry_types": types }))
    };
    let column_metadata: serde_json::Map<String, Value> = columns.iter().enumerate().map(column).collect();
    let text = json!({ "version": "1.1.0", "primary_column": columns.first(), "columns": column_metadata });
    (KEY.to_owned(), text.to_string())
}

/// Encodes a point as well-known binary.
pub(super) fn to_wkb([x, y]: [f64; 2]) -> Vec<u8> {
    let mut bytes = vec![1, 1, 0, 0, 0];
    bytes.extend(x.to_le_bytes());
    bytes.extend(y.to_le_bytes());
    bytes
}

/// Decodes x and y of a point in well-known binary, ISO or EWKB. Heights and measures are ignored. The error is the reason
/// why the bytes are not a point.
pub(super) fn point(bytes: &[u8]) -> Result<[f64; 2], String> {
    let broken = || format!("{} bytes that are not well-known binary", bytes.len());
    let (&order, rest) = bytes.split_first().ok_or_else(broken)?;
    let (geometry_type, rest) = rest.split_first_chunk::<4>().ok_or_else(broken)?;
    let geometry_type = match order {
        0 => u32::from_be_bytes(*geometry_type),
        1 => u32::from_le_bytes(*geometry_type),
        _ => return Err(broken()),
    };
    // Dimensions are in thousands (ISO), or in the highest bits (EWKB).
    let dims = 2 + match geometry_type & 0xC000_0000 {
        0 => [0, 1, 1, 2].get((geometry_type / 1000) as usize).copied().ok_or_else(broken)?,
        0xC000_0000 => 2,
        _ => 1,
    };
    let geometry_type = (geometry_type & 0x3FFF_FFFF) % 1000;
    if geometry_type != 1 {
        const NAMES: [&str; 6] = [
            "a line",
            "a polygon",
            "several points",
            "several lines",
            "several polygons",
            "a collection of geometries",
        ];
        let name = NAMES
            .get((geometry_type as usize).wrapping_sub(2))
            .copied()
            .unwrap_or("a geometry of an unknown type");
        return Err(format!("{name}; expected a point"));
    }
    let coords = rest.as_chunks::<8>();
    if coords.0.len() != dims || !coords.1.is_empty() {
        return Err(broken());
    }
    let number = |at: usize| {
        let bytes = coords.0[at];
        if order == 0 { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) }
    };
    match [number(0), number(1)] {
        [x, y] if x.is_nan() && y.is_nan() => Err("an empty point".into()),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_well_known_binary() {
        let bytes = to_wkb([18.5, -59.25]);
        assert_eq!(bytes.len(), 21);
        assert_eq!(point(&bytes), Ok([18.5, -59.25]));
        let mut big = vec![0, 0, 0, 0, 1];
        big.extend([1.5_f64.to_be_bytes(), 2.5_f64.to_be_bytes()].concat());
        assert_eq!(point(&big), Ok([1.5, 2.5]));
        // With a height, a measure, and both.
        for (of, more) in [(1001_u32, 1), (2001, 1), (3001, 2), (0x8000_0001, 1), (0xC000_0001, 2)] {
            let mut high = bytes.clone();
            high[1..5].copy_from_slice(&of.to_le_bytes());
            assert!(point(&high).unwrap_err().contains("not well-known binary"), "{of}");
            high.extend(vec![0; 8 * more]);
            assert_eq!(point(&high), Ok([18.5, -59.25]), "{of}");
        }
    }

    #[test]
    fn invalid_points() {
        let bytes = to_wkb([1.0, 2.0]);
        for len in 0..bytes.len() {
            assert!(point(&bytes[..len]).is_err(), "{len}");
        }
        let of = |of: u32| point(&[&[1], &of.to_le_bytes()[..], &bytes[5..]].concat()).unwrap_err();
        assert_eq!(of(3), "a polygon; expected a point");
        assert_eq!(of(1006), "several polygons; expected a point");
        assert_eq!(of(17), "a geometry of an unknown type; expected a point");
        assert!(of(u32::MAX).contains("expected a point") && of(0).contains("expected a point"));
        assert_eq!(point(&to_wkb([f64::NAN; 2])), Err("an empty point".into()));
        assert!(point(&[7; 21]).is_err());
    }

    #[test]
    fn columns_of_metadata() {
        let (key, text) = metadata(&["geometry".to_owned(), "left.geometry".to_owned()]);
        assert_eq!((key.as_str(), primary(&text)), ("geo", Ok(Primary::Wkb("geometry".into()))));
        let with = |column: &str| {
            primary(&format!("{{\"primary_column\": \"g\", \"columns\": {{\"g\": {{{column}}}}}}}"))
        };
        let crs = |id: &str| with(&format!("\"encoding\": \"point\", \"crs\": {id}"));
        assert_eq!(
            crs("{\"id\": {\"authority\": \"EPSG\", \"code\": 4326}}"),
            Ok(Primary::Point("g".into()))
        );
        assert_eq!(
            crs("{\"id\": {\"authority\": \"OGC\", \"code\": \"CRS84\"}}"),
            Ok(Primary::Point("g".into()))
        );
        let refused = |found: Result<Primary, (Option<String>, String)>| found.unwrap_err().1;
        assert!(refused(crs("{\"id\": {\"authority\": \"EPSG\", \"code\": 3857}}")).contains("EPSG:3857"));
        assert!(refused(crs("{\"name\": \"my own\"}")).contains("my own"));
        assert!(refused(crs("null")).contains("unknown"));
        assert!(refused(with("\"encoding\": \"polygon\"")).contains("'polygon'"));
        assert!(refused(with("")).contains("no encoding"));
        for text in ["", "[]", "{}", "{\"primary_column\": \"g\"}"] {
            assert!(primary(text).is_err(), "{text}");
        }
    }
}
