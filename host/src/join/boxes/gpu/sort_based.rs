//! All pairs of boxes by the sorted ends of boxes along an axis.

use super::grid::sample_device_sets;
use super::nested::box_sets;
use super::phases::PhaseClock;
use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::{Result, check_count};
use crate::join::boxes::flat_grid::least_overlap;
use crate::join::boxes::options::SweepAxis;
use crate::join::boxes::params::BoxParams;
use crate::point::with_kernel_dims;
use crate::primitives::expand::Offsets;
use crate::primitives::pairs::Pairs;
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use cuda_std::mem::Slice;
use kauri_kernels::join::boxes::levels::growth_of;
use kauri_kernels::join::boxes::nested::BoxSets;
use kauri_kernels::join::boxes::output::PairOutput;
use kauri_kernels::join::boxes::sort_based::{
    SortedEnds, join_boxes_ends, join_boxes_ranks, join_boxes_sweep, join_boxes_tasks,
};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::RadixKey;

/// Most blocks; each takes the tasks of every n-th block.
const MAX_BLOCKS: u64 = 1 << 24;

/// Scratch memory of the sorted ends.
pub(super) struct SortBasedPlan<C: Float> {
    axis: usize,
    keys: [Region<C::Key>; 2],
    ends: [Region<u32>; 2],
    sort: RadixSort,
    ranks: Region<u32>,
    num_tasks: Region<u32>,
    tasks: Region<u64>,
    offsets: Offsets,
}

impl<C: Float> SortBasedPlan<C> {
    /// Plans a join of two sets, given as [right, left]. May wait for a sample.
    pub(super) fn new(
        stream: &Stream,
        workspace: &mut Workspace,
        layout: &mut Layout,
        sets: [Slice<'_, C>; 2],
        params: &BoxParams<C>,
    ) -> Result<Self> {
        let num_boxes = sets.iter().map(|set| set.len() / params.width()).sum();
        check_count("ends of boxes", 2 * num_boxes as u64, u32::MAX.into())?;
        let axis = match params.options.axis {
            SweepAxis::First => 0,
            SweepAxis::LeastOverlap => with_exact_dims!(params.test.dims, D => {
                let (bounds, samples) = &sample_device_sets::<C, D>(stream, workspace, sets, params)?;
                least_overlap(*bounds, samples.each_ref().map(|sample| &sample[..]), params.reach())
            }),
        };
        Ok(Self { axis, ..Self::plan(layout, num_boxes) })
    }

    /// Plans a sort along the first axis of `num_boxes` boxes of both sets.
    pub(super) fn plan(layout: &mut Layout, num_boxes: usize) -> Self {
        let num_ends = 2 * num_boxes;
        let [sort] = RadixSort::plan(layout, num_ends, [Shape::of::<C::Key, u32>(num_ends)]);
        Self {
            axis: 0,
            keys: [(); 2].map(|()| layout.reserve(num_ends)),
            ends: [(); 2].map(|()| layout.reserve(num_ends)),
            sort,
            ranks: layout.reserve(num_ends),
            num_tasks: layout.reserve(num_boxes),
            tasks: layout.reserve(num_boxes + 1),
            offsets: Offsets::plan(layout, num_boxes),
        }
    }

    /// Sorts the ends, and waits for the number of tasks.
    ///
    /// # Safety
    /// The sets are as planned. Nothing else uses them and the memory of the plan until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        sets: [Slice<'a, C>; 2],
        params: &BoxParams<C>,
        clock: &mut PhaseClock,
    ) -> Result<SortBased<'a, C>> {
        let sets = box_sets(sets, params);
        let pairs = [0, 1].map(|i| Pairs { keys: temp.view(self.keys[i]), values: temp.view(self.ends[i]) });
        let (ranks, num_tasks, tasks) =
            (temp.view(self.ranks), temp.view(self.num_tasks), temp.view(self.tasks));
        let (stream, num_boxes) = (&temp.stream, num_tasks.len() as u64);
        // SAFETY: the arrays are planned for the boxes; the rest is passed on to the caller.
        unsafe {
            let growth = growth_of(params.reach());
            let args = (sets, self.axis as u32, growth, pairs[1].keys, pairs[1].values);
            stream.launch_items::<join_boxes_ends<C>>(num_boxes, args)?;
            let by = SortBy::low_bits(<C::Key as RadixKey>::BITS);
            let [sorted, _] = self.sort.run(temp, by, pairs[1].read_only(), pairs)?;
            let (ends, num_ends) = (sorted.values.read_only(), ranks.len());
            stream.launch_items::<join_boxes_ranks>(num_ends as u64, (ends, ranks))?;
            stream.launch_items::<join_boxes_tasks>(num_boxes, (ranks.read_only(), num_tasks))?;
            self.offsets.run(temp, num_tasks.read_only(), tasks)?;
            let total = stream.read(tasks.read_only().part(num_tasks.len(), 1))?[0];
            let key_bytes = size_of::<C::Key>() as u64;
            clock.end(stream, "sort", num_ends as u64 * (2 * key_bytes + 2 * 4 + 4) + 12 * num_boxes)?;
            let sorted = SortedEnds { ends, ranks: ranks.read_only(), tasks: tasks.read_only() };
            Ok(SortBased { sets, sorted, num_blocks: total.min(MAX_BLOCKS) })
        }
    }
}

/// The ends of the boxes of two sets in order.
pub(super) struct SortBased<'a, C> {
    sets: BoxSets<'a, C>,
    sorted: SortedEnds<'a>,
    num_blocks: u64,
}

impl<C: Float> SortBased<'_, C> {
    /// Counts or writes the pairs.
    ///
    /// # Safety
    /// The requirements of [`nested::launch`](super::nested::launch).
    pub(super) unsafe fn launch(&self, stream: &Stream, output: PairOutput<'_>) -> Result<()> {
        let args = (self.sets, self.sorted, output);
        // SAFETY: passed on to the caller.
        unsafe {
            with_kernel_dims!(self.sets.dims as usize, D in [2, 3] or MAX_DIMS => {
                stream.launch::<join_boxes_sweep<C, D>>(self.num_blocks, args)
            })
        }
    }
}
