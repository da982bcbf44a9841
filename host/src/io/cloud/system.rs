//! The coordinate reference system of a point cloud.

use las::Header;
use std::fmt;

/// A coordinate reference system (CRS), as the records of a LAS file name it: by well-known text, or by the codes of GeoTIFF keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReferenceSystem {
    /// The well-known text (OGC 01-009 or 18-010).
    pub wkt: Option<String>,
    /// The EPSG code of the projected system, or else of the geodetic one, from the GeoTIFF keys.
    pub epsg: Option<u16>,
    /// The EPSG code of the heights, from the GeoTIFF keys.
    pub vertical_epsg: Option<u16>,
}

impl ReferenceSystem {
    /// Returns the system of a file, or `None` if it has none. The text of the header wins over one in other records. The error is the reason
    /// why the system cannot be read.
    pub(super) fn of(header: &Header, other_wkt: Option<&[u8]>) -> Result<Option<Self>, String> {
        let text = header.get_wkt_crs_bytes().or(other_wkt).map(|bytes| {
            let text =
                std::str::from_utf8(bytes).map_err(|_| "the well-known text of its CRS is not UTF-8")?;
            Ok::<_, &str>(text.trim_end_matches('\0').to_owned())
        });
        let wkt = text.transpose()?.filter(|text| !text.is_empty());
        let keys = header.get_geotiff_crs().map_err(|error| format!("the keys of its CRS: {error}"))?;
        let [epsg, vertical_epsg] = keys.map_or([None; 2], |keys| {
            let projected = keys.get_projected_crs_geo_key_value();
            [projected.or(keys.get_geodetic_crs_geo_key_value()), keys.get_vertical_crs_geo_key_value()]
        });
        let is_known = wkt.is_some() || epsg.is_some() || vertical_epsg.is_some();
        Ok(is_known.then_some(Self { wkt, epsg, vertical_epsg }))
    }
}

impl fmt::Display for ReferenceSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name is the first quoted text.
        let name = self.wkt.as_deref().and_then(|text| text.split('"').nth(1));
        match (name, self.epsg) {
            (Some(name), _) => f.write_str(name)?,
            (None, Some(code)) => write!(f, "EPSG:{code}")?,
            (None, None) => f.write_str("unnamed")?,
        }
        self.vertical_epsg.map_or(Ok(()), |code| write!(f, " + EPSG:{code}"))
    }
}
