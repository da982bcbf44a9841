//! The bytes of a file in host memory: read, or mapped.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Deref;

use crate::error::Result;
use crate::memory;

/// Bytes are read from a stream by as many at first, since it may end before what its header says.
const FIRST_READ: usize = 1 << 20;
const BLOCK: usize = size_of::<Block>();

/// Bytes that do not change, and begin where any section may.
pub(crate) enum Bytes {
    Read { blocks: Vec<Block>, len: usize },
    Mapped(memmap2::Mmap),
}

/// As many bytes as sections are aligned to.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Block([u8; 64]);

// SAFETY: bytes.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: bytes, as many as it is aligned to.
unsafe impl bytemuck::Pod for Block {}

impl Bytes {
    /// The pages of a file.
    ///
    /// # Safety
    /// Nobody changes the file as long as they are there.
    pub(crate) unsafe fn map(file: &File) -> io::Result<Self> {
        // SAFETY: passed on to the caller.
        unsafe { memmap2::Mmap::map(file) }.map(Self::Mapped)
    }

    /// `len` bytes: `front`, and what a reader has behind it. Fewer, if it ends before that: memory is taken as bytes
    /// come, doubled each time. If it is known that all are there, it is taken at once.
    pub(crate) fn read(
        front: &[u8],
        reader: &mut dyn Read,
        len: usize,
        all_there: bool,
    ) -> Result<io::Result<Self>> {
        let (mut blocks, mut filled) = (Vec::<Block>::new(), 0);
        while filled < len {
            let room = if all_there { len } else { len.min((2 * filled).max(FIRST_READ)) };
            let (had, have) = (blocks.len(), room.div_ceil(BLOCK));
            memory::reserve(&mut blocks, have - had, "the bytes of a file")?;
            blocks.resize(have, Block([0; BLOCK]));
            let to = &mut bytemuck::cast_slice_mut(&mut blocks)[..room];
            if filled == 0 {
                to[..front.len()].copy_from_slice(front);
                filled = front.len();
            }
            match read_full(reader, &mut to[filled..]) {
                Ok(got) => filled += got,
                Err(error) => return Ok(Err(error)),
            }
            if filled < room {
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

/// Reads until the buffer is full or the reader ends, and says how many bytes that were.
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
