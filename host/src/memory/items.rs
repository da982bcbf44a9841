//! Items of an index in host memory: its own, or those of a file.

use std::ops::Deref;

/// Items that do not change; used as a slice.
pub(crate) enum Items<T> {
    /// The index's own.
    Own(Vec<T>),
    /// Of a file, which stays in memory as long as they do.
    #[cfg(feature = "io")]
    OfFile(OfFile<T>),
}

impl<T> From<Vec<T>> for Items<T> {
    fn from(items: Vec<T>) -> Self {
        Self::Own(items)
    }
}

impl<T> Deref for Items<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Self::Own(items) => items,
            #[cfg(feature = "io")]
            Self::OfFile(items) => items.get(),
        }
    }
}

#[cfg(feature = "io")]
pub(crate) use of_file::OfFile;

#[cfg(feature = "io")]
mod of_file {
    use crate::memory::bytes::Bytes;
    use bytemuck::Pod;
    use std::ops::Range;
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Items in the bytes of a file. Their type is forgotten to be [`Pod`], which trees that are generic over coordinates do not
    /// know; so they are kept by their address.
    pub(crate) struct OfFile<T> {
        start: NonNull<T>,
        len: usize,
        _bytes: Arc<Bytes>,
    }

    // SAFETY: they are only read, as through a reference.
    unsafe impl<T: Sync> Send for OfFile<T> {}
    // SAFETY: as above.
    unsafe impl<T: Sync> Sync for OfFile<T> {}

    impl<T: Pod> OfFile<T> {
        /// The items in a range of bytes, if it has whole items and begins where one may.
        pub(crate) fn new(bytes: &Arc<Bytes>, range: Range<usize>) -> Option<Self> {
            let items: &[T] = bytemuck::try_cast_slice(bytes.get(range)?).ok()?;
            Some(Self { start: NonNull::from(items).cast(), len: items.len(), _bytes: bytes.clone() })
        }
    }

    impl<T> OfFile<T> {
        #[inline(always)]
        pub(super) fn get(&self) -> &[T] {
            // SAFETY: they have been a slice of the bytes, which neither move nor change and live as long as `self`.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }
}
