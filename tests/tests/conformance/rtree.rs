//! R-trees whose points change: any sequence of inserts and removals, against loops over the points that remain.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, PointMask, Queries, QueryOptions};
use kauri::{Batches, Device, Error, Point, RTree, Result, SpatialIndex};
use kauri_tests::devices_for;
use kauri_tests::naive::{Space, is_inside};
use kauri_tests::oracle::padded_row;
use proptest::prelude::*;
use std::ops::ControlFlow::Continue;

type P = [f32; 2];
type Tree = RTree<P>;

fn tree(device: &Device) -> Tree {
    Tree::build(device, &[]).unwrap_or_else(|error| panic!("{device}: {error}"))
}

/// A change of the points.
#[derive(Clone, Debug)]
enum Change {
    /// Inserts points.
    Insert(Vec<P>),
    /// Removes one of so many points, beginning with this one.
    Remove(usize, usize),
}

/// Points anywhere, on a lattice, or all at one place.
fn batch(max: usize) -> impl Strategy<Value = Vec<P>> {
    let anywhere = prop::collection::vec([-1e3..1e3f32, -1e3..1e3f32], 0..max);
    let lattice = prop::collection::vec([0..6i32, 0..6i32].prop_map(|p| p.map(|x| x as f32)), 0..max);
    let place = (0..max, [-1e3..1e3f32, -1e3..1e3f32]).prop_map(|(n, place)| vec![place; n]);
    prop_oneof![anywhere, lattice, place]
}

fn changes(max: usize) -> impl Strategy<Value = Vec<Change>> {
    let remove = (1..9usize, 0..9usize).prop_map(|(one_of, first)| Change::Remove(one_of, first));
    let change = prop_oneof![3 => batch(max).prop_map(Change::Insert), 2 => remove];
    // A large batch first, so that smaller ones find buckets.
    (batch(4 * max), prop::collection::vec(change, 1..8)).prop_map(|(first, mut changes)| {
        changes.insert(0, Change::Insert(first));
        changes
    })
}

/// The points that a tree should have: by id, `None` for removed ones.
#[derive(Default)]
struct Model(Vec<Option<P>>);

impl Model {
    fn apply(&mut self, tree: &mut Tree, change: &Change) -> Result<()> {
        match change {
            Change::Insert(points) => {
                let first = self.0.len() as u32;
                assert_eq!(tree.insert(points)?, first..first + points.len() as u32);
                self.0.extend(points.iter().map(|&point| Some(point)));
            }
            &Change::Remove(one_of, first) => {
                let mut ids: Vec<u32> = self.live().map(|(id, _)| id).skip(first).step_by(one_of).collect();
                // In any order.
                let middle = ids.len() / 2;
                ids.rotate_left(middle);
                tree.remove(&ids)?;
                ids.iter().for_each(|&id| self.0[id as usize] = None);
            }
        }
        Ok(())
    }

    fn live(&self) -> impl Iterator<Item = (u32, P)> {
        (0..).zip(&self.0).filter_map(|(id, point)| point.map(|point| (id, point)))
    }

    /// The points within a bound, nearest first.
    fn near(&self, query: &P, bound: f32, takes: impl Fn(u32) -> bool) -> Vec<(f32, u32)> {
        let space = Space { norm: kauri::query::Norm::Euclidean, periods: Vec::new() };
        let distances = self.live().map(|(id, point)| (space.distance(query, &point), id));
        let mut near: Vec<_> = distances.filter(|&(d, id)| d <= bound && takes(id)).collect();
        near.sort_by(|a, b| a.partial_cmp(b).unwrap());
        near
    }

