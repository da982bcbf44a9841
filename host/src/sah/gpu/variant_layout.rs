//! The scratch memory of a level of large nodes in the variants of [`StagesOptions`].

use crate::device::{Layout, Region};
use crate::primitives::segmented::{SegmentedReduce, SegmentedScan};
use crate::sah::variants::StagesOptions;
use kauri_kernels::rays::aabb::BOX_WORDS;
use kauri_kernels::thread::operator::{Min, Sum};

/// The scratch memory of a level's segmented scans and reductions. Rows have an element for each chunk.
pub(super) struct VariantLayout {
    pub(super) stages: StagesOptions,
    /// 1 for the first chunk of each node.
    pub(super) heads: Region<u8>,
    /// The first chunk of each node.
    pub(super) offsets: Region<u64>,
    /// Bounding boxes of chunks.
    pub(super) chunk_keys: Region<u32>,
    pub(super) min_keys: SegmentedReduce,
    /// References of chunks on both sides.
    pub(super) chunk_counts: Region<u32>,
    /// References of a node before each of its chunks, on both sides.
    pub(super) before_chunks: Region<u32>,
    pub(super) count_sums: SegmentedScan,
}

impl VariantLayout {
    /// Plans the memory, if the options ask for a variant of these stages.
    pub(super) fn plan(
        layout: &mut Layout,
        [num_nodes, num_chunks]: [usize; 2],
        stages: StagesOptions,
    ) -> Option<Self> {
        let is_default = StagesOptions {
            sort_by_scans: false,
            boxes_by_reductions: false,
            by_shared_memory: false,
            time_steps: false,
            ..stages
        } == stages;
        (!is_default).then(|| Self {
            stages,
            heads: layout.reserve(num_chunks),
            offsets: layout.reserve(num_nodes),
            chunk_keys: layout.reserve(BOX_WORDS * num_chunks),
            min_keys: SegmentedReduce::plan::<u32, Min>(layout, num_chunks, num_nodes),
            chunk_counts: layout.reserve(2 * num_chunks),
            before_chunks: layout.reserve(2 * num_chunks),
            count_sums: SegmentedScan::plan::<u32, Sum>(layout, num_chunks),
        })
    }
}
