//! Stores that have not reached memory yet.
//!
//! A block's plain and relaxed stores to global memory wait in a buffer that only the block sees. They are written to
//! memory in any order, at the latest by a fence or release of the block, or when it ends. A kernel without such a fence
//! therefore reads stale values in another block, as it may on a device.

use crate::hash::FastMap;
use crate::random::Random;

/// Bytes that are written to memory together. Stores to overlapping bytes stay in order, as coherence demands.
const CHUNK: usize = 16;

/// Some bytes of a chunk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Chunk {
    mask: u16,
    bytes: [u8; CHUNK],
}

/// The delayed stores of a block.
#[derive(Default)]
pub(crate) struct StoreBuffer {
    chunks: FastMap<usize, Chunk>,
    /// The keys of `chunks` in an order that depends only on the stores.
    keys: Vec<usize>,
}

/// Splits a range at chunk boundaries: chunk, offset in the chunk, offset in the range, length.
fn pieces(address: usize, len: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let within = (address + at) % CHUNK;
        let count = (CHUNK - within).min(len - at);
        let piece = ((address + at) / CHUNK, within, at, count);
        at += count;
        (count > 0).then_some(piece)
    })
}

impl Chunk {
    /// Calls `write` with address and value of each byte.
    pub(crate) fn for_each(&self, key: usize, mut write: impl FnMut(usize, u8)) {
        for i in (0..CHUNK).filter(|i| self.mask >> i & 1 != 0) {
            write(key * CHUNK + i, self.bytes[i]);
        }
    }
}

impl StoreBuffer {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn store(&mut self, address: usize, from: &[u8]) {
        for (key, within, at, count) in pieces(address, from.len()) {
            let chunk = self.chunks.entry(key).or_insert_with(|| {
                self.keys.push(key);
                Chunk::default()
            });
            chunk.bytes[within..][..count].copy_from_slice(&from[at..][..count]);
            chunk.mask |= (((1u32 << count) - 1) as u16) << within;
        }
    }

    /// Overwrites `to`, the bytes of a range in memory, with the delayed bytes of the range.
    pub(crate) fn overlay(&self, address: usize, to: &mut [u8]) {
        if self.keys.is_empty() {
            return;
        }
        for (key, ..) in pieces(address, to.len()) {
            if let Some(chunk) = self.chunks.get(&key) {
                chunk.for_each(key, |byte, value| {
                    if let Some(to) = byte.checked_sub(address).and_then(|i| to.get_mut(i)) {
                        *to = value;
                    }
                });
            }
        }
    }

    /// True if a store to the byte is delayed.
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.chunks.get(&(address / CHUNK)).is_some_and(|c| c.mask >> (address % CHUNK) & 1 != 0)
    }

    /// Removes the chunks that overlap a range.
    pub(crate) fn take_range(&mut self, address: usize, len: usize) -> Vec<(usize, Chunk)> {
        let taken: Vec<_> =
            pieces(address, len).filter_map(|(key, ..)| Some((key, self.chunks.remove(&key)?))).collect();
        self.keys.retain(|key| !taken.iter().any(|(k, _)| k == key));
        taken
    }

    /// Removes a random chunk.
    pub(crate) fn take_any(&mut self, random: &mut Random) -> Option<(usize, Chunk)> {
        if self.keys.is_empty() {
            return None;
        }
        let key = self.keys.swap_remove(random.below(self.keys.len()));
        self.chunks.remove(&key).map(|chunk| (key, chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_sees_its_stores_and_memory_gets_them() {
        let mut buffer = StoreBuffer::default();
        buffer.store(30, &[1, 2, 3, 4]);
        buffer.store(31, &[9]);
        let mut seen = [0; 6];
        buffer.overlay(29, &mut seen);
        assert_eq!(seen, [0, 1, 9, 3, 4, 0]);
        assert!(buffer.holds(33) && !buffer.holds(34));
        let taken = buffer.take_range(32, 4);
        assert_eq!((taken.len(), buffer.len()), (1, 1));
        let mut memory = vec![];
        while let Some((key, chunk)) = buffer.take_any(&mut Random::new(1)) {
            chunk.for_each(key, |address, value| memory.push((address, value)));
        }
        assert_eq!(memory, [(30, 1), (31, 9)]);
    }
}
