//! Elevation models and triangulations: every device against the CPU, the CPU against other libraries, and input that cannot be used.

use crate::primitives::on_gpus;
use kauri::device::{FaultCall, FaultPlan, Gpu};
use kauri::lidar::Lidar;
use kauri::terrain::{
    GroundFilter, Method, RasterGrid, Spline, Statistic, Terrain, TerrainOptions, delaunay_2d,
};
use kauri::{Device, Error, Lattice};
use kauri_tests::generate::Random;
use kauri_tests::{devices, devices_for};
use spade::{DelaunayTriangulation, HasPosition, Point2, Triangulation};

const LATTICE: Lattice = Lattice { scale: [0.01, 0.01, 0.001], offset: [450_000.0, 4_400_000.0, 0.0] };
const TIN: Method = Method::Tin { max_edge: f64::INFINITY };

fn methods() -> [Method; 11] {
    [
        Method::Statistic { statistic: Statistic::Min, radius: 1.0 },
        Method::Statistic { statistic: Statistic::Max, radius: 1.0 },
        Method::Statistic { statistic: Statistic::Mean, radius: 1.0 },
        Method::Statistic { statistic: Statistic::Count, radius: 1.0 },
        Method::Statistic { statistic: Statistic::StandardDeviation, radius: 1.0 },
        Method::Statistic { statistic: Statistic::Idw { power: 1 }, radius: 1.0 },
        Method::Nearest { radius: 5.0 },
        Method::Idw { k: 12, radius: f64::INFINITY, power: 2 },
        Method::Tin { max_edge: 20.0 },
        Method::NaturalNeighbor,
        Method::Spline(Spline::default().leaf_points(20)),
    ]
}

/// Returns the points of a scan on its lattice.
fn scan(n: u64) -> (Vec<[i32; 3]>, Lattice, [[f64; 2]; 2]) {
    let scan = Lidar::new(n, 3);
    let lattice = scan.lattice();
    let points = scan.points(0..n).unwrap();
    (points.iter().map(|point| lattice.nearest(point.position).unwrap()).collect(), lattice, scan.bounds())
}

