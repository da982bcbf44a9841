//! Points in well-known binary (OGC 06-103r4), and in PostGIS's extension of it.

use super::points::Geometries;
use crate::error::Error;
use datafusion::arrow::buffer::NullBuffer;

/// The flag of a geometry with a reference system in PostGIS's extension.
const HAS_SRID: u32 = 0x2000_0000;
/// The flags of further coordinates in PostGIS's extension.
const HAS_Z_OR_M: u32 = 0xC000_0000;

/// Decodes points. An empty point is a missing one.
pub(super) fn decode_wkb<'a>(
    values: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    column: &str,
    first_row: u64,
) -> Result<Geometries<[f64; 2]>, Error> {
    let mut points = Vec::with_capacity(values.len());
    let mut present = Vec::with_capacity(values.len());
    for (row, bytes) in values.enumerate() {
        let point = bytes.map_or(Ok(None), point_of).map_err(|reason| Error::InvalidWkb {
            column: column.into(),
            row: first_row + row as u64,
            reason,
        })?;
        present.push(point.is_some());
        points.push(point.unwrap_or_default());
    }
    let present = (!present.iter().all(|&has| has)).then(|| NullBuffer::from(present));
    Ok(Geometries { values: points, present })
}

/// Decodes a point; `None` if it is empty.
fn point_of(bytes: &[u8]) -> Result<Option<[f64; 2]>, String> {
    let is_little = match bytes.first() {
        Some(0) => false,
        Some(1) => true,
        Some(order) => return Err(format!("byte order {order}")),
        None => return Err("no bytes".into()),
    };
    let word = |at: usize| -> Result<u32, String> {
        let bytes = part(bytes, at)?;
        Ok(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let number = |at: usize| -> Result<f64, String> {
        let bytes = part(bytes, at)?;
        Ok(if is_little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    };
    let kind = word(1)?;
    if (kind & !(HAS_SRID | HAS_Z_OR_M)) % 1000 != 1 {
        return Err(format!("geometry of type {kind}"));
    }
    let at = if kind & HAS_SRID == 0 { 5 } else { 9 };
    let point = [number(at)?, number(at + 8)?];
    Ok((!point.iter().all(|x| x.is_nan())).then_some(point))
}

/// Returns the bytes of a number.
fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], String> {
    let part = bytes.get(at..at + N).ok_or_else(|| format!("{} bytes are too few", bytes.len()))?;
    Ok(part.try_into().expect("the range has N bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(kind: u32, srid: Option<u32>, x: f64, y: f64) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend(kind.to_le_bytes());
        bytes.extend(srid.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend([x, y].into_iter().flat_map(f64::to_le_bytes));
        bytes
    }

    #[test]
    fn points_of_all_dialects() {
        for (kind, srid) in [(1, None), (1001, None), (1 | HAS_SRID, Some(4326)), (0x8000_0001, None)] {
            assert_eq!(point_of(&point(kind, srid, 1.5, -2.0)), Ok(Some([1.5, -2.0])));
        }
        assert_eq!(point_of(&point(1, None, f64::NAN, f64::NAN)), Ok(None));
        let big = [&[0, 0, 0, 0, 1][..], &1.0f64.to_be_bytes(), &2.0f64.to_be_bytes()].concat();
        assert_eq!(point_of(&big), Ok(Some([1.0, 2.0])));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(point_of(&[]).is_err() && point_of(&[7]).is_err() && point_of(&[1, 1]).is_err());
        assert_eq!(point_of(&point(3, None, 0.0, 0.0)), Err("geometry of type 3".into()));
        assert_eq!(point_of(&point(1, None, 0.0, 0.0)[..20]), Err("20 bytes are too few".into()));
    }
}
