//! Copies between devices.

use super::driver::Transfer;
use super::pinned::PinnedBuffer;
use super::stream::Stream;
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};

/// The bytes staged in host memory at a time, if devices cannot reach each other.
const STAGED_BYTES: usize = 32 << 20;

impl Stream {
    /// Copies a view of any device to a view of this stream's device with the same length, in stream order: directly if
    /// possible, otherwise through host memory.
    ///
    /// # Safety
    /// Both views are in live device memory, `from` on the device of `source`. All work that writes `from` has been
    /// waited for. Both stay alive, and `from` does not change, until this stream has been waited for, even if a copy
    /// fails.
    pub(crate) unsafe fn copy_from<T>(
        &self,
        to: SliceMut<'_, T>,
        source: &Stream,
        from: Slice<'_, T>,
    ) -> Result<()> {
        debug_assert_eq!(to.len(), from.len());
        let (to, from, bytes) = (to.as_ptr() as u64, from.as_ptr() as u64, to.len() * size_of::<T>());
        let (gpu, peer) = (self.gpu(), source.gpu().peer());
        // SAFETY: passed on to the caller.
        unsafe {
            if gpu.same(source.gpu()) {
                self.transfer(Transfer::OnDevice { to, from }, bytes)
            } else if bytes == 0 || gpu.driver.can_reach(peer)? {
                self.transfer(Transfer::FromPeer { to, peer, from }, bytes)
            } else {
                self.copy_staged(to, source, from, bytes)
            }
        }
    }

    /// # Safety
    /// Like [`copy_from`](Self::copy_from).
    unsafe fn copy_staged(&self, to: u64, source: &Stream, from: u64, bytes: usize) -> Result<()> {
        // A separate stream, because other streams may copy from that device at the same time.
        let reading = Stream::new(source.gpu())?;
        let label = "a copy between devices";
        let mut stage = PinnedBuffer::<u8>::zeroed(self.gpu(), bytes.min(STAGED_BYTES), label)?;
        for begin in (0..bytes).step_by(STAGED_BYTES) {
            let len = (bytes - begin).min(STAGED_BYTES);
            // SAFETY: passed on to the caller; each copy is waited for before the stage is used again or freed.
            unsafe {
                let (to, from, at) = (to + begin as u64, from + begin as u64, stage.as_mut_ptr());
                let read = reading.transfer(Transfer::ToHost { to: at, from }, len);
                reading.synchronize().and(read)?;
                let written = self.transfer(Transfer::ToDevice { to, from: at }, len);
                self.synchronize().and(written)?;
            }
        }
        Ok(())
    }
}
