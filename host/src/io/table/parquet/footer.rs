//! Checks a footer before and after the decoder parses it.

use ::thrift::protocol::{TInputProtocol, TType};
use parquet::basic::Type as Physical;
use parquet::file::metadata::ParquetMetaData;
use std::fs::File;

use super::DecodeError;
use super::fields::{Thrift, fields, is_truncated, wrong_type};
use super::file::read_at;

/// The bytes at the end of a file: the length of the metadata (4 bytes) and the magic bytes.
const TAIL: u64 = 8;
const MAGIC: &[u8] = b"PAR1";
/// The deepest nesting of columns.
const MAX_DEPTH: usize = 64;
/// Field ids of Parquet's metadata.
const SCHEMA: usize = 2;
const NUM_CHILDREN: usize = 5;

/// Checks the metadata of a file of `len` bytes: they must be within the file, all lengths in them must be within the
/// metadata, and the columns must form a tree. The decoder recurses as deeply as columns are nested, and loops over
/// lengths as they are.
pub(super) fn check_bytes(file: &File, len: u64) -> Result<(), DecodeError> {
    let Some(tail_at) = len.checked_sub(TAIL) else { return Err("its footer is missing".into()) };
    let tail = read_at(file, tail_at, TAIL as usize, "the footer of a Parquet file")?;
    let (metadata_len, magic) = tail.split_first_chunk::<4>().expect("8 bytes");
    if magic != MAGIC {
        return Err("it does not end like a Parquet file, or it is encrypted".into());
    }
    let metadata_len = u32::from_le_bytes(*metadata_len);
    let Some(at) = tail_at.checked_sub(metadata_len.into()) else {
        return Err(format!("its footer should have {metadata_len} bytes, but the file has {len}").into());
    };
    let bytes = read_at(file, at, metadata_len as usize, "the footer of a Parquet file")?;
    let children = children(&bytes).map_err(|error| match is_truncated(&error) {
        true => "its footer ends too early".to_owned(),
        false => format!("its footer is broken: {error}"),
    })?;
    if is_tree(&children) {
        Ok(())
    } else {
        Err("its columns are nested too deeply or do not form a tree".into())
    }
}

/// Returns the number of children of each element of the schema.
fn children(mut bytes: &[u8]) -> thrift::Result<Vec<i64>> {
    let mut children = Vec::new();
    fields(&mut Thrift::new(&mut bytes), |metadata, id, field_type| {
        if (id, field_type) != (SCHEMA, TType::List) {
            return Ok(false);
        }
        let elements = metadata.read_list_begin()?;
        if elements.element_type != TType::Struct {
            return Err(wrong_type());
        }
        for _ in 0..elements.size {
            let mut count = 0;
            fields(metadata, |element, id, field_type| {
                match (id, field_type) {
                    (NUM_CHILDREN, TType::I32) => count = element.read_i32()?.into(),
                    (NUM_CHILDREN, _) => return Err(wrong_type()),
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            children.push(count);
        }
        Ok(true)
    })?;
    Ok(children)
}

/// Returns true if the elements, each followed by its children, form a tree that is not too deep.
fn is_tree(children: &[i64]) -> bool {
    // The number of remaining children per level, from the root on.
    let mut open: Vec<i64> = Vec::new();
    for &count in children {
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(remaining) = open.last_mut() {
            *remaining -= 1;
        }
        if count < 0 || count > children.len() as i64 || open.len() > MAX_DEPTH {
            return false;
        }
        open.push(count);
    }
    open.iter().all(|&remaining| remaining == 0)
}

/// Checks that the columns of decoded metadata are within a file of `len` bytes.
pub(super) fn check_metadata(metadata: &ParquetMetaData, len: u64) -> Result<(), DecodeError> {
    for column in metadata.file_metadata().schema_descr().columns() {
        if column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY && column.type_length() <= 0 {
            let name = column.path().string();
            return Err(format!("column '{name}' has values of {} bytes", column.type_length()).into());
        }
    }
    for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        let is_within = start >= 0 && chunk.compressed_size() >= 0;
        if !is_within || end.is_none_or(|end| end as u64 > len) {
            let (name, bytes) = (chunk.column_path().string(), chunk.compressed_size());
            return Err(format!(
                "column '{name}' has {bytes} bytes at byte {start}, beyond the file's {len}"
            )
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_columns() {
        assert!(is_tree(&[]) && is_tree(&[0]) && is_tree(&[2, 0, 0]) && is_tree(&[2, 1, 0, 2, 0, 0]));
        for broken in [&[1][..], &[2, 0], &[-1, 0], &[1 << 31, 0], &[2, 1, 0]] {
            assert!(!is_tree(broken), "{broken:?}");
        }
        let chain = |depth: usize| [vec![1; depth], vec![0]].concat();
        assert!(is_tree(&chain(MAX_DEPTH)) && !is_tree(&chain(MAX_DEPTH + 1)));
    }
}
