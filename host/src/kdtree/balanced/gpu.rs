//! Robinson's builder: arrays sorted on every axis by merge sort, equal points removed in two passes, then partitioned a level at a time
//! by the partitioner that fits the length of its runs.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::balanced::distinct::{kdtree_distinct_pieces, kdtree_stays};
use kauri_kernels::kdtree::balanced::finish::kdtree_finish_runs;
use kauri_kernels::kdtree::balanced::partition::{
    kdtree_partition_close_gaps, kdtree_partition_pieces, kdtree_partition_runs, kdtree_partition_small_runs,
};
use kauri_kernels::kdtree::balanced::verify::{kdtree_verify_balanced, wrong};
use kauri_kernels::kdtree::balanced::{medians_len, num_partitions};
use kauri_kernels::primitives::select_two_pass::primitives_select_close_gaps;
use kauri_kernels::thread::coord::Coord;

use super::{BalancedOptions, BalancedTree};
use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::primitives::merge_sort::SortPoints;
use crate::primitives::pairs::{Pairs, nothing};
use crate::stats::Stats;

/// Most points of a run that several have a warp for.
const SMALL: u32 = 16;

/// A tree in the memory of a GPU.
pub(super) struct GpuTree<C> {
    gpu: Gpu,
    dims: usize,
    num_nodes: usize,
    coords: Buffer<C>,
    medians: Buffer<u32>,
    children: Buffer<u32>,
    stays: Buffer<u32>,
}

/// Temporary memory of a build.
struct Plan<C> {
    dims: usize,
    /// Warps that partition, a power of two.
    warps: u32,
    /// Points of a warp's piece of an array in the removal of equal ones.
    piece: usize,
    sort: SortPoints<C>,
    sorted_keys: Region<C>,
    sorted: Region<u32>,
    /// The distinct points, sorted on each axis, and room for one more array.
    arrays: Vec<Region<u32>>,
    spare: Region<u32>,
    /// What warps compact to, beside `sorted`.
    compacted: Region<u32>,
    kept: Region<u64>,
    halves: Region<u32>,
}

/// Temporary bytes of a build.
pub(super) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &BalancedOptions) -> u64 {
    let mut layout = Layout::new();
    Plan::<C>::new(&mut layout, num_points, dims, options);
    layout.bytes()
}

impl<C: Coord> Plan<C> {
    fn new(layout: &mut Layout, n: usize, dims: usize, options: &BalancedOptions) -> Self {
        // More than one for 32 points have nothing to do.
        let useful = n.div_ceil(32).clamp(1, 1 << 20) as u32;
        let warps = options.warps.clamp(1, useful).next_power_of_two();
        let piece = n.div_ceil(warps as usize).next_multiple_of(32).max(32);
        Self {
            dims,
            warps,
            piece,
            sort: SortPoints::plan(layout, n),
            sorted_keys: layout.reserve(n),
            sorted: layout.reserve(n),
            arrays: (0..dims).map(|_| layout.reserve(n)).collect(),
            spare: layout.reserve(n),
            compacted: layout.reserve(n),
            kept: layout.reserve(n.div_ceil(piece)),
            halves: layout.reserve(2 * warps as usize),
        }
    }

    /// Sorts the points on an axis.
    unsafe fn sort(&self, stream: &Stream, temp: &Temp<'_>, coords: Slice<'_, C>, axis: usize) -> Result<()> {
        let output = Pairs { keys: temp.view(self.sorted_keys), values: temp.view(self.sorted) };
        // SAFETY: passed on to the caller.
        unsafe { self.sort.run(stream, temp, coords, self.dims, axis, output) }
    }

    /// Keeps the first of equal points of the sorted array. How many these are goes to the first of two words, and to the second the
    /// first place that is not sorted.
    unsafe fn dedupe(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        axis: usize,
        words: SliceMut<'_, u64>,
    ) -> Result<()> {
        let (keys, ids) = (temp.view(self.sorted_keys).read_only(), temp.view(self.sorted).read_only());
        let (compacted, kept, to) =
            (temp.view(self.compacted), temp.view(self.kept), temp.view(self.arrays[axis]));
        let (threads, piece) = (32 * kept.len() as u64, self.piece as u64);
        // SAFETY: passed on to the caller; a warp a piece.
        unsafe {
            let (count, failed) = (words.part(0, 1), words.part(1, 1));
            let args = (keys, ids, coords, self.dims as u32, axis as u32, compacted, kept, failed, piece);
            stream.launch_items::<kdtree_distinct_pieces<C>>(threads, args)?;
            let args = (compacted.read_only(), kept.read_only(), to, count, piece);
            stream.launch_items::<primitives_select_close_gaps<u32>>(threads, args)
        }
    }

