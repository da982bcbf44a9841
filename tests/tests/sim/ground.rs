//! The ground filter on simulated devices, against the CPU.

use crate::{noise, on_each_schedule_in_turn};
use kauri::terrain::GroundFilter;
use kauri::{Device, Lattice};

/// Returns points on a square, with gaps of several cells.
fn points(n: usize, side: u64, heights: u64) -> Vec<[i32; 3]> {
    let random = noise(3 * n, 5);
    let point = |i: usize| {
        let [x, y, z] = [0, 1, 2].map(|axis| random[3 * i + axis]);
        [x % side, y % side, z % heights].map(|x| x as i32 - 300)
    };
    (0..n).map(point).collect()
}

#[test]
fn ground_points() {
    let lattice = Lattice { scale: [0.01; 3], offset: [0.0; 3] };
    let filter = GroundFilter::default();
    let cases = [
        (points(400, 1500, 400), filter),
        (points(30, 2500, 400), filter),
        (points(300, 900, 90), filter.cell_size(0.5).max_window_size(9.0).exponential(false)),
        (points(1, 10, 10), filter),
        (points(200, 40, 500), filter.cell_size(0.02).max_window_size(1.0).slope(0.3)),
    ];
    on_each_schedule_in_turn(cases.len(), |gpu, _, i| {
        let (points, filter) = &cases[i];
        let expected = filter.run(&Device::cpu(), points, &lattice).unwrap();
        let found = filter.run(&Device::from_gpu(gpu.clone()), points, &lattice).unwrap();
        assert_eq!(found, expected, "case {i}");
        assert!(points.len() == 1 || expected.contains(&true) && expected.contains(&false), "case {i}");
    });
}
