//! Balanced trees on a GPU: what their builders have in common.

mod coordinate_sort;
mod distinct;
mod index;
mod paths;
mod robinson;
pub(crate) mod several;

#[cfg(feature = "io")]
mod stored;

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::distinct::balanced_stays;
use kauri_kernels::balanced::medians_len;
use kauri_kernels::balanced::verify::{LEVELS, balanced_verify, wrong};
use kauri_kernels::query::left_balanced::num_levels;
use kauri_kernels::thread::coord::Coord;

use crate::balanced::{BalancedBuilder, BalancedOptions, BalancedTree};
use crate::device::{Buffer, Gpu, Layout, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::once::Once;
use crate::primitives::pairs::empty_view;
use crate::query::backend::QueryBackend;
use crate::query::gpu::BucketIndex;
use crate::stats::Stats;
use index::{Balanced, bucket_index};
use std::sync::Arc;

/// Words that nodes are counted in.
const COUNTS: usize = 64;

/// A tree in the memory of a GPU.
pub(crate) struct GpuTree<C> {
    gpu: Gpu,
    dims: usize,
    num_nodes: usize,
    coords: Arc<Buffer<C>>,
    medians: Buffer<u32>,
    /// As Robinson's builder makes them, to be verified: the medians tell as much.
    children: Buffer<u32>,
    stays: Buffer<u32>,
    index: Once<BucketIndex<C>>,
}

/// A build that is under way, over at least one point.
#[derive(Clone, Copy)]
struct Build<'a, C> {
    stream: &'a Stream,
    temp: &'a Temp<'a>,
    coords: Slice<'a, C>,
    dims: usize,
}

/// Temporary memory of a builder, and how it builds. Arrays of a plan are apart, and buffers live until the stream has been waited for.
trait Plan<C: Coord> {
    /// Sorts the points on all axes, and removes equal ones. Returns how many are left, and of each point the one that stays for it, if
    /// some do not.
    fn sort(&self, build: Build<'_, C>, stats: &mut Stats) -> Result<(usize, Option<Buffer<u32>>)>;

    /// True if it makes children of nodes beside the medians.
    fn makes_children(&self) -> bool;

    /// Makes the nodes. Medians and children have been set to none.
    fn partition(
        &self,
        build: Build<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        children: SliceMut<'_, u32>,
    ) -> Result<()>;
}

fn plan<C: Coord>(
    layout: &mut Layout,
    num_points: usize,
    dims: usize,
    options: &BalancedOptions,
) -> Box<dyn Plan<C>> {
    match options.builder {
        BalancedBuilder::Paths => Box::new(paths::Paths::plan(layout, num_points, dims, options)),
        BalancedBuilder::Robinson => Box::new(robinson::Robinson::plan(layout, num_points, dims, options)),
    }
}

/// Temporary bytes of a build.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &BalancedOptions) -> u64 {
    let mut layout = Layout::new();
    plan::<C>(&mut layout, num_points, dims, options);
    layout.bytes()
}

impl<C: Coord> Build<'_, C> {
    /// Of each point the one that stays for it. `ids` are sorted on the first axis, and `kept` are those of them that stay.
    fn stays(&self, ids: Slice<'_, u32>, kept: Slice<'_, u32>) -> Result<Buffer<u32>> {
        let mut stays = Buffer::uninitialized(self.stream.gpu(), ids.len(), "points that stay")?;
        let args = (ids, kept, self.coords, self.dims as u32, stays.slice_mut());
        // SAFETY: the buffer waits for the device before it is freed, and the others are those of a plan.
        unsafe { self.stream.launch_items::<balanced_stays<C>>(ids.len() as u64, args)? };
        Ok(stays)
    }
}

impl<C: Coord> GpuTree<C> {
    pub(crate) fn build(
        gpu: &Gpu,
        points: &[C],
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let label = "coordinates of the points";
        let coords = stats.phase("init", || Buffer::from_slice(&stream, points, label))?;
        Self::over(&stream, &mut Workspace::new(gpu), coords, dims, options, stats)
    }

