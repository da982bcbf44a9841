//! Geometries in well-known binary (OGC 06-103r4), ISO or EWKB: points, and the bounding boxes of all geometries.

use geozero::GeomProcessor;
use geozero::error::{GeozeroError, Result as Processed};
use geozero::wkb::{process_ewkb_geom, process_wkb_geom};

use super::finite;

/// The byte order of big-endian numbers; the other one is 1.
const BIG_ENDIAN: u8 = 0;
/// The bits of a geometry type that only EWKB has: height, measure, reference system.
const EWKB_BITS: u32 = 0xE000_0000;
/// The most collections within each other. The decoder recurses into them.
const MAX_DEPTH: u32 = 64;

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
    let broken = || broken(bytes);
    let ((order, geometry_type), rest) = header(bytes).ok_or_else(broken)?;
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
        if order == BIG_ENDIAN { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) }
    };
    match [number(0), number(1)] {
        [x, y] if x.is_nan() && y.is_nan() => Err("an empty point".into()),
        found => Ok(found),
    }
}

/// Encodes a box as a polygon in well-known binary.
pub(super) fn box_to_wkb([[x0, y0], [x1, y1]]: [[f64; 2]; 2]) -> Vec<u8> {
    // One ring of five points.
    let mut bytes = vec![1, 3, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0];
    let ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]];
    ring.as_flattened().iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes
}

/// Returns the bounding box of a geometry in well-known binary, ISO or EWKB: its least and its greatest x and y; `None` for an empty
/// geometry. Heights and measures are ignored. The error is the reason why there is none.
pub(super) fn bounds(bytes: &[u8]) -> Result<Option<[[f64; 2]; 2]>, String> {
    let ((_, geometry_type), _) = header(bytes).ok_or_else(|| broken(bytes))?;
    let (mut bounds, mut unread) = (Bounds::default(), bytes);
    let processed = match geometry_type & EWKB_BITS {
        0 => process_wkb_geom(&mut unread, &mut bounds),
        _ => process_ewkb_geom(&mut unread, &mut bounds),
    };
    match processed {
        Ok(()) if unread.is_empty() => Ok(bounds.found),
        _ => Err(bounds.reason.unwrap_or_else(|| broken(bytes))),
    }
}

/// The bounding box of the coordinates so far.
#[derive(Default)]
struct Bounds {
    found: Option<[[f64; 2]; 2]>,
    /// True within points. A point of NaN is an empty point.
    is_point: bool,
    /// The number of collections around the geometry.
    depth: u32,
    /// Why the geometry has no bounding box.
    reason: Option<String>,
}

impl Bounds {
    fn reject(&mut self, reason: impl Into<String>) -> Processed<()> {
        self.reason = Some(reason.into());
        Err(GeozeroError::GeometryFormat)
    }
}

impl GeomProcessor for Bounds {
    fn xy(&mut self, x: f64, y: f64, _: usize) -> Processed<()> {
        if self.is_point && x.is_nan() && y.is_nan() {
            return Ok(());
        }
        if let Err(reason) = finite(x).and(finite(y)) {
            return self.reject(reason);
        }
        let [low, high] = self.found.get_or_insert([[x, y]; 2]);
        *low = [low[0].min(x), low[1].min(y)];
        *high = [high[0].max(x), high[1].max(y)];
        Ok(())
    }

    fn empty_point(&mut self, _: usize) -> Processed<()> {
        Ok(())
    }

    fn point_begin(&mut self, _: usize) -> Processed<()> {
        self.is_point = true;
        Ok(())
    }

    fn multipoint_begin(&mut self, _: usize, _: usize) -> Processed<()> {
        self.is_point = true;
        Ok(())
    }

    fn linestring_begin(&mut self, _: bool, _: usize, _: usize) -> Processed<()> {
        self.is_point = false;
        Ok(())
    }

    /// An arc is not within the box of its points.
    fn circularstring_begin(&mut self, _: usize, _: usize) -> Processed<()> {
        self.reject("a curve; expected points, lines and polygons")
    }

    fn geometrycollection_begin(&mut self, _: usize, _: usize) -> Processed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.reject(format!("more than {MAX_DEPTH} collections of geometries within each other"));
        }
        Ok(())
    }

    fn geometrycollection_end(&mut self, _: usize) -> Processed<()> {
        self.depth -= 1;
        Ok(())
    }
}

/// Returns byte order and geometry type of a geometry, and the bytes that follow.
fn header(bytes: &[u8]) -> Option<((u8, u32), &[u8])> {
    let (&order, rest) = bytes.split_first()?;
    let (geometry_type, rest) = rest.split_first_chunk::<4>()?;
    let geometry_type = match order {
        BIG_ENDIAN => u32::from_be_bytes(*geometry_type),
        1 => u32::from_le_bytes(*geometry_type),
        _ => return None,
    };
    Some(((order, geometry_type), rest))
}

fn broken(bytes: &[u8]) -> String {
    format!("{} bytes that are not well-known binary", bytes.len())
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
}
