//! Page-locked memory of the size of staging pieces, kept for the next call: to allocate and free it takes longer than to copy some hundred
//! megabytes.

use super::raw;
use crate::device::staging::STAGED_BYTES;
use crate::threads::lock;
use std::ffi::c_void;
use std::sync::Mutex;

/// The bytes of a piece: half of the memory that a copy goes through.
const PIECE_BYTES: usize = STAGED_BYTES as usize / 2;
/// Most pieces that are kept.
const MAX_IDLE: usize = 4;

/// The pieces of a device.
#[derive(Default)]
pub(super) struct StagedPieces(Mutex<Pieces>);

#[derive(Default)]
struct Pieces {
    used: Vec<u64>,
    idle: Vec<u64>,
}

impl StagedPieces {
    /// Returns a piece that is kept, if memory of that size is one.
    pub(super) fn take(&self, bytes: usize) -> Option<u64> {
        if bytes != PIECE_BYTES {
            return None;
        }
        let mut pieces = lock(&self.0);
        let address = pieces.idle.pop()?;
        pieces.used.push(address);
        Some(address)
    }

    /// Records memory that was allocated.
    pub(super) fn add(&self, address: u64, bytes: usize) {
        if bytes == PIECE_BYTES {
            lock(&self.0).used.push(address);
        }
    }

    /// Keeps memory that is no longer used, or returns false: then the caller frees it.
    pub(super) fn keep(&self, address: u64) -> bool {
        let mut pieces = lock(&self.0);
        let Some(i) = pieces.used.iter().position(|&used| used == address) else { return false };
        pieces.used.swap_remove(i);
        let has_room = pieces.idle.len() < MAX_IDLE;
        if has_room {
            pieces.idle.push(address);
        }
        has_room
    }

    /// Frees the pieces that are kept. The context is current.
    pub(super) fn release(&self) {
        for address in lock(&self.0).idle.drain(..) {
            // SAFETY: the memory is freed once, and no copy uses it.
            unsafe { raw::cuMemFreeHost(address as *mut c_void) };
        }
    }
}
