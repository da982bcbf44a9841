//! The pages of a column, checked before they are decoded.

use ::thrift::protocol::{TInputProtocol, TType};
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescPtr;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use super::DecodeError;
use super::check::check;
use super::fields::{Thrift, fields, is_truncated, numbers};
use super::file::read_at;
use crate::memory;

const PAGE: &str = "a page of a Parquet file";
/// The bytes read at first for a page header, and the most that it can have.
const FIRST_HEADER: u64 = 1 << 8;
const MAX_HEADER: u64 = 1 << 24;

/// The pages of a column within a row group.
pub(super) struct Pages {
    file: Arc<File>,
    /// The unread range of the file.
    at: u64,
    end: u64,
    compression: Compression,
    column: ColumnDescPtr,
    has_dictionary: bool,
}

/// A page header: its numbers and its structs of numbers, indexed by field id.
#[derive(Default)]
struct Header {
    numbers: [Option<i64>; 4],
    structs: [Option<Fields>; 9],
}

/// The numbers in a struct, indexed by field id.
type Fields = [Option<i64>; 9];

/// Field ids of a page header.
const DATA: usize = 5;
const DICTIONARY: usize = 7;
const DATA_V2: usize = 8;

impl Pages {
    /// Creates the page reader of a column chunk, which must be within the file.
    pub(super) fn new(file: Arc<File>, chunk: &ColumnChunkMetaData) -> Self {
        let (start, len) = chunk.byte_range();
        let (compression, column) = (chunk.compression(), chunk.column_descr_ptr());
        Self { file, at: start, end: start + len, compression, column, has_dictionary: false }
    }

    fn next_page(&mut self) -> Result<Option<Page>, DecodeError> {
        while self.at < self.end {
            let Header { numbers: [_, kind, whole, compressed], structs } = self.header()?;
            let bytes = read_at(&self.file, self.at, size(compressed, self.end - self.at)?, PAGE)?;
            self.at += bytes.len() as u64;
            let fields = |id: usize| structs[id].ok_or("the header of a page does not match its type");
            let page = match kind {
                Some(0) => self.data(fields(DATA)?, whole, bytes)?,
                // Index pages, which no program writes.
                Some(1) => continue,
                Some(2) => self.dictionary(fields(DICTIONARY)?, whole, bytes)?,
                Some(3) => self.data_v2(fields(DATA_V2)?, whole, bytes)?,
                _ => return Err("a page has an unknown type".into()),
            };
            check(&self.column, &page, self.has_dictionary)?;
            self.has_dictionary |= page.is_dictionary_page();
            return Ok(Some(page));
        }
        Ok(None)
    }

    /// Reads the header of the next page.
    fn header(&mut self) -> Result<Header, DecodeError> {
        let mut len = FIRST_HEADER;
        loop {
            let len_read = (self.end - self.at).min(len);
            let bytes = read_at(&self.file, self.at, len_read as usize, PAGE)?;
            let mut unread = &bytes[..];
            match Header::read(&mut Thrift::new(&mut unread)) {
                Ok(header) => {
                    self.at += len_read - unread.len() as u64;
                    return Ok(header);
                }
                Err(error) if is_truncated(&error) && len_read == len && len < MAX_HEADER => len *= 4,
                Err(_) => return Err("the header of a page is broken".into()),
            }
        }
    }

