//! The input of a build, and lists of references, which its stages share.

use crate::device::GrowableBuffer;
use crate::device::Stream;
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::sah::options::SahOptions;
use cuda_std::mem::Slice;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::chunks::{ReferenceList, ReferenceListMut};

/// The triangles and options of a build, and its stream.
pub(super) struct BuildInput<'a> {
    pub(super) stream: &'a Stream,
    pub(super) corners: Slice<'a, Corners>,
    /// The bounding box of each triangle.
    pub(super) boxes: Slice<'a, Aabb>,
    /// The bounding box of all triangles.
    pub(super) bounds: Aabb,
    pub(super) options: &'a SahOptions,
    /// The times of boxes and sorts of large nodes so far, if they are timed.
    #[cfg(feature = "research")]
    pub(super) step_times: std::cell::Cell<[std::time::Duration; 2]>,
}

/// The memory of a list of references.
#[derive(Default)]
pub(super) struct ReferenceBuffers {
    pub(super) triangles: GrowableBuffer<u32>,
    /// The box of each reference, if triangles are clipped.
    pub(super) boxes: GrowableBuffer<Aabb>,
}

/// Labels of both buffers in errors.
pub(super) const TRIANGLES: &str = "triangles of nodes";
pub(super) const BOXES: &str = "boxes of parts of triangles";

impl ReferenceBuffers {
    /// Sets the length to `len` references. The first `kept` references stay.
    pub(super) fn grow(&mut self, input: &BuildInput<'_>, len: usize, kept: usize) -> Result<()> {
        self.triangles.grow(input.stream, len, kept, TRIANGLES)?;
        if input.options.clip { self.boxes.grow(input.stream, len, kept, BOXES) } else { Ok(()) }
    }

    /// Returns the references.
    pub(super) fn list<'a>(&'a self, input: &BuildInput<'a>) -> ReferenceList<'a> {
        let clip = input.options.clip;
        ReferenceList {
            triangles: self.triangles.view(),
            boxes: if clip { self.boxes.view() } else { input.boxes },
            are_clipped: clip.into(),
        }
    }

    /// Returns the memory of the references.
    pub(super) fn list_mut(&mut self, input: &BuildInput<'_>) -> ReferenceListMut<'_> {
        ReferenceListMut {
            triangles: self.triangles.view_mut(),
            boxes: if input.options.clip { self.boxes.view_mut() } else { empty_view() },
        }
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.triangles.bytes() + self.boxes.bytes()
    }
}
