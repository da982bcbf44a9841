//! Queries of a [`Bvh`] that are not rays: items near points, items in boxes, the inside of a mesh.

use super::input::check_boxes;
use super::tree::{Bvh, Tree};
use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::check_each_coordinate;
use crate::query::Neighbors;
use crate::rays::Aabb;
use crate::rows::Rows;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::nearest::ClosestPoint;

/// Checks the coordinates of queries.
fn check_points(points: &[[f32; 3]]) -> Result<()> {
    check_each_coordinate(points.as_flattened(), 3, "query", |point| point as u64)
}

/// Returns the square of a radius.
fn bound_of(radius: f32) -> Result<f32> {
    if radius >= 0.0 {
        Ok(radius * radius)
    } else {
        Err(Error::InvalidLength { what: "radius", value: radius.into() })
    }
}

impl<L: Leaf> Bvh<L> {
    /// Returns the `k` nearest items of each point, by distance and id: triangles by the distance of their nearest point, boxes by that of the
    /// box, which is 0 inside.
    ///
    /// The square of the distance to a triangle is computed with `f64` and rounded; that to a box is computed with `f32`. All devices find the
    /// same bits.
    ///
    /// ```
    /// use kauri::rays::Aabb;
    /// use kauri::{Bvh, Device};
    /// let boxes = [0.0f32, 5.0, 9.0].map(|x| Aabb { low: [x, 0.0, 0.0], high: [x + 2.0, 1.0, 1.0] });
    /// let bvh = Bvh::build(&Device::cpu(), &boxes)?;
    /// let nearest = bvh.nearest(&[[8.0, 0.5, 0.5]], 2)?;
    /// assert_eq!((nearest.ids(), nearest.dist2()), (&[1, 2][..], &[1.0, 1.0][..]));
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::CoordinateTooLarge`] for the first such point; [`Error::OutOfMemory`]; errors of the device.
    pub fn nearest(&self, points: &[[f32; 3]], k: usize) -> Result<Neighbors<[f32; 3]>> {
        self.nearest_within(points, k, f32::INFINITY)
    }

    /// Returns the `k` nearest items of each point up to a distance, as [`nearest`](Self::nearest). Rows with fewer items are padded with the
    /// id `u32::MAX` and the distance infinity.
    ///
    /// # Errors
    /// The errors of [`nearest`](Self::nearest); [`Error::InvalidLength`] for a radius that is negative or NaN.
    pub fn nearest_within(&self, points: &[[f32; 3]], k: usize, radius: f32) -> Result<Neighbors<[f32; 3]>> {
        check_points(points)?;
        let bound = bound_of(radius)?;
        let (ids, dist2) = match &self.tree {
            Tree::Cpu(tree) => tree.nearest(points, k, bound)?,
            Tree::Gpu(tree) => {
                let (stream, mut workspace) = (Stream::new(&tree.gpu)?, Workspace::new(&tree.gpu));
                let points = Buffer::from_slice(&stream, points, "queries")?;
                let entries = points.len().saturating_mul(k);
                let mut ids = Buffer::uninitialized(&tree.gpu, entries, "neighbors")?;
                let mut dist2 = Buffer::uninitialized(&tree.gpu, entries, "neighbors")?;
                tree.nearest_on(&stream, &mut workspace, &points, (k, bound), (&mut ids, &mut dist2))?;
                (ids.to_vec(&stream)?, dist2.to_vec(&stream)?)
            }
        };
        Ok(Neighbors::new(points.len(), k, ids, dist2))
    }

    /// Writes the `k` nearest items of each point up to a distance to device memory, as [`nearest_within`](Self::nearest_within): rows of `k`
    /// ids, and of `k` squares of distances. A point with an unusable coordinate has no items. Does not wait for the work.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::WrongDevice`]; [`Error::Shape`] for another number of ids or distances; [`Error::InvalidLength`] for the
    /// radius; errors of the device.
    #[expect(
        clippy::too_many_arguments,
        reason = "stream and workspace, a query and the two halves of its result"
    )]
    pub fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[f32; 3]>,
        k: usize,
        radius: f32,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<f32>,
    ) -> Result<()> {
        let tree = self.on_gpu(stream)?;
        let (bound, entries) = (bound_of(radius)?, points.len().saturating_mul(k));
        points.check(stream, "queries", points.len())?;
        ids.check(stream, "ids of neighbors", entries)?;
        dist2.check(stream, "distances of neighbors", entries)?;
        tree.nearest_on(stream, workspace, points, (k, bound), (ids, dist2))
    }

    /// Counts the items whose bounding boxes have a point in common with each box. Faces belong to a box.
    ///
    /// # Errors
    /// [`Error::NonFinite`], [`Error::CoordinateTooLarge`] and [`Error::InvertedBox`] for the first such box; [`Error::OutOfMemory`]; errors of
    /// the device.
    pub fn count_intersecting(&self, boxes: &[Aabb]) -> Result<Vec<u64>> {
        check_boxes(boxes, "query box")?;
        match &self.tree {
            Tree::Cpu(tree) => tree.count_intersecting(boxes),
            Tree::Gpu(tree) => tree.count_intersecting(boxes),
        }
    }

    /// Writes the number of items of each box to device memory, as [`count_intersecting`](Self::count_intersecting). Coordinates are not checked:
    /// NaN excludes nothing. Does not wait for the work.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::WrongDevice`]; [`Error::Shape`] for another number of counts; errors of the device.
    pub fn count_intersecting_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<Aabb>,
        counts: &mut Buffer<u64>,
    ) -> Result<()> {
        let tree = self.on_gpu(stream)?;
        boxes.check(stream, "boxes", boxes.len())?;
        counts.check(stream, "counts of items", boxes.len())?;
        tree.count_on(stream, workspace, boxes, counts)
    }

    /// Returns the ids of the items whose bounding boxes have a point in common with each box, in the order of the hierarchy, which is the same
    /// on all devices.
    ///
    /// ```
    /// use kauri::rays::Aabb;
    /// use kauri::{Bvh, Device};
    /// let boxes = [0.0f32, 5.0, 9.0].map(|x| Aabb { low: [x, 0.0, 0.0], high: [x + 2.0, 1.0, 1.0] });
    /// let bvh = Bvh::build(&Device::cpu(), &boxes)?;
    /// let found = bvh.intersecting(&[Aabb { low: [6.0, 0.0, 0.0], high: [9.0, 0.5, 0.5] }])?;
    /// assert_eq!(found.row(0).len(), 2); // boxes 1 and 2
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`count_intersecting`](Self::count_intersecting); [`Error::ResultTooLarge`], with the number of items, if they do not fit in
    /// memory.
    pub fn intersecting(&self, boxes: &[Aabb]) -> Result<Rows> {
        check_boxes(boxes, "query box")?;
        match &self.tree {
            Tree::Cpu(tree) => tree.intersecting(boxes),
            Tree::Gpu(tree) => tree.intersecting(boxes),
        }
    }

    /// Finds the items of each box, as [`intersecting`](Self::intersecting), and leaves them in device memory: the offsets of the rows, one more
    /// than boxes, and the ids of all rows. Coordinates are not checked: NaN excludes nothing. Waits for the number of ids.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::WrongDevice`]; [`Error::ResultTooLarge`], with the number of items; errors of the device.
    pub fn intersecting_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<Aabb>,
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        let tree = self.on_gpu(stream)?;
        boxes.check(stream, "boxes", boxes.len())?;
        tree.intersecting_on(stream, workspace, boxes)
    }

    /// Returns the ids of the items whose bounding boxes contain each point, as [`intersecting`](Self::intersecting).
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::CoordinateTooLarge`] for the first such point; the errors of [`intersecting`](Self::intersecting).
    pub fn containing(&self, points: &[[f32; 3]]) -> Result<Rows> {
        check_points(points)?;
        let mut boxes = memory::vec_with_capacity(points.len(), "queries")?;
        boxes.extend(points.iter().map(|&point| Aabb::of_point(point)));
        self.intersecting(&boxes)
    }
}

impl Bvh {
    /// Returns the point of the mesh that is nearest to each point, up to a distance; of equally near triangles that with the least id.
    ///
    /// ```
    /// use kauri::mesh::Mesh;
    /// use kauri::{Bvh, Device};
    /// let mesh = Mesh::new(vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], vec![[0, 1, 2]])?;
    /// let bvh = Bvh::build(&Device::cpu(), &mesh)?;
    /// let closest = bvh.closest_points(&[[0.25, 0.25, 2.0], [9.0, 9.0, 9.0]], 5.0)?;
    /// assert_eq!((closest[0].point, closest[0].distance, closest[0].triangle), ([0.25, 0.25, 0.0], 2.0, 0));
    /// assert!(!closest[1].is_found());
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`nearest_within`](Self::nearest_within).
    pub fn closest_points(&self, points: &[[f32; 3]], radius: f32) -> Result<Vec<ClosestPoint>> {
        check_points(points)?;
        let bound = bound_of(radius)?;
        match &self.tree {
            Tree::Cpu(tree) => tree.closest_points(points, bound),
            Tree::Gpu(tree) => {
                let (stream, mut workspace) = (Stream::new(&tree.gpu)?, Workspace::new(&tree.gpu));
                let points = Buffer::from_slice(&stream, points, "queries")?;
                let mut found = Buffer::uninitialized(&tree.gpu, points.len(), "closest points")?;
                tree.closest_points_on(&stream, &mut workspace, &points, bound, &mut found)?;
                found.to_vec(&stream)
            }
        }
    }

    /// Writes the nearest point of the mesh for each point to device memory, as [`closest_points`](Self::closest_points). A point with an
    /// unusable coordinate has none. Does not wait for the work.
    ///
    /// # Errors
    /// The errors of [`nearest_on`](Self::nearest_on).
    pub fn closest_points_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[f32; 3]>,
        radius: f32,
        found: &mut Buffer<ClosestPoint>,
    ) -> Result<()> {
        let (tree, bound) = (self.on_gpu(stream)?, bound_of(radius)?);
        points.check(stream, "queries", points.len())?;
        found.check(stream, "closest points", points.len())?;
        tree.closest_points_on(stream, workspace, points, bound, found)
    }

    /// Returns whether each point is inside the mesh: a ray from it leaves the mesh once more than it enters.
    ///
    /// For a closed mesh the result is exact up to the rounding of `f64`; on its surface it is either. In a mesh with holes two of three rays
    /// along the axes decide. The direction in which triangles face does not matter.
    ///
    /// ```
    /// use kauri::mesh::shapes;
    /// use kauri::{Bvh, Device};
    /// let knot = shapes::torus_knot([2, 3], 200, 16)?;
    /// let bvh = Bvh::build(&Device::cpu(), &knot)?;
    /// assert_eq!(bvh.inside(&[[0.0, 0.0, 0.0]])?, [false]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::CoordinateTooLarge`] for the first such point; [`Error::OutOfMemory`]; errors of the device.
    pub fn inside(&self, points: &[[f32; 3]]) -> Result<Vec<bool>> {
        check_points(points)?;
        match &self.tree {
            Tree::Cpu(tree) => tree.inside(points),
            Tree::Gpu(tree) => {
                let (stream, mut workspace) = (Stream::new(&tree.gpu)?, Workspace::new(&tree.gpu));
                let points = Buffer::from_slice(&stream, points, "queries")?;
                let mut inside = Buffer::<u8>::uninitialized(&tree.gpu, points.len(), "points inside")?;
                tree.inside_on(&stream, &mut workspace, &points, &mut inside)?;
                Ok(inside.to_vec(&stream)?.into_iter().map(|inside| inside != 0).collect())
            }
        }
    }

    /// Writes 1 for each point that is inside the mesh and 0 for the others to device memory, as [`inside`](Self::inside). Does not wait for the
    /// work.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::WrongDevice`]; [`Error::Shape`] for another number of results; errors of the device.
    pub fn inside_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        points: &Buffer<[f32; 3]>,
        inside: &mut Buffer<u8>,
    ) -> Result<()> {
        let tree = self.on_gpu(stream)?;
        points.check(stream, "queries", points.len())?;
        inside.check(stream, "points inside", points.len())?;
        tree.inside_on(stream, workspace, points, inside)
    }
}
