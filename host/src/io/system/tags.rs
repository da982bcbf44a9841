//! The tags of a GeoTIFF file that name its reference system.

use super::ReferenceSystem;
use super::keys::{
    GEODETIC, GEOGRAPHIC_MODEL, GeoKey, KeyValue, MODEL_TYPE, PROJECTED, USER_DEFINED, VERTICAL,
};
use super::wkt::Parts;

const RASTER_TYPE: u16 = 1025;
const CITATION: u16 = 1026;
const PROJECTED_CITATION: u16 = 3073;
const VERTICAL_CITATION: u16 = 4097;
const PROJECTED_MODEL: u16 = 1;
/// The value of a cell belongs to its area, not to its corner.
const PIXEL_IS_AREA: u16 = 1;
/// GDAL and ArcGIS read the text of a system without a code behind these words of a citation.
const TEXT_FOLLOWS: &str = "ESRI PE String = ";

/// The tags of keys in a file: the directory, its numbers, its texts.
#[derive(Debug, PartialEq)]
pub(in crate::io) struct KeyTags {
    pub(in crate::io) directory: Vec<u16>,
    pub(in crate::io) numbers: Vec<f64>,
    pub(in crate::io) texts: String,
}

impl KeyTags {
    /// The first words of a directory: version 1, revision 1.1.
    const VERSION: [u16; 3] = [1, 1, 1];
    const NUMBERS: u16 = 34736;
    const TEXTS: u16 = 34737;

    /// Returns the tags of a raster in this system.
    pub(in crate::io) fn of(system: Option<&ReferenceSystem>) -> Self {
        let mut keys = system.map_or_else(Vec::new, keys_of);
        keys.retain(|key| key.id != RASTER_TYPE);
        keys.push(GeoKey { id: RASTER_TYPE, value: KeyValue::Code(PIXEL_IS_AREA) });
        keys.sort_by_key(|key| key.id);
        let mut tags = Self { directory: Self::VERSION.to_vec(), numbers: Vec::new(), texts: String::new() };
        tags.directory.push(0);
        for GeoKey { id, value } in &keys {
            let entry = match value {
                KeyValue::Code(code) => Some([*id, 0, 1, *code]),
                KeyValue::Numbers(numbers) => {
                    let entry = located(*id, Self::NUMBERS, numbers.len(), tags.numbers.len());
                    entry.inspect(|_| tags.numbers.extend(numbers))
                }
                KeyValue::Text(text) => {
                    // A text ends with a bar instead of a zero.
                    let text = format!("{}|", text.trim_end_matches(['\0', '|']));
                    let entry = located(*id, Self::TEXTS, text.len(), tags.texts.len());
                    entry.inspect(|_| tags.texts.push_str(&text))
                }
            };
            if let Some(entry) = entry {
                tags.directory.extend(entry);
                tags.directory[3] += 1;
            }
        }
        tags
    }
}

/// Returns the entry of values in another tag, or `None` if 16 bits cannot count them.
fn located(id: u16, tag: u16, len: usize, begin: usize) -> Option<[u16; 4]> {
    Some([id, tag, len.try_into().ok()?, begin.try_into().ok()?])
}

