//! Queries of bounding volume hierarchies that are not rays, against brute force.

use crate::generate::Random;
use crate::rays::Scene;
use kauri::bvh::{Leaf, LeafBox};
use kauri::mesh::{Mesh, shapes};
use kauri::rays::Aabb;
use kauri::{Bvh, Device, Rows};

/// Compares all queries of a hierarchy over triangles, and of one over their bounding boxes, with brute force; and those over the boxes again
/// after these have moved.
pub fn check_searches(device: &Device, scene: Scene, len: usize, num_queries: usize) {
    let mesh = scene.mesh(len, len as u64);
    let what = format!("{} triangles of {scene:?} on {device}", mesh.len());
    let corners: Vec<_> = (0..mesh.len()).map(|i| mesh.corners(i)).collect();
    let boxes: Vec<Aabb> = corners.iter().map(|&corners| Aabb::of_corners(corners)).collect();
    let points = points(&mesh, num_queries, len as u64);
    let windows: Vec<Aabb> = (0..num_queries)
        .map(|i| match i % 3 {
            0 => Aabb::of_point(points[i]).union(Aabb::of_point(points[(7 * i + 1) % num_queries])),
            1 => boxes.get(i).copied().unwrap_or(Aabb::of_point(points[i])),
            _ => Aabb::of_point(points[i]),
        })
        .collect();

    let bvh = Bvh::build(device, &mesh).unwrap();
    let dist2 = |i: usize, at: [f32; 3]| triangle_dist2(corners[i], at);
    check_items(&bvh, &boxes, &points, &windows, dist2, 1e-5, &what);
    check_closest_points(&bvh, &points, &what);

    let mut over_boxes = Bvh::build(device, &boxes).unwrap();
    let check = |bvh: &Bvh<LeafBox>, boxes: &[Aabb], what: &str| {
        bvh.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        let cpu = Bvh::build(&Device::cpu(), boxes).unwrap();
        assert_eq!(bvh.bounds(), cpu.bounds(), "{what}");
        let dist2 = |i: usize, at: [f32; 3]| box_dist2(boxes[i], at);
        check_items(bvh, boxes, &points, &windows, dist2, 1e-6, what);
    };
    check(&over_boxes, &boxes, &format!("boxes of {what}"));
    let mut moved = boxes.clone();
    for (i, bounds) in moved.iter_mut().enumerate() {
        // A low face that comes nearer keeps the box valid.
        bounds.low[i % 3] -= 0.5 * (bounds.high[0] - bounds.low[0]);
    }
    over_boxes.refit(&moved).unwrap();
    check(&over_boxes, &moved, &format!("boxes of {what}, refit"));
    over_boxes.rebuild(&boxes[..len.min(boxes.len()) / 2]).unwrap();
    check(&over_boxes, &boxes[..len.min(boxes.len()) / 2], &format!("half of the boxes of {what}, rebuilt"));
}

/// Returns points around a mesh, on its vertices and its triangles, in its planes, and far away.
fn points(mesh: &Mesh, num: usize, seed: u64) -> Vec<[f32; 3]> {
    let mut random = Random::new(seed);
    let [low, high] = mesh.bounds().unwrap_or([[-1.0; 3], [1.0; 3]]);
    (0..num)
        .map(|i| {
            let beyond = if i % 7 == 0 { 20.0 } else { 1.2 };
            let at = [0, 1, 2].map(|axis| {
                let (middle, size) = (0.5 * low[axis] + 0.5 * high[axis], high[axis] - low[axis]);
                (middle + (random.unit() as f32 - 0.5) * beyond * size).clamp(-2e18, 2e18)
            });
            if mesh.is_empty() {
                return at;
            }
            let [a, b, c] = mesh.corners(random.below(mesh.len() as u64) as usize);
            match i % 6 {
                0 => a,
                1 => [0, 1, 2].map(|axis| 0.5 * a[axis] + 0.25 * b[axis] + 0.25 * c[axis]),
                2 => [at[0], at[1], a[2]],
                _ => at,
            }
        })
        .collect()
}

