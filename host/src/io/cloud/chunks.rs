//! The chunks of a file: parts with some points each that can be read without the others.

use super::errors::FileOf;
use super::records::Layout;
use crate::error::Result;
use crate::io::decode_error::DecodeError;
use crate::io::guarded::guarded;
use crate::memory;
use las::Header;
use laz::LazVlr;
use laz::laszip::ChunkTable;
use laz::record::{LayeredPointRecordDecompressor, RecordDecompressor, SequentialPointRecordDecompressor};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

/// Points of a chunk of a file without compression.
const PLAIN_CHUNK: u64 = 1 << 16;

/// A part of a file.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) num_points: u64,
    /// The number of points in the chunks before it.
    pub(super) first: u64,
}

/// The bytes of a chunk and its records, which one thread reads chunk after chunk.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) bytes: Buffer,
    pub(super) records: Buffer,
}

/// Bytes to overwrite.
#[derive(Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// Returns the first bytes, with the values of earlier uses.
    pub(super) fn first(&mut self, len: usize) -> Result<&mut [u8]> {
        if let Some(more) = len.checked_sub(self.0.len()) {
            memory::reserve_more(&mut self.0, more, "points of a file")?;
            self.0.resize(len, 0);
        }
        Ok(&mut self.0[..len])
    }
}

/// The chunks of a file.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    /// In the order of the file.
    pub(super) all: Vec<Chunk>,
    /// How the points are compressed.
    compression: Option<LazVlr>,
}

impl Chunks {
    /// Finds the chunks of a file, and checks that they lie in it.
    pub(super) fn of(
        file: &mut BufReader<File>,
        of: FileOf<'_>,
        header: &Header,
        layout: Layout,
        num_bytes: u64,
    ) -> Result<Self> {
        let begin = file.stream_position().map_err(|source| of.io(source))?;
        let num_points = header.number_of_points();
        if !header.point_format().is_compressed {
            let held = num_bytes.saturating_sub(begin) / layout.len as u64;
            if held < num_points {
                return Err(of.invalid(format!(
                    "cut short: the header declares {num_points} points, and the file has bytes for {held}"
                )));
            }
            let all = (0..num_points).step_by(PLAIN_CHUNK as usize).map(|first| {
                let in_chunk = PLAIN_CHUNK.min(num_points - first);
                let [offset, bytes] = [first, in_chunk].map(|points| points * layout.len as u64);
                Chunk { offset: begin + offset, bytes, num_points: in_chunk, first }
            });
            return Ok(Self { all: all.collect(), compression: None });
        }
        let compression = header.laz_vlr().map_err(|error| of.las(error))?;
        if compression.items().is_empty() || compression.items_size() != layout.len as u64 {
            let (packed, len) = (compression.items_size(), layout.len);
            return Err(of.invalid(format!(
                "its compression is for records of {packed} bytes, and the header declares {len}"
            )));
        }
        let all = compressed(file, of, &compression, begin, num_points, num_bytes)?;
        Ok(Self { all, compression: Some(compression) })
    }

    /// Returns the records of a chunk's bytes. The error is the reason why they cannot be decompressed.
    pub(super) fn decompress<'a>(
        &self,
        bytes: &'a [u8],
        chunk: &Chunk,
        layout: Layout,
        records: &'a mut Buffer,
    ) -> Result<&'a [u8], DecodeError> {
        let Some(compression) = &self.compression else { return Ok(bytes) };
        let items = compression.items();
        let is_layered = items[0].version() >= 3;
        if is_layered {
            check_layers(bytes, chunk, layout)?;
        }
        guarded(|| {
            let bytes = Cursor::new(bytes);
            let (mut sequential, mut layered);
            let decompressor: &mut dyn RecordDecompressor<_> = if is_layered {
                layered = LayeredPointRecordDecompressor::new(bytes);
                &mut layered
            } else {
                sequential = SequentialPointRecordDecompressor::new(bytes);
                &mut sequential
            };
            decompressor.set_fields_from(items).map_err(|error| error.to_string())?;
            // A broken number of points costs no more memory than the points before the end of the bytes.
            let (mut begin, mut left) = (0, chunk.num_points);
            while left > 0 {
                let num = left.min(PLAIN_CHUNK);
                let end = begin + num as usize * layout.len;
                let more = &mut records.first(end)?[begin..];
                decompressor.decompress_many(more).map_err(|error| error.to_string())?;
                (begin, left) = (end, left - num);
            }
            Ok(&records.0[..begin])
        })
    }
}

