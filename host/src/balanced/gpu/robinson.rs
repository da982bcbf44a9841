//! Robinson's build algorithm: merge-sorts one array per axis, removes equal points in two passes, then partitions all arrays level by
//! level with the partitioner that fits the length of the runs.

use cuda_std::mem::SliceMut;
use kauri_kernels::balanced::distinct::balanced_distinct_pieces_direct;
use kauri_kernels::balanced::num_partitions;
use kauri_kernels::balanced::robinson::Nodes;
use kauri_kernels::balanced::robinson::finish::balanced_finish_runs;
use kauri_kernels::balanced::robinson::partition::{
    Level, balanced_partition_close_gaps, balanced_partition_pieces, balanced_partition_runs,
    balanced_partition_small_runs,
};
use kauri_kernels::policy::BALANCED_WARPS;
use kauri_kernels::thread::coord::Float;

use crate::balanced::gpu::distinct::Distinct;
use crate::balanced::gpu::plan::{BuildContext, BuildPlan, Phases};
use crate::balanced::options::BalancedOptions;
use crate::device::{Buffer, Layout, Region};
use crate::error::{Error, Result};
use crate::primitives::pairs::{Pairs, Source, empty_view};
use crate::primitives::sort_points::SortPoints;

/// Maximum length of a run that shares a warp with other runs.
const MAX_SMALL_RUN: u32 = 16;

/// Scratch memory of a build.
pub(crate) struct Robinson<C> {
    /// Number of warps that partition; a power of two.
    warps: u32,
    direct_stores: bool,
    sequential_compactions: bool,
    sort: SortPoints<C>,
    distinct: Distinct,
    sorted_keys: Region<C>,
    sorted: Region<u32>,
    /// The ids of the distinct points, sorted on each axis, and a spare array to partition to.
    arrays: Vec<Region<u32>>,
    spare: Region<u32>,
    halves: Region<u32>,
}

impl<C: Float> Robinson<C> {
    pub(crate) fn plan(layout: &mut Layout, n: usize, dims: usize, options: &BalancedOptions) -> Self {
        // A warp takes at least 32 points.
        let useful = n.div_ceil(32).clamp(1, 1 << 20) as u32;
        let warps = options.warps.unwrap_or(BALANCED_WARPS).clamp(1, useful).next_power_of_two();
        let &BalancedOptions { direct_stores, sequential_compactions, .. } = options;
        Self {
            warps,
            direct_stores,
            sequential_compactions,
            sort: SortPoints::plan(layout, n),
            distinct: Distinct::plan(layout, n, warps),
            sorted_keys: layout.reserve(n),
            sorted: layout.reserve(n),
            arrays: (0..dims).map(|_| layout.reserve(n)).collect(),
            spare: layout.reserve(n),
            halves: layout.reserve(2 * warps as usize),
        }
    }

