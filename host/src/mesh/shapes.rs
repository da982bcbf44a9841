//! Generated meshes with any number of triangles, the same to the last bit on every machine.
//!
//! | shape | why it is hard for a tree |
//! |---|---|
//! | [`grid`] | axis-aligned, coplanar triangles |
//! | [`sphere`] | thin triangles at the poles |
//! | [`torus_knot`] | a closed surface around much empty space |
//! | [`terrain`] | a surface that fills its box on two axes |
//! | [`soup`] | unconnected triangles that fill the scene |
//!
//! ```
//! use kauri::mesh::shapes;
//! let sphere = shapes::sphere(32, 16)?;
//! assert_eq!(sphere.len(), 2 * 32 * 15);
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! All return [`Error::TooManyItems`] for more than `u32::MAX - 1` triangles or `u32::MAX` vertices, and
//! [`Error::OutOfMemory`].

use libm::sincos;
use std::f64::consts::TAU;

use super::lattice::{Lattice, vertex_count};
use super::triangle_mesh::{Mesh, check_count};
use crate::error::{Error, Result};
use crate::memory;
use crate::noise::Noise;
use crate::parallel::{self, TASK_ITEMS};
use crate::random::Random;

/// Hills along the side of a [`terrain`], octaves of its noise, and half of its maximum height.
const HILLS: f64 = 4.0;
const OCTAVES: u32 = 8;
const RELIEF: f64 = 0.1;
/// Radii of a [`torus_knot`]: of the torus' center circle, of the torus' tube on which the knot lies, and of the knot's
/// tube.
const CIRCLE: f64 = 2.0;
const TORUS: f64 = 1.0;
const TUBE: f64 = 0.4;

/// A grid of unit squares with a corner at 0, in the plane where the coordinate `axis` (0 to 2) is 0; two triangles per
/// square.
///
/// `2 squares[0] squares[1]` triangles, row by row. `squares[0]` counts along the axis after `axis`, with x after z.
///
/// # Errors
/// [`Error::OutOfRange`] for another axis; the errors of all [shapes](self).
pub fn grid(axis: usize, squares: [u32; 2]) -> Result<Mesh> {
    if axis > 2 {
        return Err(Error::OutOfRange { what: "axis", value: axis as u64, least: 0, most: 2 });
    }
    Lattice { squares, closed: [false; 2] }.mesh(|i, j| {
        let mut at = [0.0; 3];
        (at[(axis + 1) % 3], at[(axis + 2) % 3]) = (f64::from(i), f64::from(j));
        at
    })
}

/// A terrain over the unit square in x and y, with heights z from 0 to below 0.2 by fractal noise (Perlin 1985; value noise,
/// eight octaves).
///
/// `2 side²` triangles over `side` x `side` squares. A larger side gives the same terrain in more detail.
///
/// # Errors
/// The errors of all [shapes](self).
pub fn terrain(side: u32, seed: u64) -> Result<Mesh> {
    let noise = Noise { seed };
    Lattice { squares: [side; 2], closed: [false; 2] }.mesh(|i, j| {
        let [x, y] = [i, j].map(|at| f64::from(at) / f64::from(side.max(1)));
        [x, y, noise.fractal(OCTAVES, RELIEF, x * HILLS, y * HILLS)]
    })
}

/// The unit sphere with poles on the z axis, in `slices` around the axis and `stacks` along it.
///
/// `2 slices (stacks - 1)` triangles. The surface is closed: each edge is in two triangles. At least 3 slices and 2 stacks
/// are used.
///
/// # Errors
/// The errors of all [shapes](self).
pub fn sphere(slices: u32, stacks: u32) -> Result<Mesh> {
    let (slices, stacks) = (slices.max(3), stacks.max(2));
    check_count(2_u64.saturating_mul(slices.into()).saturating_mul(u64::from(stacks) - 1))?;
    let between = Lattice { squares: [slices, stacks - 2], closed: [true, false] };
    let mut vertices = between.vertices(|i, j| {
        let [(sin_lon, cos_lon), (sin_polar, cos_polar)] = [turn(i, slices), half_turn(j + 1, stacks)];
        [sin_polar * cos_lon, sin_polar * sin_lon, cos_polar]
    })?;
    let [north, south] = [0, 1].map(|pole| vertices.len() as u32 + pole);
    vertices.extend([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]);

    let mut triangles = between.triangles()?;
    memory::reserve(&mut triangles, 2 * slices as usize, "triangles of a mesh")?;
    triangles.extend((0..slices).flat_map(|i| {
        let [first, last] = [0, stacks - 2].map(|j| [between.vertex(i, j), between.vertex(i + 1, j)]);
        [[north, first[1], first[0]], [south, last[0], last[1]]]
    }));
    Mesh::new(vertices, triangles)
}

