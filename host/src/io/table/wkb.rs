//! Geometries in well-known binary (OGC 06-103r4), ISO or EWKB: encoding, and bounding boxes.

use geozero::GeomProcessor;
use geozero::error::{GeozeroError, Result as Processed};
use geozero::wkb::{process_ewkb_geom, process_wkb_geom};

use super::finite;
use crate::wkb::{EWKB_BITS, broken, header};

/// The most collections within each other. The decoder recurses into them.
const MAX_DEPTH: u32 = 64;

/// Encodes a point as well-known binary.
pub(super) fn to_wkb([x, y]: [f64; 2]) -> Vec<u8> {
    let mut bytes = vec![1, 1, 0, 0, 0];
    bytes.extend(x.to_le_bytes());
    bytes.extend(y.to_le_bytes());
    bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a geometry of a type, in little endian.
    fn geometry(geometry_type: u32, parts: &[&[u8]]) -> Vec<u8> {
        [&[1][..], &geometry_type.to_le_bytes(), &parts.concat()].concat()
    }

    fn count(n: u32) -> [u8; 4] {
        n.to_le_bytes()
    }

    fn coords(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    #[test]
    fn bounds_of_all_geometries() {
        let ring = [count(3).to_vec(), coords(&[0.0, 5.0, -2.0, 1.0, 3.0, 4.0])].concat();
        let of_ring = Ok(Some([[-2.0, 1.0], [3.0, 5.0]]));
        let line = geometry(2, &[&ring]);
        let polygon = geometry(3, &[&count(1), &ring]);
        let point = to_wkb([7.0, 8.0]);
        let empty = to_wkb([f64::NAN; 2]);
        assert_eq!(bounds(&line), of_ring);
        assert_eq!(bounds(&polygon), of_ring);
        assert_eq!(bounds(&point), Ok(Some([[7.0, 8.0]; 2])));
        assert_eq!(bounds(&geometry(5, &[&count(2), &line, &line])), of_ring);
        assert_eq!(bounds(&geometry(6, &[&count(1), &polygon])), of_ring);
        assert_eq!(bounds(&geometry(4, &[&count(2), &empty, &point])), Ok(Some([[7.0, 8.0]; 2])));
        let all = geometry(7, &[&count(3), &polygon, &empty, &geometry(7, &[&count(1), &point])]);
        assert_eq!(bounds(&all), Ok(Some([[-2.0, 1.0], [7.0, 8.0]])));
        for kind in 2..8 {
            assert_eq!(bounds(&geometry(kind, &[&count(0)])), Ok(None), "{kind}");
        }
        assert_eq!(bounds(&empty), Ok(None));
        assert_eq!(bounds(&geometry(7, &[&count(1), &empty])), Ok(None));
        // With heights and measures, with a reference system, and in big endian.
        let ring = [count(2).to_vec(), coords(&[0.0, 5.0, 99.0, 1.0, 3.0, -99.0])].concat();
        for kind in [1002, 2002, 0x8000_0002, 0x4000_0002] {
            assert_eq!(bounds(&geometry(kind, &[&ring])), Ok(Some([[0.0, 3.0], [1.0, 5.0]])), "{kind}");
        }
        assert_eq!(bounds(&geometry(0x2000_0001, &[&count(4326), &point[5..]])), bounds(&point));
        let big = [&[0, 0, 0, 0, 2, 0, 0, 0, 1][..], &1.5_f64.to_be_bytes(), &2.5_f64.to_be_bytes()].concat();
        assert_eq!(bounds(&big), Ok(Some([[1.5, 2.5]; 2])));
        let [low, high] = [[1.0, 2.0], [3.0, 5.0]];
        assert_eq!(bounds(&box_to_wkb([low, high])), Ok(Some([low, high])));
    }

    #[test]
    fn geometries_without_bounds() {
        let line = |values: &[f64]| geometry(2, &[&count(values.len() as u32 / 2), &coords(values)]);
        let refused = |bytes: &[u8]| bounds(bytes).unwrap_err();
        assert_eq!(refused(&line(&[0.0, 1.0, f64::NAN, f64::NAN])), "NaN is not a finite number");
        assert_eq!(refused(&to_wkb([f64::NAN, 1.0])), "NaN is not a finite number");
        assert_eq!(refused(&line(&[0.0, f64::NEG_INFINITY])), "-inf is not a finite number");
        assert!(refused(&geometry(8, &[&count(0)])).starts_with("a curve"));
        assert!(refused(&geometry(99, &[&count(0)])).contains("not well-known binary"));
        let nested = |depth: usize| [geometry(7, &[&count(1)]).repeat(depth), to_wkb([1.0, 2.0])].concat();
        assert_eq!(bounds(&nested(MAX_DEPTH as usize)), Ok(Some([[1.0, 2.0]; 2])));
        assert!(refused(&nested(1_000_000)).starts_with("more than 64 collections"));
        // More or fewer bytes, and counts that are too large.
        let bytes = geometry(7, &[&count(2), &line(&[0.0, 1.0, 2.0, 3.0]), &to_wkb([4.0, 5.0])]);
        for len in 0..bytes.len() {
            assert!(refused(&bytes[..len]).contains("not well-known binary"), "{len}");
        }
        assert!(refused(&[&bytes[..], &[0]].concat()).contains("not well-known binary"));
        for kind in 2..8 {
            assert!(
                refused(&geometry(kind, &[&count(u32::MAX)])).contains("not well-known binary"),
                "{kind}"
            );
        }
        for at in 0..bytes.len() {
            for bits in [0x01, 0x02, 0x10, 0x80, 0xFF] {
                let mut other = bytes.clone();
                other[at] ^= bits;
                let _ = bounds(&other);
            }
        }
    }
}
