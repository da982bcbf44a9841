//! Damaged files: every flipped bit, every wrong length, random changes.

use super::{Changed, Saved, Widest};
use kauri::balanced::BalancedKdTree;
use kauri::quadtree::{Octree, Quadtree};
use kauri::{Device, Error, KdTree, LonLat, RTree};
use kauri_tests::generate::Shape;
use kauri_tests::load_any::{load_any, reseal};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::Cell;

fn is_typed(error: &Error) -> bool {
    matches!(error, Error::CorruptFile { .. } | Error::WrongFile { .. })
}

fn places(n: usize) -> Vec<LonLat> {
    let uniform = Shape::Uniform.points::<f64, 2>(n, 1);
    uniform.iter().map(|p| LonLat::new(360.0 * p[0] - 180.0, 180.0 * p[1] - 90.0)).collect()
}

fn every_bit<T: Saved>(points: &[T::Points]) {
    let device = Device::cpu();
    let tree = T::build(&device, points);
    let answers = tree.answers();
    let mut bytes = tree.write();
    for i in 0..bytes.len() {
        for bit in 0..8 {
            bytes[i] ^= 1 << bit;
            match T::read(&device, &bytes) {
                Err(error) => assert!(is_typed(&error), "byte {i}, bit {bit}: {error}"),
                Ok(tree) => {
                    assert!(tree.verify().is_ok() && tree.answers() == answers, "byte {i}, bit {bit}");
                    panic!("byte {i}, bit {bit}: the change was not detected");
                }
            }
            bytes[i] ^= 1 << bit;
        }
    }
    assert!(T::read(&device, &bytes).is_ok());
}

#[test]
fn every_flipped_bit() {
    every_bit::<KdTree<[f32; 3]>>(&Shape::Uniform.points::<f32, 3>(101, 1));
    every_bit::<Widest<[f64; 2]>>(&Shape::Lattice.points::<f64, 2>(77, 2));
    every_bit::<KdTree<LonLat>>(&places(41));
    every_bit::<KdTree<[f32; 1]>>(&[]);
    every_bit::<BalancedKdTree<[f32; 2]>>(&Shape::Lattice.points::<f32, 2>(90, 3));
    every_bit::<BalancedKdTree<[f64; 3]>>(&Shape::Uniform.points::<f64, 3>(63, 4));
    every_bit::<BalancedKdTree<[f64; 3]>>(&[]);
    every_bit::<Quadtree<[f32; 2]>>(&Shape::Clustered.points::<f32, 2>(40, 5));
    every_bit::<Octree<[f64; 3]>>(&Shape::Lattice.points::<f64, 3>(17, 6));
    every_bit::<Quadtree<[f64; 2]>>(&[]);
    every_bit::<RTree<[f32; 2]>>(&Shape::Uniform.points::<f32, 2>(50, 7));
    every_bit::<Changed<[f64; 3]>>(&Shape::Lattice.points::<f64, 3>(40, 8));
    every_bit::<RTree<[f32; 1]>>(&[]);
}

/// Checks every wrong length, for readers and for files.
fn every_length<T: Saved>(points: &[T::Points], step: usize) {
    let device = Device::cpu();
    let bytes = T::build(&device, points).write();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    let refused = |bytes: &[u8], offset: usize| {
        std::fs::write(&path, bytes).unwrap();
        for error in [T::load(&device, &path).err(), T::map(&device, &path).err()] {
            match error {
                Some(Error::CorruptFile { path: named, offset: at, what }) => {
                    assert_eq!((named, at), (path.clone(), offset as u64), "{what}");
                }
                other => panic!("{} of {} bytes: {other:?}", bytes.len(), bytes.len()),
            }
        }
    };
    let lens = (0..bytes.len().min(400)).chain((0..bytes.len()).step_by(step)).chain([bytes.len() - 1]);
    for len in lens {
        let error = T::read(&device, &bytes[..len]).err();
        let offset = if len == 0 { 0 } else { len };
        let at =
            |error: &Error| matches!(error, Error::CorruptFile { offset: at, .. } if *at == offset as u64);
        assert!(error.as_ref().is_some_and(at), "{len} of {} bytes: {error:?}", bytes.len());
        refused(&bytes[..len], offset);
    }
    for more in [1, 63, 64, 4096] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        refused(&longer, bytes.len());
        // A stream may continue after the index.
        assert!(T::read(&device, &longer).is_ok());
    }
}

