//! Tests of the ground filter: against the definition of an opening, on shapes, on generated scans, and on all devices.

use super::*;
use crate::device::SimOptions;
use crate::lidar::{Lidar, LidarClass};
use crate::random::Random;
use kauri_kernels::terrain::ground::{NO_HEIGHT, height_of_point};

const LATTICE: Lattice = Lattice { scale: [0.01, 0.01, 0.01], offset: [0.0; 3] };

/// Returns points on a square of `side` meters, `density` a meter, at the height that a function gives, in meters.
fn points(side: i32, density: i32, height: impl Fn(f64, f64) -> f64) -> Vec<[i32; 3]> {
    let step = 100 / density;
    let n = side * density;
    let point = |i: i32| {
        let [x, y] = [i % n * step + 7, i / n * step + 7];
        [x, y, (100.0 * height(f64::from(x) / 100.0, f64::from(y) / 100.0)).round() as i32]
    };
    (0..n * n).map(point).collect()
}

fn run(options: &GroundFilter, points: &[[i32; 3]]) -> Vec<bool> {
    options.run(&Device::cpu(), points, &LATTICE).unwrap()
}

/// The filter by its definition: loops over whole windows.
fn naive(options: &GroundFilter, points: &[[i32; 3]]) -> Vec<bool> {
    let cells = options.cells(bounds(points), &LATTICE).unwrap();
    let windows = options.windows(&cells, LATTICE.scale[2]);
    let (columns, rows) = (cells.columns as i64, cells.rows as i64);
    let mut surface = vec![NO_HEIGHT; cells.len()];
    for &[x, y, z] in points {
        let height = &mut surface[cells.cell([x, y])];
        *height = (*height).min(height_of_point(z));
    }
    let around = |i: usize, radius: i64| {
        let (column, row) = (i as i64 % columns, i as i64 / columns);
        (-radius..=radius)
            .flat_map(move |dy| (-radius..=radius).map(move |dx| [column + dx, row + dy]))
            .filter_map(move |[x, y]| {
                ((0..columns).contains(&x) && (0..rows).contains(&y)).then_some((y * columns + x) as usize)
            })
    };
    let present = surface.clone();
    let reach = reach(&windows, &cells).into();
    for (i, height) in surface.iter_mut().enumerate() {
        let nearest = (0..=reach).find_map(|radius| {
            let least = around(i, radius).map(|i| present[i]).min().unwrap();
            (least != NO_HEIGHT).then_some(least)
        });
        *height = nearest.unwrap_or(NO_HEIGHT);
    }
    let mut is_ground = vec![true; points.len()];
    for window in windows {
        let radius = window.radius.into();
        let eroded: Vec<_> =
            (0..surface.len()).map(|i| around(i, radius).map(|i| surface[i]).min().unwrap()).collect();
        let greatest =
            |i: usize| around(i, radius).map(|i| eroded[i]).filter(|&height| height != NO_HEIGHT).max();
        surface = (0..surface.len()).map(|i| greatest(i).unwrap_or(NO_HEIGHT)).collect();
        for (&[x, y, z], is_ground) in points.iter().zip(&mut is_ground) {
            *is_ground &=
                i64::from(z) <= i64::from(surface[cells.cell([x, y])]) + i64::from(window.threshold);
        }
    }
    is_ground
}

fn random(n: usize, side: u64, heights: u64, seed: u64) -> Vec<[i32; 3]> {
    let mut random = Random::of(seed, 0);
    let mut point = || [side, side, heights].map(|below| random.below(below) as i32 - 700);
    (0..n).map(|_| point()).collect()
}

#[test]
fn the_filter_is_its_definition_on_every_device() {
    let cases = [
        (random(1, 100, 100, 1), GroundFilter::default()),
        (random(60, 2000, 900, 2), GroundFilter::default()),
        (random(200, 1500, 300, 3), GroundFilter::default().max_window_size(7.0).slope(0.2)),
        (random(300, 3000, 500, 4), GroundFilter::default().exponential(false).max_window_size(13.0)),
        (random(100, 900, 500, 5), GroundFilter::default().cell_size(0.5).max_window_size(1000.0)),
        (random(50, 900, 500, 6), GroundFilter::default().max_window_size(0.0)),
        (vec![[0, 0, i32::MAX], [500, 0, i32::MIN], [900, 300, 0]], GroundFilter::default()),
    ];
    for (i, (points, options)) in cases.iter().enumerate() {
        let expected = naive(options, points);
        assert_eq!(run(options, points), expected, "case {i}");
        for order in [i, i + 7, (i + 14) % 20] {
            let device = Device::sim(SimOptions::nth_order(order, 1)).unwrap();
            assert_eq!(
                options.run(&device, points, &LATTICE).unwrap(),
                expected,
                "case {i}, schedule {order}"
            );
        }
    }
}