/// A tube around a knot on a torus. The knot winds `windings[0]` times around the torus' axis, z, and `windings[1]` times
/// around its tube; `[2, 3]` is the trefoil. The mesh is within 3.4 of 0 on x and y, and within 1.4 on z.
///
/// `2 rings sides` triangles. The surface is closed: each edge is in two triangles. At least 3 rings and sides are used.
/// Windings with a common divisor give a tube that overlaps itself that many times.
///
/// # Errors
/// The errors of all [shapes](self).
pub fn torus_knot(windings: [u32; 2], rings: u32, sides: u32) -> Result<Mesh> {
    let (rings, sides) = (rings.max(3), sides.max(3));
    Lattice { squares: [rings, sides], closed: [true; 2] }.mesh(|i, j| {
        let wound =
            |windings: u32| turn((u64::from(i) * u64::from(windings) % u64::from(rings)) as u32, rings);
        let [(sin_u, cos_u), (sin_v, cos_v)] = windings.map(wound);
        // The knot lies on the torus. One direction of its cross section is the torus' normal, the other is tangent to the
        // torus and perpendicular to the knot's tangent.
        let from_axis = CIRCLE + TORUS * cos_v;
        let normal = [cos_v * cos_u, cos_v * sin_u, sin_v];
        let along_u = [-sin_u, cos_u, 0.0];
        let along_v = [-sin_v * cos_u, -sin_v * sin_u, cos_v];
        let tangent = [f64::from(windings[0]) * from_axis, f64::from(windings[1]) * TORUS];
        let length = (tangent[0] * tangent[0] + tangent[1] * tangent[1]).sqrt().max(f64::MIN_POSITIVE);
        let (sin, cos) = turn(j, sides);
        let knot = [from_axis * cos_u, from_axis * sin_u, TORUS * sin_v];
        [0, 1, 2].map(|axis| {
            let across = (tangent[0] * along_v[axis] - tangent[1] * along_u[axis]) / length;
            knot[axis] + TUBE * (cos * normal[axis] + sin * across)
        })
    })
}

/// Random triangles in the unit cube, each with its corners in a cube with sides of `size`. The size is clamped to [0, 1];
/// size 0 gives points.
///
/// # Errors
/// The errors of all [shapes](self); [`Error::NonFinite`] if the size is not a number.
pub fn soup(triangles: u32, size: f64, seed: u64) -> Result<Mesh> {
    vertex_count(3 * u64::from(triangles))?;
    let size = size.clamp(0.0, 1.0);
    let mut vertices = memory::vec_with_capacity(triangles as usize, "vertices of a mesh")?;
    let corners = |triangle: u64| -> [[f32; 3]; 3] {
        let mut random = Random::of(seed, triangle);
        let low = [(); 3].map(|()| (1.0 - size) * random.unit());
        [(); 3].map(|()| low.map(|low| (low + size * random.unit()) as f32))
    };
    parallel::extend(&mut vertices, triangles as usize, TASK_ITEMS, |triangle| corners(triangle as u64));
    let corners = (0..triangles).map(|triangle| [0, 1, 2].map(|corner| 3 * triangle + corner));
    Mesh::new(vertices.into_flattened(), memory::collect(corners, "triangles of a mesh")?)
}

/// Returns sine and cosine of `i / n` turns. The standard library's results depend on the machine.
fn turn(i: u32, n: u32) -> (f64, f64) {
    sincos(TAU * f64::from(i) / f64::from(n))
}

