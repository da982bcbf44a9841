//! The mesh of a caller in device memory.

use super::triangle::Corners;
use crate::thread::coord::Float;
use cuda_std::prelude::*;

/// The most triangles of a mesh in an index.
pub const MAX_TRIANGLES: u64 = (1 << 30) - 1;

/// Vertices and triangles of a mesh. Nothing about them is known to be valid.
#[derive(Clone, Copy, KernelArgs)]
pub struct MeshView<'a> {
    /// Three coordinates per vertex.
    pub vertices: Slice<'a, f32>,
    /// Three vertex indices per triangle.
    pub triangles: Slice<'a, u32>,
}

impl MeshView<'_> {
    /// Number of triangles.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.triangles.len() / 3
    }

    /// True if there are no triangles.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the corners of a triangle. None if a vertex index is out of range, or a coordinate is not finite or too large.
    ///
    /// # Safety
    /// There is such a triangle.
    #[inline(always)]
    pub unsafe fn corners(&self, triangle: usize) -> Option<Corners> {
        Some(Corners::new([
            self.corner(3 * triangle)?,
            self.corner(3 * triangle + 1)?,
            self.corner(3 * triangle + 2)?,
        ]))
    }

    #[inline(always)]
    unsafe fn corner(&self, i: usize) -> Option<[f32; 3]> {
        let vertex = self.triangles.load(i) as usize;
        if vertex >= self.vertices.len() / 3 {
            return None;
        }
        let [x, y, z] = [0, 1, 2].map(|axis| self.vertices.load(3 * vertex + axis));
        (is_usable(x) && is_usable(y) && is_usable(z)).then_some([x, y, z])
    }
}

/// True for a coordinate that is finite and small enough for areas not to overflow.
#[inline(always)]
pub fn is_usable(x: f32) -> bool {
    x.abs() <= <f32 as Float>::LIMIT
}
