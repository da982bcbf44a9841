//! Checks a page before the decoder reads it.

use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::Page;
use parquet::data_type::ByteArray;
use parquet::schema::types::ColumnDescriptor;

use super::DecodeError;
use super::encodings::{check_runs, count_in_runs, count_packed, differences};
use crate::memory;

/// The largest width of a dictionary index.
const MAX_INDEX_BITS: u8 = 32;

/// Checks the bytes of a page: they must have a value for each level that is not null, and all lengths must be within the
/// page.
pub(super) fn check(column: &ColumnDescriptor, page: &Page, has_dictionary: bool) -> Result<(), DecodeError> {
    let bytes = page.buffer().as_ref();
    let num_values = page.num_values() as usize;
    let physical = column.physical_type();
    let data = |bytes, present| Data { physical, width: column.type_length(), bytes, num_values, present };
    match page {
        Page::DictionaryPage { .. } => {
            // The smallest values take one bit; the decoder allocates memory for all values.
            if num_values > bytes.len().saturating_mul(8) {
                return Err(format!("a dictionary of {num_values} values in {} bytes", bytes.len()).into());
            }
            data(bytes, num_values).check_plain()?;
            memory::vec_with_capacity::<ByteArray>(num_values, "a dictionary of a column")?;
            Ok(())
        }
        Page::DataPage { encoding, def_level_encoding, .. } => {
            let (present, from) = v1_levels(column.max_def_level(), *def_level_encoding, num_values, bytes)?;
            data(&bytes[from..], present).check(*encoding, has_dictionary)
        }
        Page::DataPageV2 { encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let (rep, def) = (*rep_levels_byte_len as usize, *def_levels_byte_len as usize);
            let levels = bytes.get(rep..rep + def).ok_or("levels are longer than their page")?;
            let present = match column.max_def_level() {
                0 => num_values,
                level => count_in_runs(levels, bits_of(level), num_values, level as u64)?,
            };
            data(&bytes[rep + def..], present).check(*encoding, has_dictionary)
        }
    }
}

/// Returns the number of values that are not null according to the levels, and the end of the levels.
fn v1_levels(
    level: i16,
    encoding: Encoding,
    num_values: usize,
    bytes: &[u8],
) -> Result<(usize, usize), DecodeError> {
    let short = "levels are longer than their page";
    let width = bits_of(level);
    if level == 0 {
        return Ok((num_values, 0));
    }
    #[expect(deprecated, reason = "old files have it")]
    if encoding == Encoding::BIT_PACKED {
        let end = num_values.saturating_mul(width).div_ceil(8);
        let levels = bytes.get(..end).ok_or(short)?;
        return Ok((count_packed(levels, width, num_values, level as u64), end));
    }
    if encoding != Encoding::RLE {
        return Err(format!("levels are encoded as {encoding}").into());
    }
    let (len, rest) = bytes.split_first_chunk().ok_or(short)?;
    let levels = rest.get(..u32::from_le_bytes(*len) as usize).ok_or(short)?;
    Ok((count_in_runs(levels, width, num_values, level as u64)?, size_of::<u32>() + levels.len()))
}

fn bits_of(level: i16) -> usize {
    (i16::BITS - level.leading_zeros()) as usize
}

/// The values of a page.
struct Data<'a> {
    physical: Physical,
    /// The bytes of a value of fixed length.
    width: i32,
    bytes: &'a [u8],
    /// The number of values with nulls.
    num_values: usize,
    /// The number of values without nulls.
    present: usize,
}

