//! [`Mesh`]: triangles that share vertices.

use crate::error::{self, Error, Result};
use crate::parallel;
use crate::point::{Point, check_each};
use std::ops::Range;

/// Maximum number of triangles: ids have 32 bits, and one value stands for no triangle.
const MAX_TRIANGLES: u64 = u32::MAX as u64 - 1;
/// Number of triangles that one task processes.
pub(super) const TASK_TRIANGLES: usize = 1 << 14;

/// A mesh of triangles that share vertices.
///
/// ```
/// use kauri::mesh::Mesh;
/// let square = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
/// let mesh = Mesh::new(square.to_vec(), vec![[0, 1, 2], [0, 2, 3]])?;
/// assert_eq!(mesh.corners(1), [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]);
/// assert_eq!(mesh.bounds(), Some([[0.0; 3], [1.0, 1.0, 0.0]]));
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// Triangles may be degenerate, without area or duplicate, and vertices may be unused. Nothing is assumed about adjacency or
/// orientation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    pub(super) vertices: Vec<[f32; 3]>,
    pub(super) triangles: Vec<[u32; 3]>,
}

impl Mesh {
    /// Creates a mesh of vertices, and of triangles given by their three vertex indices.
    ///
    /// # Errors
    /// [`Error::NonFinite`] or [`Error::CoordinateTooLarge`] for the first vertex with a coordinate that is NaN, infinite,
    /// or so large that areas could overflow; [`Error::NoSuchVertex`] for the first triangle with an index out of range;
    /// [`Error::TooManyItems`] for more than `u32::MAX - 1` triangles.
    pub fn new(vertices: Vec<[f32; 3]>, triangles: Vec<[u32; 3]>) -> Result<Self> {
        check_count(triangles.len() as u64)?;
        Point::coordinates(&vertices, "vertex")?;
        check_each(&triangles, TASK_TRIANGLES, |triangle, corners: &[u32; 3]| {
            let corner = corners.iter().position(|&index| index as usize >= vertices.len())?;
            let (triangle, index) = (triangle as u64, corners[corner]);
            Some(Error::NoSuchVertex { triangle, corner, index, vertices: vertices.len() as u64 })
        })?;
        Ok(Self { vertices, triangles })
    }

    /// The positions of the vertices.
    pub fn vertices(&self) -> &[[f32; 3]] {
        &self.vertices
    }

    /// The three vertex indices of each triangle.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// Number of triangles.
    pub fn len(&self) -> usize {
        self.triangles.len()
    }

    /// True if there are no triangles.
    pub fn is_empty(&self) -> bool {
        self.triangles.is_empty()
    }

    /// Returns the positions of the corners of a triangle.
    ///
    /// # Panics
    /// If `triangle` is out of range.
    pub fn corners(&self, triangle: usize) -> [[f32; 3]; 3] {
        self.triangles[triangle].map(|vertex| self.vertices[vertex as usize])
    }

    /// Returns the low and the high corner of the bounding box of all triangles, or `None` if there are none. Unused
    /// vertices do not count.
    pub fn bounds(&self) -> Option<[[f32; 3]; 2]> {
        let vertex = |triangle: &[u32; 3]| triangle.map(|vertex| self.vertices[vertex as usize]);
        let part_bounds = |part: Range<usize>| {
            let corners = self.triangles[part].iter().flat_map(vertex);
            corners.map(|at| [at; 2]).reduce(around).expect("parts have triangles")
        };
        parallel::reduce(self.triangles.len(), TASK_TRIANGLES, part_bounds, around)
    }
}

/// Returns the bounding box of two boxes.
pub(crate) fn around([low, high]: [[f32; 3]; 2], [other_low, other_high]: [[f32; 3]; 2]) -> [[f32; 3]; 2] {
    let each = |of: fn(f32, f32) -> f32, a: [f32; 3], b: [f32; 3]| [0, 1, 2].map(|axis| of(a[axis], b[axis]));
    [each(f32::min, low, other_low), each(f32::max, high, other_high)]
}

/// Checks the number of triangles, and returns it.
pub(super) fn check_count(count: u64) -> Result<usize> {
    error::check_count("triangles", count, MAX_TRIANGLES)?;
    Ok(count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: [[f32; 3]; 4] = [[0.0, 0.0, 5.0], [1.0, 0.0, 5.0], [1.0, 2.0, 5.0], [9.0, 9.0, 9.0]];

    #[test]
    fn degenerate_triangles_are_meshes() {
        let mesh = Mesh::new(SQUARE.to_vec(), vec![[0, 1, 2], [0, 1, 2], [1, 1, 1]]).unwrap();
        assert_eq!((mesh.len(), mesh.corners(2)), (3, [SQUARE[1]; 3]));
        assert_eq!(mesh.bounds(), Some([[0.0, 0.0, 5.0], [1.0, 2.0, 5.0]]));
        let empty = Mesh::new(SQUARE.to_vec(), vec![]).unwrap();
        assert!(empty.is_empty() && empty.bounds().is_none());
        assert_eq!(Mesh::default(), Mesh::new(vec![], vec![]).unwrap());
    }

    #[test]
    fn errors_name_the_triangle_or_vertex() {
        let mut triangles = vec![[0, 1, 2]; 40_000];
        (triangles[20_001], triangles[30_000]) = ([3, 2, 4], [7, 7, 7]);
        let error = Mesh::new(SQUARE.to_vec(), triangles).unwrap_err();
        assert_eq!(error.to_string(), "corner 2 of triangle 20001 is vertex 4: there are 4 vertices, from 0");
        let with = |value: f32| {
            let mut vertices = SQUARE.to_vec();
            vertices[2][1] = value;
            Mesh::new(vertices, vec![]).unwrap_err()
        };
        for value in [f32::NAN, f32::INFINITY] {
            assert!(matches!(with(value), Error::NonFinite { what: "vertex", index: 2, axis: 1, .. }));
        }
        assert!(matches!(with(f32::MAX), Error::CoordinateTooLarge { index: 2, axis: 1, .. }));
        assert!(matches!(check_count(u32::MAX.into()), Err(Error::TooManyItems { .. })));
        assert!(check_count(u64::from(u32::MAX) - 1).is_ok());
    }
}
