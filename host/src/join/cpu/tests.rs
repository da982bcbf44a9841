//! Tests that rows are in their documented order for any cells and both searches.

use super::*;
use crate::join::params::Lookup;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::Curve;
use kauri_kernels::primitives::generate::splitmix64;
use kauri_kernels::thread::measure::Norm;

/// Name, points and distances of a family of inputs.
type Family<C> = (&'static str, Vec<[C; 2]>, Vec<f64>);

fn families<C: Float>() -> Vec<Family<C>> {
    let n = 700;
    let unit = |i: u64| (splitmix64(i) >> 11) as f64 / (1_u64 << 53) as f64;
    let of = |point: &dyn Fn(u64) -> [f64; 2]| -> Vec<[C; 2]> {
        (0..n).map(|i| point(i).map(C::from_f64)).collect()
    };
    let random = |i: u64| [unit(2 * i), unit(2 * i + 1)];
    let far = if size_of::<C>() == 4 { 1e18 } else { 1e150 };
    vec![
        ("equal points", of(&|_| [0.5, -7.0]), vec![0.0, 1.0]),
        ("two locations", of(&|i| [(i * i % 7 % 2) as f64, 0.0]), vec![0.5, 1.0]),
        ("one outlier", of(&|i| if i == 300 { [far; 2] } else { random(i) }), vec![0.02, 0.2, 0.7]),
        ("a line", of(&|i| if i == 0 { [-far, 3.0] } else { [unit(i), 3.0] }), vec![0.01, 0.3]),
        ("clusters", of(&|i| random(i).map(|x| (i % 3) as f64 + 1e-3 * x)), vec![1e-4, 1e-3, 1.0]),
        (
            "a lattice",
            of(&|i| [splitmix64(i) % 8, splitmix64(i + 7000) % 4].map(|x| x as f64)),
            vec![1.0, 2.0],
        ),
        ("uniform points", of(&random), vec![0.05, 0.4]),
    ]
}

/// Returns the rows from a scan of all build points of each run of cells, in the order of codes and ids.
fn rows_in_order<C: Float>(sides: &JoinSides<'_, C, 2>, [build, probe]: [&[[C; 2]]; 2]) -> Vec<Vec<u32>> {
    let coded = build.iter().zip(0_u32..);
    let mut coded: Vec<_> =
        coded.filter_map(|(point, id)| Some((sides.grid.code(sides.grid.cell(*point)?), id))).collect();
    coded.sort_unstable();
    let row = |(probe, probe_id): (&[C; 2], u32)| {
        let Some(cell) = sides.grid.cell(*probe) else { return Vec::new() };
        let runs = (0..sides.grid.num_runs()).filter_map(|run| sides.grid.run(cell, run));
        let of_run = |(first, last)| {
            let begin = coded.partition_point(|&(code, _)| code < first);
            coded[begin..].iter().take_while(move |&&(code, _)| code <= last).map(|&(_, id)| id)
        };
        let is_pair = |&id: &u32| {
            sides.params.is_near(&build[id as usize], probe) && sides.params.pairing.includes(id, probe_id)
        };
        runs.flat_map(of_run).filter(is_pair).collect()
    };
    probe.iter().zip(0..).map(row).collect()
}

fn check<C: Float>(what: &str, [build, probe]: [&[[C; 2]]; 2], params: &JoinParams<C>) {
    let what = format!(
        "{what}, {:?}, {:?}, {:?}, {}",
        params.norm,
        params.curve,
        params.pairing,
        params.bound.to_f64()
    );
    let probe = if params.pairing.is_self_join() { build } else { probe };
    let sides = JoinSides::<C, 2>::new([build, probe].map(<[_]>::as_flattened), params).unwrap().unwrap();
    let expected = rows_in_order(&sides, [build, probe]);
    let n = probe.len();
    let first = sides.keep_rows().unwrap();
    assert!(first.is_some(), "{what}");
    for found in [sides.fill(first, n, &|_| Ok(n)).unwrap(), sides.fill(None, n, &|_| Ok(n)).unwrap()] {
        assert_eq!(found.len(), n);
        for (row, expected) in expected.iter().enumerate() {
            assert!(
                found.row(row) == expected,
                "{what}: row {row} is {:?}, not {expected:?}",
                found.row(row)
            );
        }
    }
    let total: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(sides.count().unwrap(), total as u64, "{what}");
    // Leading rows of a part of the probe side.
    let (begin, num_rows) = (n / 3, n / 2);
    let part = Arc::new(Cells::new(&probe[begin..], &sides.grid).unwrap());
    let sides = JoinSides { probe: part, num_before: begin as u32, build: sides.build.clone(), ..sides };
    let first = sides.keep_rows().unwrap();
    for first in [first, None] {
        let found = sides.fill(first, n - begin, &|_| Ok(num_rows)).unwrap();
        assert_eq!(found.len(), num_rows);
        assert!((0..num_rows).all(|row| found.row(row) == expected[begin + row]), "{what}: a part");
    }
}

fn rows_of<C: Float>() {
    let norms = [Norm::Euclidean, Norm::Manhattan, Norm::Chebyshev];
    let curves = [Curve::Linear, Curve::ZOrder, Curve::Hilbert];
    let mut turn = 0;
    for (what, points, distances) in families::<C>() {
        for distance in distances {
            for pairing in [Pairing::All, Pairing::Both, Pairing::Once] {
                turn += 1;
                let norm = norms[turn % 3];
                let bound = if norm == Norm::Euclidean { distance * distance } else { distance };
                let (bound, curve) = (C::from_f64(bound), curves[turn / 3 % 3]);
                let params = JoinParams { dims: 2, bound, norm, curve, pairing, lookup: Lookup::Points };
                check(what, [&points, &points[200..600]], &params);
            }
        }
    }
}

#[test]
fn rows_of_overfull_cells_f32() {
    rows_of::<f32>();
}

#[test]
fn rows_of_overfull_cells_f64() {
    rows_of::<f64>();
}

#[test]
fn results_that_memory_cannot_hold_are_not_begun() {
    let points = vec![[1.0_f32, 2.0]; 5000];
    let params = |pairing| {
        let (norm, curve, lookup) = (Norm::Euclidean, Curve::Linear, Lookup::Points);
        JoinParams { dims: 2, bound: 0.0, norm, curve, pairing, lookup }
    };
    for (pairing, pairs) in
        [(Pairing::All, 25_000_000), (Pairing::Both, 24_995_000), (Pairing::Once, 12_497_500)]
    {
        let params = params(pairing);
        let coords = [points.as_flattened(); 2];
        // Enough for all but the result.
        crate::memory::LIMIT.set(4_000_000);
        let error = rows(coords, &params).map(|rows| rows.len());
        crate::memory::LIMIT.set(u64::MAX);
        let Err(crate::Error::ResultTooLarge { count, bytes, .. }) = error else { panic!("{error:?}") };
        assert_eq!((count, bytes), (pairs, 4 * pairs), "{pairing:?}");
    }
}
