//! Places on the Earth: the date line, the poles, and great-circle distances.

use kauri::{EARTH_RADIUS_M, LonLat, SpatialIndex};
use kauri_tests::generate::Random;
use kauri_tests::oracle::BruteForce;
use kauri_tests::{devices, devices_for};

use crate::build;

/// Great-circle meters by the haversine formula.
fn haversine(a: LonLat, b: LonLat) -> f64 {
    let (lat_a, lat_b) = (a.lat.to_radians(), b.lat.to_radians());
    let (half_lat, half_lon) = ((lat_b - lat_a) / 2.0, (b.lon - a.lon).to_radians() / 2.0);
    let h = half_lat.sin().powi(2) + lat_a.cos() * lat_b.cos() * half_lon.sin().powi(2);
    2.0 * EARTH_RADIUS_M * h.sqrt().min(1.0).asin()
}

/// Returns the ids of the `k` nearest places, which are the same on every device.
fn ids(points: &[LonLat], query: LonLat, k: usize) -> Vec<u32> {
    let mut rows = devices_for(points.len()).into_iter().map(|device| {
        let near = build(&device, points).nearest(&[query], k).unwrap();
        near.padded_row(0).0.to_vec()
    });
    let first = rows.next().expect("the CPU is a device");
    assert!(rows.all(|other| other == first));
    first
}

#[test]
fn the_date_line_is_no_border() {
    let places = [LonLat::new(-179.9, 0.0), LonLat::new(179.0, 0.0), LonLat::new(0.0, 0.0)];
    assert_eq!(ids(&places, LonLat::new(179.9, 0.0), 3), [0, 1, 2]);
    assert_eq!(ids(&places, LonLat::new(180.1, 0.0), 3), [0, 1, 2]);
    // Three longitudes of one place: equal distances, so the row is sorted by id.
    let same = [LonLat::new(180.0, 5.0), LonLat::new(-180.0, 5.0), LonLat::new(180.0, 5.0)];
    assert_eq!(ids(&same, LonLat::new(-180.0, 5.0), 3), [0, 1, 2]);
}

#[test]
fn all_longitudes_meet_at_a_pole() {
    let places: Vec<LonLat> = (0..36).map(|i| LonLat::new(f64::from(i) * 10.0, 90.0)).collect();
    let near = ids(&places, LonLat::new(123.0, 89.0), 36);
    assert_eq!(near, (0..36).collect::<Vec<u32>>());
    let across = [LonLat::new(0.0, 80.0), LonLat::new(180.0, 89.5)];
    assert_eq!(ids(&across, LonLat::new(0.0, 89.5), 2), [1, 0]);
    assert_eq!(ids(&across, LonLat::new(0.0, -90.0), 2), [0, 1]);
}

#[test]
fn distances_equal_the_haversine_formula() {
    let mut random = Random::new(4);
    let mut places: Vec<LonLat> = (0..2000)
        .map(|i| {
            let lat = (2.0 * random.unit() - 1.0).asin().to_degrees();
            // Dense around the date line, in both conventions of longitude.
            let lon = if i % 2 == 0 { 178.0 + 4.0 * random.unit() } else { 360.0 * random.unit() - 180.0 };
            LonLat::new(lon, lat)
        })
        .collect();
    places.extend([
        LonLat::new(0.0, 90.0),
        LonLat::new(0.0, -90.0),
        LonLat::new(180.0, 0.0),
        LonLat::new(-180.0, 0.0),
    ]);
    let oracle = BruteForce::new(&places);
    for device in devices() {
        let near = build(&device, &places).nearest(&places, 6).unwrap();
        for (i, &query) in places.iter().enumerate() {
            let mut all: Vec<f64> = places.iter().map(|&place| haversine(query, place)).collect();
            all.sort_unstable_by(f64::total_cmp);
            for ((meters, &id), expected) in near.meters(i).zip(near.padded_row(i).0).zip(all) {
                assert!(
                    (meters - expected).abs() < 1e-6 + 1e-9 * expected,
                    "{meters} {expected} on {device}"
                );
                assert_eq!(meters, query.meters_to(&places[id as usize]));
            }
            assert_eq!(near.padded_row(i).0, oracle.row(query, 6).0);
        }
    }
}

#[test]
fn antipodes() {
    let half = std::f64::consts::PI * EARTH_RADIUS_M;
    for (a, b) in [((0.0, 0.0), (180.0, 0.0)), ((10.0, 40.0), (-170.0, -40.0)), ((0.0, 90.0), (0.0, -90.0))] {
        let meters = LonLat::new(a.0, a.1).meters_to(&LonLat::new(b.0, b.1));
        assert!((meters - half).abs() < 0.2, "{meters}");
    }
}
