//! Variants of builds, published in [`research::sah`](crate::research::sah).

/// Variants of the stages of a GPU's fast build. The default is the library's own build; the CPU ignores them.
///
/// ```
/// use kauri::research::sah::{CandidateLayout, StagesOptions};
/// use kauri::SahOptions;
/// let zhou = StagesOptions {
///     sort_by_scans: true,
///     boxes_by_reductions: true,
///     by_shared_memory: true,
///     small_by_levels: true,
///     candidates: CandidateLayout::Records,
///     ..StagesOptions::default()
/// };
/// let options = SahOptions::default().stages(zhou);
/// # assert_ne!(zhou, StagesOptions::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagesOptions {
    /// Partitions the references of large nodes by segmented scans of the chunks' counts instead of atomics.
    pub sort_by_scans: bool,
    /// Computes the boxes of large nodes by segmented reductions of the chunks' boxes instead of atomics.
    pub boxes_by_reductions: bool,
    /// Exchanges values of a block through shared memory instead of shuffles.
    pub by_shared_memory: bool,
    /// Splits small nodes level by level with masks in device memory instead of one warp per root.
    pub small_by_levels: bool,
    /// The candidates of `small_by_levels` in memory.
    pub candidates: CandidateLayout,
    /// Waits after the boxes and after the sort of each level of large nodes, and reports the times of both in phases of their own.
    pub time_steps: bool,
    /// Maximum bytes of these candidates at a time; 2^29 by default. Roots are processed in batches, of at least one root.
    pub candidate_bytes: usize,
}

impl Default for StagesOptions {
    fn default() -> Self {
        Self {
            sort_by_scans: false,
            boxes_by_reductions: false,
            by_shared_memory: false,
            small_by_levels: false,
            candidates: CandidateLayout::Arrays,
            time_steps: false,
            candidate_bytes: 1 << 29,
        }
    }
}

/// Split planes of small nodes, and the masks of the triangles on their sides, in memory. All layouts give the same tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateLayout {
    /// An array of planes of 4 bytes, and one of both masks of 16 bytes. The default.
    Arrays,
    /// Arrays as by default; the masks are loaded by the read-only path, as Chang, Seo and Ihm load them by textures.
    ReadOnlyMasks,
    /// Records of 20 bytes.
    Records,
}
