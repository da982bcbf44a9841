//! Copies between devices.

use super::pinned::PinnedBuffer;
use super::stream::Stream;
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};

/// Bytes that stop in host memory at a time, where devices do not reach each other.
const STAGED_BYTES: usize = 32 << 20;

impl Stream {
    /// Copies a view of any device to one of as many items of this stream's, in the order of this stream: from device to device where
    /// this one reaches the other, and through host memory otherwise.
    ///
    /// # Safety
    /// Both views must be of live device memory, the second of that of `source`'s device, whose work that writes it has been waited for.
    /// Both stay alive, and the second as it is, until this stream has been waited for, also if a copy fails.
    pub(crate) unsafe fn copy_from<T>(
        &self,
        to: SliceMut<'_, T>,
        source: &Stream,
        from: Slice<'_, T>,
    ) -> Result<()> {
        debug_assert_eq!(to.len(), from.len());
        let (to, from, bytes) = (to.as_ptr() as u64, from.as_ptr() as u64, to.len() * size_of::<T>());
        if bytes == 0 {
            return Ok(());
        }
        let (gpu, peer) = (self.gpu(), source.gpu());
        // SAFETY: passed on to the caller.
        unsafe {
            if gpu.same(peer) {
                gpu.driver().copy_on_device(to, from, bytes, self.raw())
            } else if gpu.driver().can_reach(peer.peer())? {
                gpu.driver().copy_from_peer(to, peer.peer(), from, bytes, self.raw())
            } else {
                self.copy_staged(to, source, from, bytes)
            }
        }
    }

    /// # Safety
    /// As [`copy_from`](Self::copy_from).
    unsafe fn copy_staged(&self, to: u64, source: &Stream, from: u64, bytes: usize) -> Result<()> {
        // A stream of its own: others may copy from that device at the same time.
        let reading = Stream::new(source.gpu())?;
        let label = "a copy between devices";
        let mut stage = PinnedBuffer::<u8>::zeroed(self.gpu(), bytes.min(STAGED_BYTES), label)?;
        for begin in (0..bytes).step_by(STAGED_BYTES) {
            let len = (bytes - begin).min(STAGED_BYTES);
            // SAFETY: passed on to the caller; each copy is waited for before the stage is used again or freed.
            unsafe {
                let (to, from, at) = (to + begin as u64, from + begin as u64, stage.as_mut_ptr());
                let read = source.gpu().driver().copy_to_host(at, from, len, reading.raw());
                reading.synchronize().and(read)?;
                let written = self.gpu().driver().copy_to_device(to, at, len, self.raw());
                self.synchronize().and(written)?;
            }
        }
        Ok(())
    }
}
