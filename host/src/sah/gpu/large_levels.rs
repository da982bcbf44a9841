//! One level of large nodes.

use super::build_input::BuildInput;
use super::small_roots::SourceReferences;
use crate::device::{Layout, PinnedBuffer, Region, Stream, Temp};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::primitives::segmented::{SegmentFormat, Segmented};
use cuda_std::kernel::Kernel;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::aabb::{Aabb, BOX_WORDS};
use kauri_kernels::sah::large_levels::{sah_chunk_nodes, sah_level, totals};
use kauri_kernels::sah::large_nodes::{CHUNK_TRIANGLES, LargeNode, ReferenceLimit};
use kauri_kernels::sah::small_roots::SmallRoot;
use kauri_kernels::sah::top_nodes::TopNode;
use kauri_kernels::thread::operator::{Min, Sum};

/// The scratch memory of a level. Rows of keys and counts have an element for each node or chunk.
pub(super) struct LevelLayout {
    /// The node of each chunk.
    pub(super) chunk_nodes: Region<u32>,
    /// 1 for the first chunk of each node.
    pub(super) heads: Region<u8>,
    /// The first chunk of each node.
    pub(super) offsets: Region<u64>,
    /// Bounding boxes of nodes.
    pub(super) keys: Region<u32>,
    /// Bounding boxes of chunks.
    pub(super) chunk_keys: Region<u32>,
    /// References of nodes on both sides.
    pub(super) counts: Region<u32>,
    /// References of chunks on both sides.
    pub(super) chunk_counts: Region<u32>,
    /// References of a node before each of its chunks, on both sides.
    pub(super) before_chunks: Region<u32>,
    pub(super) min_keys: Segmented,
    pub(super) count_sums: Segmented,
    /// 1 for nodes that try another axis.
    pub(super) retries: Region<u8>,
    pub(super) totals: Region<u64>,
}

