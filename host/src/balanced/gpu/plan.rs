//! The interface of the build algorithms.

use crate::device::{Buffer, Stream, Temp};
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

    /// Writes the representative of each point: the first point that equals it. `ids` is sorted on the first axis; `kept` is the
    /// subsequence of the representatives. Allocates the output unless it has the length.
    pub(crate) fn write_representatives(
        &self,
        ids: Slice<'_, u32>,
        kept: Slice<'_, u32>,
        representatives: &mut Buffer<u32>,
    ) -> Result<()> {
        representatives.resize(ids.len(), "representatives of the points")?;
        let args = (self.points(0), ids, kept, representatives.slice_mut());
        // SAFETY: the buffer waits for the device before it is freed, and the others belong to a plan.
        unsafe { self.temp.stream.launch_items::<balanced_representatives<C>>(ids.len() as u64, args) }
    }
}

/// Runs the phases of a build. Without statistics, phases do not wait for the device.
pub(crate) struct Phases<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) stats: Option<&'a mut Stats>,
}

impl Phases<'_> {
    /// Runs a phase. With statistics, waits until its work is done, and records its time.
    pub(crate) fn run<R>(&mut self, name: &'static str, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let Some(stats) = &mut self.stats else { return work() };
        stats.phase(name, || {
            let result = work()?;
            self.stream.synchronize().map(|()| result)
        })
    }
}

/// A build algorithm with its scratch memory. The arrays of a plan do not overlap, and buffers live until the stream has been synchronized.
pub(crate) trait BuildPlan<C: Float> {
    /// Sorts the points on all axes and removes equal ones. Returns the number of distinct points. Writes the representative of each point
    /// if some were removed.
    fn sort(
        &self,
        context: BuildContext<'_, C>,
        representatives: &mut Buffer<u32>,
        phases: &mut Phases<'_>,
    ) -> Result<usize>;

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