/// Checks the number of points and the lengths of the layers of a chunk, which follow its first point: the decoder allocates the layers.
fn check_layers(bytes: &[u8], chunk: &Chunk, layout: Layout) -> Result<(), String> {
    let words = || bytes.get(layout.len..).unwrap_or_default().as_chunks::<4>().0.iter();
    let mut words = words().map(|word| u64::from(u32::from_le_bytes(*word)));
    let num_points = words.next();
    let lens: u64 = words.take(layout.num_layers()).sum();
    let begin = layout.len + 4 * (1 + layout.num_layers());
    if num_points != Some(chunk.num_points) || begin as u64 + lens > bytes.len() as u64 {
        let num_points = num_points.unwrap_or(0);
        return Err(format!(
            "it has {num_points} points in layers of {lens} bytes, within {} bytes",
            bytes.len()
        ));
    }
    Ok(())
}

/// Returns the chunks of the chunk table of a LAZ file.
fn compressed(
    file: &mut BufReader<File>,
    of: FileOf<'_>,
    compression: &LazVlr,
    begin: u64,
    num_points: u64,
    num_bytes: u64,
) -> Result<Vec<Chunk>> {
    let io = |source| of.io(source);
    if num_points == 0 {
        return Ok(Vec::new());
    }
    // The decoder allocates as many chunks as the table declares. Each has at least a point and a byte.
    let table = table_offset(file, begin).map_err(io)?;
    let mut head = [0; 8];
    file.seek(SeekFrom::Start(table)).and_then(|_| file.read_exact(&mut head)).map_err(io)?;
    let num_chunks = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    let fixed = (!compression.uses_variable_size_chunks()).then(|| u64::from(compression.chunk_size()));
    let is_right = fixed.is_none_or(|size| num_chunks == num_points.div_ceil(size));
    if !is_right || num_chunks > num_bytes || num_chunks > num_points {
        return Err(of.invalid(format!("its table has {num_chunks} chunks for {num_points} points")));
    }
    file.seek(SeekFrom::Start(begin)).map_err(io)?;
    let table_of =
        guarded(|| Ok(ChunkTable::read_from(&mut *file, compression).map_err(|error| error.to_string())?));
    let table_of = table_of.map_err(|error| {
        error.into_error(|what| of.invalid(format!("its table of chunks cannot be read: {what}")))
    })?;
    let mut chunks = memory::vec_with_capacity(table_of.len(), "chunks of a file")?;
    let (mut offset, mut first) = (begin + 8, 0_u64);
    for (i, entry) in table_of.as_ref().iter().enumerate() {
        let (bytes, left) = (entry.byte_count, num_points - first);
        let in_chunk = fixed.map_or(entry.point_count, |size| size.min(left));
        let end = offset.saturating_add(bytes);
        if end > num_bytes || in_chunk > left {
            return Err(of.invalid(format!(
                "chunk {i} has {in_chunk} points, {left} are left, and ends at byte {end} of {num_bytes}"
            )));
        }
        if in_chunk > 0 {
            chunks.push(Chunk { offset, bytes, num_points: in_chunk, first });
        }
        (offset, first) = (end, first + in_chunk);
    }
    if first != num_points {
        return Err(
            of.invalid(format!("its chunks have {first} points, and the header declares {num_points}"))
        );
    }
    Ok(chunks)
}

/// Returns where the table of chunks begins: the number before the points, or if the writer could not return to it, the last number of the
/// file.
fn table_offset(file: &mut BufReader<File>, begin: u64) -> std::io::Result<u64> {
    let mut number = [0; 8];
    file.seek(SeekFrom::Start(begin))?;
    file.read_exact(&mut number)?;
    if i64::from_le_bytes(number) <= begin as i64 {
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut number)?;
    }
    Ok(u64::from_le_bytes(number))
}
