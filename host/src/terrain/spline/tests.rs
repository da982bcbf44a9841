//! Tests of splines: properties of the surface, a dense reference solution, degenerate points, the devices.

use super::*;
use crate::Device;
use crate::device::SimOptions;
use crate::primitives::cpu::bounds::bounds;
use crate::random::Random;
use kauri_kernels::terrain::cells::UNRESOLVED;
use kauri_kernels::terrain::known::Rectangle;
use kauri_kernels::terrain::spline::capacity;

type Points = (Vec<[i32; 2]>, Vec<i32>);

fn task(cells: &Cells, options: &Spline, cloud: Cloud) -> SplineRaster {
    SplineRaster { cells: *cells, options: *options, cloud }
}

fn cloud(positions: &[[i32; 2]]) -> Cloud {
    Cloud { corners: bounds(positions), num_points: positions.len(), known: Known::ALL }
}

/// The raster of all points.
fn raster(positions: &[[i32; 2]], heights: &[i32], cells: &Cells, options: &Spline) -> Result<Vec<f32>> {
    super::raster(positions, heights, &task(cells, options, cloud(positions)))
}

/// Cells with centers at multiples of `step` from `[0, 0]` on.
fn cells(columns: u32, rows: u32, step: i32) -> Cells {
    let y = f64::from(step) * f64::from(rows - 1);
    let (x, step) = (0.0, step.into());
    Cells { x, y, step, first_column: 0, first_row: 0, columns, rows, height_offset: 0.0, height_scale: 1.0 }
}

fn spline(smoothing: f64, leaf_points: u32) -> Spline {
    Spline { smoothing, leaf_points, ..Spline::default() }
}

/// `n` points at different positions below `side`, with heights of a function of the position.
fn uniform(n: usize, side: u64, seed: u64, height: impl Fn([i32; 2]) -> i32) -> Points {
    let (mut random, mut positions) = (Random::of(seed, 0), Vec::new());
    while positions.len() < n {
        positions.extend((positions.len()..n).map(|_| [0, 1].map(|_| random.below(side) as i32)));
        positions.sort_unstable();
        positions.dedup();
    }
    let heights = positions.iter().map(|&position| height(position)).collect();
    (positions, heights)
}

/// The points of a square lattice.
fn lattice(side: i32, step: i32, height: impl Fn([i32; 2]) -> i32) -> Points {
    let positions: Vec<_> = (0..side * side).map(|i| [i % side * step, i / side * step]).collect();
    let heights = positions.iter().map(|&position| height(position)).collect();
    (positions, heights)
}

fn hills([x, y]: [i32; 2]) -> i32 {
    (1000.0 * ((f64::from(x) * 0.004).sin() + (f64::from(y) * 0.007).cos())) as i32
}

fn noise([x, y]: [i32; 2]) -> i32 {
    (x.wrapping_mul(0x9E37_79B1_u32 as i32) ^ y.wrapping_mul(0x85EB_CA6B_u32 as i32)) >> 16
}