/// Checks the queries that items of all kinds have. `dist2` is a distance by other formulas, with a relative error of up to `error`.
fn check_items<L: Leaf>(
    bvh: &Bvh<L>,
    boxes: &[Aabb],
    points: &[[f32; 3]],
    windows: &[Aabb],
    dist2: impl Fn(usize, [f32; 3]) -> f64,
    error: f64,
    what: &str,
) {
    assert_eq!(bvh.len(), boxes.len(), "{what}");
    let all: Vec<Vec<(f64, u32)>> =
        points.iter().map(|&at| (0..boxes.len()).map(|i| (dist2(i, at), i as u32)).collect()).collect();
    for (k, radius) in [(1, f32::INFINITY), (3, f32::INFINITY), (8, 0.5), (20, f32::INFINITY)] {
        let found = bvh.nearest_within(points, k, radius).unwrap();
        for (query, of_query) in all.iter().enumerate() {
            let (ids, found) = found.padded_row(query);
            let num = ids.iter().position(|&id| id == u32::MAX).unwrap_or(k);
            assert!(ids[num..].iter().all(|&id| id == u32::MAX), "{what}: {ids:?}");
            let mut sorted = of_query.clone();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            for entry in 0..num {
                let exact = of_query[ids[entry] as usize].0;
                let is_near =
                    |a: f64, b: f64| (a - b).abs() <= error * a.max(b) + 1e-9 * scale2(boxes, points[query]);
                assert!(
                    is_near(found[entry].into(), exact) && is_near(exact, sorted[entry].0),
                    "{what}: neighbor {entry} of {:?} is {} at {}, not at {exact}; expected {:?}",
                    points[query],
                    ids[entry],
                    found[entry],
                    sorted[entry]
                );
                let is_in_order =
                    entry == 0 || (found[entry - 1], ids[entry - 1]) < (found[entry], ids[entry]);
                assert!(is_in_order, "{what}: {ids:?} at {found:?}");
            }
            let bound = f64::from(radius * radius);
            let certain = of_query.iter().filter(|(dist2, _)| *dist2 < bound * (1.0 - 1e-3)).count();
            assert!(num >= certain.min(k), "{what}: {num} of at least {certain} neighbors");
            assert!(found[..num].iter().all(|&dist2| dist2 <= radius * radius), "{what}");
        }
    }
    let intersects =
        |a: Aabb, b: Aabb| (0..3).all(|axis| a.low[axis] <= b.high[axis] && b.low[axis] <= a.high[axis]);
    check_rows(
        &bvh.intersecting(windows).unwrap(),
        boxes,
        |row, bounds| intersects(windows[row], bounds),
        what,
    );
    let at = |row: usize| Aabb { low: points[row], high: points[row] };
    check_rows(&bvh.containing(points).unwrap(), boxes, |row, bounds| intersects(at(row), bounds), what);
    let counts = bvh.count_intersecting(windows).unwrap();
    let rows = bvh.intersecting(windows).unwrap();
    assert!(counts.iter().zip(&rows).all(|(count, (_, row))| *count == row.len() as u64), "{what}");
}

/// The square of a length that is large for boxes and a point, and for the least squares of `f32`.
fn scale2(boxes: &[Aabb], at: [f32; 3]) -> f64 {
    let all = boxes.iter().fold(Aabb::of_point(at), |all, &bounds| all.union(bounds));
    all.extents().into_iter().map(|side| f64::from(side).powi(2)).sum::<f64>() * 1e-6
        + 1e9 * f64::from(f32::MIN_POSITIVE)
}

/// Checks that rows have exactly the boxes for which `belongs` is true.
fn check_rows(rows: &Rows, boxes: &[Aabb], belongs: impl Fn(usize, Aabb) -> bool, what: &str) {
    for (row, ids) in rows {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        let expected: Vec<u32> =
            (0..boxes.len()).filter(|&i| belongs(row, boxes[i])).map(|i| i as u32).collect();
        assert_eq!(sorted, expected, "{what}: row {row}");
    }
}

fn check_closest_points(bvh: &Bvh, points: &[[f32; 3]], what: &str) {
    let nearest = bvh.nearest(points, 1).unwrap();
    let found = bvh.closest_points(points, f32::INFINITY).unwrap();
    for (query, found) in found.iter().enumerate() {
        assert_eq!(found.triangle, nearest.ids()[query], "{what}");
        assert_eq!(found.distance.to_bits(), nearest.dist2()[query].sqrt().to_bits(), "{what}");
        assert_eq!(found.is_found(), !bvh.is_empty(), "{what}");
    }
}

/// The square of the distance of a point to a box.
fn box_dist2(of: Aabb, at: [f32; 3]) -> f64 {
    let side = |axis: usize| {
        let [low, high, x] = [of.low[axis], of.high[axis], at[axis]].map(f64::from);
        x - x.clamp(low, high)
    };
    (0..3).map(|axis| side(axis).powi(2)).sum()
}

