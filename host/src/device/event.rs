//! Marks in a stream: waiting and timing.

use super::driver::RawEvent;
use super::gpu::Gpu;
use crate::error::Result;
use std::time::Duration;

/// A mark in a stream, set by [`Stream::record`](super::Stream::record).
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    raw: RawEvent,
}

impl Event {
    /// A new event, which counts as done until it is recorded.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self { gpu: gpu.clone(), raw: gpu.driver().create_event()? })
    }

    /// Waits until the work before the mark is done.
    ///
    /// # Errors
    /// The driver's, also from that work.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.driver().synchronize_event(self.raw)
    }

    /// Device time from `start` to this event; both must have been recorded and be done. 0 if this one came first.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), or the driver's.
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        start.gpu.check_same(&self.gpu)?;
        let ms = self.gpu.driver().elapsed_ms(start.raw, self.raw)?;
        // Negative where the start came later.
        Ok(Duration::try_from_secs_f64(f64::from(ms) / 1e3).unwrap_or_default())
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(super) fn raw(&self) -> RawEvent {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.gpu.driver().destroy_event(self.raw);
    }
}