/// Returns the surface of all points, by Gaussian elimination with pivoting of the bordered system.
fn reference((positions, heights): &Points, cells: &Cells, options: &Spline) -> Vec<f64> {
    let n = positions.len();
    let shape = Shape::new(options.tension, options.smoothing, bounds(positions), n);
    let mut matrix: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let radial = |j: usize| {
                -shape.radial(positions[i], positions[j]) + if i == j { options.smoothing } else { 0.0 }
            };
            (0..n).map(radial).chain([1.0, heights[i].into()]).collect()
        })
        .collect();
    matrix.push((0..n).map(|_| 1.0).chain([0.0, 0.0]).collect());
    for k in 0..=n {
        let pivot = (k..=n).max_by(|&i, &j| matrix[i][k].abs().total_cmp(&matrix[j][k].abs())).unwrap();
        matrix.swap(k, pivot);
        for i in 0..=n {
            if i != k {
                let (factor, row) = (matrix[i][k] / matrix[k][k], matrix[k].clone());
                matrix[i].iter_mut().zip(row).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    let weights: Vec<f64> = (0..=n).map(|i| matrix[i][n + 1] / matrix[i][i]).collect();
    let height = |cell: usize| {
        let center = cells.center(cell);
        let terms = positions.iter().zip(&weights);
        weights[n] - terms.map(|(&position, weight)| weight * shape.radial(center, position)).sum::<f64>()
    };
    (0..cells.len()).map(height).collect()
}

#[test]
fn the_surface_of_a_leaf_solves_the_bordered_system() {
    let cells = cells(13, 9, 80);
    for (n, seed) in [(2, 1), (3, 2), (5, 3), (9, 4), (10, 5), (40, 6), (100, 7)] {
        for smoothing in [0.0, 0.1, 5.0] {
            for tension in [10.0, 40.0, 200.0] {
                if tension < 40.0 && smoothing == 0.0 {
                    // Rounding errors of both solutions are as large as the result.
                    continue;
                }
                let points = uniform(n, 1000, seed, noise);
                let options = Spline { tension, ..spline(smoothing, 100) };
                let expected = reference(&points, &cells, &options);
                let found = raster(&points.0, &points.1, &cells, &options).unwrap();
                let size = expected.iter().fold(0.0, |size, value| f64::max(size, value.abs()));
                for (found, expected) in found.iter().zip(&expected) {
                    let difference = (f64::from(*found) - expected).abs();
                    assert!(
                        difference <= 2e-7 * size,
                        "{n} points, smoothing {smoothing}, tension {tension}: {found}, not {expected}"
                    );
                }
            }
        }
    }
}

/// Returns the largest error of the heights of cells that are at least `margin` cells from the border, for points of a function.
fn largest_error(margin: u32, points: &Points, options: &Spline, height: &dyn Fn([i32; 2]) -> i32) -> f64 {
    let cells = cells(60, 60, 50);
    let values = raster(&points.0, &points.1, &cells, options).unwrap();
    let is_inside = |i: u32| (margin..cells.columns - margin).contains(&i);
    let error = |i: usize| (f64::from(values[i]) - f64::from(height(cells.center(i)))).abs();
    let inside = (0..cells.len())
        .filter(|&i| is_inside(i as u32 % cells.columns) && is_inside(i as u32 / cells.columns));
    inside.map(error).fold(0.0, f64::max)
}

/// A spline without smoothing reproduces constants. On an infinite lattice it would reproduce planes as well, because the Fourier transform
/// of the radial function has a pole of order 2 at 0. A system has only a part of the lattice: the error of a plane is a fraction of its
/// rise over the distance of two points, which falls with the number of points of a leaf. The error of a paraboloid is bounded by its
/// second derivative times the squared distance of points.
#[test]
fn planes_and_paraboloids() {
    let constant = |_: [i32; 2]| 123_456;
    let plane = |[x, y]: [i32; 2]| 2000 + 30 * x - 17 * y;
    let paraboloid = |[x, y]: [i32; 2]| ((x - 1500) * (x - 1500) + (y - 1200) * (y - 1200)) / 10;
    for leaf_points in [5, 20] {
        let options = spline(0.1, leaf_points);
        assert_eq!(largest_error(0, &uniform(900, 3000, 9, constant), &options, &constant), 0.0);
    }
    let rise = 30.0 * 100.0;
    for (leaf_points, margin, on_lattice, at_uniform) in [(20, 10, 0.03, 0.06), (80, 15, 0.003, 0.004)] {
        let options = spline(0.0, leaf_points);
        let error = largest_error(margin, &lattice(30, 100, plane), &options, &plane);
        assert!(error < on_lattice * rise, "plane, {leaf_points}: {error}");
        let error = largest_error(margin, &uniform(900, 3000, 3, plane), &options, &plane);
        assert!(error < at_uniform * rise, "plane, {leaf_points}: {error}");
    }
    let options = spline(0.0, 80);
    let error = largest_error(15, &lattice(30, 100, paraboloid), &options, &paraboloid);
    assert!(error < 0.05 * 0.2 * 100.0 * 100.0, "{error}");
    // Random points leave gaps of several times their average distance.
    let error = largest_error(15, &uniform(900, 3000, 3, paraboloid), &options, &paraboloid);
    assert!(error < 0.2 * 100.0 * 100.0, "{error}");
}

#[test]
fn without_smoothing_the_surface_passes_through_the_points() {
    for (n, leaf_points) in [(2, 20), (30, 4), (500, 20), (2000, 7)] {
        let (at, heights) = uniform(n, 80, 5, noise);
        let positions: Vec<_> = at.iter().map(|at| at.map(|x| 1000 * x)).collect();
        let cells = cells(80, 80, 1000);
        let values = raster(&positions, &heights, &cells, &spline(0.0, leaf_points)).unwrap();
        for (&[x, y], &height) in at.iter().zip(&heights) {
            let value = values[((79 - y) * 80 + x) as usize];
            assert!(
                (f64::from(value) - f64::from(height)).abs() <= 0.05,
                "{n} points: {value}, not {height}"
            );
        }
    }
}

#[test]
fn few_points() {
    let cells = cells(6, 5, 10);
    let values = |positions: &[[i32; 2]], heights: &[i32]| {
        raster(positions, heights, &cells, &Spline::default()).unwrap()
    };
    assert!(values(&[], &[]).iter().all(|value| value.is_nan()));
    assert!(values(&[[700, -3]], &[-5]).iter().all(|&value| value == -5.0));
    assert!(values(&[[0, 0], [50, 40]], &[7, 7]).iter().all(|&value| value == 7.0));
    let line: Vec<_> = (0..300).map(|i| [0, 2 * i]).collect();
    let heights: Vec<_> = (0..300).collect();
    for (i, value) in values(&line, &heights).iter().enumerate() {
        let (column, y) = (i % 6, 10.0 * (4 - i / 6) as f32);
        assert!(column > 0 || (value - y / 2.0).abs() < 0.7, "{value} at {y}");
        assert!(value.is_finite());
    }
    // The points of a leaf that cannot be told apart.
    let near = [[0, 0], [1, 0], [0, 1], [1, 1], [2, 1], [1 << 29, 1 << 29]];
    let options = spline(0.0, 10);
    assert!(
        raster(&near, &[0, 9, -9, 3, 5, 7], &cells, &options).unwrap().iter().all(|value| value.is_finite())
    );
}

/// Points in one corner of each quarter but one: the leaf of that quarter touches leaves with points at one side only.
#[test]
fn cells_in_empty_leaves() {
    let (positions, heights) = uniform(200, 400, 8, hills);
    let positions: Vec<_> = positions.into_iter().chain([[100_000, 100_000]]).collect();
    let heights: Vec<_> = heights.into_iter().chain([5]).collect();
    let cells = cells(50, 50, 2000);
    let values = raster(&positions, &heights, &cells, &spline(0.1, 5)).unwrap();
    assert!(values[49].is_finite() && values[50 * 49].is_finite());
    assert!(values.iter().any(|value| value.is_nan()));
}

#[test]
fn invalid_options() {
    let run = |options: &Spline| raster(&[[0, 0]], &[1], &cells(1, 1, 1), options).unwrap_err();
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        let error = run(&Spline { tension: value, ..Spline::default() });
        assert!(matches!(error, Error::InvalidLength { what: "tension", .. }), "{error}");
        let error = run(&spline(value, 20));
        assert!(matches!(error, Error::InvalidLength { what: "smoothing", .. }), "{error}");
    }
    for leaf_points in [0, 101, u32::MAX] {
        assert!(matches!(run(&spline(0.1, leaf_points)), Error::OutOfRange { least: 1, most: 100, .. }));
    }
    let error = raster(&[[0, 0]], &[], &cells(1, 1, 1), &Spline::default()).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 1, got: 0, .. }));
}

