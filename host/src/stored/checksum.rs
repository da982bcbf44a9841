//! Checksums of headers and sections. Those of sections are computed in parallel.

use std::ops::Range;

use crate::error::Result;
use crate::memory::file_part::FilePart;
use crate::parallel::Ranges;
use xxhash_rust::xxh3::xxh3_64;

/// The bytes of a separately hashed piece.
const PIECE: usize = 1 << 20;

/// Returns the XXH3-64 of a short text.
pub(super) fn short(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Returns the XXH3-64 of the XXH3-64s (little-endian) of all pieces of 1 MiB. The last piece may be shorter.
pub(super) fn of_pieces(bytes: &[u8]) -> u64 {
    let hashes = Ranges::new(bytes.len(), PIECE).map(|piece| xxh3_64(&bytes[piece]).to_le_bytes());
    xxh3_64(hashes.as_flattened())
}

/// Returns the [`of_pieces`] of `len` bytes of a file.
pub(super) fn of_part(part: FilePart<'_>, len: usize) -> Result<u64> {
    let hash = |piece: Range<usize>| {
        let mut bytes = vec![0; piece.len()];
        part.read(piece.start, &mut bytes).map(|()| xxh3_64(&bytes).to_le_bytes())
    };
    let hashes: Vec<[u8; 8]> = Ranges::new(len, PIECE).map(hash).into_iter().collect::<Result<_>>()?;
    Ok(xxh3_64(hashes.as_flattened()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation, because other programs read the files.
    #[test]
    fn known_values() {
        assert_eq!(short(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(of_pieces(b""), short(b""));
        assert_eq!(of_pieces(b"kauri"), short(&short(b"kauri").to_le_bytes()));
    }

    #[test]
    fn pieces_are_hashed_in_order() {
        let bytes: Vec<u8> = (0..2 * PIECE + 5).map(|i| (i % 251) as u8).collect();
        let hashes: Vec<u8> = bytes.chunks(PIECE).flat_map(|piece| short(piece).to_le_bytes()).collect();
        assert_eq!(hashes.len(), 24);
        assert_eq!(of_pieces(&bytes), short(&hashes));
        let mut other = bytes.clone();
        other[PIECE] ^= 1;
        assert_ne!(of_pieces(&other), of_pieces(&bytes));
    }
}
