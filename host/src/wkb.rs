//! Points in well-known binary (OGC 06-103r4), ISO or EWKB.

/// The byte order of big-endian numbers; the other one is 1.
const BIG_ENDIAN: u8 = 0;
/// The bits of a geometry type that only EWKB has: height, measure, reference system.
#[cfg(feature = "parquet")]
pub(crate) const EWKB_BITS: u32 = EWKB_AXES | EWKB_SYSTEM;
/// The bits for a height and a measure.
const EWKB_AXES: u32 = 0xC000_0000;
/// The bit for a reference system, whose number follows the geometry type.
const EWKB_SYSTEM: u32 = 0x2000_0000;

/// Decodes x and y of a point; `None` for an empty point. Heights, measures and the number of the reference system are ignored. The error is
/// the reason why the bytes are not a point.
pub(crate) fn point(bytes: &[u8]) -> Result<Option<[f64; 2]>, String> {
    let broken = || broken(bytes);
    let ((order, geometry_type), mut rest) = header(bytes).ok_or_else(broken)?;
    if geometry_type & EWKB_SYSTEM != 0 {
        rest = rest.get(4..).ok_or_else(broken)?;
    }
    let code = geometry_type & !(EWKB_AXES | EWKB_SYSTEM);
    // Dimensions are in thousands (ISO), or in the highest bits (EWKB).
    let dims = 2 + match geometry_type & EWKB_AXES {
        0 => [0, 1, 1, 2].get((code / 1000) as usize).copied().ok_or_else(broken)?,
        EWKB_AXES => 2,
        _ => 1,
    };
    if code % 1000 != 1 {
        return Err(format!("{}; expected a point", name_of(code % 1000)));
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
        [x, y] if x.is_nan() && y.is_nan() => Ok(None),
        found => Ok(Some(found)),
    }
}

/// Returns the name of a geometry type that is not a point.
fn name_of(geometry_type: u32) -> &'static str {
    const NAMES: [&str; 6] = [
        "a line",
        "a polygon",
        "several points",
        "several lines",
        "several polygons",
        "a collection of geometries",
    ];
    let index = (geometry_type as usize).wrapping_sub(2);
    NAMES.get(index).copied().unwrap_or("a geometry of an unknown type")
}

/// Returns byte order and geometry type of a geometry, and the bytes that follow.
pub(crate) fn header(bytes: &[u8]) -> Option<((u8, u32), &[u8])> {
    let (&order, rest) = bytes.split_first()?;
    let (geometry_type, rest) = rest.split_first_chunk::<4>()?;
    let geometry_type = match order {
        BIG_ENDIAN => u32::from_be_bytes(*geometry_type),
        1 => u32::from_le_bytes(*geometry_type),
        _ => return None,
    };
    Some(((order, geometry_type), rest))
}

/// Returns the reason why bytes that are not a geometry cannot be decoded.
pub(crate) fn broken(bytes: &[u8]) -> String {
    format!("{} bytes that are not well-known binary", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a point of a geometry type with these numbers.
    fn encoded(geometry_type: u32, system: Option<u32>, numbers: &[f64]) -> Vec<u8> {
        let system = system.into_iter().flat_map(u32::to_le_bytes);
        let numbers = numbers.iter().flat_map(|x| x.to_le_bytes());
        [1].into_iter().chain(geometry_type.to_le_bytes()).chain(system).chain(numbers).collect()
    }

    #[test]
    fn points() {
        let bytes = encoded(1, None, &[18.5, -59.25]);
        assert_eq!(bytes.len(), 21);
        assert_eq!(point(&bytes), Ok(Some([18.5, -59.25])));
        let mut big = vec![0, 0, 0, 0, 1];
        big.extend([1.5_f64.to_be_bytes(), 2.5_f64.to_be_bytes()].concat());
        assert_eq!(point(&big), Ok(Some([1.5, 2.5])));
        // With a height, a measure, and both; with a reference system.
        for (of, more) in [(1001_u32, 1), (2001, 1), (3001, 2), (0x8000_0001, 1), (0xC000_0001, 2)] {
            assert!(point(&encoded(of, None, &[1.0, 2.0])).unwrap_err().contains("not well-known binary"));
            let numbers = &[18.5, -59.25, 7.0, 8.0][..2 + more];
            assert_eq!(point(&encoded(of, None, numbers)), Ok(Some([18.5, -59.25])), "{of}");
            if of > 0x8000_0000 {
                let located = encoded(of | EWKB_SYSTEM, Some(4326), numbers);
                assert_eq!(point(&located), Ok(Some([18.5, -59.25])), "{of}");
            }
        }
        assert_eq!(point(&encoded(EWKB_SYSTEM | 1, Some(4326), &[1.0, 2.0])), Ok(Some([1.0, 2.0])));
    }

    #[test]
    fn invalid_points() {
        for bytes in [encoded(1, None, &[1.0, 2.0]), encoded(EWKB_SYSTEM | 1, Some(4326), &[1.0, 2.0])] {
            for len in 0..bytes.len() {
                assert!(point(&bytes[..len]).unwrap_err().contains("not well-known binary"), "{len}");
            }
            assert!(point(&[&bytes[..], &[0]].concat()).is_err());
        }
        let of = |of: u32| point(&encoded(of, None, &[1.0, 2.0])).unwrap_err();
        assert_eq!(of(3), "a polygon; expected a point");
        assert_eq!(of(1006), "several polygons; expected a point");
        assert_eq!(of(17), "a geometry of an unknown type; expected a point");
        assert!(of(u32::MAX).contains("expected a point") && of(0).contains("expected a point"));
        assert_eq!(point(&encoded(1, None, &[f64::NAN; 2])), Ok(None));
        assert!(point(&[7; 21]).is_err());
    }
}
