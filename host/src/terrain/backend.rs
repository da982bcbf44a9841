//! The operations of each device for an elevation model. Arguments are already validated.

use super::method::Spline;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use kauri_kernels::terrain::cells::Cells;

/// Points in their order, in the memory of a device.
pub(super) trait Backend: Send + Sync {
    /// Returns the value of each cell; NaN where there is none.
    fn raster(&self, cells: &Cells, method: &CellMethod) -> Result<Vec<f32>>;
    /// Returns the value of each cell in device memory.
    fn raster_on(&self, _: &Stream, _: &mut Workspace, _: &Cells, _: &CellMethod) -> Result<Buffer<f32>> {
        Err(Error::NotOnGpu)
    }
}

/// A [`Method`](super::Method) with lengths in steps of positions.
#[derive(Clone, Copy, Debug)]
pub(super) enum CellMethod {
    /// A statistic of `kauri_kernels::terrain::disk::statistic`.
    Statistic {
        statistic: u32,
        radius2: i64,
    },
    /// The weighted average within a radius.
    WeightedDisk {
        radius2: i64,
        power: u32,
    },
    /// The weighted average of the nearest points within a radius.
    WeightedNearest {
        k: u32,
        radius2: i64,
        power: u32,
    },
    Tin {
        max_edge2: i64,
    },
    NaturalNeighbor,
    /// A spline of a cloud of this many points between these corners.
    Spline {
        options: Spline,
        corners: [[i32; 2]; 2],
        num_points: usize,
    },
}

impl CellMethod {
    /// True if points at one position count as one point.
    pub(super) fn is_of_distinct_positions(&self) -> bool {
        !matches!(self, Self::Statistic { .. } | Self::WeightedDisk { .. })
    }

    /// True if heights depend on the Delaunay triangulation.
    pub(super) fn is_of_triangles(&self) -> bool {
        matches!(self, Self::Tin { .. } | Self::NaturalNeighbor)
    }
}