impl LevelLayout {
    pub(super) fn new(layout: &mut Layout, num_nodes: usize, num_chunks: usize) -> Self {
        Self {
            chunk_nodes: layout.reserve(num_chunks),
            heads: layout.reserve(num_chunks),
            offsets: layout.reserve(num_nodes + 1),
            keys: layout.reserve(BOX_WORDS * num_nodes),
            chunk_keys: layout.reserve(BOX_WORDS * num_chunks),
            counts: layout.reserve(2 * num_nodes),
            chunk_counts: layout.reserve(2 * num_chunks),
            before_chunks: layout.reserve(2 * num_chunks),
            min_keys: Segmented::plan::<u32, Min>(layout, num_chunks, SegmentFormat::Heads),
            count_sums: Segmented::plan::<u32, Sum>(layout, num_chunks, SegmentFormat::Heads),
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
    pub(super) stream: &'a Stream,
    pub(super) temp: &'a Temp<'a>,
    pub(super) layout: &'a LevelLayout,
    pub(super) input: &'a BuildInput<'a>,
    pub(super) nodes: Slice<'a, LargeNode>,
    pub(super) references: Slice<'a, u32>,
    /// Bounding boxes: by reference if triangles are clipped, otherwise by triangle.
    pub(super) boxes: Slice<'a, Aabb>,
    /// The reference list of the next level, with twice as many chunks.
    pub(super) next_references: SliceMut<'a, u32>,
    /// The boxes of the next level's references, if triangles are clipped.
    pub(super) next_boxes: SliceMut<'a, Aabb>,
}

/// The output of a level.
pub(super) struct NextLevel<'a> {
    pub(super) first_top_node: u32,
    pub(super) first_small_root: u32,
    pub(super) first_small_reference: u32,
    pub(super) nodes: SliceMut<'a, LargeNode>,
    pub(super) small_roots: SliceMut<'a, SmallRoot>,
    pub(super) top_nodes: SliceMut<'a, TopNode>,
}

impl Level<'_> {
    pub(super) fn view<T>(&self, region: Region<T>) -> SliceMut<'_, T> {
        self.temp.view(region)
    }

    pub(super) fn num_chunks(&self) -> u64 {
        self.view(self.layout.chunk_nodes).len() as u64
    }

    /// Returns the lists from which the references of small roots are copied.
    pub(super) fn source_references(&self) -> SourceReferences<'_> {
        let empty = empty_view().read_only();
        let boxes = [self.boxes, self.next_boxes.read_only()];
        SourceReferences {
            references: [self.references, self.next_references.read_only()],
            boxes: if self.input.options.clip { boxes } else { [empty; 2] },
        }
    }

    /// Launches a kernel with a block per chunk: `Shared` exchanges values through shared memory, `Shuffle` by shuffles.
    ///
    /// # Safety
    /// The kernels' conditions.
    pub(super) unsafe fn launch_chunks<'a, Shared, Shuffle>(&self, args: Shared::Args<'a>) -> Result<()>
    where
        Shared: Kernel,
        Shuffle: Kernel<Args<'a> = Shared::Args<'a>>,
    {
        let (stream, num_chunks) = (self.stream, self.num_chunks());
        // SAFETY: passed on to the caller.
        unsafe {
            if self.input.options.stages.by_shared_memory {
                stream.launch::<Shared>(num_chunks, args)
            } else {
                stream.launch::<Shuffle>(num_chunks, args)
            }
        }
    }

    /// Maps chunks to nodes, and resets the level's accumulators.
    ///
    /// # Safety
    /// Nothing else uses the level's memory until the stream has done the work; the reference lists are as long as the nodes say.
    pub(super) unsafe fn map_chunks(&self) -> Result<()> {
        let args = (
            self.nodes,
            self.view(self.layout.chunk_nodes),
            self.view(self.layout.heads),
            self.view(self.layout.offsets),
            self.view(self.layout.keys),
            self.view(self.layout.counts),
            self.view(self.layout.totals),
        );
        // SAFETY: passed on to the caller.
        unsafe { self.stream.launch_items::<sah_chunk_nodes>(self.num_chunks(), args) }
    }

    /// Decides about the nodes, writes the next level, and waits for the totals, which start at zero.
    ///
    /// # Safety
    /// As [`map_chunks`](Self::map_chunks); the output has memory for two children of each node, of either kind.
    pub(super) unsafe fn process_nodes(
        &self,
        next: &NextLevel<'_>,
        limit: ReferenceLimit,
        host_totals: &mut Option<PinnedBuffer<u64>>,
    ) -> Result<LevelTotals> {
        let (stream, device_totals) = (self.stream, self.view(self.layout.totals));
        let host_totals = match host_totals {
            Some(buffer) => buffer,
            None => host_totals.insert(PinnedBuffer::zeroed(stream.gpu(), totals::WORDS, "large nodes")?),
        };
        let args = (
            self.nodes,
            self.view(self.layout.keys).read_only(),
            self.view(self.layout.counts).read_only(),
            self.input.options.empty_space,
            self.input.options.step_cost,
            (limit == ReferenceLimit::Reached).into(),
            next.first_top_node,
            next.first_small_root,
            next.first_small_reference,
            device_totals,
            next.nodes,
            next.small_roots,
            self.view(self.layout.retries),
            next.top_nodes,
        );
        // SAFETY: passed on to the caller.
        unsafe {
            stream.launch_items::<sah_level>(self.nodes.len() as u64, args)?;
            stream.start_reading(device_totals.read_only(), host_totals)?;
        }
        stream.synchronize()?;
        let (nodes, chunks) = totals::unpack(host_totals[totals::LARGE]);
        let (small_roots, small_references) = totals::unpack(host_totals[totals::SMALL]);
        let flags = host_totals[totals::FLAGS];
        Ok(LevelTotals { nodes, chunks, small_roots, small_references, flags })
    }
}
