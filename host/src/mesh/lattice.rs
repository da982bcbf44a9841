//! Surfaces of quads, two triangles each.

use super::triangle_mesh::{Mesh, check_count};
use crate::error::{self, Result};
use crate::parallel::{self, TASK_ITEMS};

/// A grid of quads. A closed axis wraps around: its last quad meets the first.
pub(super) struct Lattice {
    /// Number of quads along a row and along a column.
    pub(super) squares: [u32; 2],
    /// Whether rows, and columns, are closed.
    pub(super) closed: [bool; 2],
}

impl Lattice {
    /// Returns the number of vertices along a row and along a column.
    fn sides(&self) -> [u64; 2] {
        [0, 1].map(|axis| u64::from(self.squares[axis]) + u64::from(!self.closed[axis]))
    }

    /// Returns the index of a vertex.
    pub(super) fn vertex(&self, i: u32, j: u32) -> u32 {
        let sides = self.sides();
        (u64::from(j) % sides[1] * sides[0] + u64::from(i) % sides[0]) as u32
    }

    /// Returns the vertices, row by row. `position` maps column and row to a position.
    pub(super) fn vertices(&self, at: impl Fn(u32, u32) -> [f64; 3] + Sync) -> Result<Vec<[f32; 3]>> {
        let sides = self.sides();
        let count = vertex_count(sides[0].saturating_mul(sides[1]))?;
        let at = |vertex| at((vertex as u64 % sides[0]) as u32, (vertex as u64 / sides[0]) as u32);
        let vertex = |vertex| at(vertex).map(|at| at as f32);
        parallel::collect(count, TASK_ITEMS, "vertices of a mesh", vertex)
    }

    /// Returns two triangles per quad, row by row. Neighbors use their common edge in opposite directions.
    pub(super) fn triangles(&self) -> Result<Vec<[u32; 3]>> {
        let [columns, rows] = self.squares;
        let count = 2_u64.saturating_mul(columns.into()).saturating_mul(rows.into());
        let pair = |square: usize| {
            let (i, j) = (square as u32 % columns, square as u32 / columns);
            let [a, b, c, d] = [[0, 0], [1, 0], [1, 1], [0, 1]].map(|[di, dj]| self.vertex(i + di, j + dj));
            [[a, b, c], [a, c, d]]
        };
        let pairs = parallel::collect(check_count(count)? / 2, TASK_ITEMS, "triangles of a mesh", pair)?;
        Ok(pairs.into_flattened())
    }

    /// Returns the mesh of [`vertices`](Self::vertices) and [`triangles`](Self::triangles).
    pub(super) fn mesh(&self, at: impl Fn(u32, u32) -> [f64; 3] + Sync) -> Result<Mesh> {
        let triangles = self.triangles()?;
        Mesh::new(self.vertices(at)?, triangles)
    }
}

/// Checks the number of vertices of a generated mesh, and returns it.
pub(super) fn vertex_count(count: u64) -> Result<usize> {
    error::check_count("vertices", count, u32::MAX.into())?;
    Ok(count as usize)
}