/// Returns the keys that name a system.
fn keys_of(system: &ReferenceSystem) -> Vec<GeoKey> {
    let code = |id: u16, code: u16| GeoKey { id, value: KeyValue::Code(code) };
    let text = |id: u16, text: &str| GeoKey { id, value: KeyValue::Text(text.to_owned()) };
    if system.wkt.is_none() && !system.keys.is_empty() {
        return system.keys.clone();
    }
    let mut keys = match (system.epsg, &system.wkt) {
        (Some(epsg), _) if system.is_geographic => {
            vec![code(MODEL_TYPE, GEOGRAPHIC_MODEL), code(GEODETIC, epsg)]
        }
        (Some(epsg), _) => vec![code(MODEL_TYPE, PROJECTED_MODEL), code(PROJECTED, epsg)],
        // GDAL reads the text only if the type of the model is user-defined, and also for a geographic system in this citation.
        (None, Some(wkt)) => {
            vec![code(MODEL_TYPE, USER_DEFINED), text(PROJECTED_CITATION, &format!("{TEXT_FOLLOWS}{wkt}"))]
        }
        (None, None) => Vec::new(),
    };
    keys.extend(system.name().map(|name| text(CITATION, name)));
    keys.extend(system.vertical_epsg.map(|epsg| code(VERTICAL, epsg)));
    let vertical_name = system.wkt.as_deref().and_then(|wkt| Parts::of(wkt).vertical_name);
    if let (None, Some(name)) = (system.vertical_epsg, vertical_name) {
        keys.extend([code(VERTICAL, USER_DEFINED), text(VERTICAL_CITATION, &name)]);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the codes and the texts of the directory.
    fn entries(system: &ReferenceSystem) -> Vec<(u16, String)> {
        let tags = KeyTags::of(Some(system));
        let (head, entries) = tags.directory.split_at(4);
        assert_eq!((&head[..3], usize::from(head[3])), (&[1, 1, 1][..], entries.len() / 4));
        assert!(entries.chunks(4).is_sorted_by_key(|entry| entry[0]));
        let shown = |entry: &[u16]| match entry[1] {
            0 => entry[3].to_string(),
            _ => tags.texts[entry[3].into()..][..entry[2].into()].to_owned(),
        };
        entries.chunks(4).map(|entry| (entry[0], shown(entry))).collect()
    }

    #[test]
    fn codes_and_texts() {
        let of = |system: &ReferenceSystem| {
            let entries = entries(system);
            entries.iter().map(|(id, value)| format!("{id}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(&ReferenceSystem::projected(25833)), "1024=1 1025=1 3072=25833");
        assert_eq!(of(&ReferenceSystem::geographic(4326)), "1024=2 1025=1 2048=4326");
        let wkt = r#"PROJCS["a",UNIT["m",1]]"#;
        assert_eq!(
            of(&ReferenceSystem::from_wkt(wkt)),
            format!("1024=32767 1025=1 1026=a| 3073=ESRI PE String = {wkt}|")
        );
        let wkt = r#"COMPD_CS["b",GEOGCS["a",AUTHORITY["EPSG","4326"]],VERT_CS["local",UNIT["m",1]]]"#;
        assert_eq!(
            of(&ReferenceSystem::from_wkt(wkt)),
            "1024=2 1025=1 1026=b| 2048=4326 4096=32767 4097=local|"
        );
        assert_eq!(KeyTags::of(None).directory, [1, 1, 1, 1, RASTER_TYPE, 0, 1, PIXEL_IS_AREA]);
        // A text that 16 bits cannot count is left out.
        let long = format!(r#"PROJCS["a",REMARK["{}"]]"#, "x".repeat(1 << 16));
        assert_eq!(of(&ReferenceSystem::from_wkt(long)), "1024=32767 1025=1 1026=a|");
    }

    #[cfg(feature = "las")]
    #[test]
    fn keys_of_a_file_stay() {
        let key = |id, value| GeoKey { id, value };
        let keys = vec![
            key(PROJECTED, KeyValue::Code(USER_DEFINED)),
            key(CITATION, KeyValue::Text("mine|\0".into())),
            key(3080, KeyValue::Numbers(vec![1.5, 2.5])),
            key(RASTER_TYPE, KeyValue::Code(2)),
        ];
        let tags = KeyTags::of(ReferenceSystem::from_keys(keys).as_ref());
        let expected = [
            1,
            1,
            1,
            4,
            RASTER_TYPE,
            0,
            1,
            PIXEL_IS_AREA,
            CITATION,
            34737,
            5,
            0,
            PROJECTED,
            0,
            1,
            USER_DEFINED,
        ];
        assert_eq!((&tags.directory[..16], &tags.directory[16..]), (&expected[..], &[3080, 34736, 2, 0][..]));
        assert_eq!((tags.numbers, tags.texts.as_str()), (vec![1.5, 2.5], "mine|"));
    }
}
