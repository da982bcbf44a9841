//! Elevation models and triangulations against their definitions, on the CPU and in the simulator.

use super::*;
use crate::device::{Device, SimOptions};
use crate::point::Lattice;
use crate::random::Random;
use std::collections::BTreeMap;

type Positions = Vec<[i32; 2]>;

fn devices() -> [Device; 2] {
    [Device::cpu(), Device::sim(SimOptions::default()).unwrap()]
}

fn random(len: usize, below: u64, seed: u64) -> Positions {
    let mut random = Random::of(seed, 0);
    (0..len).map(|_| [0; 2].map(|_| random.below(below) as i32)).collect()
}

fn cross(a: [i32; 2], b: [i32; 2], c: [i32; 2]) -> i128 {
    let of = |p: [i32; 2]| [i128::from(p[0]) - i128::from(a[0]), i128::from(p[1]) - i128::from(a[1])];
    let (b, c) = (of(b), of(c));
    b[0] * c[1] - b[1] * c[0]
}

/// Positive if `d` is inside of the circle through `a`, `b` and `c`, which are counterclockwise.
fn in_circle([a, b, c]: [[i32; 2]; 3], d: [i32; 2]) -> i128 {
    let [a, b, c] = [a, b, c].map(|p| [0, 1].map(|axis| i128::from(p[axis]) - i128::from(d[axis])));
    let lift = |p: [i128; 2]| p[0] * p[0] + p[1] * p[1];
    let cross = |p: [i128; 2], q: [i128; 2]| p[0] * q[1] - p[1] * q[0];
    lift(a) * cross(b, c) - lift(b) * cross(a, c) + lift(c) * cross(a, b)
}

/// Twice the area of the convex hull (Andrew 1979).
fn hull_area2(points: &[[i32; 2]]) -> i128 {
    let mut sorted = points.to_vec();
    sorted.sort_unstable();
    let half = |points: &mut dyn Iterator<Item = [i32; 2]>| {
        let mut chain: Positions = Vec::new();
        for point in points {
            while chain.len() > 1 && cross(chain[chain.len() - 2], chain[chain.len() - 1], point) <= 0 {
                chain.pop();
            }
            chain.push(point);
        }
        chain
    };
    let lower = half(&mut sorted.iter().copied());
    let upper = half(&mut sorted.iter().rev().copied());
    let hull: Positions = lower.into_iter().chain(upper).collect();
    hull.windows(2).map(|pair| cross([0; 2], pair[0], pair[1])).sum()
}

/// Checks a triangulation: triangles are counterclockwise, their circumcircles are empty, and together they are the convex hull.
fn check_triangles(points: &[[i32; 2]], triangles: &[[u32; 3]]) {
    let mut area2 = 0;
    let mut edges = BTreeMap::new();
    for ids in triangles {
        let corners = ids.map(|id| points[id as usize]);
        let [a, b, c] = corners;
        assert!(cross(a, b, c) > 0, "{ids:?}");
        area2 += cross(a, b, c);
        for &point in points {
            assert!(in_circle(corners, point) <= 0, "{corners:?} contains {point:?}");
        }
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            assert_eq!(edges.insert((ids[from], ids[to]), ids), None, "an edge of two triangles");
        }
    }
    assert_eq!(area2, hull_area2(points));
}

#[test]
fn triangulations() {
    let circle: Positions =
        [[5, 0], [4, 3], [3, 4], [0, 5], [-3, 4], [-4, 3], [-5, 0], [-4, -3], [0, -5], [3, -4], [0, 0]]
            .into();
    let far = 1 << 30;
    let sets = [
        ("none", vec![]),
        ("one", vec![[3, 4]]),
        ("two", vec![[3, 4], [1, 1]]),
        ("a line", (0..50).map(|i| [3 * i, 2 * i]).collect()),
        ("a triangle", vec![[0, 0], [1, 0], [0, 1]]),
        ("a circle", circle),
        ("far corners", vec![[0, 0], [far, 0], [0, far], [far, far], [far / 2, 1], [1, far / 3]]),
        ("a sliver", (0..40).map(|i| [i * 10_000_000, i % 2]).collect()),
        ("a lattice", (0..100).map(|i| [i % 10, i / 10]).collect()),
        ("a small lattice", random(120, 6, 1)),
        ("a larger lattice", random(150, 12, 2)),
        ("uniform", random(200, 1_000_000, 3)),
        ("wide", random(90, 1 << 29, 4)),
        ("the last integers", random(80, 8, 5).iter().map(|p| p.map(|c| i32::MAX - c)).collect()),
        ("the first integers", random(80, 8, 6).iter().map(|p| p.map(|c| i32::MIN + c)).collect()),
        ("around 0", random(80, 8, 6).iter().map(|p| p.map(|c| c - 4)).collect()),
        ("a parabola", (0..60).map(|i| [i * 100, i * i]).collect()),
    ];
    for (name, points) in sets {
        let [cpu, sim] = devices().map(|device| delaunay_2d(&device, &points).unwrap());
        assert_eq!(cpu, sim, "{name}");
        check_triangles(&points, &cpu);
    }
}

