//! Generated meshes.

use clap::ValueEnum;

use kauri::Result;
use kauri::mesh::{Mesh, shapes};

/// Seed of all generated meshes.
const SEED: u64 = 1;
/// Ratio of triangles along a knot to triangles around its tube.
const KNOT_LENGTH: f64 = 12.0;

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Model {
    /// Hills over a square
    Terrain,
    /// A tube in a trefoil knot
    TorusKnot,
    /// Random triangles in a cube
    Soup,
    /// A flat square
    Grid,
    /// A sphere
    Sphere,
}

impl Model {
    /// Generates the mesh with about `triangles` triangles.
    pub(super) fn mesh(self, triangles: u32) -> Result<Mesh> {
        let count = f64::from(triangles);
        // A square has two triangles. The longer side has `times` times the squares of the shorter side.
        let sides = |times: f64| {
            let short = (0.5 * count / times).sqrt();
            [(times * short).round() as u32, short.round() as u32]
        };
        match self {
            Self::Terrain => shapes::terrain(sides(1.0)[0], SEED),
            Self::Grid => shapes::grid(2, sides(1.0)),
            Self::Sphere => shapes::sphere(sides(2.0)[0], sides(2.0)[1] + 1),
            Self::TorusKnot => shapes::torus_knot([2, 3], sides(KNOT_LENGTH)[0], sides(KNOT_LENGTH)[1]),
            // Triangles are large enough to hide almost everything behind them.
            Self::Soup => shapes::soup(triangles, 1.5 * count.cbrt().recip(), SEED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_triangles_is_approximate() {
        for model in Model::value_variants() {
            let mesh = model.mesh(10_000).unwrap();
            assert!((9_000..11_000).contains(&mesh.len()), "{}", mesh.len());
            model.mesh(0).unwrap();
        }
    }
}