fn random(n: usize, below: u64, seed: u64) -> Vec<[i32; 3]> {
    let mut random = Random::new(seed);
    (0..n).map(|_| [0; 3].map(|_| random.below(below) as i32)).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn devices_agree() {
    let (points, lattice, bounds) = scan(200_000);
    let grid = RasterGrid::covering(bounds, 1.0).unwrap();
    let plane: Vec<[i32; 2]> = points.iter().map(|&[x, y, _]| [x, y]).collect();
    let cpu = Terrain::new(&Device::cpu(), &points, &lattice).unwrap();
    for device in devices().into_iter().filter(|device| !device.is_cpu()) {
        let other = Terrain::new(&device, &points, &lattice).unwrap();
        for method in &methods() {
            let [cpu, other] =
                [&cpu, &other].map(|terrain| bits(terrain.raster(&grid, method).unwrap().values()));
            let differing = cpu.iter().zip(&other).filter(|(a, b)| a != b).count();
            assert_eq!((differing, cpu.len()), (0, other.len()), "{method:?} on {device}");
        }
        assert!(delaunay_2d(&device, &plane).unwrap() == delaunay_2d(&Device::cpu(), &plane).unwrap());
        let ground = |device: &Device| GroundFilter::default().run(device, &points, &lattice).unwrap();
        assert!(ground(&device) == ground(&Device::cpu()), "{device}");
    }
}

/// A cloud cut into windows by memory for few points.
#[test]
fn windows_have_no_seams() {
    let n = 60_000;
    let (points, lattice, bounds) = scan(n);
    let grid = RasterGrid::covering(bounds, 1.0).unwrap();
    let options = TerrainOptions::default().host_bytes(1 << 16).device_bytes(10 * n);
    for device in devices() {
        let mut progress = |_| std::ops::ControlFlow::Continue(());
        let chunks = points.chunks(4999).map(|chunk| Ok(chunk.to_vec()));
        let parts = Terrain::read(&device, chunks, &lattice, &options, &mut progress).unwrap();
        let whole = Terrain::new(&device, &points, &lattice).unwrap();
        assert_eq!(parts.bounds(), whole.bounds());
        for method in &methods() {
            let [parts, whole] =
                [&parts, &whole].map(|terrain| bits(terrain.raster(&grid, method).unwrap().values()));
            let differing = parts.iter().zip(&whole).filter(|(a, b)| a != b).count();
            assert_eq!(differing, 0, "{method:?} on {device}");
        }
    }
}

struct Vertex(Point2<f64>);

impl HasPosition for Vertex {
    type Scalar = f64;

    fn position(&self) -> Point2<f64> {
        self.0
    }
}

/// Uniform points have one triangulation.
#[test]
fn triangles_are_those_of_spade() {
    let points: Vec<[i32; 2]> = random(20_000, 1 << 26, 9).iter().map(|&[x, y, _]| [x, y]).collect();
    let vertices = points.iter().map(|point| Vertex(Point2::new(point[0].into(), point[1].into()))).collect();
    let expected = DelaunayTriangulation::<Vertex>::bulk_load(vertices).unwrap();
    let corners = |triangle: [[i32; 2]; 3]| {
        let mut sorted = triangle;
        sorted.sort_unstable();
        sorted
    };
    let mut expected: Vec<_> = expected
        .inner_faces()
        .map(|face| corners(face.positions().map(|position| [position.x as i32, position.y as i32])))
        .collect();
    let found = delaunay_2d(&Device::cpu(), &points).unwrap();
    let mut found: Vec<_> = found.iter().map(|ids| corners(ids.map(|id| points[id as usize]))).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert!(found == expected);
}

/// The definition of the weighted average: all points sorted by distance, then by height.
#[test]
fn inverse_distance_is_its_definition() {
    let mut points = random(2000, 4000, 4);
    // Of two points at one position only the lower one counts among the nearest.
    points.sort_unstable();
    points.dedup_by_key(|point| [point[0], point[1]]);
    let grid = RasterGrid::covering([[450_000.0, 4_400_000.0], [450_040.0, 4_400_040.0]], 1.0).unwrap();
    let terrain = Terrain::new(&Device::cpu(), &points, &LATTICE).unwrap();
    let [all, near] = [
        Method::Idw { k: 12, radius: f64::INFINITY, power: 3 },
        Method::Statistic { statistic: Statistic::Idw { power: 2 }, radius: 1.5 },
    ]
    .map(|method| terrain.raster(&grid, &method).unwrap());
    let average = |of: &[(f64, f64)], power: i32| {
        let weight = |distance: f64| 1.0 / distance.max(1e-9).powi(power);
        let weights: f64 = of.iter().map(|&(distance, _)| weight(distance)).sum();
        of.iter().map(|&(distance, height)| weight(distance) * height).sum::<f64>() / weights
    };
    for row in 0..grid.rows() {
        for column in 0..grid.columns() {
            let [x, y] = grid.center(column, row);
            let to = |&point: &[i32; 3]| {
                let [px, py, height] = LATTICE.position(point);
                ((px - x).hypot(py - y), height)
            };
            let mut sorted: Vec<(f64, f64)> = points.iter().map(to).collect();
            sorted.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
            let (value, expected) = (f64::from(all.value(column, row)), average(&sorted[..12], 3));
            // Which of two equally far points is the last one does not follow from their heights.
            let is_tie = sorted[12].0 - sorted[11].0 < 1e-9;
            assert!(is_tie || (value - expected).abs() < 1e-5, "{column} {row}: {value} {expected}");
            let within: Vec<_> =
                sorted.iter().copied().take_while(|&(distance, _)| distance <= 1.5 + 1e-9).collect();
            let value = f64::from(near.value(column, row));
            assert!(
                if within.is_empty() { value.is_nan() } else { (value - average(&within, 2)).abs() < 1e-5 },
                "{column} {row}"
            );
        }
    }
}

#[test]
fn statistics_are_their_definitions() {
    let points = random(1500, 2000, 8);
    let grid = RasterGrid::covering([[449_999.0, 4_400_000.0], [450_021.0, 4_400_020.0]], 0.5).unwrap();
    let terrain = Terrain::new(&Device::cpu(), &points, &LATTICE).unwrap();
    let statistics =
        [Statistic::Min, Statistic::Max, Statistic::Mean, Statistic::Count, Statistic::StandardDeviation];
    let rasters = statistics
        .map(|statistic| terrain.raster(&grid, &Method::Statistic { statistic, radius: 0.8 }).unwrap());
    for row in 0..grid.rows() {
        for column in 0..grid.columns() {
            let [x, y] = grid.center(column, row);
            let positions = points.iter().map(|&point| LATTICE.position(point));
            let heights: Vec<f64> = positions
                .filter(|[px, py, _]| (px - x).hypot(py - y) <= 0.8 + 1e-9)
                .map(|[_, _, height]| height)
                .collect();
            let n = heights.len() as f64;
            let mean = heights.iter().sum::<f64>() / n;
            let variance = heights.iter().map(|height| (height - mean).powi(2)).sum::<f64>() / n;
            let fold = |f: fn(f64, f64) -> f64| heights.iter().copied().reduce(f).unwrap_or(f64::NAN);
            let count = if n > 0.0 { n } else { f64::NAN };
            let expected = [fold(f64::min), fold(f64::max), mean, count, variance.sqrt()];
            for (raster, expected) in rasters.iter().zip(expected) {
                let value = f64::from(raster.value(column, row));
                let is_near = (value - expected).abs() < 1e-5 || (value.is_nan() && expected.is_nan());
                assert!(is_near, "{column} {row}: {value} {expected}");
            }
        }
    }
}

/// A paraboloid: triangles and natural neighbors are within the bound of its second derivative.
#[test]
fn paraboloids_are_near() {
    let mut points = random(20_000, 2000, 12);
    for point in &mut points {
        let [x, y] = [0, 1].map(|axis| f64::from(point[axis]) - 1000.0);
        point[2] = ((x * x + y * y) * 0.01) as i32;
    }
    let grid = RasterGrid::covering([[450_001.0, 4_400_001.0], [450_019.0, 4_400_019.0]], 0.25).unwrap();
    let terrain = Terrain::new(&Device::cpu(), &points, &LATTICE).unwrap();
    for method in [TIN, Method::NaturalNeighbor] {
        let raster = terrain.raster(&grid, &method).unwrap();
        for row in 0..grid.rows() {
            for column in 0..grid.columns() {
                let [x, y] = grid.center(column, row);
                let [x, y] = [(x - 450_010.0) * 100.0, (y - 4_400_010.0) * 100.0];
                let expected = (x * x + y * y) * 0.01 * 0.001;
                let value = f64::from(raster.value(column, row));
                // A triangle whose circumcircle has the radius r is at most r^2 times the factor away.
                assert!(
                    (value - expected).abs() < 60.0 * 60.0 * 0.01 * 0.001 + 0.001,
                    "{method:?}: {value} {expected}"
                );
            }
        }
    }
}

#[test]
fn input_that_has_no_triangles() {
    let line: Vec<[i32; 3]> = (0..100).map(|i| [100 * i, 50 * i, i]).collect();
    let grid = RasterGrid::covering([[450_000.0, 4_400_000.0], [450_050.0, 4_400_050.0]], 1.0).unwrap();
    for device in devices_for(100) {
        for points in [&line[..], &line[..2], &line[..1], &[]] {
            let terrain = Terrain::new(&device, points, &LATTICE).unwrap();
            for method in [TIN, Method::NaturalNeighbor] {
                let raster = terrain.raster(&grid, &method).unwrap();
                assert!(raster.values().iter().all(|value| value.is_nan()), "{method:?} on {device}");
            }
            let nearest = terrain.raster(&grid, &Method::Nearest { radius: f64::INFINITY }).unwrap();
            assert!(nearest.values().iter().all(|value| value.is_nan() == points.is_empty()));
        }
        // At one position, the least height counts; statistics take all of them.
        let corners = [[0, 0, 5], [3000, 0, 5], [0, 3000, 5]];
        let points: Vec<_> = corners.into_iter().chain([[1000, 1000, 90], [1000, 1000, -30]]).collect();
        let terrain = Terrain::new(&device, &points, &LATTICE).unwrap();
        let at = RasterGrid::covering([[450_009.5, 4_400_009.5], [450_010.5, 4_400_010.5]], 1.0).unwrap();
        let value = |method| terrain.raster(&at, &method).unwrap();
        let nearest = value(Method::Nearest { radius: 1.0 });
        assert!(nearest.values().contains(&-0.03), "{:?}", nearest.values());
        let count = value(Method::Statistic { statistic: Statistic::Count, radius: 1.0 });
        assert!(count.values().contains(&2.0), "{:?}", count.values());
    }
}

#[test]
fn refusals() {
    let grid = RasterGrid::covering([[450_000.0, 4_400_000.0], [450_010.0, 4_400_010.0]], 1.0).unwrap();
    for resolution in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = RasterGrid::covering([[0.0; 2], [1.0; 2]], resolution).unwrap_err();
        assert!(matches!(error, Error::InvalidResolution { .. }), "{error}");
    }
    let error = RasterGrid::covering([[0.0; 2], [1e6; 2]], 0.1).unwrap_err();
    assert!(matches!(error, Error::TooManyItems { .. }), "{error}");
    let error = RasterGrid::covering([[0.0, f64::NAN], [1.0; 2]], 0.1).unwrap_err();
    assert!(matches!(error, Error::NonFinite { axis: 1, .. }), "{error}");
    for device in devices_for(100) {
        let points = random(50, 1000, 1);
        let terrain = Terrain::new(&device, &points, &LATTICE).unwrap();
        for method in [
            Method::Nearest { radius: -1.0 },
            Method::Tin { max_edge: f64::NAN },
            Method::Statistic { statistic: Statistic::Mean, radius: f64::NAN },
        ] {
            let error = terrain.raster(&grid, &method).unwrap_err();
            assert!(matches!(error, Error::InvalidLength { .. }), "{error}");
        }
        for (k, power) in [(0, 2), (33, 2), (5, 0), (5, 17)] {
            let error = terrain.raster(&grid, &Method::Idw { k, radius: 1.0, power }).unwrap_err();
            assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
        }
        let far = RasterGrid::covering([[0.0; 2], [10.0; 2]], 1.0).unwrap();
        assert!(matches!(terrain.raster(&far, &TIN), Err(Error::CoordinateTooLarge { .. })));
        let apart = [[0, 0, 0], [i32::MAX, 0, 0]];
        assert!(matches!(
            Terrain::new(&device, &apart, &LATTICE),
            Err(Error::CoordinateTooLarge { axis: 0, .. })
        ));
        let apart = [[0, i32::MIN], [0, i32::MAX]];
        assert!(matches!(delaunay_2d(&device, &apart), Err(Error::CoordinateTooLarge { axis: 1, .. })));
        // The terrain is still usable.
        assert_eq!(terrain.raster(&grid, &TIN).unwrap().values().len(), grid.len());
    }
}

