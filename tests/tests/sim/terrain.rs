//! Kernels of elevation models on simulated devices, under all schedules, against the CPU.

use crate::{noise, on_each_schedule_in_turn};
use kauri::terrain::{Method, RasterGrid, Spline, Statistic, Terrain, delaunay_2d};
use kauri::{Device, Lattice};

const LATTICE: Lattice = Lattice { scale: [0.01, 0.01, 0.001], offset: [1000.0, 2000.0, 0.0] };

fn methods() -> [Method; 9] {
    [
        Method::Statistic { statistic: Statistic::StandardDeviation, radius: 0.7 },
        Method::Statistic { statistic: Statistic::Idw { power: 3 }, radius: 0.7 },
        Method::Nearest { radius: f64::INFINITY },
        Method::Idw { k: 7, radius: 0.9, power: 2 },
        Method::Idw { k: 12, radius: f64::INFINITY, power: 1 },
        Method::Idw { k: 20, radius: f64::INFINITY, power: 4 },
        Method::Tin { max_edge: 3.0 },
        Method::NaturalNeighbor,
        Method::Spline(Spline::default().leaf_points(8)),
    ]
}

/// Returns points on a square of `side` steps.
fn points(n: usize, side: u64, seed: u64) -> Vec<[i32; 3]> {
    let random = noise(3 * n, seed);
    (0..n).map(|i| [0, 1, 2].map(|axis| (random[3 * i + axis] % side) as i32)).collect()
}

#[test]
fn rasters() {
    let grid = RasterGrid::covering([[999.5, 2000.0], [1005.2, 2004.1]], 0.5).unwrap();
    let clouds = [points(300, 500, 1), points(150, 12, 2)];
    let methods = methods();
    on_each_schedule_in_turn(methods.len() * clouds.len(), |gpu, _, i| {
        let (method, points) = (&methods[i % methods.len()], &clouds[i / methods.len()]);
        let bits = |device: &Device| {
            let raster = Terrain::new(device, points, &LATTICE).unwrap().raster(&grid, method).unwrap();
            raster.values().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(bits(&Device::from_gpu(gpu.clone())), bits(&Device::cpu()), "{method:?}");
    });
}

#[test]
fn triangulations() {
    let clouds = [points(200, 1_000_000, 3), points(120, 7, 4), points(40, 2, 5)];
    on_each_schedule_in_turn(clouds.len(), |gpu, _, i| {
        let points: Vec<[i32; 2]> = clouds[i].iter().map(|&[x, y, _]| [x, y]).collect();
        let found = delaunay_2d(&Device::from_gpu(gpu.clone()), &points).unwrap();
        assert_eq!(found, delaunay_2d(&Device::cpu(), &points).unwrap());
    });
}
