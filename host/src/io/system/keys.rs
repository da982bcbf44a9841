//! GeoTIFF keys (OGC 19-008r4), which name the reference system of a raster or of a LAS file.

/// Selects the kind of system: a number that follows.
pub(super) const MODEL_TYPE: u16 = 1024;
pub(super) const GEODETIC: u16 = 2048;
pub(super) const PROJECTED: u16 = 3072;
pub(super) const VERTICAL: u16 = 4096;
/// The model type of longitudes and latitudes.
pub(super) const GEOGRAPHIC_MODEL: u16 = 2;
/// The code of a system that other keys describe.
pub(super) const USER_DEFINED: u16 = 32767;

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::io) struct GeoKey {
    pub(in crate::io) id: u16,
    pub(in crate::io) value: KeyValue,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::io) enum KeyValue {
    Code(u16),
    Text(String),
    #[cfg_attr(not(feature = "las"), expect(dead_code, reason = "only files have such keys"))]
    Numbers(Vec<f64>),
}

/// Returns the code of a key, if it is there and not 0, which stands for none.
#[cfg(feature = "las")]
pub(super) fn code(keys: &[GeoKey], id: u16) -> Option<u16> {
    keys.iter().find(|key| key.id == id).and_then(|key| match key.value {
        KeyValue::Code(code) => Some(code).filter(|&code| code != 0),
        _ => None,
    })
}
