//! Events: marks in a stream, for waiting and timing.

use super::driver::RawEvent;
use super::gpu::Gpu;
use crate::error::Result;
use std::time::Duration;

/// A mark in a stream, set by [`Stream::record`](super::Stream::record): the host or another stream waits for it, and two of
/// them measure time on the device.
///
/// ```
/// use kauri::device::{Buffer, Event, Stream};
///
/// if let Some(gpu) = kauri::Device::best()?.gpu() {
///     let (stream, start, end) = (Stream::new(gpu)?, Event::new(gpu)?, Event::new(gpu)?);
///     let mut buffer = Buffer::<u32>::uninitialized(gpu, 1 << 20, "zeros")?;
///     stream.record(&start)?;
///     buffer.fill_bytes(&stream, 0)?;
///     stream.record(&end)?;
///     end.synchronize()?;
///     println!("filled in {:?}", end.elapsed_since(&start)?);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    pub(super) raw: RawEvent,
    /// False once another library owns the driver's event.
    owned: bool,
}

impl Event {
    /// Creates an event, which counts as done until it is recorded.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self::from_raw(gpu, gpu.driver.create_event()?))
    }

    /// Takes the ownership of a driver's event.
    pub(super) fn from_raw(gpu: &Gpu, raw: RawEvent) -> Self {
        Self { gpu: gpu.clone(), raw, owned: true }
    }

    /// Gives up the ownership of the driver's event.
    #[cfg(feature = "cust")]
    pub(super) fn into_raw(mut self) -> RawEvent {
        self.owned = false;
        self.raw
    }

    /// Waits until the work before the mark is done.
    ///
    /// # Errors
    /// Errors of the driver, including those of the earlier work.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.driver.synchronize_event(self.raw)
    }

    /// Returns the device time from `start` to this event, or 0 if this event came first. Both must be recorded and
    /// done.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and errors of the driver.
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        start.gpu.check_same(&self.gpu)?;
        let ms = self.gpu.driver.elapsed_ms(start.raw, self.raw)?;
        // The time is negative if `start` came later.
        Ok(Duration::try_from_secs_f64(f64::from(ms) / 1e3).unwrap_or_default())
    }

    /// Returns the device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.owned {
            self.gpu.driver.destroy_event(self.raw);
        }
    }
}