/// Triangulates, and computes a raster in windows, on a device with a failing call. Returns true if no call failed.
fn survives(gpu: &Gpu, plan: FaultPlan) -> bool {
    let points = random(90, 700, 5);
    let plane: Vec<[i32; 2]> = points.iter().map(|&[x, y, _]| [x, y]).collect();
    let grid = RasterGrid::covering([[450_000.0, 4_400_000.0], [450_006.0, 4_400_005.0]], 1.0).unwrap();
    let run = |gpu: &Gpu| -> Result<(Vec<u32>, Vec<[u32; 3]>), Error> {
        let device = Device::from_gpu(gpu.clone());
        let chunks = points.chunks(40).map(|chunk| Ok(chunk.to_vec()));
        let options = TerrainOptions::default().device_bytes(5000);
        let mut progress = |_| std::ops::ControlFlow::Continue(());
        let terrain = Terrain::read(&device, chunks, &LATTICE, &options, &mut progress)?;
        let raster = terrain.raster(&grid, &TIN)?;
        terrain.raster(&grid, &methods()[10])?;
        Ok((bits(raster.values()), delaunay_2d(&device, &plane)?))
    };
    let faulty = gpu.with_faults(plan);
    let result = run(&faulty);
    assert_eq!(faulty.memory_use().live_bytes, 0, "{plan:?}");
    match result {
        Ok(got) => {
            assert!(got == run(gpu).unwrap(), "{plan:?}");
            true
        }
        Err(
            Error::OutOfMemory { .. } | Error::ResultTooLarge { .. } | Error::Driver { name: "INJECTED", .. },
        ) => false,
        Err(error) => panic!("{plan:?}: {error}"),
    }
}

#[test]
fn every_call_may_fail() {
    on_gpus(&[0], &[0], |gpu, _, _| {
        let mut nth = 1;
        while !survives(gpu, FaultPlan { call: FaultCall::Any, nth, repeat: false }) {
            nth += 1;
            assert!(nth < 1000, "a call never stops failing");
        }
        assert!(nth > 20, "{nth} calls");
    });
}