    /// Partitions the arrays level by level, and makes the nodes.
    unsafe fn partition(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        children: SliceMut<'_, u32>,
    ) -> Result<()> {
        // SAFETY: there are that many points.
        let part = |region| unsafe { temp.view(region).part(0, num_nodes) };
        let mut arrays: Vec<_> = self.arrays.iter().map(|&array| part(array)).collect();
        let (mut spare, less, greater) = (part(self.spare), part(self.sorted), part(self.compacted));
        let (halves, dims, warps) = (temp.view(self.halves), self.dims as u32, self.warps);
        let threads = 32 * u64::from(warps);
        let last = num_partitions(num_nodes as u32);
        for level in 0..last {
            let axis = level as usize % self.dims;
            let primary = arrays[axis].read_only();
            // Runs of a level have as many points, give or take one.
            let longest = (num_nodes as u64 + 1).div_ceil(1 << level) as u32 - 1;
            // The first array's partition makes the nodes; where there is none, a partition of nothing.
            let mut medians = medians;
            let others: Vec<_> = (0..self.dims).filter(|&other| other != axis).map(Some).collect();
            let others = if others.is_empty() { vec![None] } else { others };
            for other in others {
                let array = other.map_or(nothing(), |other| arrays[other]);
                let from = array.read_only();
                // SAFETY: passed on to the caller; the arrays are apart.
                unsafe {
                    if 1 << level < warps {
                        let args = (
                            coords, dims, primary, level, from, less, greater, halves, medians, children,
                            warps,
                        );
                        stream.launch_items::<kdtree_partition_pieces<C>>(threads, args)?;
                        if !array.is_empty() {
                            let (less, greater) = (less.read_only(), greater.read_only());
                            let args = (less, greater, halves.read_only(), level, array, warps);
                            stream.launch_items::<kdtree_partition_close_gaps>(threads, args)?;
                        }
                    } else if longest > SMALL {
                        let args = (coords, dims, primary, level, from, spare, medians, children, warps);
                        stream.launch_items::<kdtree_partition_runs<C>>(threads, args)?;
                        if let Some(other) = other {
                            std::mem::swap(&mut arrays[other], &mut spare);
                        }
                    } else {
                        let lanes = longest.next_power_of_two();
                        let args = (coords, dims, primary, level, array, medians, children, lanes, warps);
                        stream.launch_items::<kdtree_partition_small_runs<C>>(threads, args)?;
                    }
                }
                medians = nothing();
            }
        }
        let args = (arrays[last as usize % self.dims].read_only(), last, medians, children);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<kdtree_finish_runs>(1 << last, args) }
    }
}

