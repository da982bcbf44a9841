//! Variants of builds, published in [`research::sah`](crate::research::sah).

/// Variants of the stages of a GPU's fast build. The default is the library's own build; the CPU ignores them.
///
/// ```
/// use kauri::research::sah::StagesOptions;
/// use kauri::SahOptions;
/// let zhou = StagesOptions {
///     sort_by_scans: true,
///     boxes_by_reductions: true,
///     by_shared_memory: true,
///     small_by_levels: true,
///     records: true,
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
    /// Stores the candidates of `small_by_levels` as records of 20 bytes instead of separate arrays.
    pub records: bool,
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
            records: false,
            candidate_bytes: 1 << 29,
        }
    }
}