impl Data<'_> {
    fn check(&self, encoding: Encoding, has_dictionary: bool) -> Result<(), DecodeError> {
        let Self { physical, bytes, num_values, present, .. } = *self;
        match encoding {
            Encoding::PLAIN => self.check_plain(),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY if !has_dictionary => {
                Err("a page has indices into a dictionary, but no dictionary precedes it".into())
            }
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => match bytes.split_first() {
                Some((&width, indices)) if width <= MAX_INDEX_BITS => {
                    Ok(check_runs(indices, width.into(), num_values)?)
                }
                _ => Err("the width of dictionary indices is missing or too large".into()),
            },
            Encoding::RLE if physical == Physical::BOOLEAN => {
                let (len, rest) = bytes.split_first_chunk().ok_or("a page of booleans ends too early")?;
                let runs = rest.get(..u32::from_le_bytes(*len) as usize);
                Ok(check_runs(runs.ok_or("a page of booleans ends too early")?, 1, num_values)?)
            }
            Encoding::DELTA_BINARY_PACKED if matches!(physical, Physical::INT32 | Physical::INT64) => {
                let width = if physical == Physical::INT32 { 32 } else { 64 };
                differences(bytes, width, (present, num_values), |_| Ok(()))?;
                Ok(())
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => self.check_lengths(bytes, present).map(drop),
            Encoding::DELTA_BYTE_ARRAY => self.check_prefixes(),
            Encoding::BYTE_STREAM_SPLIT => self.check_size(self.size()),
            other => Err(format!("values of type {physical} are encoded as {other}").into()),
        }
    }

    /// Checks plainly encoded values.
    fn check_plain(&self) -> Result<(), DecodeError> {
        match self.physical {
            // The decoder stops at the end of the bytes.
            Physical::BOOLEAN => Ok(()),
            Physical::BYTE_ARRAY => {
                let mut rest = self.bytes;
                for _ in 0..self.present {
                    let next = rest.split_first_chunk().map(|(len, rest)| (u32::from_le_bytes(*len), rest));
                    let next = next.and_then(|(len, rest)| rest.get(len as usize..));
                    rest = next.ok_or("a text is longer than its page")?;
                }
                Ok(())
            }
            _ => self.check_size(self.size()),
        }
    }

    /// Returns the bytes of a value of fixed size, else 0.
    fn size(&self) -> usize {
        match self.physical {
            Physical::BOOLEAN | Physical::BYTE_ARRAY => 0,
            Physical::INT32 | Physical::FLOAT => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::INT96 => 12,
            Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(self.width).unwrap_or(0),
        }
    }

    fn check_size(&self, size: usize) -> Result<(), DecodeError> {
        if self.present.saturating_mul(size) > self.bytes.len() {
            let (present, bytes) = (self.present, self.bytes.len());
            return Err(format!("{present} values of {size} bytes in {bytes} bytes").into());
        }
        Ok(())
    }

    /// Checks delta-encoded lengths followed by the bytes of all values, at least `least` of them. Returns the lengths.
    fn check_lengths(&self, bytes: &[u8], least: usize) -> Result<Vec<i32>, DecodeError> {
        let (lengths, end) = self.numbers(bytes, least)?;
        let whole = lengths.iter().try_fold(0_u64, |sum, &len| {
            Some(sum + u64::from(u32::try_from(len).ok().filter(|_| len >= 0)?))
        });
        let available = bytes.len().checked_sub(end).ok_or("lengths of texts end too early")?;
        match whole {
            Some(whole) if whole <= available as u64 => Ok(lengths),
            _ => Err("a text is longer than its page".into()),
        }
    }

    /// Checks the lengths of the prefixes that values share with their predecessors, and the remaining suffixes.
    fn check_prefixes(&self) -> Result<(), DecodeError> {
        let (prefixes, end) = self.numbers(self.bytes, self.present)?;
        let suffixes = self.bytes.get(end..).ok_or("lengths of texts end too early")?;
        let suffixes = self.check_lengths(suffixes, prefixes.len())?;
        let (mut before, mut whole) = (0, 0_usize);
        for (&prefix, &rest) in prefixes.iter().zip(&suffixes) {
            let prefix = usize::try_from(prefix).ok().filter(|&prefix| prefix <= before);
            before = prefix.ok_or("the prefix of a text is longer than the previous text")? + rest as usize;
            whole = whole.saturating_add(before);
        }
        // Few bytes can encode very long texts.
        memory::vec_with_capacity::<u8>(whole, "texts of a column")?;
        Ok(())
    }

    /// Decodes at least `least` delta-encoded 32-bit numbers. Returns them and the end of their bytes.
    fn numbers(&self, bytes: &[u8], least: usize) -> Result<(Vec<i32>, usize), DecodeError> {
        let mut numbers = Vec::new();
        let end = differences(bytes, 32, (least, self.num_values), |number| {
            memory::reserve_more(&mut numbers, 1, "lengths of texts")?;
            numbers.push(number as i32);
            Ok(())
        })?;
        Ok((numbers, end))
    }
}
