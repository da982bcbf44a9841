//! The items of an index in host memory: owned, or in the bytes of a file.

use std::ops::Deref;

/// Immutable items; used as a slice.
pub(crate) enum Items<T> {
    /// Items owned by the index.
    Owned(Vec<T>),
    /// Items in the bytes of a file, which stays in memory.
    #[cfg(feature = "io")]
    InFile(FileItems<T>),
}

impl<T> From<Vec<T>> for Items<T> {
    fn from(items: Vec<T>) -> Self {
        Self::Owned(items)
    }
}

impl<T> Deref for Items<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(items) => items,
            #[cfg(feature = "io")]
            Self::InFile(items) => items.get(),
        }
    }
}

#[cfg(feature = "io")]
pub(crate) use file_items::FileItems;

#[cfg(feature = "io")]
mod file_items {
    use crate::memory::bytes::Bytes;
    use bytemuck::Pod;
    use std::ops::Range;
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Items in the bytes of a file, stored by address, because trees that are generic over coordinates do not know
    /// that their items are [`Pod`].
    pub(crate) struct FileItems<T> {
        start: NonNull<T>,
        len: usize,
        _bytes: Arc<Bytes>,
    }

    // SAFETY: the items are only read, as through a shared reference.
    unsafe impl<T: Sync> Send for FileItems<T> {}
    // SAFETY: as above.
    unsafe impl<T: Sync> Sync for FileItems<T> {}

    impl<T: Pod> FileItems<T> {
        /// Returns the items in a range of bytes; `None` if the range is misaligned or has a partial item.
        pub(crate) fn new(bytes: &Arc<Bytes>, range: Range<usize>) -> Option<Self> {
            let items: &[T] = bytemuck::try_cast_slice(bytes.get(range)?).ok()?;
            Some(Self { start: NonNull::from(items).cast(), len: items.len(), _bytes: bytes.clone() })
        }
    }

    impl<T> FileItems<T> {
        #[inline(always)]
        pub(super) fn get(&self) -> &[T] {
            // SAFETY: the items were a slice of the bytes, which neither move nor change and live as long as `self`.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }
}