    /// Compares all queries, with some numbers of neighbors.
    fn check(&self, tree: &Tree, ks: &[usize]) {
        let device = tree.device();
        assert_eq!((tree.len(), tree.num_ids()), (self.live().count(), self.0.len()), "{device}");
        assert!(tree.ids().unwrap().into_iter().eq(self.live().map(|(id, _)| id)), "{device}");
        let queries = [[0.0, 0.0], [3.0, 2.5], [-400.0, 120.0], [1e4, 1e4]];
        let options = QueryOptions::default();
        for &k in ks {
            let found = tree.nearest(&queries, k).unwrap();
            for (row, query) in queries.iter().enumerate() {
                let expected = padded_row(&self.near(query, f32::INFINITY, |_| true), k);
                let (ids, dist2) = found.padded_row(row);
                assert_eq!((ids, dist2), (&expected.0[..], &expected.1[..]), "{device}, {k} of {query:?}");
            }
        }
        let [radius, mask_of] = [150.0, 3.0];
        let mask = PointMask::from_fn(self.0.len(), |id| id % mask_of as u32 != 0).unwrap();
        let masked = options.clone().mask(mask.clone()).sorted();
        let found = tree.within(&queries, radius, &masked).unwrap();
        let counts = tree.count_within(&queries, radius, &options).unwrap();
        for (row, query) in queries.iter().enumerate() {
            let expected = self.near(query, radius * radius, |id| id % 3 != 0);
            let ids: Vec<u32> = expected.iter().map(|&(_, id)| id).collect();
            assert_eq!(found.row(row).ids(), ids, "{device}, {query:?}");
            let count = self.near(query, radius * radius, |_| true).len() as u32;
            assert_eq!(counts[row], count, "{device}, {query:?}");
        }
        let boxes = [[[-1.0, -1.0], [3.0, 4.0]], [[-500.0, -1e3], [500.0, 0.0]], [[-2e3, -2e3], [2e3, 2e3]]];
        let (counts, found) =
            (tree.count_in_boxes(&boxes, None).unwrap(), tree.in_boxes(&boxes, None).unwrap());
        for (row, corners) in boxes.iter().enumerate() {
            let inside = self.live().filter(|(_, point)| is_inside(point, corners));
            let expected: Vec<u32> = inside.map(|(id, _)| id).collect();
            let mut ids = found.row(row).to_vec();
            ids.sort_unstable();
            assert_eq!((counts[row] as usize, ids), (expected.len(), expected), "{device}, {corners:?}");
        }
        self.check_own(tree, &options);
    }

    /// Compares queries for all points, at once and in batches.
    fn check_own(&self, tree: &Tree, options: &QueryOptions<P>) {
        let (device, own) = (tree.device(), Queries::SelfQuery { include_self: false });
        let others =
            |(id, point): (u32, P)| padded_row(&self.near(&point, f32::INFINITY, |other| other != id), 2).0;
        let expected: Vec<u32> = self.live().flat_map(others).collect();
        for options in [options.clone(), options.clone().coherent()] {
            assert_eq!(tree.nearest_with(own, 2, &options).unwrap().ids(), expected, "{device}");
            let (mut found, mut batches) = (Vec::new(), Batches::new().rows(7));
            tree.nearest_batches(own, 2, &options, &mut batches, |batch| {
                found.extend_from_slice(batch.ids());
                Continue(())
            })
            .unwrap();
            assert_eq!(found, expected, "{device}, in batches");
        }
        let rows: Vec<_> =
            self.live().map(|(id, point)| self.near(&point, 1e4, |other| other != id)).collect();
        let counts = tree.count_within(own, 100.0, options).unwrap();
        assert!(counts.iter().copied().eq(rows.iter().map(|row| row.len() as u32)), "{device}");
        let found = tree.within(own, 100.0, &options.clone().sorted()).unwrap();
        assert!(found.ids().iter().eq(rows.iter().flatten().map(|(_, id)| id)), "{device}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_changes(changes in changes(40)) {
        for device in devices_for(0) {
            let (mut tree, mut model) = (tree(&device), Model::default());
            for change in &changes {
                model.apply(&mut tree, change).unwrap();
                model.check(&tree, &[1, 4]);
            }
        }
    }
}

/// Pseudorandom points.
fn noise(n: usize, seed: u64) -> Vec<P> {
    let unit = |i: usize| {
        let bits = (i as u64 + seed * 1_000_003).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1 << 24) as f32
    };
    (0..n).map(|i| [1000.0 * unit(2 * i) - 500.0, 1000.0 * unit(2 * i + 1) - 500.0]).collect()
}

/// Crowds, and points outside of the first ones' box.
#[test]
fn points_at_any_place() {
    for device in devices_for(0) {
        let (mut tree, mut model) = (tree(&device), Model::default());
        let crowd = |n: usize, at: f32| (0..n).map(|i| [at + i as f32 / 1e3, at]).collect::<Vec<P>>();
        for points in [crowd(40, 3.0), noise(900, 1), noise(5, 2), crowd(300, 1e5), crowd(6, 120.0)] {
            model.apply(&mut tree, &Change::Insert(points)).unwrap();
        }
        model.apply(&mut tree, &Change::Remove(3, 1)).unwrap();
        model.check(&tree, &[1, 5, 12, 30, 100, 200, 300]);
    }
}

