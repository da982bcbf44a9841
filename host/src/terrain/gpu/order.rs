//! Sorts points, and builds the tree over them.

use super::POINTS;
use crate::device::{Buffer, Gpu, Stream, Workspace};
use crate::error::Result;
use crate::once::Once;
use crate::primitives::bounds::bounds;
use crate::primitives::generate::iota_on;
use crate::primitives::operator::Min;
use crate::primitives::predicate::EqualBits;
use crate::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use crate::primitives::{search, segmented, unique};
use crate::query::gpu::{BucketIndex, Locator, node_slots};
use cuda_std::mem::Slice;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::terrain::known::Known;
use kauri_kernels::terrain::order::{Frame, terrain_codes, terrain_positions};
use kauri_kernels::terrain::tree::DevicePoints;

/// Returns the corners of the bounding box of points, of which there is at least one. Waits for the device.
pub(in crate::terrain) fn bounds_on<const N: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    points: &Buffer<[i32; N]>,
) -> Result<[[i32; N]; 2]> {
    let mut corners = Buffer::uninitialized(stream.gpu(), 2, "corners of a box")?;
    bounds(stream, workspace, points, &mut corners)?;
    let corners = corners.to_vec(stream)?;
    Ok([corners[0], corners[1]])
}

/// Points in their order: codes of positions with values, which are heights or indexes of points.
pub(in crate::terrain) struct GpuPoints {
    pub(super) gpu: Gpu,
    frame: Frame,
    pub(super) known: Known,
    pub(super) codes: Buffer<u64>,
    values: Buffer<u32>,
    /// The tree over all points, and the one over distinct positions.
    trees: [Once<GpuTree>; 2],
}

impl GpuPoints {
    /// Sorts points of two coordinates, or of three with a height, between two corners.
    pub(in crate::terrain) fn new<const N: usize>(
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[i32; N]>,
        frame: Frame,
        corners: [[i32; N]; 2],
    ) -> Result<Self> {
        let (gpu, n) = (stream.gpu(), points.len());
        let mut codes = Buffer::uninitialized(gpu, n, POINTS)?;
        let mut values = Buffer::uninitialized(gpu, n, POINTS)?;
        let mut sorted_codes = Buffer::uninitialized(gpu, n, POINTS)?;
        let mut sorted_values = Buffer::uninitialized(gpu, n, POINTS)?;
        // SAFETY: a point is `N` integers, each point has a code and a value, and buffers wait for the device before they are freed.
        unsafe {
            let coordinates = Slice::from_raw_parts(points.slice().as_ptr().cast::<i32>(), N * n);
            let args = (coordinates, codes.slice_mut(), values.slice_mut());
            stream.launch_items::<terrain_codes>(n as u64, args)?;
        }
        // The codes of points agree in the bits above the highest one in which a coordinate of the corners differs.
        let [low, high] = corners;
        let differing = (low[0] ^ high[0]) | (low[1] ^ high[1]);
        let options = RadixSortOptions::default().bits(0..2 * (u32::BITS - differing.leading_zeros()));
        sort_pairs(stream, workspace, &codes, &values, &mut sorted_codes, &mut sorted_values, &options)?;
        let (codes, values) = (sorted_codes, sorted_values);
        let trees = [Once::new(), Once::new()];
        Ok(Self { gpu: gpu.clone(), frame, known: Known::ALL, codes, values, trees })
    }

    /// The points are all of a cloud in a part of the plane.
    pub(in crate::terrain) fn with_known(self, known: Known) -> Self {
        Self { known, ..self }
    }

    /// Returns the tree over the least value at each position, or over all points.
    pub(super) fn tree(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        is_distinct: bool,
    ) -> Result<&GpuTree> {
        self.trees[usize::from(is_distinct)].get_or_try_init(|| {
            let tree = self.new_tree(stream, workspace, is_distinct)?;
            // Later calls may be on other streams.
            stream.synchronize()?;
            Ok(tree)
        })
    }

    fn new_tree(&self, stream: &Stream, workspace: &mut Workspace, is_distinct: bool) -> Result<GpuTree> {
        let Self { gpu, frame, codes, values, .. } = self;
        let all = || GpuTree::new(stream, codes.slice(), values.slice(), *frame);
        if !is_distinct {
            return all();
        }
        let mut distinct = Buffer::uninitialized(gpu, codes.len(), POINTS)?;
        let mut count = Buffer::uninitialized(gpu, 1, POINTS)?;
        unique::unique::<u64, EqualBits>(stream, workspace, codes, &mut distinct, &mut count)?;
        let num_distinct = count.to_vec(stream)?[0] as usize;
        if num_distinct == codes.len() {
            drop(distinct);
            return all();
        }
        let mut runs = Buffer::uninitialized(gpu, num_distinct, POINTS)?;
        let mut ends = Buffer::uninitialized(gpu, num_distinct, POINTS)?;
        let mut begins = Buffer::of_bytes(stream, num_distinct + 1, 0, POINTS)?;
        let mut least = Buffer::uninitialized(gpu, num_distinct, POINTS)?;
        // SAFETY: the lengths agree, and buffers wait for the device before they are freed.
        unsafe {
            stream.copy(runs.slice_mut(), distinct.slice().part(0, num_distinct))?;
            search::upper_bound(stream, codes, &runs, &mut ends)?;
            stream.copy(begins.slice_mut().part(1, num_distinct), ends.slice())?;
        }
        segmented::reduce::<u32, Min>(stream, workspace, values, &begins, &mut least)?;
        GpuTree::new(stream, runs.slice(), least.slice(), *frame)
    }
}

/// Positions in buckets with boxes above them, and heights.
pub(super) struct GpuTree {
    pub(super) index: BucketIndex<i32>,
    /// The heights, or the indexes of points as unsigned integers of another order.
    pub(super) heights: Buffer<i32>,
}

impl GpuTree {
    fn new(stream: &Stream, codes: Slice<'_, u64>, values: Slice<'_, u32>, frame: Frame) -> Result<Self> {
        let (gpu, n) = (stream.gpu(), codes.len());
        let levels = levels(n as u32);
        let mut index = BucketIndex::with_slots(gpu, n, 2, levels, Locator::planes(gpu, levels)?)?;
        let mut heights = Buffer::uninitialized(gpu, n, POINTS)?;
        // SAFETY: the index has a slot for each code, and buffers wait for the device before they are freed.
        unsafe {
            let slots = node_slots(stream, 2, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
            iota_on(stream, 0, slots.ids)?;
            let args = (codes, values, frame, slots.coords, heights.slice_mut());
            stream.launch_items::<terrain_positions>(n as u64, args)?;
            index.build_boxes(stream)?;
        }
        Ok(Self { index, heights })
    }

    pub(super) fn points(&self) -> DevicePoints<'_> {
        DevicePoints { index: self.index.view(), heights: self.heights.slice(), known: Known::ALL }
    }
}
