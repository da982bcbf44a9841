//! The bytes of a file: read into memory, or mapped.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Deref;

use crate::error::Result;
use crate::memory;

/// The size of the first read of a stream, which may end before the length in its header.
const FIRST_READ: usize = 1 << 20;
const BLOCK: usize = size_of::<Block>();

/// Immutable bytes, aligned for any section.
pub(crate) enum Bytes {
    Read { blocks: Vec<Block>, len: usize },
    Mapped(memmap2::Mmap),
}

/// The alignment of sections.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Block([u8; 64]);

// SAFETY: plain bytes.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: plain bytes without padding: the size equals the alignment.
unsafe impl bytemuck::Pod for Block {}

/// How reliable the length of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// The stream is known to have all bytes.
    Verified,
    /// The length comes from a header.
    Claimed,
}

impl Bytes {
    /// Maps a file.
    ///
    /// # Safety
    /// Nothing changes the file while it is mapped.
    pub(crate) unsafe fn map(file: &File) -> io::Result<Self> {
        // SAFETY: passed on to the caller.
        unsafe { memmap2::Mmap::map(file) }.map(Self::Mapped)
    }

    /// Reads `len` bytes: `front`, then the bytes of `reader`; fewer if the reader ends early. If `length` is not
    /// verified, memory grows with the bytes read, doubling each time; otherwise it is allocated at once.
    pub(crate) fn read(
        front: &[u8],
        reader: &mut dyn Read,
        len: usize,
        length: Length,
    ) -> Result<io::Result<Self>> {
        let (mut blocks, mut filled) = (Vec::<Block>::new(), 0);
        while filled < len {
            let target_len = match length {
                Length::Verified => len,
                Length::Claimed => len.min((2 * filled).max(FIRST_READ)),
            };
            let (old_blocks, num_blocks) = (blocks.len(), target_len.div_ceil(BLOCK));
            memory::reserve(&mut blocks, num_blocks - old_blocks, "the bytes of a file")?;
            blocks.resize(num_blocks, Block([0; BLOCK]));
            let to = &mut bytemuck::cast_slice_mut(&mut blocks)[..target_len];
            if filled == 0 {
                to[..front.len()].copy_from_slice(front);
                filled = front.len();
            }
            match read_full(reader, &mut to[filled..]) {
                Ok(got) => filled += got,
                Err(error) => return Ok(Err(error)),
            }
            if filled < target_len {
                break;
            }
        }
        Ok(Ok(Self::Read { blocks, len: filled }))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read { blocks, len } => &bytemuck::cast_slice(blocks)[..*len],
            Self::Mapped(pages) => pages,
        }
    }
}

/// Reads until the buffer is full or the reader ends. Returns the number of bytes read.
pub(crate) fn read_full(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
