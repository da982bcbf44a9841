//! The interface of the build algorithms.

use crate::device::{Buffer, Temp};
use crate::error::Result;
use crate::stats::Stats;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::distinct::balanced_representatives;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::order::Lookup;

/// The stream, scratch memory and points of a running build. There is at least one point.
#[derive(Clone, Copy)]
pub(crate) struct BuildContext<'a, C> {
    pub(crate) temp: &'a Temp<'a>,
    pub(crate) coords: Slice<'a, C>,
    pub(crate) dims: usize,
}

impl<'a, C: Float> BuildContext<'a, C> {
    /// Returns the points by the super key of an axis.
    pub(crate) fn points(&self, axis: usize) -> Lookup<'a, C> {
        Lookup { coords: self.coords, dims: self.dims as u32, axis: axis as u32 }
    }

    /// Returns the representative of each point: the first point that equals it. `ids` is sorted on the first axis; `kept` is the
    /// subsequence of the representatives.
    pub(crate) fn representatives(&self, ids: Slice<'_, u32>, kept: Slice<'_, u32>) -> Result<Buffer<u32>> {
        let label = "representatives of the points";
        let mut representatives = Buffer::uninitialized(self.temp.stream.gpu(), ids.len(), label)?;
        let args = (self.points(0), ids, kept, representatives.slice_mut());
        // SAFETY: the buffer waits for the device before it is freed, and the others belong to a plan.
        unsafe { self.temp.stream.launch_items::<balanced_representatives<C>>(ids.len() as u64, args)? };
        Ok(representatives)
    }
}

/// A build algorithm with its scratch memory. The arrays of a plan do not overlap, and buffers live until the stream has been synchronized.
pub(crate) trait BuildPlan<C: Float> {
    /// Sorts the points on all axes and removes equal ones. Returns the number of distinct points, and the representative of each point if
    /// some were removed.
    fn sort(&self, context: BuildContext<'_, C>, stats: &mut Stats) -> Result<(usize, Option<Buffer<u32>>)>;

    /// Returns true if the algorithm writes the children of the nodes in addition to the medians.
    fn writes_children(&self) -> bool {
        false
    }

    /// Writes the nodes. Medians and children are initialized to none.
    fn partition(
        &self,
        context: BuildContext<'_, C>,
        num_nodes: usize,
        medians: SliceMut<'_, u32>,
        children: SliceMut<'_, u32>,
    ) -> Result<()>;
}
