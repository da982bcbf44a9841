//! Meshes that are hard for indexes of triangles.

use crate::points::noise;
use kauri::Result;
use kauri::mesh::Mesh;

/// Segments of a hair, of two triangles each.
const SEGMENTS: usize = 32;

/// Returns a number from -1 to 1.
fn unit(seed: u64, i: usize) -> f32 {
    (noise(seed, i as u64) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn plus(a: [f32; 3], by: f32, b: [f32; 3]) -> [f32; 3] {
    [0, 1, 2].map(|axis| a[axis] + by * b[axis])
}

/// Returns a ball of about `n` triangles: curved hairs from the center outward, each a ribbon. Boxes of triangles overlap everywhere.
pub(super) fn hairball(n: usize, seed: u64) -> Result<Mesh> {
    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    for hair in 0..n.div_ceil(2 * SEGMENTS) {
        let random = |i: usize| [0, 1, 2].map(|axis| unit(seed, (hair * (SEGMENTS + 2) + i) * 3 + axis));
        let (mut at, mut direction, across) = ([0.0; 3], random(0), random(1));
        for segment in 0..=SEGMENTS {
            let first = vertices.len() as u32;
            vertices.extend([at, plus(at, 0.001, across)]);
            if segment < SEGMENTS {
                triangles.extend([[first, first + 1, first + 2], [first + 1, first + 3, first + 2]]);
            }
            direction = plus(direction, 0.3, random(2 + segment.min(SEGMENTS - 1)));
            at = plus(at, 1.0 / SEGMENTS as f32, direction);
        }
    }
    Mesh::new(vertices, triangles)
}

/// Returns `n` triangles half as long as the scene and a thousandth as wide, in random directions.
pub(super) fn slivers(n: usize, seed: u64) -> Result<Mesh> {
    let corners = |i: usize| {
        let random = |part: usize| [0, 1, 2].map(|axis| unit(seed, (3 * i + part) * 3 + axis));
        let at = random(0);
        [at, plus(at, 0.5, random(1)), plus(at, 0.0005, random(2))]
    };
    let vertices: Vec<[f32; 3]> = (0..n).flat_map(corners).collect();
    Mesh::new(vertices, (0..n as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect())
}
