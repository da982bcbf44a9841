//! Copies between devices.

use super::driver::Transfer;
use super::event::Event;
use super::stream::Stream;
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};

impl Stream {
    /// Returns true if this stream's device copies from the device of `source` directly.
    pub(crate) fn reaches(&self, source: &Stream) -> Result<bool> {
        Ok(self.gpu().same(source.gpu()) || self.gpu().driver.can_reach(source.gpu().peer())?)
    }

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
                let send = |begin: usize, piece: &[u8]| {
                    let copy = Transfer::ToDevice { to: to + begin as u64, from: piece.as_ptr() };
                    let sent = self.transfer(copy, piece.len()).and_then(|()| {
                        let sent = Event::new(gpu)?;
                        self.record(&sent)?;
                        sent.synchronize()
                    });
                    // After an error the copy may still be running, and the piece is used again.
                    sent.or_else(|error| self.synchronize().and(Err(error)))
                };
                // A separate stream, because other streams may copy from that device at the same time.
                Stream::new(source.gpu())?.transfer(Transfer::ToHostBy { from, unit: 1, read: &send }, bytes)
            }
        }
    }
}