impl<C: Coord> GpuTree<C> {
    pub(super) fn build(
        gpu: &Gpu,
        points: &[C],
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let (n, stream) = (points.len() / dims, Stream::new(gpu)?);
        let mut workspace = Workspace::new(gpu);
        let mut layout = Layout::new();
        let plan = Plan::<C>::new(&mut layout, n, dims, options);
        let (coords, mut children) = stats.phase("init", || {
            let coords = Buffer::from_slice(&stream, points, "coordinates of the points")?;
            let mut children = Buffer::uninitialized(gpu, 2 * n, "children of the nodes")?;
            children.fill_bytes(&stream, 0xff)?;
            stream.synchronize()?;
            Ok((coords, children))
        })?;
        let none = |len, label| Buffer::uninitialized(gpu, len, label);
        if n == 0 {
            let (medians, stays) = (none(0, "medians of the tree")?, none(0, "points that stay")?);
            return Ok(Self { gpu: gpu.clone(), dims, num_nodes: 0, coords, medians, children, stays });
        }
        let temp = workspace.carve(&stream, &layout, "balanced k-d tree build")?;
        let (mut num_nodes, mut stays) = (n, none(0, "points that stay")?);
        let mut words = Buffer::uninitialized(gpu, 2 * dims, "numbers of distinct points")?;
        words.fill_bytes(&stream, 0xff)?;
        // SAFETY: the buffers live until the stream has been waited for.
        unsafe {
            for axis in 0..dims {
                stats.phase("sort", || {
                    plan.sort(&stream, &temp, coords.slice(), axis)?;
                    stream.synchronize()
                })?;
                stats.phase("dedupe", || {
                    plan.dedupe(&stream, &temp, coords.slice(), axis, words.slice_mut().part(2 * axis, 2))?;
                    let found = words.part_to_vec(&stream, 2 * axis..2 * axis + 2)?;
                    if found[1] != u64::MAX || (axis > 0 && found[0] != num_nodes as u64) {
                        let what = format!("the sort on axis {axis} left a point behind the next one");
                        return Err(Error::Corrupt { node: found[1], what });
                    }
                    num_nodes = found[0] as usize;
                    if axis == 0 && num_nodes < n {
                        stays = none(n, "points that stay")?;
                        let ids = temp.view(plan.sorted).read_only();
                        let kept = temp.view(plan.arrays[0]).part(0, num_nodes).read_only();
                        let args = (ids, kept, coords.slice(), dims as u32, stays.slice_mut());
                        stream.launch_items::<kdtree_stays<C>>(n as u64, args)?;
                        stream.synchronize()?;
                    }
                    Ok(())
                })?;
            }
            let mut medians = none(medians_len(num_nodes as u32), "medians of the tree")?;
            stats.phase("partition", || {
                medians.fill_bytes(&stream, 0xff)?;
                let nodes = (medians.slice_mut(), children.slice_mut());
                plan.partition(&stream, &temp, coords.slice(), num_nodes, nodes.0, nodes.1)?;
                stream.synchronize()
            })?;
            Ok(Self { gpu: gpu.clone(), dims, num_nodes, coords, medians, children, stays })
        }
    }
}

impl<C: Coord> BalancedTree<C> for GpuTree<C> {
    fn num_nodes(&self) -> usize {
        self.num_nodes
    }

    fn verify(&self) -> Result<()> {
        if self.num_nodes == 0 {
            return Ok(());
        }
        let stream = Stream::new(&self.gpu)?;
        let mut seen = Buffer::<u32>::uninitialized(&self.gpu, self.children.len() / 2, "seen ids")?;
        seen.fill_bytes(&stream, 0)?;
        let mut finding = Buffer::from_slice(&stream, &[u64::MAX], "finding")?;
        let mut count = Buffer::from_slice(&stream, &[0_u32], "number of nodes")?;
        let (medians, num_nodes) = (self.medians.slice(), self.num_nodes as u32);
        let args = (
            self.coords.slice(),
            self.dims as u32,
            medians,
            self.children.slice(),
            num_nodes,
            seen.slice_mut(),
            finding.slice_mut(),
            count.slice_mut(),
        );
        // SAFETY: the buffers live until the finding has been copied.
        unsafe { stream.launch_items::<kdtree_verify_balanced<C>>(medians.len() as u64, args)? };
        match finding.to_vec(&stream)?[0] {
            u64::MAX => {}
            found => {
                let what = match found as u32 {
                    wrong::SHAPE => "there is a node where none is to be, or none where one is to be",
                    wrong::ID_RANGE => "its id is not that of a point",
                    wrong::DUPLICATE_ID => "another node has the same id",
                    wrong::CHILD => "a child of it is not what is stored at its address",
                    _ => "its point is on the wrong side of an ancestor, or equal to it",
                };
                return Err(Error::Corrupt { node: found >> 32, what: what.into() });
            }
        }
        match count.to_vec(&stream)?[0] {
            count if count == num_nodes => Ok(()),
            count => Err(Error::Corrupt { node: 0, what: format!("{count} nodes instead of {num_nodes}") }),
        }
    }

    fn medians(&self) -> Result<Vec<u32>> {
        self.medians.to_vec(&Stream::new(&self.gpu)?)
    }

    fn children(&self) -> Result<Vec<u32>> {
        self.children.to_vec(&Stream::new(&self.gpu)?)
    }

    fn stays(&self) -> Result<Vec<u32>> {
        self.stays.to_vec(&Stream::new(&self.gpu)?)
    }
}
