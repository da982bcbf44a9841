//! Strategies of the top-k distance join.

/// How a GPU finds the pairs of a [`TopKDistanceJoin`](super::TopKDistanceJoin). All strategies return the same result; the CPU ignores
/// them.
///
/// Milliseconds for the 16 best pairs within 0.001 of two sets of uniform points on an H200 (benches/results/join-h200.md):
///
/// | | 1M points | 100M points | temporary memory |
/// |---|---|---|---|
/// | [`Threshold`](Self::Threshold) | 0.140 | 0.398 | that of [`Cells`](Self::Cells), unless the best-scored points suffice |
/// | [`Cells`](Self::Cells) | 0.364 | 22.4 | 41 to 45 bytes per point |
/// | [`Filter`](Self::Filter) | 0.62 | does not fit | 16 bytes per pair within the distance |
/// | [`NestedLoop`](Self::NestedLoop) | for small sets | for small sets | 0.5 MiB |
///
/// ```
/// use kauri::join::{Scored, Strategy, TopKDistanceJoin};
/// let points = [[0.0f32, 0.0], [0.5, 0.0], [9.0, 9.0]];
/// let set = Scored::new(&points, &[3u32, 5, 4])?;
/// let join = TopKDistanceJoin::new(1.0, 2).strategy(Strategy::Cells);
/// assert_eq!(join.run(&kauri::Device::cpu(), set, set)?.pairs().len(), 2);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// [`Filter`](Self::Filter) for more than a million pairs; otherwise [`NestedLoop`](Self::NestedLoop) for small sets,
    /// [`Threshold`](Self::Threshold) for large sets and a monotone score function, and [`Cells`](Self::Cells) in all other cases.
    #[default]
    Auto,
    /// Scores all pairs within the distance, without a grid.
    NestedLoop,
    /// Joins the best-scored points of both sets first. If no pair with another point can be better, their pairs are the result. Otherwise
    /// the last of them is the first threshold of [`Cells`](Self::Cells).
    Threshold,
    /// For each right point, scores the points of its neighbor cells that can reach the running threshold. The right points are joined in
    /// parts, and each part raises the threshold. Long work of a warp is divided among all warps. If one set is much smaller, it becomes
    /// the build side.
    Cells,
    /// Keeps the best pairs of each right point in registers (Løvik 2020), for `k` up to 64; up to 128 in local memory.
    #[cfg(feature = "research")]
    RegisterHeap,
    /// Keeps the best pairs of each right point in a heap in shared memory (Løvik 2020), for `k` up to 128.
    #[cfg(feature = "research")]
    SharedHeap,
    /// Appends all pairs by an atomic counter and sorts them by score (Løvik 2020, the baseline).
    #[cfg(feature = "research")]
    AppendSort,
    /// Counts all pairs, writes them, and selects the best.
    Filter,
}

impl Strategy {
    /// True if all pairs within the distance are in memory at once.
    pub(super) fn has_all_pairs(self) -> bool {
        match self {
            #[cfg(feature = "research")]
            Self::AppendSort => true,
            strategy => strategy == Self::Filter,
        }
    }
}
