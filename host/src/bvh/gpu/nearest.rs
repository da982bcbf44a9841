//! The items nearest to points, on a GPU.

use super::tree::GpuTree;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use kauri_kernels::bvh::leaf::{Leaf, LeafTriangle};
use kauri_kernels::bvh::nearest::{
    ClosestPoint, NearQueries, bvh_closest_points, bvh_nearest_few, bvh_nearest_many,
};
use kauri_kernels::query::nearest::ResultRows;

impl<L: Leaf> GpuTree<L> {
    /// Writes the `k` nearest items of each point up to the distance of which `bound` is the square.
    pub(in super::super) fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[f32; 3]>,
        (k, bound): (usize, f32),
        (ids, dist2): (&mut Buffer<u32>, &mut Buffer<f32>),
    ) -> Result<()> {
        let queries = NearQueries { points: points.slice(), bound };
        let result = ResultRows { dist2: dist2.slice_mut(), ids: ids.slice_mut(), k: k as u64 };
        self.search(stream, workspace, points.len(), |num_blocks, searches| {
            let args = (searches, queries, result);
            // SAFETY: there is a row for each point, and the buffers wait for the device before they are freed.
            unsafe {
                match k {
                    0 => Ok(()),
                    1 => stream.launch::<bvh_nearest_few<L, 1>>(num_blocks, args),
                    2..=8 => stream.launch::<bvh_nearest_few<L, 8>>(num_blocks, args),
                    _ => stream.launch::<bvh_nearest_many<L>>(num_blocks, args),
                }
            }
        })
    }
}

impl GpuTree<LeafTriangle> {
    /// Writes the nearest point of the mesh for each point, up to the distance of which `bound` is the square.
    pub(in super::super) fn closest_points_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[f32; 3]>,
        bound: f32,
        found: &mut Buffer<ClosestPoint>,
    ) -> Result<()> {
        let queries = NearQueries { points: points.slice(), bound };
        self.search(stream, workspace, points.len(), |num_blocks, searches| {
            // SAFETY: there is an element for each point, and the buffers wait for the device before they are freed.
            unsafe { stream.launch::<bvh_closest_points>(num_blocks, (searches, queries, found.slice_mut())) }
        })
    }
}
