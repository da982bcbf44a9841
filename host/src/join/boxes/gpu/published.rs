//! The methods of joins of boxes that reproduce published works.

use super::multi_layer::{MultiLayer, MultiLayerPlan};
use super::nested_plain;
use super::phases::PhaseClock;
use super::sort_based::{SortBased, SortBasedPlan};
use crate::device::{Layout, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::boxes::method::BoxMethod;
use crate::join::boxes::params::BoxParams;
use cuda_std::mem::Slice;
use kauri_kernels::join::boxes::output::PairOutput;
use kauri_kernels::thread::coord::Float;

/// Scratch memory of a method.
pub(super) enum PublishedPlan<C: Float> {
    NestedPlain,
    MultiLayer(MultiLayerPlan<C>),
    SortBased(SortBasedPlan<C>),
}

impl<C: Float> PublishedPlan<C> {
    /// Plans the method for two sets, given as [right, left], or returns `None` if no pair is possible. May wait for a sample.
    pub(super) fn new(
        stream: &Stream,
        workspace: &mut Workspace,
        layout: &mut Layout,
        sets: [Slice<'_, C>; 2],
        params: &BoxParams<C>,
    ) -> Result<Option<Self>> {
        Ok(match params.method {
            BoxMethod::MultiLayerGrid => {
                MultiLayerPlan::new(stream, workspace, layout, sets, params)?.map(Self::MultiLayer)
            }
            BoxMethod::SortBased => {
                Some(Self::SortBased(SortBasedPlan::new(stream, workspace, layout, sets, params)?))
            }
            _ => Some(Self::NestedPlain),
        })
    }

    /// Plans as much memory as a join of sets of `lens` boxes, given as [right, left], can take.
    pub(super) fn plan_largest(layout: &mut Layout, lens: [usize; 2], params: &BoxParams<C>) {
        match params.method {
            BoxMethod::MultiLayerGrid => MultiLayerPlan::plan_largest(layout, lens, params),
            BoxMethod::SortBased => {
                SortBasedPlan::<C>::plan(layout, lens[0] + lens[1]);
            }
            _ => {}
        }
    }

    /// Prepares the sets.
    ///
    /// # Safety
    /// The sets are as planned. Nothing else uses them and the memory of the plan until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        sets: [Slice<'a, C>; 2],
        params: &BoxParams<C>,
        clock: &mut PhaseClock,
    ) -> Result<Published<'a, C>> {
        // SAFETY: passed on to the caller.
        unsafe {
            Ok(match self {
                Self::NestedPlain => Published::NestedPlain(sets, *params),
                Self::MultiLayer(plan) => Published::MultiLayer(plan.run(temp, sets, params, clock)?),
                Self::SortBased(plan) => Published::SortBased(plan.run(temp, sets, params, clock)?),
            })
        }
    }
}

/// Two sets, ready to find their pairs.
pub(super) enum Published<'a, C> {
    /// The sets, as [right, left].
    NestedPlain([Slice<'a, C>; 2], BoxParams<C>),
    MultiLayer(MultiLayer<'a, C>),
    SortBased(SortBased<'a, C>),
}

impl<C: Float> Published<'_, C> {
    /// Counts or writes the pairs.
    ///
    /// # Safety
    /// The requirements of [`nested::launch`](super::nested::launch).
    pub(super) unsafe fn launch(&self, stream: &Stream, output: PairOutput<'_>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::NestedPlain(sets, params) => nested_plain::launch(stream, *sets, params, output),
                Self::MultiLayer(sets) => sets.launch(stream, output),
                Self::SortBased(sets) => sets.launch(stream, output),
            }
        }
    }
}
