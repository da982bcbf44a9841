//! Large and small nodes in preorder: the tree.

use super::super::host::check_size;
use super::Triangles;
use super::large::{LargeNodes, Uppers};
use super::room::Room;
use super::small::SmallNodes;
use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::primitives::pairs::nothing;
use cuda_std::mem::SliceMut;
use kauri_kernels::sah::subtrees::Size;
use kauri_kernels::sah::tree::{sah_upper_sizes, sah_upper_write};
use std::ops::Range;

/// How large the subtrees of large nodes are, and where.
pub(super) struct Preorder {
    sizes: Room<Size>,
    places: Room<Size>,
}

impl Preorder {
    pub(super) fn new() -> Self {
        Self { sizes: Room::new("sizes of subtrees"), places: Room::new("sizes of subtrees") }
    }

    /// The tree: sizes from the last level of large nodes up, places from the root down.
    pub(super) fn write(
        &mut self,
        stream: &Stream,
        input: &Triangles<'_>,
        large: &LargeNodes,
        uppers: &Uppers,
        small: &mut SmallNodes,
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        let num_uppers = uppers.levels.last().map_or(0, |level| level.end as usize);
        self.sizes.reserve(stream, num_uppers, 0)?;
        self.places.reserve(stream, num_uppers, 0)?;
        let records = if num_uppers > 0 { large.uppers(num_uppers) } else { nothing().read_only() };
        let num = |level: &Range<u32>| u64::from(level.end - level.start);
        // SAFETY: levels are parts of the lists, and these wait for the device before they are freed.
        unsafe {
            for level in uppers.levels.iter().rev() {
                let args = (level.start, level.end, records, small.all_sizes(), self.sizes.all_mut());
                stream.launch_items::<sah_upper_sizes>(num(level), args)?;
            }
            let root = if num_uppers > 0 { self.sizes.first(1) } else { small.all_sizes().part(0, 1) };
            let all: Size = stream.read(root)?[0];
            check_size(all.nodes.into(), all.listed.into())?;
            let mut nodes = Buffer::uninitialized(stream.gpu(), all.nodes as usize, "SAH k-d tree")?;
            let mut listed = Buffer::uninitialized(stream.gpu(), all.listed as usize, "SAH k-d tree")?;
            let places = |places: SliceMut<'_, Size>| stream.fill_bytes(places.part(0, 1), 0);
            if num_uppers > 0 {
                places(self.places.all_mut())?
            } else {
                places(small.sizes_and_places().1)?
            }
            for level in &uppers.levels {
                let (small_sizes, small_places) = small.sizes_and_places();
                let (sizes, places) = (self.sizes.first(num_uppers), self.places.all_mut());
                let args = (
                    level.start,
                    level.end,
                    records,
                    sizes,
                    small_sizes,
                    places,
                    small_places,
                    nodes.slice_mut(),
                );
                stream.launch_items::<sah_upper_write>(num(level), args)?;
            }
            small.write(stream, input, nodes.slice_mut(), listed.slice_mut())?;
            Ok((nodes, listed))
        }
    }
}