#[test]
fn every_wrong_length() {
    every_length::<KdTree<[f32; 3]>>(&Shape::Uniform.points::<f32, 3>(20, 1), 1);
    every_length::<BalancedKdTree<[f64; 2]>>(&Shape::Lattice.points::<f64, 2>(40, 1), 1);
    every_length::<Quadtree<[f32; 2]>>(&Shape::Clustered.points::<f32, 2>(20, 1), 1);
    every_length::<Changed<[f32; 2]>>(&Shape::Clustered.points::<f32, 2>(20, 1), 1);
    every_length::<Widest<[f64; 3]>>(&Shape::Uniform.points::<f64, 3>(10_000, 1), 4096);
    every_length::<BalancedKdTree<[f32; 3]>>(&Shape::Uniform.points::<f32, 3>(10_000, 1), 4096);
}

#[test]
fn other_files_than_indexes() {
    let device = Device::cpu();
    let long = [0u8; 5000];
    let text = "lon,lat\n1,2\n".repeat(100);
    for bytes in [&b""[..], b"x", b"\x89", b"\x89KAURI\n", b"\x89PNG\r\n\x1a\n0000", &long, text.as_bytes()] {
        for error in [
            KdTree::<[f32; 2]>::read_from(&device, bytes).err(),
            BalancedKdTree::<LonLat>::read_from(&device, bytes).err(),
        ] {
            assert!(matches!(error, Some(Error::CorruptFile { .. })), "{bytes:?}: {error:?}");
        }
    }
}

/// A file whose line ends were converted.
#[test]
fn changed_line_ends() {
    let bytes = crate::build(&Device::cpu(), &[[1.0f32]]).write();
    let unix: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != b'\r').collect();
    let error = KdTree::<[f32; 1]>::read_from(&Device::cpu(), &unix[..]).err();
    assert!(matches!(error, Some(Error::CorruptFile { offset: 0, .. })), "{error:?}");
}

/// Valid files to change, and to splice with each other.
fn seeds() -> Vec<Vec<u8>> {
    fn bytes<T: Saved>(points: &[T::Points]) -> Vec<u8> {
        T::build(&Device::cpu(), points).write()
    }
    let flat = Shape::FewDistinct.points::<f32, 2>(60, 1);
    let integers: Vec<[i64; 2]> = flat.iter().map(|p| p.map(|x| (x * 9.0) as i64)).collect();
    vec![
        bytes::<KdTree<[f32; 1]>>(&Shape::Uniform.points(9, 1)),
        bytes::<KdTree<[f32; 2]>>(&Shape::Uniform.points(50, 2)),
        bytes::<Widest<[f32; 2]>>(&Shape::Uniform.points(50, 2)),
        bytes::<Widest<[f32; 3]>>(&Shape::Lattice.points(100, 3)),
        bytes::<KdTree<[f64; 2]>>(&Shape::SignedZeros.points(30, 4)),
        bytes::<KdTree<[i64; 2]>>(&integers),
        bytes::<KdTree<LonLat>>(&places(20)),
        bytes::<BalancedKdTree<[f32; 2]>>(&flat),
        bytes::<BalancedKdTree<[f32; 3]>>(&Shape::Uniform.points(33, 5)),
        bytes::<BalancedKdTree<[f64; 2]>>(&Shape::Lattice.points(70, 6)),
        bytes::<KdTree<[f32; 2]>>(&[]),
        bytes::<Quadtree<[f32; 2]>>(&Shape::Uniform.points(50, 7)),
        bytes::<Quadtree<[f32; 2]>>(&flat),
        bytes::<Octree<[f64; 3]>>(&Shape::Lattice.points(40, 8)),
        bytes::<RTree<[f32; 2]>>(&Shape::Uniform.points(50, 9)),
        bytes::<Changed<[f32; 2]>>(&flat),
        bytes::<Changed<[f64; 3]>>(&Shape::Clustered.points(40, 10)),
        bytes::<Changed<[i32; 1]>>(&[[5], [-7], [5], [i32::MAX]]),
    ]
}

