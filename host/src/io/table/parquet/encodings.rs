//! Iteration over encoded numbers. Where the decoder asserts that a number is within its bytes, these functions return an
//! error.

use super::DecodeError;

/// The most bytes of a variable-length number that the decoder accepts.
const MAX_VARINT: usize = 10;
/// The largest accepted block of delta-encoded numbers. Writers use blocks of 128 or 256.
const MAX_BLOCK: u64 = 1 << 20;

/// Decodes a variable-length number (ULEB128). Returns its value and its end, or `None` if the bytes end first.
fn varint(bytes: &[u8], at: usize) -> Result<Option<(u64, usize)>, String> {
    let mut value = 0;
    for (i, &byte) in bytes.get(at..).unwrap_or_default().iter().enumerate() {
        if i == MAX_VARINT {
            return Err("a number has too many bytes".into());
        }
        value |= u64::from(byte & 0x7F).checked_shl(7 * i as u32).unwrap_or(0);
        if byte < 0x80 {
            return Ok(Some((value, at + i + 1)));
        }
    }
    Ok(None)
}

/// Returns the `width` bits from bit `at` on, which must exist.
fn bits(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; 16];
    let from = &bytes[at / 8..];
    let len = from.len().min(9);
    word[..len].copy_from_slice(&from[..len]);
    ((u128::from_le_bytes(word) >> (at % 8)) & ((1 << width) - 1)) as u64
}

/// A run of levels or indices.
enum Run<'a> {
    /// A value and its count.
    Repeated(u64, usize),
    /// The bytes of bit-packed numbers, and their count.
    Packed(&'a [u8], usize),
}

