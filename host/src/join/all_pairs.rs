//! Joins of sets in host memory that find all pairs, of points or of boxes: the steps from sets to a result.

use super::estimate::Sample;
use super::rows::{ITEM_BYTES, VisitRows};
use super::sets::UploadedSides;
use crate::batches::{Batches, Delivered, Delivery};
use crate::device::{Buffer, Device, Gpu, Stream, Workspace, gpu_of};
use crate::error::Result;
use crate::host_coords::HostCoords;
use crate::memory;
use crate::rows::{Rows, RowsBatch};
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::Float;
use std::ops::ControlFlow;

/// The validated parameters of such a join, and its work on each device. Sets are given by their coordinates as [build, probe], which are
/// the right and the left set; a row belongs to an item of the probe side.
pub(super) trait AllPairs: Sized {
    /// The coordinate type.
    type Coord: Float;

    /// Returns the number of coordinates of an item.
    fn width(&self) -> usize;
    fn pairing(&self) -> Pairing;
    /// Returns the parameters for a sample of the probe side. It is a join of two sets, because a sample has ids of its own.
    fn of_sample(&self) -> Self;

    fn count_on_cpu(&self, sides: [&[Self::Coord]; 2]) -> Result<u64>;
    fn rows_on_cpu(&self, sides: [&[Self::Coord]; 2]) -> Result<Rows>;
    fn deliver_on_cpu(
        &self,
        sides: [&[Self::Coord]; 2],
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRows<'_>,
    ) -> Result<ControlFlow<()>>;

    fn count_on_gpu(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        sides: [Slice<'_, Self::Coord>; 2],
    ) -> Result<u64>;
    fn rows_on_gpu(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        sides: [Slice<'_, Self::Coord>; 2],
    ) -> Result<(Buffer<u64>, Buffer<u32>)>;
    fn deliver_on_gpu(
        &self,
        gpu: &Gpu,
        sides: [&[Self::Coord]; 2],
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRows<'_>,
    ) -> Result<ControlFlow<()>>;
}

fn checked<'a, C: Float>([build, probe]: [HostCoords<'a, C>; 2]) -> Result<[&'a [C]; 2]> {
    Ok([build.checked()?, probe.checked()?])
}

/// Counts the pairs.
pub(super) fn count<J: AllPairs>(
    device: &Device,
    sides: [HostCoords<'_, J::Coord>; 2],
    join: &J,
) -> Result<u64> {
    let Some(gpu) = gpu_of!(device) else { return join.count_on_cpu(checked(sides)?) };
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let sides = UploadedSides::new(&stream, sides, join.pairing().is_self_join())?;
    join.count_on_gpu(&stream, &mut workspace, sides.slices())
}

/// Estimates the number of pairs from the pairs of about `sample` probe items.
pub(super) fn estimate<J: AllPairs>(
    device: &Device,
    [build, probe]: [&[J::Coord]; 2],
    sample: usize,
    join: &J,
) -> Result<u64> {
    let num_rows = probe.len() / join.width();
    let sample = Sample::new(probe, join.width(), sample, join.pairing())?;
    let sides = [build, &sample.coords].map(|side| HostCoords::of_checked(side, join.width()));
    let count = count(device, sides, &join.of_sample())?;
    Ok(sample.extrapolate(count, num_rows))
}

/// Finds all rows.
pub(super) fn rows<J: AllPairs>(
    device: &Device,
    sides: [HostCoords<'_, J::Coord>; 2],
    join: &J,
) -> Result<Rows> {
    let Some(gpu) = gpu_of!(device) else { return join.rows_on_cpu(checked(sides)?) };
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let uploaded = UploadedSides::new(&stream, sides, join.pairing().is_self_join())?;
    let (offsets, ids) = join.rows_on_gpu(&stream, &mut workspace, uploaded.slices())?;
    memory::check_result(ids.len() as u64, ITEM_BYTES, "pairs of a join")?;
    Ok(Rows::new(offsets.to_vec(&stream)?, ids.to_vec(&stream)?))
}

/// Delivers the rows in batches.
pub(super) fn rows_batches<J: AllPairs>(
    device: &Device,
    sides: [&[J::Coord]; 2],
    join: &J,
    batches: &mut Batches<'_>,
    mut callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
) -> Result<Delivered> {
    let visit = &mut |first_row: usize, offsets: &[u64], ids: &[u32]| {
        callback(RowsBatch::new(first_row, offsets, ids))
    };
    Delivery::run(batches, device, sides[1].len() / join.width(), |delivery| match gpu_of!(device) {
        None => join.deliver_on_cpu(sides, delivery, visit),
        Some(gpu) => join.deliver_on_gpu(gpu, sides, delivery, visit),
    })
}