/// A random change of a file.
#[derive(Clone, Debug)]
enum Change {
    Byte(prop::sample::Index, u8),
    Word(prop::sample::Index, u32),
    Long(prop::sample::Index, u64),
    Cut(prop::sample::Index),
    Copy(prop::sample::Index, prop::sample::Index, usize),
    Splice(prop::sample::Index, prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<prop::sample::Index>;
    // Numbers near counts, lengths and ids, and near the limits of their types.
    let word = prop_oneof![0..300u32, Just(u32::MAX), Just(1 << 31), any::<u32>(), Just(f32::NAN.to_bits())];
    let long = prop_oneof![0..5000u64, Just(u64::MAX), Just(1 << 32), any::<u64>(), Just(1 << 63)];
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (place(), word).prop_map(|(at, word)| Change::Word(at, word)),
        (place(), long).prop_map(|(at, long)| Change::Long(at, long)),
        place().prop_map(Change::Cut),
        (place(), place(), 1..200usize).prop_map(|(from, to, len)| Change::Copy(from, to, len)),
        (place(), place()).prop_map(|(seed, at)| Change::Splice(seed, at)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change, seeds: &[Vec<u8>]) {
    if bytes.is_empty() {
        return;
    }
    let put = |bytes: &mut Vec<u8>, at: &prop::sample::Index, value: &[u8]| {
        let at = at.index(bytes.len()) / value.len() * value.len();
        let end = bytes.len().min(at + value.len());
        bytes[at..end].copy_from_slice(&value[..end - at]);
    };
    match change {
        Change::Byte(at, byte) => put(bytes, at, &[*byte]),
        Change::Word(at, word) => put(bytes, at, &word.to_le_bytes()),
        Change::Long(at, long) => put(bytes, at, &long.to_le_bytes()),
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Copy(from, to, len) => {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let len = (*len).min(bytes.len() - from).min(bytes.len() - to);
            bytes.copy_within(from..from + len, to);
        }
        Change::Splice(seed, at) => {
            let (seed, at) = (&seeds[seed.index(seeds.len())], at.index(bytes.len()));
            bytes.truncate(at);
            bytes.extend(seed.get(at..).unwrap_or_default());
        }
    }
}

/// The test of the fuzz target `load_index`: random changes of valid files. Most of the time the checksums are recomputed, so that the
/// changes reach the later checks.
#[test]
fn any_bytes_are_an_error_or_a_tree() {
    let seeds = seeds();
    seeds.iter().for_each(|seed| assert!(load_any(seed)));
    let config = ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        // Every run has the same cases. The fuzzer tries others.
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    };
    let loaded = Cell::new(0);
    let cases = (any::<prop::sample::Index>(), prop::collection::vec(change(), 1..5), 0..4u32);
    proptest!(config, |((seed, changes, keep) in cases)| {
        let mut bytes = seeds[seed.index(seeds.len())].clone();
        changes.iter().for_each(|change| apply(&mut bytes, change, &seeds));
        if keep > 0 {
            reseal(&mut bytes);
        }
        loaded.set(loaded.get() + u32::from(load_any(&bytes)));
    });
    // Some changed files still load, so the queries after the checks are tested, too.
    assert!(loaded.get() > 100, "only {} trees", loaded.get());
}