/// Runs a raster on a device, whose memory for splines is limited.
fn on_device(device: &Device, points: &Points, task: &SplineRaster, bytes: u64) -> Vec<f32> {
    let gpu = device.gpu().unwrap();
    let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
    let positions = Buffer::from_slice(&stream, points.0.as_flattened(), "positions").unwrap();
    let heights = Buffer::from_slice(&stream, &points.1, "heights").unwrap();
    let mut values = Buffer::uninitialized(gpu, task.cells.len(), "values").unwrap();
    let input = (&positions, &heights);
    gpu::raster_on(&stream, &mut workspace, input, task, &mut values, bytes).unwrap();
    values.to_vec(&stream).unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The values from the points in a part of the plane are those from all points, or unresolved.
#[test]
fn parts_of_a_cloud() {
    let (mut positions, _) = uniform(1200, 3000, 4, noise);
    positions.retain(|&[x, y]| x < 2000 || y < 1000);
    let heights: Vec<_> = positions.iter().map(|&position| noise(position)).collect();
    let (cells, options, all) = (cells(30, 30, 100), spline(0.1, 6), cloud(&positions));
    let expected = bits(&raster(&positions, &heights, &cells, &options).unwrap());
    let sim = Device::sim(SimOptions::default()).unwrap();
    for (low, high) in [([500, 500], [2500, 2400]), ([-1000, 1500], [1800, 9000]), ([9000, 0], [9999, 9])] {
        let is_known =
            |&[x, y]: &[i32; 2]| (low[0]..=high[0]).contains(&x) && (low[1]..=high[1]).contains(&y);
        // Some points outside are there too.
        let part: Points = positions
            .iter()
            .zip(&heights)
            .filter(|(position, height)| is_known(position) || **height % 5 == 0)
            .map(|(&position, &height)| (position, height))
            .unzip();
        let [low, high] = [low, high].map(|corner| corner.map(f64::from));
        let rectangle = Rectangle::new([low, high]);
        let known = Known { part: rectangle, ..Known::ALL };
        let task = task(&cells, &options, Cloud { known, ..all });
        let found = bits(&super::raster(&part.0, &part.1, &task).unwrap());
        let resolved = found.iter().zip(&expected).filter(|(found, _)| **found != UNRESOLVED);
        assert!(resolved.clone().all(|(found, expected)| found == expected));
        assert_eq!(resolved.count() > 50, low[0] < 5000.0);
        if high[0] > 9000.0 {
            continue;
        }
        assert_eq!(bits(&on_device(&sim, &part, &task, 1 << 24)), found);
    }
}

#[test]
fn devices_agree() {
    let clusters = {
        let (mut positions, _) = uniform(90, 40, 3, noise);
        positions.extend((0..40).map(|i| [5000 + 3 * i, 7000 - i]));
        positions.extend([[9999, 0], [0, 9999]]);
        let heights = positions.iter().map(|&position| noise(position)).collect();
        (positions, heights)
    };
    // Leaves with few points beside a strip with many leaves, whose points are more than the capacity.
    let strip = {
        let (mut positions, _) = uniform(200, 1024, 6, noise);
        positions.iter_mut().for_each(|[x, _]| *x = 924 + *x % 100);
        positions.extend([[0, 0], [2047, 2047], [1500, 300]]);
        positions.sort_unstable();
        positions.dedup();
        let heights = positions.iter().map(|&position| noise(position)).collect();
        (positions, heights)
    };
    let cases: [(&str, Points, Cells, Spline, u64); 7] = [
        ("no points", (vec![], vec![]), cells(3, 2, 1), spline(0.1, 20), 0),
        ("a point", (vec![[5, 5]], vec![9]), cells(3, 2, 1), spline(0.1, 20), 1 << 20),
        ("uniform", uniform(80, 1000, 1, noise), cells(11, 12, 90), spline(0.1, 6), 1 << 20),
        ("lattice", lattice(12, 10, hills), cells(20, 20, 6), spline(0.0, 5), 60_000),
        ("clusters", clusters, cells(9, 9, 1200), spline(0.0, 20), 0),
        ("capacity", strip, cells(12, 10, 180), spline(0.1, 1), 30_000),
        (
            "a line",
            ((0..30).map(|i| [7 * i, 3]).collect(), (0..30).collect()),
            cells(4, 4, 5),
            spline(0.1, 3),
            0,
        ),
    ];
    for (i, (name, points, cells, options, bytes)) in cases.iter().enumerate() {
        let expected = raster(&points.0, &points.1, cells, options).unwrap();
        for order in 0..20 {
            if order % cases.len() != i && order != 0 && *name != "uniform" {
                continue;
            }
            let device = Device::sim(SimOptions::nth_order(order, 1)).unwrap();
            let found = on_device(&device, points, &task(cells, options, cloud(&points.0)), *bytes);
            assert_eq!(bits(&found), bits(&expected), "{name}, schedule {order}");
        }
    }
}

#[test]
fn a_leaf_with_many_neighbors_keeps_the_nearest_points() {
    // An empty quarter beside a dense one.
    let (mut positions, _) = uniform(3000, 1000, 2, noise);
    positions.push([-1500, 500]);
    let heights: Vec<_> = positions.iter().map(|&position| hills(position)).collect();
    let values = raster(&positions, &heights, &cells(40, 40, 25), &spline(0.0, 3)).unwrap();
    assert!(values.iter().all(|value| value.is_finite()) && capacity(3) == 36);
}
