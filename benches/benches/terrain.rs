//! Elevation models on the CPU against `spade` and `delaunator`: the ground of a generated scan, linear interpolation at cells of 1 m. All are
//! measured from unsorted points on. kauri uses all threads of rayon, the others one.
//!
//! `TERRAIN_POINTS` sets the number of points of the scan, 1 million by default.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kauri::Device;
use kauri::lidar::{Lidar, LidarClass};
use kauri::terrain::{Method, RasterGrid, Terrain, delaunay_2d};
use spade::{DelaunayTriangulation, FloatTriangulation, HasPosition, Point2, Triangulation};
use std::hint::black_box;

/// A vertex of `spade`.
struct Vertex {
    position: Point2<f64>,
    height: f64,
}

impl HasPosition for Vertex {
    type Scalar = f64;

    fn position(&self) -> Point2<f64> {
        self.position
    }
}

/// Interpolates by `spade`.
fn by_spade(positions: &[[f64; 3]], grid: &RasterGrid) -> Vec<f32> {
    let vertices =
        positions.iter().map(|&[x, y, height]| Vertex { position: Point2::new(x, y), height }).collect();
    let triangulation = DelaunayTriangulation::<Vertex>::bulk_load(vertices).expect("finite positions");
    let barycentric = triangulation.barycentric();
    let cells = (0..grid.rows()).flat_map(|row| (0..grid.columns()).map(move |column| [column, row]));
    let height = |[column, row]: [u32; 2]| {
        let [x, y] = grid.center(column, row);
        barycentric
            .interpolate(|vertex| vertex.data().height, Point2::new(x, y))
            .map_or(f32::NAN, |height| height as f32)
    };
    cells.map(height).collect()
}

/// Interpolates by `delaunator`: each triangle writes the cells whose centers it contains.
fn by_delaunator(positions: &[[f64; 3]], grid: &RasterGrid) -> Vec<f32> {
    let points: Vec<_> = positions.iter().map(|&[x, y, _]| delaunator::Point { x, y }).collect();
    let triangulation = delaunator::triangulate(&points);
    let mut values = vec![f32::NAN; grid.len()];
    let ([west, north], resolution) = (grid.corner(), grid.resolution());
    for corners in triangulation.triangles.as_chunks::<3>().0 {
        let [a, b, c] = corners.map(|corner| positions[corner]);
        let range = |axis: usize| {
            let (low, high) = (a[axis].min(b[axis]).min(c[axis]), a[axis].max(b[axis]).max(c[axis]));
            if axis == 0 { [low - west, high - west] } else { [north - high, north - low] }
        };
        let first = |low: f64| ((low / resolution - 0.5).ceil()).max(0.0) as u32;
        let end =
            |high: f64, most: u32| (((high / resolution - 0.5).floor() + 1.0).max(0.0) as u32).min(most);
        let (columns, rows) = (range(0), range(1));
        let cross = |p: [f64; 3], q: [f64; 3], [x, y]: [f64; 2]| {
            (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])
        };
        let all = cross(a, b, [c[0], c[1]]);
        for row in first(rows[0])..end(rows[1], grid.rows()) {
            for column in first(columns[0])..end(columns[1], grid.columns()) {
                let at = grid.center(column, row);
                let weights = [cross(b, c, at) / all, cross(c, a, at) / all, cross(a, b, at) / all];
                if weights.iter().all(|&weight| weight >= 0.0) {
                    let height = weights[0] * a[2] + weights[1] * b[2] + weights[2] * c[2];
                    values[row as usize * grid.columns() as usize + column as usize] = height as f32;
                }
            }
        }
    }
    values
}

fn run(criterion: &mut Criterion) {
    let num_points = std::env::var("TERRAIN_POINTS").map_or(1_000_000, |n| n.parse().expect("a number"));
    let scan = Lidar::new(num_points, 1);
    let lattice = scan.lattice();
    let ground = scan.points(0..scan.len()).expect("memory for a scan");
    let ground = ground.iter().filter(|point| point.class == LidarClass::Ground);
    let points: Vec<[i32; 3]> =
        ground.map(|point| lattice.nearest(point.position).expect("on the lattice")).collect();
    let positions: Vec<[f64; 3]> = points.iter().map(|&point| lattice.position(point)).collect();
    let plane: Vec<[i32; 2]> = points.iter().map(|&[x, y, _]| [x, y]).collect();
    let grid = RasterGrid::covering(scan.bounds(), 1.0).expect("a resolution");
    let device = Device::cpu();
    let by_kauri = || {
        let terrain = Terrain::new(&device, &points, &lattice).expect("points");
        terrain.raster(&grid, &Method::Tin { max_edge: f64::INFINITY }).expect("a raster").values().to_vec()
    };
    // Cocircular points have several triangulations, so heights may differ at a few cells.
    let [kauri, spade, delaunator] =
        [by_kauri(), by_spade(&positions, &grid), by_delaunator(&positions, &grid)];
    for other in [&spade, &delaunator] {
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 0.01 || (a.is_nan() && b.is_nan());
        let near = kauri.iter().zip(other).filter(|&pair| is_near(pair)).count();
        assert!(near as f64 > 0.98 * kauri.len() as f64, "{near} of {} cells agree", kauri.len());
    }

    let mut group = criterion.benchmark_group(format!("{} ground points", points.len()));
    group.sample_size(10).throughput(Throughput::Elements(points.len() as u64));
    group.bench_function("kauri, raster", |bench| bench.iter(by_kauri));
    group.bench_function("spade, raster", |bench| bench.iter(|| by_spade(black_box(&positions), &grid)));
    group.bench_function("delaunator, raster", |bench| {
        bench.iter(|| by_delaunator(black_box(&positions), &grid));
    });
    group.bench_function("kauri, triangles", |bench| {
        bench.iter(|| delaunay_2d(&device, black_box(&plane)).expect("points"));
    });
    group.bench_function("delaunator, triangles", |bench| {
        bench.iter(|| {
            let points: Vec<_> = positions.iter().map(|&[x, y, _]| delaunator::Point { x, y }).collect();
            delaunator::triangulate(&points)
        });
    });
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
