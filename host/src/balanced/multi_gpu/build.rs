//! The steps of a build on several GPUs.

use kauri_kernels::balanced::Run;
use kauri_kernels::thread::coord::Float;

use crate::balanced::multi_gpu::cut::Cut;
use crate::balanced::multi_gpu::exchange::{Piece, exchange, redistribute};
use crate::balanced::multi_gpu::part::{self, MAX_PARTS, Part};
use crate::balanced::multi_gpu::ranks::{cuts, extend_to_equal_points};
use crate::balanced::multi_gpu::representatives::Representatives;
use crate::balanced::multi_gpu::tree::{MultiGpuTree, Nodes, Subtree, TopNode};
use crate::balanced::options::BalancedOptions;
#[cfg(feature = "research")]
use crate::balanced::options::BuildAlgorithm;
use crate::balanced::super_key::compare;
use crate::device::Gpu;
use crate::error::Result;
use crate::host_coords::HostCoords;
use crate::memory::MemoryPlan;
use crate::stats::Stats;
use crate::threads::{both, each, even};

/// The nodes that a group of parts has built.
struct BuiltNodes<C> {
    top_nodes: Vec<TopNode<C>>,
    /// One per part; fewer if the cuts were by selection and points are equal.
    subtrees: Vec<Subtree<C>>,
    stats: Stats,
}

/// How a group of parts finds the median of its points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CutBy {
    /// The parts are sorted.
    Sorting,
    /// The parts stay in any order. Points must be distinct.
    Selection,
}

/// A node by its level and its address on that level.
#[derive(Clone, Copy)]
struct NodeAddress {
    level: u32,
    address: u32,
}

impl NodeAddress {
    const ROOT: Self = Self { level: 0, address: 0 };

    fn less(self) -> Self {
        Self { level: self.level + 1, address: 2 * self.address }
    }

    fn greater(self) -> Self {
        Self { level: self.level + 1, address: 2 * self.address + 1 }
    }
}

/// Returns the most points that a part holds, if all points are distinct: those of the largest subtree.
fn most_points(num_points: usize, num_gpus: usize) -> usize {
    num_points.div_ceil(1 << num_gpus.max(2).ilog2())
}

/// Returns the bytes of the largest part. More than [`MAX_PARTS`] GPUs count as [`MAX_PARTS`].
pub(crate) fn memory_plan<C: Float>(
    num_points: usize,
    num_gpus: usize,
    dims: usize,
    options: &BalancedOptions,
) -> MemoryPlan {
    let num_parts = num_gpus.clamp(2, MAX_PARTS);
    part::memory_plan::<C>(most_points(num_points, num_parts), num_parts, dims, options)
}

impl<C: Float> MultiGpuTree<C> {
    /// Builds the tree on several GPUs with one part on each, or in two halves on one GPU.
    pub(crate) fn build(
        gpus: &[Gpu],
        coords: HostCoords<'_, C>,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let gpus = if let [gpu] = gpus { &[gpu.clone(), gpu.clone()] } else { gpus };
        let (num_points, dims) = (coords.num_points(), coords.dims());
        let chunks = even(num_points, gpus.len());
        let roots = subtree_roots(NodeAddress::ROOT, gpus.len());
        let mut parts = stats.phase("init", || {
            each(gpus.iter().zip(chunks).zip(roots), |((gpu, chunk), NodeAddress { level, address })| {
                // The length of the subtree if all points are distinct.
                let subtree_len = Run::len_of(address, level, num_points as u32) as usize;
                let first = chunk.start as u32;
                Part::upload(gpu, gpus.len(), coords.part(chunk), first, subtree_len, options)
            })
        })?;
        let mut representatives = Representatives::new(num_points);
        #[cfg(feature = "research")]
        let selects_first = options.algorithm != BuildAlgorithm::Robinson;
        #[cfg(not(feature = "research"))]
        let selects_first = true;
        let mut built = None;
        if selects_first {
            let by_selection = build_nodes(&mut parts, NodeAddress::ROOT, options, CutBy::Selection)?;
            if by_selection.subtrees.len() == parts.len() {
                built = Some(by_selection);
            } else {
                stats.phases.extend(by_selection.stats.phases);
            }
        }
        let BuiltNodes { top_nodes, subtrees, stats: build_stats } = match built {
            Some(built) => built,
            None => {
                parts.iter_mut().for_each(Part::restart);
                keep_distinct(&mut parts, &mut representatives, stats)?;
                build_nodes(&mut parts, NodeAddress::ROOT, options, CutBy::Sorting)?
            }
        };
        stats.phases.extend(build_stats.phases);
        stats.temp_bytes = parts.iter().map(|part| part.temp_bytes).max().unwrap_or(0);
        // Each device takes some time to free its memory.
        each(parts, |part| {
            drop(part);
            Ok(())
        })?;
        let num_nodes =
            top_nodes.len() + subtrees.iter().map(|subtree| subtree.tree.num_nodes).sum::<usize>();
        Ok(Nodes { dims, num_points, num_nodes, top_nodes, subtrees, representatives }.into())
    }
}