    /// Sorts the points on an axis by super key.
    fn sort_axis<'a>(&self, context: BuildContext<'a, C>, axis: usize) -> Result<Source<'a, C, u32>> {
        let BuildContext { temp, .. } = context;
        let output = Pairs { keys: temp.view(self.sorted_keys), values: temp.view(self.sorted) };
        // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
        unsafe { self.sort.run(temp, context.points(axis), output)? };
        Ok(output.read_only())
    }

    /// Writes the nodes, with the constants of the [partitioners](kauri_kernels::balanced::robinson::partition).
    fn partition_by<const BUFFERED: usize, const AT_ONCE: usize>(
        &self,
        context: BuildContext<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        children: SliceMut<'_, u32>,
    ) -> Result<()> {
        let BuildContext { temp, dims, .. } = context;
        // SAFETY: the arrays are planned for all points, and `num_nodes` is at most their number.
        let part = |region| unsafe { temp.view(region).part(0, num_nodes) };
        let mut arrays: Vec<_> = self.arrays.iter().map(|&array| part(array)).collect();
        let (mut spare, less, greater) = (part(self.spare), part(self.sorted), part(self.distinct.compacted));
        let (halves, warps) = (temp.view(self.halves), self.warps);
        let threads = 32 * u64::from(warps);
        let last = num_partitions(num_nodes as u32);
        for level in 0..last {
            let axis = level as usize % dims;
            let primary = arrays[axis].read_only();
            // The lengths of the runs of a level differ by at most one.
            let longest = (num_nodes as u64 + 1).div_ceil(1 << level) as u32 - 1;
            // The first partition writes the nodes. With one dimension there is no other array, so an empty one is partitioned.
            let nodes = Nodes { medians, children };
            let mut partition = Level { points: context.points(axis), primary, level, nodes };
            let others: Vec<_> = (0..dims).filter(|&other| other != axis).map(Some).collect();
            let others = if others.is_empty() { vec![None] } else { others };
            for other in others {
                let array = other.map_or(empty_view(), |other| arrays[other]);
                let from = array.read_only();
                // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
                unsafe {
                    if 1 << level < warps {
                        let args = (partition, from, less, greater, halves, warps);
                        temp.stream
                            .launch_items::<balanced_partition_pieces<C, BUFFERED, AT_ONCE>>(threads, args)?;
                        if !array.is_empty() {
                            let (less, greater) = (less.read_only(), greater.read_only());
                            let args = (less, greater, halves.read_only(), level, array, warps);
                            temp.stream.launch_items::<balanced_partition_close_gaps>(threads, args)?;
                        }
                    } else if longest > MAX_SMALL_RUN {
                        let args = (partition, from, spare, warps);
                        temp.stream
                            .launch_items::<balanced_partition_runs<C, BUFFERED, AT_ONCE>>(threads, args)?;
                        if let Some(other) = other {
                            std::mem::swap(&mut arrays[other], &mut spare);
                        }
                    } else {
                        let lanes = longest.next_power_of_two();
                        let args = (partition, array, lanes, warps);
                        temp.stream.launch_items::<balanced_partition_small_runs<C>>(threads, args)?;
                    }
                }
                partition.nodes.medians = empty_view();
            }
        }
        let args = (arrays[last as usize % dims].read_only(), last, Nodes { medians, children });
        // SAFETY: the arrays of a plan do not overlap, and buffers live until the stream is synchronized.
        unsafe { temp.stream.launch_items::<balanced_finish_runs>(1 << last, args) }
    }
}

impl<C: Float> BuildPlan<C> for Robinson<C> {
    fn sort(
        &self,
        context: BuildContext<'_, C>,
        representatives: &mut Buffer<u32>,
        phases: &mut Phases<'_>,
    ) -> Result<usize> {
        let BuildContext { temp, coords, dims } = context;
        let n = coords.len() / dims;
        let mut num_nodes = n;
        for axis in 0..dims {
            let sorted = phases.run("sort", || self.sort_axis(context, axis))?;
            phases.run("dedupe", || {
                let (distinct, to) = (&self.distinct, temp.view(self.arrays[axis]));
                let found = if self.direct_stores {
                    distinct.run_by::<C, balanced_distinct_pieces_direct<C>>(context, axis, sorted, to)?
                } else {
                    distinct.run(context, axis, sorted, to)?
                };
                if axis > 0 && found != num_nodes {
                    let what = format!("{found} distinct points on axis {axis}, and {num_nodes} on others");
                    return Err(Error::corrupt(0, what));
                }
                num_nodes = found;
                if axis == 0 && num_nodes < n {
                    // SAFETY: the number of kept points is at most `n`.
                    let kept = unsafe { temp.view(self.arrays[0]).part(0, num_nodes) };
                    context.write_representatives(sorted.values, kept.read_only(), representatives)?;
                }
                Ok(())
            })?;
        }
        Ok(num_nodes)
    }

    fn writes_children(&self) -> bool {
        true
    }

    fn partition(
        &self,
        context: BuildContext<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        children: SliceMut<'_, u32>,
    ) -> Result<()> {
        let by = match (self.direct_stores, self.sequential_compactions) {
            (false, false) => Self::partition_by::<1, 1>,
            (false, true) => Self::partition_by::<1, 0>,
            (true, false) => Self::partition_by::<0, 1>,
            (true, true) => Self::partition_by::<0, 0>,
        };
        by(self, context, num_nodes, medians, children)
    }
}