/// A changed tree has the order of a tree that is built of the same points, if the grid is the same.
#[test]
fn changed_trees_equal_built_ones() {
    let everywhere = [[-600.0; 2], [600.0; 2]];
    for device in devices_for(0) {
        let all: Vec<P> = everywhere.into_iter().chain(noise(3000, 5)).collect();
        let expected = Tree::build(&device, &all).unwrap();
        let mut tree = Tree::build(&device, &all[..700]).unwrap();
        tree.insert(&all[700..2500]).unwrap();
        tree.insert(&all[2500..2501]).unwrap();
        tree.insert(&all[2501..]).unwrap();
        let within =
            |tree: &Tree| tree.within(&[[0.0; 2]], 1e4, &QueryOptions::default()).unwrap().ids().to_vec();
        assert_eq!(within(&tree), within(&expected), "{device}");
        tree.insert(&all[2..900]).unwrap();
        tree.remove(&(all.len() as u32..tree.num_ids() as u32).collect::<Vec<_>>()).unwrap();
        assert_eq!(within(&tree), within(&expected), "{device}");
        let on_cpu = Tree::build(&Device::cpu(), &all).unwrap();
        assert_eq!(within(&on_cpu), within(&expected), "{device}");
    }
}

#[test]
fn errors_change_nothing() {
    for device in devices_for(0) {
        let (mut tree, mut model) = (tree(&device), Model::default());
        assert!(matches!(tree.remove(&[0]), Err(Error::UnknownId { id: 0 })));
        model.apply(&mut tree, &Change::Insert(noise(40, 3))).unwrap();
        model.apply(&mut tree, &Change::Remove(7, 2)).unwrap();
        let unknown = |tree: &mut Tree, ids: &[u32]| match tree.remove(ids).unwrap_err() {
            Error::UnknownId { id } => id,
            other => panic!("{device}: {other}"),
        };
        // Removed ids are 2, 9, 16, 23, 30 and 37.
        assert_eq!(unknown(&mut tree, &[50, 1, 41, 40]), 40);
        assert_eq!(unknown(&mut tree, &[u32::MAX]), u32::MAX);
        assert_eq!(unknown(&mut tree, &[1, 16, 33, 33, 9]), 9);
        let repeated = tree.remove(&[30, 11, 4, 11, 4, 39]).unwrap_err();
        assert!(matches!(repeated, Error::RepeatedId { id: 4 }), "{device}: {repeated}");
        let mut points = noise(5, 4);
        points[3][1] = f32::NAN;
        let refused = tree.insert(&points).unwrap_err();
        assert!(matches!(refused, Error::NonFinite { index: 3, axis: 1, .. }), "{device}: {refused}");
        points[3][1] = 1e30;
        assert!(matches!(tree.insert(&points), Err(Error::CoordinateTooLarge { index: 3, .. })));
        assert_eq!(tree.insert(&[]).unwrap(), 40..40);
        tree.remove(&[]).unwrap();
        model.check(&tree, &[3]);
        for id in 0..42 {
            let is_live = model.0.get(id as usize).is_some_and(|point| point.is_some());
            assert_eq!(tree.contains(id).unwrap(), is_live, "{device}, {id}");
        }
    }
}

/// All points go, one by one or at once, and others come.
#[test]
fn all_points_may_go() {
    for device in devices_for(0) {
        let (mut tree, mut model) = (tree(&device), Model::default());
        for round in 0..3 {
            model.apply(&mut tree, &Change::Insert(noise(50, round))).unwrap();
            model.apply(&mut tree, &Change::Insert(vec![[1.0, 2.0]; 30])).unwrap();
            model.apply(&mut tree, &Change::Remove(round as usize + 1, 0)).unwrap();
            model.check(&tree, &[2]);
            model.apply(&mut tree, &Change::Remove(1, 0)).unwrap();
            assert!(tree.is_empty());
            model.check(&tree, &[2]);
        }
    }
}

