//! Large and small nodes in preorder: the tree.

use super::super::host::check_size;
use super::Triangles;
use super::large::{LargeNodes, Uppers};
use super::room::Room;
use super::small::SmallNodes;
use crate::device::Stream;
use crate::error::Result;
use cuda_std::mem::SliceMut;
use kauri_kernels::sah::subtrees::Size;
use kauri_kernels::sah::tree::{sah_upper_sizes, sah_upper_write};

/// How large the subtrees of large nodes are, and where.
pub(super) struct Preorder {
    sizes: Room<Size>,
    places: Room<Size>,
}

impl Preorder {
    pub(super) fn new() -> Self {
        Self { sizes: Room::new("sizes of subtrees"), places: Room::new("sizes of subtrees") }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.sizes.bytes() + self.places.bytes()
    }

    /// The size of the tree, from the last level of large nodes up.
    pub(super) fn sizes(
        &mut self,
        stream: &Stream,
        large: &LargeNodes,
        uppers: &Uppers,
        small: &SmallNodes,
    ) -> Result<Size> {
        self.sizes.reserve(stream, uppers.num(), 0)?;
        self.places.reserve(stream, uppers.num(), 0)?;
        // SAFETY: levels are parts of the lists, and these wait for the device before they are freed.
        let root = unsafe {
            for level in uppers.levels.iter().rev() {
                let args =
                    (level.start, level.end, large.uppers(uppers), small.sizes(), self.sizes.all_mut());
                stream.launch_items::<sah_upper_sizes>(level.len() as u64, args)?;
            }
            let root = if uppers.num() > 0 { self.sizes.first(1) } else { small.sizes().part(0, 1) };
            stream.read(root)?[0]
        };
        check_size(root.nodes.into(), root.listed.into())?;
        Ok(root)
    }

    /// Writes the tree, of which the [sizes](Self::sizes) are known, from the root down.
    ///
    /// # Safety
    /// There is room for as much.
    pub(super) unsafe fn write(
        &mut self,
        stream: &Stream,
        input: &Triangles<'_>,
        large: &LargeNodes,
        uppers: &Uppers,
        small: &mut SmallNodes,
        (nodes, listed): (SliceMut<'_, u64>, SliceMut<'_, u32>),
    ) -> Result<()> {
        let first = if uppers.num() > 0 { self.places.all_mut() } else { small.sizes_and_places().1 };
        // SAFETY: as above; the rest is passed on to the caller.
        unsafe {
            stream.fill_bytes(first.part(0, 1), 0)?;
            for level in &uppers.levels {
                let (small_sizes, small_places) = small.sizes_and_places();
                let (sizes, places) = (self.sizes.first(uppers.num()), self.places.all_mut());
                let records = large.uppers(uppers);
                let (begin, end) = (level.start, level.end);
                let args = (begin, end, records, sizes, small_sizes, places, small_places, nodes);
                stream.launch_items::<sah_upper_write>(level.len() as u64, args)?;
            }
            small.write(stream, input, nodes, listed)
        }
    }
}
