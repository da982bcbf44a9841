//! The grid of a join of boxes on a GPU.

use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::boxes::grid::{PackedGrid, SAMPLE, as_boxes, grid_of, grid_of_host_sets, sample_indices};
use crate::join::boxes::params::BoxParams;
use crate::primitives::bounds::Bounds;
use crate::primitives::permute::{Direction, permute_parts};
use cuda_std::mem::Slice;
use kauri_kernels::thread::coord::Float;

/// Computes the grid of two sets in host memory, or returns `None` if no pair is possible.
pub(super) fn grid_of_coordinates<C: Float>(sets: [&[C]; 2], params: &BoxParams<C>) -> Option<PackedGrid> {
    with_exact_dims!(params.test.dims, D => {
        grid_of_host_sets::<C, D>(sets.map(as_boxes), params).map(|grid| PackedGrid::new(&grid))
    })
}

/// Computes the grid of two sets in device memory, or returns `None` if no pair is possible. Waits for the bounding boxes.
pub(super) fn grid_of_device_sets<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
) -> Result<Option<PackedGrid>> {
    if sets.iter().any(|set| set.is_empty()) {
        return Ok(None);
    }
    let lens = sets.map(|set| set.len() / params.width());
    Ok(with_exact_dims!(params.test.dims, D => {
        let (bounds, samples) = sample_device_sets::<C, D>(stream, workspace, sets, params)?;
        grid_of(bounds, samples.iter().flatten(), lens, params).map(|grid| PackedGrid::new(&grid))
    }))
}

/// The bounding boxes of two sets, and some boxes of each.
pub(super) type Samples<C, const D: usize> = ([[[C; D]; 2]; 2], [Vec<[[C; D]; 2]>; 2]);

/// Returns the bounding boxes and samples of two sets in device memory, which are not empty. Waits for them.
pub(super) fn sample_device_sets<C: Float, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
) -> Result<Samples<C, D>> {
    let mut layout = Layout::new();
    let plan = SamplePlan::plan(&mut layout, params.test.dims);
    let temp = workspace.carve(stream, &layout, "boxes of a join")?;
    let coords = plan.run(&temp, sets, params.test.dims)?;
    let (bounds, samples) = as_boxes::<C, D>(&coords).split_at(2);
    let (first, second) = samples.split_at(sample_indices(sets[0].len() / params.width()).count());
    Ok(([bounds[0], bounds[1]], [first.to_vec(), second.to_vec()]))
}

/// Returns the scratch bytes of [`grid_of_device_sets`].
pub(super) fn grid_bytes<C: Float>(dims: usize) -> u64 {
    let mut layout = Layout::new();
    SamplePlan::<C>::plan(&mut layout, dims);
    layout.bytes()
}

/// Scratch memory of the bounding boxes of two sets, and of a sample of their boxes.
struct SamplePlan<C: Float> {
    bounds: Bounds<C>,
    indices: Region<u32>,
    /// The two bounding boxes, then the samples.
    coords: Region<C>,
}

impl<C: Float> SamplePlan<C> {
    fn plan(layout: &mut Layout, dims: usize) -> Self {
        Self {
            bounds: Bounds::plan(layout, dims),
            indices: layout.reserve(2 * SAMPLE),
            coords: layout.reserve((2 + 2 * SAMPLE) * 2 * dims),
        }
    }

    /// Returns the bounding boxes and the boxes of the samples.
    fn run(&self, temp: &Temp<'_>, sets: [Slice<'_, C>; 2], dims: usize) -> Result<Vec<C>> {
        let (indices, coords) = (temp.view(self.indices), temp.view(self.coords));
        let width = 2 * dims;
        let mut num_boxes = 2;
        for (i, set) in sets.into_iter().enumerate() {
            let sample: Vec<u32> = sample_indices(set.len() / width).map(|i| i as u32).collect();
            // SAFETY: the regions are planned for two samples, and nothing else uses the memory of the plan.
            unsafe {
                self.bounds.run(temp, set, dims, coords.part(i * width, width))?;
                let own_indices = indices.part(num_boxes - 2, sample.len());
                temp.upload(own_indices, &sample)?;
                let to = coords.part(num_boxes * width, sample.len() * width);
                permute_parts(&temp.stream, Direction::Gather, width, set, own_indices.read_only(), to)?;
            }
            num_boxes += sample.len();
        }
        // SAFETY: the range has been written.
        unsafe { temp.stream.read(coords.part(0, num_boxes * width).read_only()) }
    }
}