/// Calls `each` with the runs of at most `count` numbers of `width` bits, in the hybrid encoding of run lengths and bit
/// packing (`RLE`).
fn runs(bytes: &[u8], width: usize, count: usize, mut each: impl FnMut(Run<'_>)) -> Result<(), String> {
    let (mut at, mut remaining) = (0, count);
    // The loop reads the first run even if `count` is 0, as the decoder does.
    while let Some((head, start)) = varint(bytes, at)? {
        let len = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        if head == 0 {
            break;
        }
        if head & 1 == 1 {
            let available = bytes.len() - start;
            let most = (8 * available).checked_div(width).unwrap_or(usize::MAX);
            let len_here = len.saturating_mul(8).min(remaining).min(most);
            each(Run::Packed(&bytes[start..], len_here));
            remaining -= len_here;
            at = start + len.saturating_mul(width).min(available);
        } else {
            at = start + width.div_ceil(8);
            let Some(value) = bytes.get(start..at) else { break };
            let value = value.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            each(Run::Repeated(value, len.min(remaining)));
            remaining -= len.min(remaining);
        }
        if remaining == 0 {
            break;
        }
    }
    Ok(())
}

/// Checks dictionary indices or booleans.
pub(super) fn check_runs(bytes: &[u8], width: usize, count: usize) -> Result<(), String> {
    runs(bytes, width, count, |_| ())
}

/// Counts the levels that equal `level` among the first `count` levels.
pub(super) fn count_in_runs(bytes: &[u8], width: usize, count: usize, level: u64) -> Result<usize, String> {
    let mut found = 0;
    runs(bytes, width, count, |run| {
        found += match run {
            Run::Repeated(value, len) => len * usize::from(value == level),
            Run::Packed(bytes, len) => count_packed(bytes, width, len, level),
        }
    })?;
    Ok(found)
}

/// Counts the numbers that equal `level` among the first `count` packed numbers, which must exist.
pub(super) fn count_packed(bytes: &[u8], width: usize, count: usize, level: u64) -> usize {
    if (width, level) == (1, 1) {
        let (full, rest) = (count / 8, count % 8);
        let whole: u32 = bytes[..full].iter().map(|byte| byte.count_ones()).sum();
        let last = if rest == 0 { 0 } else { bits(bytes, 8 * full, rest).count_ones() };
        return (whole + last) as usize;
    }
    (0..count).filter(|i| bits(bytes, i * width, width) == level).count()
}

/// Calls `each` with the numbers of a delta encoding (`DELTA_BINARY_PACKED`) of at most `width` bits. Their count must be
/// from `least` to `most`. Returns the end of the encoded numbers, which is beyond the bytes if the last block is cut.
pub(super) fn differences(
    bytes: &[u8],
    width: usize,
    (least, most): (usize, usize),
    mut each: impl FnMut(i64) -> Result<(), DecodeError>,
) -> Result<usize, DecodeError> {
    let short = "delta-encoded numbers end too early";
    let mut at = 0;
    let number = |at: &mut usize| {
        let (value, end) = varint(bytes, *at)?.ok_or(short)?;
        *at = end;
        Ok::<_, DecodeError>(value)
    };
    let (block, minis, count) = (number(&mut at)?, number(&mut at)?, number(&mut at)?);
    let mut value = zigzag(number(&mut at)?);
    let is_block = block > 0 && block <= MAX_BLOCK && block % 128 == 0;
    if !is_block || minis == 0 || block % minis != 0 || block / minis % 32 != 0 {
        return Err(format!("delta encoding with blocks of {block} numbers in {minis} parts").into());
    }
    let (per_mini, minis) = ((block / minis) as usize, minis as usize);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count < least || count > most {
        return Err(format!("{count} delta-encoded numbers; expected {least} to {most}").into());
    }
    let mut remaining = count;
    if remaining > 0 {
        each(value)?;
        remaining -= 1;
    }
    while remaining > 0 {
        let least = zigzag(number(&mut at)?);
        let widths = bytes.get(at..at + minis).ok_or(short)?;
        at += minis;
        for mini_width in widths.iter().map(|&bits| usize::from(bits)) {
            // Widths after the last number are arbitrary.
            if remaining == 0 {
                break;
            }
            if mini_width > width {
                return Err(format!("delta-encoded numbers of {mini_width} bits").into());
            }
            let here = remaining.min(per_mini);
            let packed = bytes.get(at..).ok_or(short)?;
            if here * mini_width > 8 * packed.len() {
                return Err(short.into());
            }
            for i in 0..here {
                let more = if mini_width == 0 { 0 } else { bits(packed, i * mini_width, mini_width) as i64 };
                value = value.wrapping_add(least).wrapping_add(more);
                each(value)?;
            }
            at += mini_width * per_mini / 8;
            remaining -= here;
        }
    }
    Ok(at)
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted() {
        // Ten ones, then sixteen packed bits: five of them are set, one of these after the count.
        let runs = [20, 1, 5, 0b1010_1010, 0b1000_0001];
        assert_eq!(count_in_runs(&runs, 1, 25, 1), Ok(15));
        assert_eq!(count_in_runs(&runs, 1, 5, 1), Ok(5));
        assert_eq!(count_in_runs(&runs, 1, 26, 1), Ok(16));
        assert_eq!(count_in_runs(&runs[..4], 1, 26, 1), Ok(14));
        // Levels of two bits: 3, 1, 3, 2.
        assert_eq!(count_in_runs(&[3, 0b1011_0111, 0], 2, 4, 3), Ok(2));
        assert!(check_runs(&[0xFF; 20], 1, 1).is_err());
        assert!(check_runs(&[0xFF; 20], 1, 0).is_err());
        assert_eq!(check_runs(&[], 1, 5), Ok(()));
    }

    #[test]
    fn differences_are_read() {
        let read = |bytes: &[u8], least: usize, most: usize| {
            let mut values = Vec::new();
            let push = |value| {
                values.push(value);
                Ok(())
            };
            differences(bytes, 32, (least, most), push).map(|end| (values, end)).ok()
        };
        // Blocks of 128 in 4 parts; 3 values, the first is 7 (14); the least delta is -1 (1); deltas of 2 bits: 3 and 0.
        let bytes = [0x80, 1, 4, 3, 14, 1, 2, 9, 9, 9, 0b11, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&bytes, 3, 3), Some((vec![7, 9, 8], 18)));
        assert_eq!(read(&bytes[..11], 1, 9), Some((vec![7, 9, 8], 18)));
        assert!(read(&bytes, 4, 9).is_none() && read(&bytes, 0, 2).is_none());
        (0..10).for_each(|len| assert!(read(&bytes[..len], 0, 9).is_none(), "{len}"));
        for head in [[0, 0, 4], [0x80, 1, 0], [0x80, 1, 3], [0x81, 1, 1]] {
            assert!(read(&[&head[..], &bytes[3..]].concat(), 0, 9).is_none());
        }
        assert!(read(&[&[0xFF; 9][..], &[1], &bytes[2..]].concat(), 0, 9).is_none());
        // A part of 33 bits.
        assert!(read(&[&bytes[..6], &[33, 0, 0, 0], &[0; 200]].concat(), 3, 3).is_none());
    }
}