const LATTICE: Lattice = Lattice { scale: [0.01, 0.01, 0.001], offset: [1000.0, 2000.0, 10.0] };

/// Returns points with heights at random positions.
fn surface(len: usize, below: u64, seed: u64, height: impl Fn([i32; 2]) -> i32) -> Vec<[i32; 3]> {
    random(len, below, seed).into_iter().map(|[x, y]| [x, y, height([x, y])]).collect()
}

fn values(device: &Device, points: &[[i32; 3]], grid: &RasterGrid, method: &Method) -> Vec<u32> {
    let raster = Terrain::new(device, points, &LATTICE).unwrap().raster(grid, method).unwrap();
    raster.values().iter().map(|value| value.to_bits()).collect()
}

const METHODS: [Method; 12] = [
    Method::Statistic { statistic: Statistic::Min, radius: 0.7 },
    Method::Statistic { statistic: Statistic::Max, radius: 0.7 },
    Method::Statistic { statistic: Statistic::Mean, radius: 0.7 },
    Method::Statistic { statistic: Statistic::Count, radius: 0.7 },
    Method::Statistic { statistic: Statistic::StandardDeviation, radius: 0.7 },
    Method::Statistic { statistic: Statistic::Idw { power: 3 }, radius: 0.7 },
    Method::Nearest { radius: f64::INFINITY },
    Method::Idw { k: 12, radius: f64::INFINITY, power: 2 },
    Method::Idw { k: 5, radius: 0.5, power: 1 },
    Method::Tin { max_edge: 2.0 },
    Method::NaturalNeighbor,
    Method::Spline(Spline { tension: 40.0, smoothing: 0.1, leaf_points: 10 }),
];

#[test]
fn devices_agree() {
    let grid = RasterGrid::covering([[999.0, 1999.5], [1007.3, 2006.0]], 0.5).unwrap();
    for (len, below) in [(0, 1), (1, 500), (2, 500), (3, 500), (400, 600), (500, 20)] {
        let points = surface(len, below, 7, |[x, y]| (x * 7 + y * 3) % 1000 - 300);
        for method in METHODS {
            let [cpu, sim] = devices().map(|device| values(&device, &points, &grid, &method));
            assert_eq!(cpu, sim, "{len} points below {below}, {method:?}");
        }
    }
}

#[test]
fn planes_are_reproduced() {
    let plane = |[x, y]: [i32; 2]| 2 * x - 3 * y;
    let mut points = surface(300, 1000, 5, plane);
    points.extend([[0, 0], [1000, 0], [0, 1000], [1000, 1000]].map(|[x, y]| [x, y, plane([x, y])]));
    let terrain = Terrain::new(&Device::cpu(), &points, &LATTICE).unwrap();
    let grid = RasterGrid::covering([[1000.0, 2000.0], [1010.0, 2010.0]], 0.25).unwrap();
    for method in [Method::Tin { max_edge: f64::INFINITY }, Method::NaturalNeighbor] {
        let raster = terrain.raster(&grid, &method).unwrap();
        for row in 0..grid.rows() {
            for column in 0..grid.columns() {
                let [x, y] = grid.center(column, row);
                let expected = 10.0 + 0.2 * (x - 1000.0) - 0.3 * (y - 2000.0);
                let value = f64::from(raster.value(column, row));
                assert!((value - expected).abs() < 1e-6, "{method:?} {column} {row}: {value} {expected}");
            }
        }
    }
}

/// Points in blocks, and windows whose cells depend on points far away: the same values, with memory for few points.
#[test]
fn windows_agree_with_the_whole() {
    let grid = RasterGrid::covering([[999.0, 1999.0], [1051.0, 2051.0]], 1.0).unwrap();
    // Two clusters, a few points between them and on the border.
    let mut points = surface(500, 1200, 11, |[x, y]| (x * 13 + y * 7) % 5000);
    points.extend(surface(500, 1200, 12, |[x, y]| x - y).iter().map(|[x, y, z]| [x + 3700, y + 3500, *z]));
    points.extend(surface(60, 5000, 13, |[x, y]| x + y));
    points.extend([[0, 5000, 3], [5000, 0, 9], [5000, 0, 4]]);
    for method in METHODS {
        let whole = values(&Device::cpu(), &points, &grid, &method);
        for device in devices() {
            let chunks = points.chunks(301).map(|chunk| crate::Result::Ok(chunk.to_vec()));
            let options = TerrainOptions::default().host_bytes(1000).device_bytes(30_000);
            let mut progress = |_| std::ops::ControlFlow::Continue(());
            let terrain = Terrain::read(&device, chunks, &LATTICE, &options, &mut progress).unwrap();
            let mut bits = Vec::new();
            let mut visit = |_, values: &[f32]| {
                bits.extend(values.iter().map(|value| value.to_bits()));
                Ok(())
            };
            terrain.for_each_band(&grid, &method, 19, &mut progress, &mut visit).unwrap();
            let differing = bits.iter().zip(&whole).filter(|(a, b)| a != b).count();
            assert_eq!((bits.len(), differing), (whole.len(), 0), "{method:?} {device}");
        }
    }
}
