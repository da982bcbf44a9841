//! Builds on each device, and their memory plans.

use crate::device::{Device, Gpu, HAS_GPUS, Stream, Workspace, gpu_of};
use crate::error::{Error, Result};
use crate::host_coords::{Coords, HostCoords};
use crate::memory::MemoryPlan;
use crate::point::{PerCoordinate, Typed, with_coordinate};
use crate::progress::Progress;
use crate::quadtree::backend::Backend;
use crate::quadtree::cpu;
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::gpu::out_of_core::OutOfCoreTree;
use crate::quadtree::gpu::{self, GpuTree, frame, streamed};
use crate::quadtree::node::node_bytes;
use crate::quadtree::options::{OutOfCore, QuadtreeOptions};
use crate::query::on_device::BufferRef;
use crate::stats::Stats;
use kauri_kernels::quadtree::frame::MAX_LEVELS;
use kauri_kernels::thread::coord::Coord;
use std::slice;

/// [`Backend`] for each type of coordinates.
pub(crate) struct Trees;

impl PerCoordinate for Trees {
    type Of<C: Coord> = Box<dyn Backend<C>>;
}

/// Builds the tree over coordinates on a device; out of core if the device lacks memory.
pub(crate) fn build(
    device: &Device,
    coords: Coords<'_>,
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coords, C, coords => {
        match gpu_of!(device) {
            Some(gpu) => match in_core(gpu, coords, options, stats)? {
                Some(tree) => Box::new(tree) as Box<dyn Backend<C>>,
                None => out_of_core(slice::from_ref(gpu), coords, options, progress, stats)?,
            },
            None => with_2_or_3!(coords.dims(), D => {
                Box::new(cpu::build(coords.checked()?.as_chunks::<D>().0, options, stats)?)
            }),
        }
    }))
}

/// Builds the tree over coordinates out of core on several devices. The first one runs its queries.
pub(crate) fn build_over(
    gpus: &[Gpu],
    coords: Coords<'_>,
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coords, C, coords => out_of_core(gpus, coords, options, progress, stats)?))
}

fn out_of_core<C: Coord>(
    gpus: &[Gpu],
    coords: HostCoords<'_, C>,
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<Box<dyn Backend<C>>> {
    let (dims, coords) = (coords.dims(), stats.phase("validate", || coords.checked())?);
    Ok(with_2_or_3!(dims, D => {
        let tree = streamed::build(gpus, coords.as_chunks::<D>().0, options, progress, stats)?;
        Box::new(OutOfCoreTree::new(&gpus[0], tree))
    }))
}

/// Builds the tree over coordinates in device memory.
pub(crate) fn build_on(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: Typed<BufferRef<'_>>,
    dims: usize,
    options: &QuadtreeOptions,
) -> Result<Typed<Trees>> {
    if !HAS_GPUS {
        return Err(Error::CudaDisabled);
    }
    Ok(with_coordinate!(coords, C, coords => {
        let tree = with_2_or_3!(dims, D => GpuTree::build_on::<D>(stream, workspace, coords, options))?;
        Box::new(tree) as Box<dyn Backend<C>>
    }))
}

/// Builds the tree in device memory, or returns `None` if there is not enough of it or the options say otherwise.
fn in_core<C: Coord>(
    gpu: &Gpu,
    coords: HostCoords<'_, C>,
    options: &QuadtreeOptions,
    stats: &mut Stats,
) -> Result<Option<GpuTree<C>>> {
    // Coordinates in the order of input and in tree order, and ids. Whether the rest fits, allocations will tell.
    let coords_bytes = (coords.len() * size_of::<C>()) as u64;
    let least_bytes = 2 * coords_bytes + (coords.num_points() * size_of::<u32>()) as u64;
    if options.out_of_core != OutOfCore::WhereNeeded || least_bytes > gpu.free_memory()? {
        return Ok(None);
    }
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let dims = coords.dims();
    let copied = stats.phase("copy to device", || coords.to_buffer(&stream, "points"));
    let built = copied.and_then(|coords| {
        with_2_or_3!(dims, D => {
            let frame =
                stats.phase("bounds", || frame::<C, D>(&stream, &mut workspace, coords.slice(), options))?;
            stats.phase("build", || {
                let tree = GpuTree::build_in(&stream, &mut workspace, &coords, &frame, options)?;
                stream.synchronize().map(|()| tree)
            })
        })
    });
    stats.temp_bytes = workspace.bytes() + coords_bytes;
    match built {
        Err(Error::OutOfMemory { memory: "device" | "pinned host", .. }) => Ok(None),
        built => built.map(Some),
    }
}

/// Returns the bytes that [`build`] takes for `num_points` points, with the nodes of evenly spread points.
pub(crate) fn plan<C: Coord>(
    device: &Device,
    num_points: usize,
    dims: usize,
    options: &QuadtreeOptions,
) -> MemoryPlan {
    // A build refuses other options.
    let options =
        &options.clone().leaf_points(options.leaf_points.max(1)).max_depth(options.max_depth.min(MAX_LEVELS));
    let num_nodes = max_even_nodes(num_points as u64, dims, options);
    let point_bytes = (dims * size_of::<C>() + size_of::<u32>()) as u64;
    let mut tree_bytes = num_points as u64 * point_bytes + num_nodes * node_bytes(dims);
    let temp_bytes = match gpu_of!(device) {
        None => cpu::temp_bytes::<C>(num_points as u64, num_nodes, dims, options),
        Some(gpu) => {
            tree_bytes += gpu::frame_bytes(dims);
            let in_core_bytes = gpu::temp_bytes::<C>(num_points, num_nodes, dims, options);
            match options.out_of_core {
                OutOfCore::WhereNeeded => in_core_bytes,
                _ => streamed::temp_bytes(gpu, num_points as u64, tree_bytes + in_core_bytes),
            }
        }
    };
    MemoryPlan { tree_bytes, temp_bytes }
}

/// Returns an upper bound of the number of nodes over evenly spread points.
fn max_even_nodes(num_points: u64, dims: usize, options: &QuadtreeOptions) -> u64 {
    let (leaf_points, children) = (u64::from(options.leaf_points), 1_u64 << dims);
    if num_points <= leaf_points || options.max_depth == 0 {
        return 1;
    }
    // A leaf has more than `leaf_points / children` points on average, since its parent has more than `leaf_points`.
    let max_leaves = (num_points * children).div_ceil(leaf_points);
    // The nodes of a full tree with that many leaves, and with that many levels.
    let by_leaves = (max_leaves * children).div_ceil(children - 1) + 1;
    let by_depth = 2_u64.checked_pow(dims as u32 * (options.max_depth + 1)).unwrap_or(u64::MAX);
    by_leaves.min(by_depth)
}