/// Sorts the points, exchanges them so that each part holds a range of the whole order, and removes equal points.
fn keep_distinct<C: Float>(
    parts: &mut [Part<C>],
    representatives: &mut Representatives,
    stats: &mut Stats,
) -> Result<()> {
    stats.phase("sort", || {
        each(&mut *parts, Part::sort_distinct)?;
        representatives.record(parts.iter_mut().filter_map(Part::take_kept));
        Ok(())
    })?;
    let pieces = stats.phase("exchange", || {
        let pieces = ranges(parts)?;
        exchange(parts, &pieces, |_, part, len| part.next_points(len))?;
        Ok(pieces)
    })?;
    stats.phase("dedupe", || {
        each(parts.iter_mut().zip(&pieces), |(part, pieces)| {
            part.merge_distinct(pieces.iter().map(|piece| piece.range.len()))
        })?;
        representatives.record(parts.iter_mut().filter_map(Part::take_kept));
        Ok(())
    })
}

/// Returns the roots of the subtrees that a group of parts ends with, one per part.
fn subtree_roots(root: NodeAddress, num_parts: usize) -> Vec<NodeAddress> {
    if num_parts == 1 {
        return vec![root];
    }
    let num_less = num_parts.div_ceil(2);
    let less = subtree_roots(root.less(), num_less);
    [less, subtree_roots(root.greater(), num_parts - num_less)].concat()
}

/// Cuts the whole order into nearly equal ranges, one per part. Returns the pieces of each range in the sorted parts. Equal points are in
/// one range.
fn ranges<C: Float>(parts: &mut [Part<C>]) -> Result<Vec<Vec<Piece>>> {
    let lens: Vec<_> = parts.iter().map(Part::len).collect();
    let ranks: Vec<_> = even(lens.iter().sum(), parts.len()).skip(1).map(|range| range.start).collect();
    let compare = |a: &[C], b: &[C]| compare(a, b, 0);
    let mut cuts = cuts(&lens, &ranks, &compare, |part, positions| parts[part].read_points(positions))?;
    for cut in &mut cuts {
        extend_to_equal_points(&lens, cut, &compare, |part, positions| parts[part].read_points(positions))?;
    }
    let begins = std::iter::once(vec![0; lens.len()]).chain(cuts.iter().cloned());
    let ends = cuts.iter().cloned().chain([lens.clone()]);
    let pieces = |(begins, ends): (Vec<usize>, Vec<usize>)| {
        let ranges = begins.into_iter().zip(ends).map(|(begin, end)| begin..end);
        ranges.enumerate().map(|(source, range)| Piece { source, range }).collect()
    };
    Ok(begins.zip(ends).map(pieces).collect())
}

/// Builds the subtree of a group of parts. The first column of its points is the split axis of its level. Exception: if cuts are by sorting,
/// the points of the whole tree are already sorted, and rotated to the columns of level 1. Ends without some subtrees if cuts are by
/// selection and points are equal, or too many of them have one coordinate in common.
fn build_nodes<C: Float>(
    parts: &mut [Part<C>],
    root: NodeAddress,
    options: &BalancedOptions,
    cut_by: CutBy,
) -> Result<BuiltNodes<C>> {
    let NodeAddress { level, address } = root;
    let mut built = BuiltNodes { top_nodes: Vec::new(), subtrees: Vec::new(), stats: Stats::default() };
    if let [part] = parts {
        let subtree = part.build_subtree(options, &mut built.stats)?;
        built.subtrees.extend(subtree.map(|(tree, ids)| Subtree { level, address, tree, ids }));
        return Ok(built);
    }
    let cut = built.stats.phase("sort", || match cut_by {
        CutBy::Selection => Cut::by_selection(parts),
        CutBy::Sorting => {
            if level > 0 {
                each(&mut *parts, Part::sort)?;
            }
            Cut::of_sorted(parts).map(Some)
        }
    })?;
    let Some(cut) = cut else { return Ok(built) };
    let num_less = parts.len().div_ceil(2);
    built.stats.phase("exchange", || {
        let (less, greater) = (cut.less(), cut.greater(parts));
        let pieces =
            [redistribute(&less, 0..num_less), redistribute(&greater, num_less..parts.len())].concat();
        // A half of one part receives its whole subtree, in the memory that the tree will own.
        let is_last = |i: usize| if i < num_less { num_less == 1 } else { pieces.len() - num_less == 1 };
        exchange(
            parts,
            &pieces,
            |i, part, len| {
                if is_last(i) { part.subtree_points(len) } else { part.next_points(len) }
            },
        )
    })?;
    let (less, greater) = parts.split_at_mut(num_less);
    let (less, greater) = both(
        || build_nodes(less, root.less(), options, cut_by),
        || build_nodes(greater, root.greater(), options, cut_by),
    )?;
    // The halves are built in parallel, so the longer time counts.
    let longer = if less.stats.total() > greater.stats.total() { less.stats } else { greater.stats };
    built.stats.phases.extend(longer.phases);
    built.top_nodes.extend(cut.median.map(|(id, mut coords)| {
        // Rotates the columns of the next level back to the axes.
        let dims = coords.len();
        coords.rotate_right((level as usize + 1) % dims);
        TopNode { level, address, id, coords }
    }));
    built.top_nodes.extend(less.top_nodes.into_iter().chain(greater.top_nodes));
    built.subtrees.extend(less.subtrees.into_iter().chain(greater.subtrees));
    Ok(built)
}
