//! Backend trait of balanced trees: the operations that each device implements.

use crate::balanced::gpu::widen::DeviceCoords;
use crate::balanced::options::BalancedOptions;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;
#[cfg(feature = "io")]
use std::borrow::Cow;

/// The arrays of a tree that a file stores.
#[cfg(feature = "io")]
pub(crate) struct Sections<'a, C: Coord> {
    /// The coordinates of all input points, by id.
    pub(crate) coords: Cow<'a, [C]>,
    /// The id of the node at each address, level by level, or [`NONE`](kauri_kernels::balanced::NONE).
    pub(crate) medians: Cow<'a, [u32]>,
    /// The representative of each point: the first point that equals it. Empty if all points are distinct.
    pub(crate) representatives: Cow<'a, [u32]>,
}

/// A balanced tree on its device, or on several devices.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the number of nodes.
    fn num_nodes(&self) -> usize;
    /// Checks every node against its ancestors.
    fn verify(&self) -> Result<()>;
    /// Returns the id of the node at each address, level by level, or [`NONE`](kauri_kernels::balanced::NONE).
    fn medians(&self) -> Result<Vec<u32>>;
    /// Returns for each point the id of its representative: the first point that equals it. Empty if all points are distinct.
    fn representatives(&self) -> Result<Vec<u32>>;
    /// Returns the backend that answers queries. The first call builds it.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>>;
    /// Returns the backend that answers queries in device memory, for a tree in the memory of one GPU. The first call builds it.
    fn device_query_backend(&self) -> Result<&dyn DeviceQueryBackend<C>> {
        Err(Error::NotOnGpu)
    }
    /// Copies the [`medians`](Self::medians) in device memory.
    fn medians_on(&self, _stream: &Stream, _medians: &mut Buffer<u32>) -> Result<()> {
        Err(Error::NotOnGpu)
    }
    /// Builds the tree over other points, of the same number. After an error the tree is unchanged or has no nodes.
    fn rebuild(
        &mut self,
        _stream: &Stream,
        _workspace: &mut Workspace,
        _coords: DeviceCoords<'_, C>,
        _options: &BalancedOptions,
    ) -> Result<()> {
        Err(Error::NotOnGpu)
    }
    /// Returns the arrays that a file stores.
    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>>;
}