/// The square of the distance of a point to a triangle: the minimum over the triangle's sides, and over its interior by the angle at the foot
/// (a plane through the point's foot, with the normal of Cramer's rule).
fn triangle_dist2(corners: [[f32; 3]; 3], at: [f32; 3]) -> f64 {
    type V = [f64; 3];
    let minus = |a: V, b: V| [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    let dot = |a: V, b: V| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let cross =
        |a: V, b: V| [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    let ([a, b, c], p) = (corners.map(|corner| corner.map(f64::from)), at.map(f64::from));
    let to_side = |a: V, b: V| {
        let (side, to_point) = (minus(b, a), minus(p, a));
        let all = dot(side, side);
        let t = if all > 0.0 { (dot(side, to_point) / all).clamp(0.0, 1.0) } else { 0.0 };
        let foot = [0, 1, 2].map(|i| a[i] + t * side[i]);
        dot(minus(p, foot), minus(p, foot))
    };
    let sides = to_side(a, b).min(to_side(b, c)).min(to_side(c, a));
    let normal = cross(minus(b, a), minus(c, a));
    let area2 = dot(normal, normal);
    let longest = dot(minus(b, a), minus(b, a)).max(dot(minus(c, a), minus(c, a)));
    let is_inside = |a: V, b: V| dot(cross(normal, minus(b, a)), minus(p, a)) >= 0.0;
    // A triangle that is nearly a line has no plane.
    if area2 > 1e-20 * longest * longest && is_inside(a, b) && is_inside(b, c) && is_inside(c, a) {
        sides.min(dot(normal, minus(p, a)).powi(2) / area2)
    } else {
        sides
    }
}

/// Checks which points are inside closed meshes: a sphere, with points anywhere and points each of whose coordinates a vertex has, and a block of
/// cubes between the coordinates 0 and `side`, whose corners and sides many rays pass.
pub fn check_inside(device: &Device, turn: usize, num: usize) {
    let mut random = Random::new(turn as u64);
    let sphere = shapes::sphere(16, 9).unwrap();
    let bvh = Bvh::build(device, &sphere).unwrap();
    let vertices = sphere.vertices();
    let mut coordinate = |i: usize, axis: usize| match i % 2 {
        0 => 2.4 * (random.unit() as f32 - 0.5),
        _ => vertices[random.below(vertices.len() as u64) as usize][axis],
    };
    let points: Vec<[f32; 3]> = (0..num).map(|i| [0, 1, 2].map(|axis| coordinate(i, axis))).collect();
    let inside = bvh.inside(&points).unwrap();
    for (&point, inside) in points.iter().zip(inside) {
        let winding = winding(&sphere, point);
        // Points on the sphere are either.
        if (winding - winding.round()).abs() < 1e-6 {
            assert_eq!(inside, winding.round() != 0.0, "{point:?} in a sphere on {device}");
        }
    }

    let side = 2;
    let bvh = Bvh::build(device, &block(side)).unwrap();
    let points: Vec<[f32; 3]> =
        (0..num).map(|_| [0; 3].map(|_| (random.below(4 * side as u64 + 5) as f32 - 2.0) * 0.5)).collect();
    for (point, inside) in points.iter().zip(bvh.inside(&points).unwrap()) {
        let [least, most] = [f32::min, f32::max].map(|of| point.iter().copied().reduce(of).unwrap());
        let is_on_surface = least >= 0.0 && most <= side as f32 && (least == 0.0 || most == side as f32);
        assert!(
            is_on_surface || inside == (least > 0.0 && most < side as f32),
            "{point:?} in a block on {device}"
        );
    }
}

/// Returns the surface of a block of cubes of size 1: two triangles for each square.
fn block(side: u32) -> Mesh {
    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    for axis in 0..3 {
        for level in [0, side] {
            let first = vertices.len() as u32;
            for i in 0..=side {
                for j in 0..=side {
                    let mut vertex = [0.0; 3];
                    (vertex[axis], vertex[(axis + 1) % 3], vertex[(axis + 2) % 3]) =
                        (level as f32, i as f32, j as f32);
                    vertices.push(vertex);
                    if i < side && j < side {
                        let [a, b] = [first + i * (side + 1) + j, first + (i + 1) * (side + 1) + j];
                        triangles.extend([[a, b, b + 1], [a, b + 1, a + 1]]);
                    }
                }
            }
        }
    }
    Mesh::new(vertices, triangles).unwrap()
}

/// Returns how often a mesh winds around a point (van Oosterom, Strackee 1983: The Solid Angle of a Plane Triangle).
fn winding(mesh: &Mesh, at: [f32; 3]) -> f64 {
    let solid_angle = |i: usize| {
        let [a, b, c] =
            mesh.corners(i).map(|corner| [0, 1, 2].map(|axis| f64::from(corner[axis]) - f64::from(at[axis])));
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
        let [la, lb, lc] = [a, b, c].map(|v| dot(v, v).sqrt());
        2.0 * dot(a, cross).atan2(la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb)
    };
    (0..mesh.len()).map(solid_angle).sum::<f64>() / (4.0 * std::f64::consts::PI)
}
