//! Changes by device buffers, on the caller's stream. [`DeviceIndex`] has the queries.

use crate::device::{Buffer, Stream, Workspace};
use crate::dynamic::{DynamicKdTree, Storage};
use crate::error::{Error, Result};
use crate::point::Point;
use crate::query::DeviceIndex;
use crate::query::device_index::OnDevice;
use crate::query::on_device::num_points;
use std::ops::Range;

impl<P: Point> DynamicKdTree<P> {
    /// Inserts points in device memory, as [`insert`](Self::insert), and returns their ids. `coords` has the coordinates that
    /// [`Point::coordinates`] returns, one point after another.
    ///
    /// The host does not check the coordinates: if one is not finite or is too large, queries may miss points, and nothing worse happens.
    /// The call waits for the device. The tree is complete when the stream has done the work; queries wait for it.
    ///
    /// ```
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::dynamic::DynamicOptions;
    /// use kauri::{Device, DynamicKdTree, SpatialIndex};
    /// # fn main() -> kauri::Result<()> {
    /// let device = Device::best()?;
    /// let Some(gpu) = device.gpu() else { return Ok(()) }; // only GPUs have device memory
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let mut tree = DynamicKdTree::<[f32; 2]>::new(&device, &DynamicOptions::default())?;
    /// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 3.0, 4.0], "coordinates of the points")?;
    /// assert_eq!(tree.insert_on(&stream, &mut workspace, &coords)?, 0..2);
    /// tree.remove_on(&stream, &mut workspace, &Buffer::from_slice(&stream, &[0], "ids")?)?;
    /// assert_eq!(tree.nearest(&[[0.0, 0.0]], 1)?.ids(), [1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::Shape`] if the number of coordinates is not a multiple of the dimensions; otherwise the errors of
    /// [`insert`](Self::insert) except for those of coordinates.
    pub fn insert_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
    ) -> Result<Range<u32>> {
        let num_new = num_points::<P>(coords)?;
        let ids = self.next_ids(num_new)?;
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.insert_on(stream, workspace, coords)?;
        self.renew(num_new);
        Ok(ids)
    }

    /// Removes the points with these ids in device memory, as [`remove`](Self::remove). The call waits for the device.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; otherwise the errors of [`remove`](Self::remove).
    pub fn remove_on(&mut self, stream: &Stream, workspace: &mut Workspace, ids: &Buffer<u32>) -> Result<()> {
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.remove_on(stream, workspace, ids)?;
        self.renew(ids.len());
        Ok(())
    }
}

impl<P: Point> DeviceIndex for DynamicKdTree<P> {
    fn on_device(&self) -> Result<OnDevice<'_, P::Coord>> {
        match &self.storage {
            Storage::Gpu(tree) => {
                Ok(OnDevice { backend: tree.device_query_backend(), identity: &self.identity })
            }
            Storage::Cpu(_) => Err(Error::NotOnGpu),
        }
    }
}
