//! Options of the methods of joins of boxes that reproduce published works.

use crate::error::{Error, Result};

/// Most partitions of [`BoxMethod::MultiLayerGrid`](super::BoxMethod::MultiLayerGrid).
const MAX_PARTITIONS: u32 = 1 << 16;

/// Options of [`BoxMethod::MultiLayerGrid`](super::BoxMethod::MultiLayerGrid) and [`BoxMethod::SortBased`](super::BoxMethod::SortBased),
/// set by [`BoxJoin::options`](super::BoxJoin::options). Results do not depend on them.
///
/// ```
/// use kauri::join::{BoxJoin, BoxMethod};
/// use kauri::research::join::{BoxMethodOptions, GridBuild, Streams};
/// let boxes = [[[0.0f32, 0.0], [1.0, 1.0]], [[1.0, 1.0], [2.0, 2.0]]];
/// // The multi-layered grid as published.
/// let options = BoxMethodOptions::default().partitions(64).build(GridBuild::Layers).streams(Streams::Fixed);
/// let join = BoxJoin::intersects().method(BoxMethod::MultiLayerGrid).options(options);
/// assert_eq!(join.count(&kauri::Device::cpu(), &boxes, &boxes)?, 4);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxMethodOptions {
    pub(super) cell_length: Option<f64>,
    pub(super) grid_bytes: u64,
    pub(super) partitions: u32,
    pub(super) build: GridBuild,
    pub(super) streams: Streams,
    pub(super) z_order: bool,
    pub(super) axis: SweepAxis,
}

/// How a [multi-layered grid](super::BoxMethod::MultiLayerGrid) is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridBuild {
    /// Each partition marks the cells of a layer of its own, 4 bytes per cell, without read-modify-write operations; then the layers are
    /// combined to words, as published.
    Layers,
    /// Atomic operations set bits in the words.
    #[default]
    Atomic,
}

/// The right boxes that a partition of a [multi-layered grid](super::BoxMethod::MultiLayerGrid) is joined with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// A list for each partition, of 4 bytes per right box, as published.
    Fixed,
    /// Lists of exact lengths: counts, a scan, and a second pass. Waits for the sum of the lengths and allocates the lists.
    #[default]
    Exact,
    /// No lists: each partition reads the bit strings of all right boxes.
    BitStrings,
}

/// The axis along which [`BoxMethod::SortBased`](super::BoxMethod::SortBased) sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SweepAxis {
    /// The first axis, as published.
    #[default]
    First,
    /// The axis along which a sample of the boxes overlaps least.
    LeastOverlap,
}

impl Default for BoxMethodOptions {
    fn default() -> Self {
        Self {
            cell_length: None,
            grid_bytes: 4 << 30,
            partitions: 64,
            build: GridBuild::default(),
            streams: Streams::default(),
            z_order: false,
            axis: SweepAxis::default(),
        }
    }
}

impl BoxMethodOptions {
    setters! {
        /// Sets the length of a cell of a grid; by default the mean side of a sample of the left boxes.
        cell_length: f64 = Some(cell_length);

        /// Sets the most bytes of a grid, by default 4 GiB. Cells are longer if they would take more, or more than half of the free memory.
        grid_bytes: u64;

        /// Sets the number of partitions of the left boxes, by default 64. Each word of a cell has the bits of 64.
        partitions: u32;

        /// Sets how a grid is built.
        build: GridBuild;

        /// Sets the form of the streams.
        streams: Streams;

        /// Sets whether the left boxes are first sorted along a Z-order curve, so that a partition is a region.
        z_order: bool;

        /// Sets the axis of a sort.
        axis: SweepAxis;
    }

    /// Checks the numbers.
    pub(super) fn validate(self) -> Result<Self> {
        let partitions = self.partitions;
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            let (least, most) = (1, MAX_PARTITIONS.into());
            return Err(Error::OutOfRange { what: "partitions", value: partitions.into(), least, most });
        }
        match self.cell_length {
            Some(value) if value.is_nan() || value < 0.0 => {
                Err(Error::InvalidLength { what: "length of a cell", value })
            }
            _ => Ok(self),
        }
    }
}
