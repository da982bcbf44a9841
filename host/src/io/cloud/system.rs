//! The coordinate reference system in the records of a LAS file.

use crate::io::system::{GeoKey, KeyValue, ReferenceSystem};
use las::Header;
use las::crs::GeoTiffData;

/// Returns the system of a file, or `None` if it has none. The text of the header wins over one in other records, and a text over keys. The
/// error is the reason why the system cannot be read.
pub(super) fn system_of(
    header: &Header,
    other_wkt: Option<&[u8]>,
) -> Result<Option<ReferenceSystem>, String> {
    let text = header.get_wkt_crs_bytes().or(other_wkt).map(|bytes| {
        let text = std::str::from_utf8(bytes).map_err(|_| "the well-known text of its CRS is not UTF-8")?;
        Ok::<_, &str>(text.trim_end_matches('\0'))
    });
    let keys = header.get_geotiff_crs().map_err(|error| format!("the keys of its CRS: {error}"))?;
    let value = |data| match data {
        GeoTiffData::U16(code) => KeyValue::Code(code),
        GeoTiffData::String(text) => KeyValue::Text(text),
        GeoTiffData::Doubles(numbers) => KeyValue::Numbers(numbers),
    };
    let keys = keys.into_iter().flat_map(|keys| keys.entries);
    let keys: Vec<_> = keys.map(|key| GeoKey { id: key.id, value: value(key.data) }).collect();
    let of_keys = ReferenceSystem::from_keys(keys);
    let text = text.transpose()?.filter(|text| !text.is_empty());
    Ok(match (text.map(ReferenceSystem::from_wkt), of_keys) {
        // Texts without codes are common.
        (Some(mut of_text), Some(of_keys)) if of_text.epsg.is_none() && of_text.vertical_epsg.is_none() => {
            (of_text.epsg, of_text.vertical_epsg) = (of_keys.epsg, of_keys.vertical_epsg);
            Some(of_text)
        }
        (of_text, of_keys) => of_text.or(of_keys),
    })
}