#[test]
fn a_house_and_a_tree_are_removed() {
    let height = |x: f64, y: f64| {
        let is_house = (10.0..22.0).contains(&x) && (12.0..20.0).contains(&y);
        let from_trunk = (x - 35.0).hypot(y - 35.0);
        if is_house {
            6.0
        } else if from_trunk < 3.0 {
            9.0 - from_trunk
        } else {
            0.02 * x
        }
    };
    let points = points(50, 2, height);
    let is_ground = run(&GroundFilter::default(), &points);
    for (point, is_ground) in points.iter().zip(is_ground) {
        assert_eq!(is_ground, point[2] <= 100, "{point:?}");
    }
}

#[test]
fn slopes_and_holes_stay_ground() {
    // The initial distance is more than the relief of a cell and the one after it, at the border.
    let slope = points(60, 2, |x, y| 0.6 * x + 0.3 * y);
    let options = GroundFilter::default().initial_distance(1.5).max_distance(50.0);
    assert!(run(&options, &slope).into_iter().all(|is_ground| is_ground));
    let mut holes = points(60, 1, |x, _| 0.05 * x);
    holes.retain(|&[x, y, _]| !((2000..4000).contains(&x) && (1000..4500).contains(&y)));
    assert!(run(&GroundFilter::default(), &holes).into_iter().all(|is_ground| is_ground));
    assert!(run(&GroundFilter::default(), &[]).is_empty());
    assert_eq!(run(&GroundFilter::default(), &[[5, -5, 7]]), [true]);
}

/// The documentation of the filter has the shares of the first two scans.
#[test]
fn generated_scans() {
    use LidarClass::*;
    let (low, objects) = ([LowVegetation], [MediumVegetation, HighVegetation, Building]);
    for (density, seed, greatest_omission, greatest_commission) in
        [(4.0, 1, 0.028, 0.026), (4.0, 2, 0.015, 0.028), (1.0, 3, 0.037, 0.034)]
    {
        let scan = Lidar::with_density(1_000_000, density, seed);
        let (lattice, scanned) = (scan.lattice(), scan.points(0..scan.len()).unwrap());
        let points: Vec<[i32; 3]> =
            scanned.iter().map(|point| lattice.nearest(point.position).unwrap()).collect();
        let is_ground = GroundFilter::default().run(&Device::cpu(), &points, &lattice).unwrap();
        let count = |classes: &[LidarClass], is_found: bool| {
            let of_classes =
                scanned.iter().zip(&is_ground).filter(|(point, _)| classes.contains(&point.class));
            of_classes.filter(|(_, is_ground)| **is_ground == is_found).count() as f64
        };
        let [ground, low, high] = [&[Ground][..], &low, &objects].map(|classes| count(classes, true));
        let omission = count(&[Ground], false) / (ground + count(&[Ground], false));
        let commission = (low + high) / (ground + low + high);
        assert!(omission < greatest_omission && commission < greatest_commission, "{omission} {commission}");
        assert!(high < 0.001 * count(&objects, false), "{high}");
    }
}

#[test]
fn invalid_options() {
    let error = |options: GroundFilter| options.run(&Device::cpu(), &[], &LATTICE).unwrap_err();
    let default = GroundFilter::default();
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(error(default.cell_size(value)), Error::InvalidResolution { .. }));
    }
    for value in [-1.0, f64::NAN] {
        assert!(matches!(error(default.max_window_size(value)), Error::InvalidLength { .. }));
        assert!(matches!(error(default.slope(value)), Error::InvalidLength { .. }));
        assert!(matches!(error(default.initial_distance(value)), Error::InvalidLength { .. }));
        assert!(matches!(error(default.max_distance(value)), Error::InvalidLength { .. }));
    }
    let far = [[i32::MIN, i32::MIN, 0], [i32::MAX, i32::MAX, 0]];
    let error = default.cell_size(0.01).run(&Device::cpu(), &far, &LATTICE).unwrap_err();
    assert!(matches!(error, Error::TooManyItems { .. }));
}
