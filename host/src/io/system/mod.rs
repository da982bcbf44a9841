//! The coordinate reference system (CRS) of a file.

mod keys;
#[cfg(feature = "terrain")]
mod tags;
mod wkt;

pub(super) use keys::GeoKey;
#[cfg(feature = "las")]
pub(super) use keys::KeyValue;
use std::fmt;
#[cfg(feature = "terrain")]
pub(super) use tags::KeyTags;
use wkt::Parts;

/// A coordinate reference system (CRS), by well-known text or by the codes of GeoTIFF keys.
///
/// ```
/// use kauri::io::ReferenceSystem;
/// let utm = ReferenceSystem::projected(25833);
/// assert_eq!((utm.to_string(), utm.is_geographic), ("EPSG:25833".to_string(), false));
/// let system = ReferenceSystem::from_wkt(r#"GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]]"#);
/// assert_eq!((system.to_string(), system.epsg, system.is_geographic), ("WGS 84".to_string(), Some(4326), true));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReferenceSystem {
    /// The well-known text (OGC 01-009 or 18-010).
    pub wkt: Option<String>,
    /// The EPSG code of x and y, if the text or the keys have it.
    pub epsg: Option<u16>,
    /// The EPSG code of the heights, if the text or the keys have it.
    pub vertical_epsg: Option<u16>,
    /// True if x and y are angles: longitudes and latitudes.
    pub is_geographic: bool,
    /// All GeoTIFF keys of the file that names the system.
    keys: Vec<GeoKey>,
}

impl ReferenceSystem {
    /// Returns the projected system with an EPSG code.
    pub fn projected(epsg: u16) -> Self {
        Self { wkt: None, epsg: Some(epsg), vertical_epsg: None, is_geographic: false, keys: Vec::new() }
    }

    /// Returns the geographic system, in degrees, with an EPSG code.
    pub fn geographic(epsg: u16) -> Self {
        Self { is_geographic: true, ..Self::projected(epsg) }
    }

    /// Returns the system of a well-known text. The codes are those that the text has; a text that cannot be parsed has none.
    pub fn from_wkt(text: impl Into<String>) -> Self {
        let text = text.into();
        let Parts { epsg, vertical_epsg, is_geographic, .. } = Parts::of(&text);
        Self { wkt: Some(text), epsg, vertical_epsg, is_geographic, keys: Vec::new() }
    }

    /// Returns the system of GeoTIFF keys, or `None` if they name none.
    #[cfg(feature = "las")]
    pub(super) fn from_keys(keys: Vec<GeoKey>) -> Option<Self> {
        let [model, geodetic, projected, vertical] =
            [keys::MODEL_TYPE, keys::GEODETIC, keys::PROJECTED, keys::VERTICAL]
                .map(|id| keys::code(&keys, id));
        let is_geographic =
            model == Some(keys::GEOGRAPHIC_MODEL) || projected.is_none() && geodetic.is_some();
        let is_code = |code: &u16| *code != keys::USER_DEFINED;
        (geodetic.is_some() || projected.is_some() || vertical.is_some()).then_some(Self {
            wkt: None,
            epsg: if is_geographic { geodetic } else { projected }.filter(is_code),
            vertical_epsg: vertical.filter(is_code),
            is_geographic,
            keys,
        })
    }

    /// Returns the name in the text.
    fn name(&self) -> Option<&str> {
        // The name is the first quoted text.
        self.wkt.as_deref()?.split('"').nth(1)
    }
}

impl fmt::Display for ReferenceSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.epsg) {
            // The name of a compound system names the heights, too.
            (Some(name), _) => return f.write_str(name),
            (None, Some(code)) => write!(f, "EPSG:{code}")?,
            (None, None) => f.write_str("unnamed")?,
        }
        self.vertical_epsg.map_or(Ok(()), |code| write!(f, " + EPSG:{code}"))
    }
}

/// Keys decide only between systems that have neither text nor code: files of one system have different citations.
impl PartialEq for ReferenceSystem {
    fn eq(&self, other: &Self) -> bool {
        let names = |of: &Self| (of.epsg, of.vertical_epsg, of.is_geographic);
        let are_named = self.wkt.is_some() || self.epsg.is_some();
        self.wkt == other.wkt && names(self) == names(other) && (are_named || self.keys == other.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(ReferenceSystem::geographic(4326).to_string(), "EPSG:4326");
        let both = ReferenceSystem { vertical_epsg: Some(5703), ..ReferenceSystem::projected(26910) };
        assert_eq!(both.to_string(), "EPSG:26910 + EPSG:5703");
        assert_eq!(ReferenceSystem::from_wkt("nonsense").to_string(), "unnamed");
        assert_ne!(ReferenceSystem::geographic(4326), ReferenceSystem::projected(4326));
    }

    #[cfg(feature = "las")]
    #[test]
    fn systems_of_keys() {
        let of = |all: &[(u16, u16)]| {
            let key = |&(id, code)| GeoKey { id, value: KeyValue::Code(code) };
            ReferenceSystem::from_keys(all.iter().map(key).collect())
        };
        assert_eq!(of(&[(1024, 1), (1025, 1)]), None);
        let of = |all: &[(u16, u16)]| of(all).unwrap();
        assert_eq!(of(&[(3072, 25833)]), ReferenceSystem::projected(25833));
        assert_eq!(of(&[(1024, 1), (2048, 4258), (3072, 25833)]), ReferenceSystem::projected(25833));
        assert_eq!(of(&[(1024, 2), (2048, 4326)]), ReferenceSystem::geographic(4326));
        assert_eq!(of(&[(3072, 25833), (4096, 7837)]).vertical_epsg, Some(7837));
        // Systems that the keys define themselves.
        let own = of(&[(1024, 1), (3072, 32767), (3076, 9003)]);
        assert_eq!((own.epsg, own.to_string().as_str()), (None, "unnamed"));
        assert_ne!(own, of(&[(1024, 1), (3072, 32767), (3076, 9001)]));
    }
}
