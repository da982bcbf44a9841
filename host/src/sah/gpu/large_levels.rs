//! One level of large nodes.

use super::build_input::BuildInput;
use super::planes_layout::PlanesLayout;
#[cfg(feature = "research")]
use super::variant_layout::VariantLayout;
use crate::device::{Layout, PinnedBuffer, Region, Temp};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::rays::aabb::BOX_WORDS;
use kauri_kernels::sah::chunks::{LevelReferences, ReferenceList, ReferenceListMut};
use kauri_kernels::sah::large_levels::{
    LevelNodes, LevelSums, NextLevel, sah_chunk_nodes, sah_level, totals,
};
use kauri_kernels::sah::large_nodes::{CHUNK_TRIANGLES, LargeNode};
use kauri_kernels::sah::plans::Plans;

/// The scratch memory of a level. Rows of keys and counts have an element for each node.
pub(super) struct LevelLayout {
    /// The node of each chunk.
    pub(super) chunk_nodes: Region<u32>,
    /// Bounding boxes of nodes.
    pub(super) keys: Region<u32>,
    /// References of nodes on both sides.
    pub(super) counts: Region<u32>,
    /// 1 for nodes that try another axis.
    pub(super) retries: Region<u8>,
    pub(super) totals: Region<u64>,
}

impl LevelLayout {
    pub(super) fn plan(layout: &mut Layout, [num_nodes, num_chunks]: [usize; 2]) -> Self {
        Self {
            chunk_nodes: layout.reserve(num_chunks),
            keys: layout.reserve(BOX_WORDS * num_nodes),
            counts: layout.reserve(2 * num_nodes),
            retries: layout.reserve(num_nodes),
            totals: layout.reserve(totals::WORDS),
        }
    }
}

/// The totals of a processed level.
pub(super) struct LevelTotals {
    /// Large nodes of the next level.
    pub(super) nodes: u32,
    /// Chunks of these.
    pub(super) chunks: u32,
    /// New small roots.
    pub(super) small_roots: u32,
    /// References of these.
    pub(super) small_references: u32,
    /// [`totals::RETRIES`] and [`totals::OVERFLOW`].
    pub(super) flags: u64,
}

impl LevelTotals {
    /// Returns the reference slots of the next level and of new small roots.
    pub(super) fn reference_slots(&self) -> u64 {
        u64::from(self.chunks) * u64::from(CHUNK_TRIANGLES) + u64::from(self.small_references)
    }
}

/// A level of large nodes.
pub(super) struct Level<'a> {
    pub(super) input: &'a BuildInput<'a>,
    pub(super) temp: &'a Temp<'a>,
    pub(super) layout: &'a LevelLayout,
    pub(super) nodes: Slice<'a, LargeNode>,
    pub(super) list: ReferenceList<'a>,
    /// The reference list of the next level, with twice as many chunks.
    pub(super) next: ReferenceListMut<'a>,
    /// The scratch memory of the cheapest planes, by which nodes split if the quality is [`Exact`](crate::sah::Quality::Exact).
    pub(super) planes: Option<PlanesLayout>,
    #[cfg(feature = "research")]
    pub(super) variant: Option<VariantLayout>,
}

impl Level<'_> {
    pub(super) fn view<T>(&self, region: Region<T>) -> SliceMut<'_, T> {
        self.temp.view(region)
    }

    pub(super) fn num_chunks(&self) -> u64 {
        self.view(self.layout.chunk_nodes).len() as u64
    }

    /// Returns the nodes with their references.
    pub(super) fn references(&self) -> LevelReferences<'_> {
        let chunk_nodes = self.view(self.layout.chunk_nodes).read_only();
        LevelReferences { nodes: self.nodes, chunk_nodes, list: self.list }
    }

    /// Returns the input of the nodes' split plans.
    pub(super) fn plans(&self) -> Plans<'_> {
        let planes = self.planes.as_ref().map_or_else(empty_view, |planes| self.view(planes.best));
        let (keys, planes) = (self.view(self.layout.keys).read_only(), planes.read_only());
        Plans { keys, empty_space: self.input.options.empty_space, planes }
    }

    /// Returns the lists from which the references of small roots are copied: of this level, and of the next.
    pub(super) fn source_lists(&self) -> [ReferenceList<'_>; 2] {
        let (triangles, boxes) = (self.next.triangles.read_only(), self.next.boxes.read_only());
        [self.list, ReferenceList { triangles, boxes, ..self.list }]
    }

    /// Maps chunks to nodes, and resets the level's accumulators.
    ///
    /// # Safety
    /// Nothing else uses the level's memory until the stream has done the work; the reference lists are as long as the nodes say.
    pub(super) unsafe fn map_chunks(&self) -> Result<()> {
        let sums = LevelSums {
            keys: self.view(self.layout.keys),
            counts: self.view(self.layout.counts),
            totals: self.view(self.layout.totals),
        };
        let args = (self.nodes, self.view(self.layout.chunk_nodes), sums);
        // SAFETY: passed on to the caller.
        unsafe { self.input.stream.launch_items::<sah_chunk_nodes>(self.num_chunks(), args) }
    }

    /// Decides about the nodes, writes the next level, and waits for the totals, which start at zero.
    ///
    /// # Safety
    /// As [`map_chunks`](Self::map_chunks); the output has memory for two children of each node, of either kind.
    pub(super) unsafe fn process_nodes(
        &self,
        next: NextLevel<'_>,
        is_full: bool,
        host_totals: &mut Option<PinnedBuffer<u64>>,
    ) -> Result<LevelTotals> {
        let stream = self.input.stream;
        let host_totals = match host_totals {
            Some(buffer) => buffer,
            None => host_totals.insert(PinnedBuffer::zeroed(stream.gpu(), totals::WORDS, "large nodes")?),
        };
        let level = LevelNodes {
            nodes: self.nodes,
            plans: self.plans(),
            counts: self.view(self.layout.counts).read_only(),
            step_cost: self.input.options.step_cost,
            is_full: is_full.into(),
        };
        // SAFETY: passed on to the caller.
        unsafe {
            stream.launch_items::<sah_level>(self.nodes.len() as u64, (level, next))?;
            stream.start_reading(next.totals.read_only(), host_totals)?;
        }
        stream.synchronize()?;
        let (nodes, chunks) = totals::unpack(host_totals[totals::LARGE]);
        let (small_roots, small_references) = totals::unpack(host_totals[totals::SMALL]);
        let flags = host_totals[totals::FLAGS];
        Ok(LevelTotals { nodes, chunks, small_roots, small_references, flags })
    }
}