    /// The tree over points whose coordinates are on the device.
    fn over(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: Buffer<C>,
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let (n, gpu) = (coords.len() / dims, stream.gpu());
        let mut layout = Layout::new();
        let plan = plan::<C>(&mut layout, n, dims, options);
        let mut children = stats.phase("init", || {
            let num_children = if plan.makes_children() { 2 * n } else { 0 };
            let mut children = Buffer::uninitialized(gpu, num_children, "children of the nodes")?;
            children.fill_bytes(stream, 0xff)?;
            stream.synchronize()?;
            Ok(children)
        })?;
        let none = |len, label| Buffer::uninitialized(gpu, len, label);
        if n == 0 {
            let (medians, stays) = (none(0, "medians of the tree")?, none(0, "points that stay")?);
            return Ok(Self::of_parts(gpu, dims, 0, coords, medians, children, stays));
        }
        let temp = workspace.carve(stream, &layout, "balanced k-d tree build")?;
        let build = Build { stream, temp: &temp, coords: coords.slice(), dims };
        let (num_nodes, stays) = plan.sort(build, stats)?;
        let stays = match stays {
            Some(stays) => stays,
            None => none(0, "points that stay")?,
        };
        let mut medians = none(medians_len(num_nodes as u32), "medians of the tree")?;
        stats.phase("partition", || {
            medians.fill_bytes(stream, 0xff)?;
            plan.partition(build, num_nodes, medians.slice_mut(), children.slice_mut())?;
            stream.synchronize()
        })?;
        Ok(Self::of_parts(gpu, dims, num_nodes, coords, medians, children, stays))
    }

    fn of_parts(
        gpu: &Gpu,
        dims: usize,
        num_nodes: usize,
        coords: Buffer<C>,
        medians: Buffer<u32>,
        children: Buffer<u32>,
        stays: Buffer<u32>,
    ) -> Self {
        let (gpu, coords, index) = (gpu.clone(), coords.into(), Once::new());
        Self { gpu, dims, num_nodes, coords, medians, children, stays, index }
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
        let num_points = self.coords.len() / self.dims;
        let num_words = num_points.div_ceil(64);
        let mut words = Buffer::<u64>::uninitialized(&self.gpu, 1 + COUNTS + num_words, "seen ids")?;
        let all = words.slice_mut();
        // SAFETY: there are so many words, of which the last ones are halves each.
        let (finding, counts, seen) = unsafe {
            let seen = all.part(1 + COUNTS, num_words);
            (
                all.part(0, 1),
                all.part(1, COUNTS),
                SliceMut::from_raw_parts(seen.as_ptr().cast(), 2 * num_words),
            )
        };
        // SAFETY: nothing else uses them.
        unsafe {
            stream.fill_bytes(all, 0)?;
            stream.fill_bytes(finding, 0xff)?;
        }
        let (medians, num_nodes) = (self.medians.slice(), self.num_nodes as u32);
        let (coords, dims, children) = (self.coords.slice(), self.dims as u32, self.children.slice());
        // SAFETY: the same memory, of which two children are a word.
        let children = unsafe { Slice::from_raw_parts(children.as_ptr().cast(), children.len() / 2) };
        let mut end = num_levels(num_nodes);
        while end > 0 {
            let begin = end.saturating_sub(LEVELS);
            let args = (
                coords,
                num_points as u32,
                dims,
                medians,
                children,
                num_nodes,
                begin,
                end,
                seen,
                finding,
                counts,
            );
            // SAFETY: the buffers live until the finding has been copied.
            unsafe { stream.launch::<balanced_verify<C>>(1 << begin, args)? };
            end = begin;
        }
        // SAFETY: the words are there, and are the first ones.
        let words: Vec<u64> = unsafe { stream.read(all.part(0, 1 + COUNTS).read_only())? };
        match words[0] {
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
        match words[1..].iter().sum::<u64>() {
            count if count == u64::from(num_nodes) => Ok(()),
            count => Err(Error::Corrupt { node: 0, what: format!("{count} nodes instead of {num_nodes}") }),
        }
    }

    fn medians(&self) -> Result<Vec<u32>> {
        self.medians.to_vec(&Stream::new(&self.gpu)?)
    }

    fn stays(&self) -> Result<Vec<u32>> {
        self.stays.to_vec(&Stream::new(&self.gpu)?)
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        let index = self.index.get_or_try_init(|| {
            let tree = Balanced {
                dims: self.dims,
                coords: self.coords.slice(),
                first_axis: 0,
                names: empty_view().read_only(),
                medians: self.medians.slice(),
                num_nodes: self.num_nodes,
            };
            bucket_index(&self.gpu, &tree, Some(self.coords.clone()))
        })?;
        Ok(index)
    }

    #[cfg(feature = "io")]
    fn stored(&self) -> Result<super::stored::Sections<'_, C>> {
        self.to_stored()
    }
}