    fn dictionary(&self, fields: Fields, whole: Option<i64>, bytes: Vec<u8>) -> Result<Page, DecodeError> {
        let [_, num_values, encoding, ..] = fields;
        let buf = self.decompressed(bytes, 0, whole)?.into();
        let (num_values, encoding) = (number(num_values)?, encoding_of(encoding)?);
        if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) || self.has_dictionary {
            return Err("a column has two dictionaries, or an encoded dictionary".into());
        }
        Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted: false })
    }

    fn data(&self, fields: Fields, whole: Option<i64>, bytes: Vec<u8>) -> Result<Page, DecodeError> {
        let [_, num_values, encoding, def_level_encoding, rep_level_encoding, ..] = fields;
        Ok(Page::DataPage {
            buf: self.decompressed(bytes, 0, whole)?.into(),
            num_values: number(num_values)?,
            encoding: encoding_of(encoding)?,
            def_level_encoding: encoding_of(def_level_encoding)?,
            rep_level_encoding: encoding_of(rep_level_encoding)?,
            statistics: None,
        })
    }

    fn data_v2(&self, fields: Fields, whole: Option<i64>, bytes: Vec<u8>) -> Result<Page, DecodeError> {
        let [_, num_values, num_nulls, num_rows, encoding, def_levels, rep_levels, is_compressed, ..] =
            fields;
        let (def_levels_byte_len, rep_levels_byte_len) = (number(def_levels)?, number(rep_levels)?);
        // Levels precede the values, and are not compressed.
        let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
        let is_compressed = is_compressed != Some(0);
        let buf = if is_compressed { self.decompressed(bytes, levels, whole)? } else { bytes };
        Ok(Page::DataPageV2 {
            buf: buf.into(),
            num_values: number(num_values)?,
            encoding: encoding_of(encoding)?,
            num_nulls: number(num_nulls)?,
            num_rows: number(num_rows)?,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed,
            statistics: None,
        })
    }

    /// Decompresses a page of `whole` bytes, whose first `plain` bytes are not compressed. Allocates at most the size in
    /// the header.
    fn decompressed(&self, bytes: Vec<u8>, plain: usize, whole: Option<i64>) -> Result<Vec<u8>, DecodeError> {
        if self.compression == Compression::UNCOMPRESSED {
            return Ok(bytes);
        }
        let other = || DecodeError::from("the size of a page differs from its header");
        let whole = size(whole, i32::MAX as u64)?;
        let (before, packed) = bytes.split_at_checked(plain).ok_or_else(other)?;
        let len = whole.checked_sub(plain).ok_or_else(other)?;
        if self.compression == Compression::SNAPPY && len > 0 && snap::raw::decompress_len(packed) != Ok(len)
        {
            return Err(other());
        }
        // One byte more, to detect excess data.
        let mut to = memory::vec_with_capacity(whole + 1, PAGE)?;
        to.extend_from_slice(before);
        if len == 0 {
            return Ok(to);
        }
        let broken = "the compressed bytes of a page are broken";
        match self.compression {
            Compression::SNAPPY => {
                to.resize(whole, 0);
                let got = snap::raw::Decoder::new().decompress(packed, &mut to[plain..]);
                got.map_err(|_| broken)?;
            }
            Compression::ZSTD(_) => {
                to.resize(whole, 0);
                let got = zstd::bulk::decompress_to_buffer(packed, &mut to[plain..]).map_err(|_| broken)?;
                to.truncate(plain + got);
            }
            Compression::GZIP(_) => {
                let got = MultiGzDecoder::new(packed).take(len as u64 + 1).read_to_end(&mut to);
                got.map_err(|_| broken)?;
            }
            other => return Err(format!("it is compressed by {other}; expected Snappy, zstd or gzip").into()),
        }
        if to.len() == whole { Ok(to) } else { Err(other()) }
    }
}

impl Header {
    fn read(thrift: &mut Thrift<'_, '_>) -> thrift::Result<Self> {
        let mut header = Self::default();
        fields(thrift, |thrift, id, field_type| {
            match (id, field_type) {
                (1..4, TType::I32) => header.numbers[id] = Some(thrift.read_i32()?.into()),
                (1..9, TType::Struct) => header.structs[id] = Some(numbers(thrift)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(header)
    }
}

/// Checks a size of at most `most`.
fn size(number: Option<i64>, most: u64) -> Result<usize, DecodeError> {
    let size = number.and_then(|number| u64::try_from(number).ok()).filter(|&size| size <= most);
    Ok(size.ok_or("a page is longer than its column, or has no length")? as usize)
}

fn number(number: Option<i64>) -> Result<u32, DecodeError> {
    let number =
        number.and_then(|number| i32::try_from(number).ok()).and_then(|number| u32::try_from(number).ok());
    Ok(number.ok_or("a number is missing in the header of a page, or negative")?)
}

fn encoding_of(number: Option<i64>) -> Result<Encoding, DecodeError> {
    Ok(match number {
        Some(0) => Encoding::PLAIN,
        Some(2) => Encoding::PLAIN_DICTIONARY,
        Some(3) => Encoding::RLE,
        #[expect(deprecated, reason = "old files have it")]
        Some(4) => Encoding::BIT_PACKED,
        Some(5) => Encoding::DELTA_BINARY_PACKED,
        Some(6) => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Some(7) => Encoding::DELTA_BYTE_ARRAY,
        Some(8) => Encoding::RLE_DICTIONARY,
        Some(9) => Encoding::BYTE_STREAM_SPLIT,
        _ => return Err("a page has an unknown encoding".into()),
    })
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        Ok(self.next_page()?)
    }

    // Pages are read sequentially.
    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        Err(ParquetError::NYI("looking ahead".into()))
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        Err(ParquetError::NYI("skipping pages".into()))
    }
}
