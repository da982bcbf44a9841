//! Streams that read memory which other work will write.

use super::Stream;
use crate::error::Result;
use crate::threads::lock;
use std::sync::{Mutex, PoisonError};

/// The streams whose work may still read some memory.
#[derive(Default)]
pub struct Readers(Mutex<Vec<Stream>>);

/// Maximum number of remembered streams: a program may have a stream for each call.
const MAX_READERS: usize = 16;

impl Readers {
    /// Enqueues work on a stream that reads the memory, and records the stream as a reader. Waits only for the oldest of too many readers.
    pub(crate) fn read_by<R>(&self, stream: &Stream, enqueue: impl FnOnce() -> Result<R>) -> Result<R> {
        let result = enqueue();
        // Afterwards, since an earlier record may be gone by now; and after an error too, since some of the work may be enqueued.
        self.record(stream)?;
        result
    }

    fn record(&self, stream: &Stream) -> Result<()> {
        let mut readers = lock(&self.0);
        if readers.iter().any(|reader| reader.same(stream)) {
            return Ok(());
        }
        if readers.len() == MAX_READERS {
            readers[0].synchronize()?;
            readers.remove(0);
        }
        readers.push(stream.clone());
        Ok(())
    }

    /// Makes a stream wait for all readers. After that, the stream may write the memory.
    pub(crate) fn wait(&mut self, stream: &Stream) -> Result<()> {
        let readers = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        readers.drain(..).try_for_each(|reader| stream.wait_for(&reader))
    }
}
