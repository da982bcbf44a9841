//! The plan of a join of boxes: method and memory, before it runs.

use super::cpu;
use super::gpu::scratch_bytes;
use super::sets::checked_sets;
use super::{BoxJoin, BoxMethod};
use crate::device::Device;
use crate::error::Result;
use crate::join::distance::pairing_of;
use crate::join::plan::{JoinMethod, JoinPlan};
use crate::join::sets::HostSets;
use crate::point::Cartesian;
use kauri_kernels::thread::coord::{Coord, Float};

impl<C: Float> BoxJoin<C> {
    /// Plans [`rows`](Self::rows) with these sets, or [`self_rows`](Self::self_rows) with one. Takes O(n) time on the CPU and no device
    /// memory.
    ///
    /// ```
    /// use kauri::{BoxJoin, Device};
    /// let boxes = vec![[[0.0f32, 0.0], [1.0, 1.0]]; 1000];
    /// let plan = BoxJoin::intersects().plan(&Device::cpu(), &boxes, None)?;
    /// assert_eq!(plan.num_points, [1000, 1000]);
    /// println!("{plan}");
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`rows`](Self::rows) that concern boxes and distance.
    pub fn plan<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[[P; 2]],
        right: Option<&[[P; 2]]>,
    ) -> Result<JoinPlan> {
        let pairing = pairing_of(right);
        let params = self.params::<P>(pairing)?;
        let sets = right.map_or(HostSets::one(left, pairing), |right| HostSets::two(left, right));
        let sides = checked_sets(sets)?;
        let lens = sides.slices().map(|set| set.len() / params.width());
        let box_bytes = (params.width() * size_of::<C>()) as u64;
        let is_on_gpu = !device.is_cpu();
        let num_uploaded = if params.pairing.is_self_join() { lens[1] } else { lens[0] + lens[1] } as u64;
        // A length and an offset for each row.
        let on_cpu = cpu::sorted_bytes(lens, box_bytes).saturating_add(12 * lens[1] as u64);
        Ok(JoinPlan {
            device: device.to_string(),
            num_points: [lens[1], lens[0]],
            grid: None,
            method: JoinMethod::Boxes(if is_on_gpu { params.method.choose(lens) } else { BoxMethod::Cells }),
            input_bytes: if is_on_gpu || P::CONVERTED { num_uploaded * box_bytes } else { 0 },
            temp_bytes: if is_on_gpu { scratch_bytes(lens, &params) } else { on_cpu },
            // While rows are sorted, there is a second copy of the ids.
            pair_bytes: 2 * size_of::<u32>() as u64,
        })
    }
}
