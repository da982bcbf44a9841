//! Copies between devices.

use super::driver::Transfer;
use super::staging::{STAGED_BYTES, Staging};
use super::stream::Stream;
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};

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
        staging: &mut Option<Staging>,
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
                let staging = match staging {
                    Some(staging) => staging,
                    None => staging.insert(Staging::within(gpu, STAGED_BYTES)?),
                };
                staging.copy_from_device(to, source.gpu(), from, bytes)
            }
        }
    }
}
