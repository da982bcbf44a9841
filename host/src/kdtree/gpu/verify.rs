//! The check of a tree in device memory.

use crate::device::{Buffer, Workspace};
use crate::error::{Error, Result};
use crate::kdtree::cpu::out_of_turn;
use crate::kdtree::gpu::axes::{PointBounds, write_varying_axes};
use crate::kdtree::options::SplitRule;
use crate::primitives::pairs::empty_view;
use crate::primitives::planned::carve;
use crate::query::gpu::BucketIndex;
use kauri_kernels::kdtree::verify::{CheckedTree, kdtree_verify, wrong};
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::thread::coord::Coord;

/// Checks the ids, the split axes, and every node against its ancestors.
pub(super) fn verify<C: Coord>(index: &BucketIndex<C>, rule: SplitRule) -> Result<()> {
    let num_points = index.num_points();
    if num_points == 0 {
        return Ok(());
    }
    let stream = index.stream()?;
    let mut seen = Buffer::of_bytes(&stream, num_points, 0, "seen ids")?;
    let mut varying = Buffer::uninitialized(&index.gpu, index.varying_axes.len(), "axes that vary")?;
    let mut finding = Buffer::from_slice(&stream, &[u64::MAX], "finding")?;
    let mut workspace = Workspace::new(&index.gpu);
    let plan = |layout: &mut _| PointBounds::<C>::plan(layout, index.dims, rule);
    let (bounds, temp) = carve(&stream, &mut workspace, "box of the points", plan)?;
    let (coords, ids) = (index.coords(), index.ids.slice());
    // SAFETY: the buffers live until the finding has been copied.
    unsafe {
        let corners = match &bounds {
            Some(bounds) => bounds.run(&temp, coords, index.dims)?,
            None => empty_view().read_only(),
        };
        let tree = CheckedTree { coords, ids, axes: index.split_axes(), corners };
        let args = (tree, seen.slice_mut(), finding.slice_mut());
        stream.launch_items::<kdtree_verify<C>>(num_points as u64, args)?;
        write_varying_axes(&stream, coords, index.dims, varying.slice_mut())?;
    }
    let cycles = [&index.varying_axes, &varying].map(|mask| {
        let mask = mask.to_vec(&stream)?.first().copied().unwrap_or(0);
        Ok(AxisCycle::of_varying(mask, index.dims as u32))
    });
    let [cycle, expected] = cycles;
    let (cycle, expected) = (cycle?, expected?);
    if cycle != expected {
        return Err(Error::corrupt(0, out_of_turn(cycle, expected)));
    }
    match finding.to_vec(&stream)?[0] {
        u64::MAX => Ok(()),
        found => {
            let what = match found as u32 {
                wrong::ID_RANGE => "its id is not the id of a point",
                wrong::DUPLICATE_ID => "another node has the same id",
                wrong::AXIS => "it does not split on the widest axis of its cell",
                _ => "its point is on the wrong side of an ancestor",
            };
            Err(Error::corrupt((found >> 32) as usize, what))
        }
    }
}