fn half_turn(i: u32, n: u32) -> (f64, f64) {
    sincos(0.5 * TAU * f64::from(i) / f64::from(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// True if each edge is in two triangles that use it in opposite directions.
    fn is_closed(mesh: &Mesh) -> bool {
        let mut edges = HashMap::new();
        for &[a, b, c] in mesh.triangles() {
            for [from, to] in [[a, b], [b, c], [c, a]] {
                *edges.entry([from, to]).or_insert(0) += 1;
            }
        }
        edges.iter().all(|(&[from, to], &count)| count == 1 && edges.get(&[to, from]) == Some(&1))
    }

    fn within(mesh: &Mesh, low: [f32; 3], high: [f32; 3]) -> bool {
        let [found_low, found_high] = mesh.bounds().unwrap();
        (0..3).all(|axis| low[axis] <= found_low[axis] && found_high[axis] <= high[axis])
    }

    #[test]
    fn grids_are_perpendicular_to_their_axis() {
        for axis in 0..3 {
            let mesh = grid(axis, [3, 5]).unwrap();
            assert_eq!((mesh.len(), mesh.vertices().len()), (30, 24));
            let mut high = [0.0; 3];
            (high[(axis + 1) % 3], high[(axis + 2) % 3]) = (3.0, 5.0);
            assert_eq!(mesh.bounds(), Some([[0.0; 3], high]));
        }
        assert!(matches!(grid(3, [1, 1]), Err(Error::OutOfRange { value: 3, .. })));
        assert!(matches!(grid(0, [u32::MAX; 2]), Err(Error::TooManyItems { what: "triangles", .. })));
        assert!(matches!(grid(0, [u32::MAX, 0]), Err(Error::TooManyItems { what: "vertices", .. })));
    }

    #[test]
    fn closed_shapes_are_closed() {
        for windings in [[2, 3], [1, 0], [5, 2], [4, 2], [0, 0]] {
            let mesh = torus_knot(windings, 60, 7).unwrap();
            assert_eq!((mesh.len(), mesh.vertices().len()), (840, 420));
            assert!(is_closed(&mesh) && within(&mesh, [-3.4, -3.4, -1.4], [3.4, 3.4, 1.4]), "{windings:?}");
        }
        for [slices, stacks] in [[3, 2], [8, 5]] {
            let mesh = sphere(slices, stacks).unwrap();
            assert_eq!(mesh.len() as u32, 2 * slices * (stacks - 1));
            assert!(is_closed(&mesh) && within(&mesh, [-1.0; 3], [1.0; 3]));
            let radius = |at: &[f32; 3]| at.iter().map(|x| x * x).sum::<f32>();
            assert!(mesh.vertices().iter().all(|at| (radius(at) - 1.0).abs() < 1e-6));
        }
        assert!(!is_closed(&grid(2, [2, 2]).unwrap()));
        assert!(matches!(sphere(u32::MAX, 2), Err(Error::TooManyItems { .. })));
    }

    #[test]
    fn tubes_are_as_thick_everywhere() {
        let (rings, sides) = (90, 8);
        let mesh = torus_knot([3, 4], rings, sides).unwrap();
        for ring in 0..rings as usize {
            let at = |side: usize| mesh.vertices()[ring + side * rings as usize].map(f64::from);
            let across = |side| (0..3).map(|axis| (at(side)[axis] - at(side + 4)[axis]).powi(2)).sum::<f64>();
            assert!((0..4).all(|side| (across(side) - 4.0 * TUBE * TUBE).abs() < 1e-5));
        }
    }

    #[test]
    fn soups_are_in_the_cube_and_small() {
        let mesh = soup(1000, 0.1, 3).unwrap();
        assert!(mesh.len() == 1000 && within(&mesh, [0.0; 3], [1.0; 3]));
        for triangle in 0..mesh.len() {
            let [a, b, c] = mesh.corners(triangle);
            assert!((0..3).all(|axis| (a[axis] - b[axis]).abs().max((b[axis] - c[axis]).abs()) <= 0.1001));
        }
        assert_ne!(mesh, soup(1000, 0.1, 4).unwrap());
        let points = soup(10, -1.0, 3).unwrap();
        assert!((0..10).all(|i| points.corners(i) == [points.corners(i)[0]; 3]));
        assert!(matches!(soup(10, f64::NAN, 3), Err(Error::NonFinite { .. })));
        assert!(matches!(soup(u32::MAX, 0.1, 3), Err(Error::TooManyItems { .. })));
    }

    #[test]
    fn more_triangles_are_the_same_land() {
        let [coarse, fine] = [16, 32].map(|side| terrain(side, 7).unwrap());
        assert_eq!((coarse.len(), fine.len()), (512, 2048));
        assert_eq!(coarse.vertices()[17 * 5 + 3], fine.vertices()[33 * 10 + 6]);
        assert!(within(&fine, [0.0; 3], [1.0, 1.0, 0.2]));
        let [low, high] = fine.bounds().unwrap();
        assert!(high[2] - low[2] > 0.05);
        assert!(terrain(0, 7).unwrap().is_empty());
    }

    /// Hashes that hold on every machine.
    #[test]
    fn shapes_are_the_same_everywhere() {
        let hash = |mesh: Result<Mesh>| {
            let mesh = mesh.unwrap();
            let floats = mesh.vertices().as_flattened().iter().map(|x| x.to_bits());
            let all = floats.chain(mesh.triangles().as_flattened().iter().copied());
            // FNV-1a by words.
            all.fold(0xCBF2_9CE4_8422_2325_u64, |hash, word| {
                (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01B3)
            })
        };
        let hashes = [
            hash(grid(1, [40, 30])),
            hash(sphere(50, 40)),
            hash(torus_knot([2, 3], 300, 20)),
            hash(terrain(100, 1)),
            hash(soup(2000, 0.02, 1)),
        ];
        let known = [
            0xF456_2DA7_2303_ACFF,
            0xECB7_C345_B54D_8CF7,
            0x6EA9_930D_B13D_4E3E,
            0x7B52_9218_3144_C12C,
            0xA483_73F5_2B80_D953,
        ];
        assert_eq!(hashes, known, "{hashes:#X?}");
    }
}
