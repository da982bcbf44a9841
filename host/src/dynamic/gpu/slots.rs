//! Finds slots for new points, and gives the points their ids there.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::QueryView;
use crate::query::gpu::order::{Arrangement, QueryOrderPlan};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::dynamic::slots::{Given, Overflow, dynamic_find_slots, dynamic_give_ids};
use kauri_kernels::thread::coord::Coord;

/// Plan and scratch memory to find slots for new points in an index, and to fit its boxes to them.
pub(super) struct SlotsPlan {
    order: QueryOrderPlan,
    slots: Region<u32>,
    overflow: Region<u32>,
    num_overflow: Region<u32>,
    /// The ids of the slots with those of the new points.
    new_ids: Region<u32>,
}

/// The slots that were found.
pub(super) struct Found<'a> {
    /// The slot of each new point, or [`NO_SLOT`](kauri_kernels::dynamic::slots::NO_SLOT).
    pub(super) slots: Slice<'a, u32>,
    /// The numbers of the points that find no slot.
    pub(super) overflow: Slice<'a, u32>,
    /// Memory for the ids of the slots with those of the new points.
    pub(super) new_ids: SliceMut<'a, u32>,
}

impl SlotsPlan {
    pub(super) fn plan<C: Coord>(layout: &mut Layout, index: &BucketIndex<C>, coords: Slice<'_, C>) -> Self {
        let num_points = coords.len() / index.dims;
        Self {
            order: QueryOrderPlan::plan(layout, index, QueryView::of_points(coords), Arrangement::Sorted),
            slots: layout.reserve(num_points),
            overflow: layout.reserve(num_points),
            num_overflow: layout.reserve(1),
            new_ids: layout.reserve(index.ids.len()),
        }
    }

    /// Finds the slots of new points in an index with boxes; waits for the device.
    ///
    /// # Safety
    /// Nothing else uses the points and the index until the stream has done the work.
    pub(super) unsafe fn run<'a, C: Coord>(
        &self,
        temp: &Temp<'a>,
        index: &BucketIndex<C>,
        coords: Slice<'a, C>,
    ) -> Result<Found<'a>> {
        let (slots, overflow) = (temp.view(self.slots), temp.view(self.overflow));
        let num_overflow = temp.view(self.num_overflow);
        temp.clear(self.num_overflow)?;
        // SAFETY: passed on to the caller.
        unsafe {
            let order = self.order.run(temp, index, QueryView::of_points(coords))?.order;
            let (buckets, items) = order
                .map_or((empty_view().read_only(), empty_view().read_only()), |order| {
                    (order.keys, order.values)
                });
            let overflow_list = Overflow { items: overflow, num: num_overflow };
            let args = (buckets, items, index.ids.slice(), index.bucket_len, slots, overflow_list);
            temp.stream.launch_items::<dynamic_find_slots>(items.len() as u64, args)?;
            let num_overflow = temp.stream.read(num_overflow.read_only())?[0] as usize;
            let overflow = overflow.read_only().part(0, num_overflow);
            Ok(Found { slots: slots.read_only(), overflow, new_ids: temp.view(self.new_ids) })
        }
    }
}

/// Gives points their ids in their slots in two indexes: point number `i` has id `first_id + i`.
///
/// # Safety
/// Slots and ids belong together. Nothing else uses them until the stream has done the work.
pub(super) unsafe fn give_ids(
    stream: &Stream,
    main: Given<'_>,
    overflow: Given<'_>,
    first_id: u32,
) -> Result<()> {
    let num_points = main.slots.len().max(overflow.slots.len()) as u64;
    // SAFETY: passed on to the caller.
    unsafe { stream.launch_items::<dynamic_give_ids>(num_points, (main, overflow, first_id)) }
}

/// No points to give ids to.
pub(super) fn none_given<'a>() -> Given<'a> {
    Given { slots: empty_view().read_only(), items: empty_view().read_only(), ids: empty_view() }
}
