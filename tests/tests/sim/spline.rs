//! Rasters by splines on simulated devices, against the CPU. The kernels are in `terrain/spline`.

use crate::{noise, on_each_schedule_in_turn};
use kauri::terrain::{Method, RasterGrid, Spline, Terrain};
use kauri::{Device, Lattice};

/// Returns points on a square, half of them in its corner.
fn points(n: usize, side: u64, heights: u64) -> Vec<[i32; 3]> {
    let random = noise(3 * n, 5);
    let point = |i: usize| {
        let side = if i.is_multiple_of(2) { side } else { side / 8 + 1 };
        [(3 * i, side), (3 * i + 1, side), (3 * i + 2, heights)].map(|(i, below)| (random[i] % below) as i32)
    };
    (0..n).map(point).collect()
}

fn spline(smoothing: f64, leaf_points: u32) -> Method {
    Method::Spline(Spline::default().smoothing(smoothing).leaf_points(leaf_points))
}

#[test]
fn rasters() {
    let lattice = Lattice { scale: [0.01; 3], offset: [0.0; 3] };
    let lines: Vec<[i32; 3]> = (0..100).map(|i| [i % 50 * 20, i / 50 * 700, i * i]).collect();
    // Leaves with few points beside a strip with many leaves, whose points are more than a system takes.
    let mut strip = points(200, 1024, 400);
    strip.iter_mut().for_each(|point| point[0] = 924 + point[0] % 100);
    strip.extend([[0, 0, 5], [2047, 2047, 9], [1500, 300, 3]]);
    let cases = [
        (points(120, 1000, 500), spline(0.1, 6)),
        (points(200, 2000, 300), spline(0.0, 3)),
        (points(150, 1500, 800), spline(0.1, 1)),
        (strip, spline(0.1, 1)),
        (points(40, 30, 100), spline(0.5, 40)),
        (lines, spline(0.0, 8)),
        (points(1, 10, 10), spline(0.1, 20)),
    ];
    let grid = RasterGrid::covering([[-1.0, -1.0], [20.0, 11.0]], 1.0).unwrap();
    on_each_schedule_in_turn(cases.len(), |gpu, _, i| {
        let (points, method) = &cases[i];
        let [expected, found] = [Device::cpu(), Device::from_gpu(gpu.clone())].map(|device| {
            let raster = Terrain::new(&device, points, &lattice).unwrap().raster(&grid, method).unwrap();
            raster.values().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "case {i}");
    });
}