/// Changes and queries by buffers on the device.
#[test]
fn buffers_on_the_device() {
    for device in devices_for(0) {
        let Some(gpu) = device.gpu() else {
            let mut tree = tree(&device);
            on_each_gpu(|stream, workspace| {
                let coords = Buffer::from_slice(stream, &[0.0f32; 2], "points").unwrap();
                assert!(matches!(tree.insert_on(stream, workspace, &coords), Err(Error::NotOnGpu)));
                let ids = Buffer::from_slice(stream, &[0], "ids").unwrap();
                assert!(matches!(tree.remove_on(stream, workspace, &ids), Err(Error::NotOnGpu)));
            });
            continue;
        };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let (mut tree, mut model) = (tree(&device), Model::default());
        let upload = |points: &[P]| Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap();
        for (seed, n) in [(1, 300), (2, 9), (3, 0), (4, 40), (5, 1)] {
            let points = noise(n, seed);
            let ids = tree.insert_on(&stream, &mut workspace, &upload(&points)).unwrap();
            assert_eq!(ids.len(), n);
            model.0.extend(points.into_iter().map(Some));
        }
        let removed: Vec<u32> = (0..350).step_by(5).collect();
        let ids = Buffer::from_slice(&stream, &removed, "ids").unwrap();
        let before = tree.prepare(&stream, &QueryOptions::default()).unwrap();
        tree.remove_on(&stream, &mut workspace, &ids).unwrap();
        removed.iter().for_each(|&id| model.0[id as usize] = None);
        let again = tree.remove_on(&stream, &mut workspace, &ids);
        assert!(matches!(again, Err(Error::UnknownId { id: 0 })), "{again:?}");
        let odd = Buffer::from_slice(&stream, &[0.0f32; 3], "points").unwrap();
        assert!(matches!(tree.insert_on(&stream, &mut workspace, &odd), Err(Error::Shape { .. })));
        model.check(&tree, &[3]);

        let queries = noise(20, 9);
        let coords = upload(&queries);
        let on_device = DeviceQueries::Coordinates(&coords);
        let buffers = |n: usize| {
            (
                Buffer::uninitialized(gpu, n, "ids").unwrap(),
                Buffer::uninitialized(gpu, n, "distances").unwrap(),
            )
        };
        let (mut ids, mut dist2) = buffers(60);
        let stale = tree.nearest_on(&stream, &mut workspace, on_device, 3, &before, &mut ids, &mut dist2);
        assert!(matches!(stale, Err(Error::OtherTree)), "{stale:?}");
        let options = QueryOptions::default().radius(90.0);
        let prepared = tree.prepare(&stream, &options).unwrap();
        tree.nearest_on(&stream, &mut workspace, on_device, 3, &prepared, &mut ids, &mut dist2).unwrap();
        let expected = tree.nearest_with(&queries, 3, &options).unwrap();
        assert_eq!(ids.to_vec(&stream).unwrap(), expected.ids());
        assert_eq!(dist2.to_vec(&stream).unwrap(), expected.dist2());
        let found = tree.all_within_on(&stream, &mut workspace, on_device, &prepared).unwrap();
        let expected = tree.within(&queries, 90.0, &options).unwrap();
        assert_eq!(found.offsets.to_vec(&stream).unwrap(), expected.offsets());
        assert_eq!(found.ids.to_vec(&stream).unwrap(), expected.ids());
        let own = DeviceQueries::SelfQuery { include_self: false };
        let (mut ids, mut dist2) = buffers(2 * tree.len());
        tree.nearest_on(&stream, &mut workspace, own, 2, &prepared, &mut ids, &mut dist2).unwrap();
        let own = Queries::SelfQuery { include_self: false };
        assert_eq!(ids.to_vec(&stream).unwrap(), tree.nearest_with(own, 2, &options).unwrap().ids());
    }
}

fn on_each_gpu(check: impl FnOnce(&Stream, &mut Workspace)) {
    let devices = devices_for(1);
    if let Some(gpu) = devices.iter().find_map(|device| device.gpu()) {
        check(&Stream::new(gpu).unwrap(), &mut Workspace::new(gpu));
    }
}

/// Points of every type of coordinates and number of dimensions: words are moved, whatever they are.
#[test]
fn types_of_coordinates() {
    fn check<Q: Point + PartialEq + std::fmt::Debug>(point: impl Fn(usize) -> Q) {
        let points: Vec<Q> = (0..90).map(&point).collect();
        for device in devices_for(0) {
            let mut tree = RTree::build(&device, &points[..60]).unwrap();
            tree.insert(&points[60..]).unwrap();
            tree.remove(&[3, 70]).unwrap();
            let found = tree.nearest(&points, 1).unwrap();
            for (id, query) in points.iter().enumerate() {
                let is_removed = id == 3 || id == 70;
                let near = found.padded_row(id).0[0] as usize;
                assert!(points[near] == *query || is_removed, "{device}: {query:?}");
            }
        }
    }
    check(|i| [(i * 37 % 90) as f64, i as f64, -(i as f64)]);
    check(|i| [(i * 37 % 90) as i32, i as i32]);
    check(|i| std::array::from_fn::<_, 5, _>(|axis| ((i * 37 + axis) % 90) as f32));
    check(|i| kauri::LonLat::new(i as f64, (i * 37 % 90) as f64));
}
