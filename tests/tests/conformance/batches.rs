//! Results in batches have the rows of the whole result, in order, with any limits; also after a stop, an error or a panic.

use kauri::device::{Gpu, SimOptions};
use kauri::query::{NearestBatch, Neighbor, Norm, PointMask, Queries, QueryOptions};
use kauri::rows::RowItem;
use kauri::{
    Batches, Delivered, Device, Error, KdTree, KdTreeOptions, LonLat, Point, Result, RowsBatch, SpatialIndex,
    Step,
};
use kauri_tests::generate::{Random, Scalar, Shape, queries};
use kauri_tests::{devices, devices_for};
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ControlFlow::{Break, Continue};

/// The limits of a batch.
#[derive(Clone, Copy, Debug)]
struct Limits {
    bytes: u64,
    rows: usize,
}

impl Limits {
    fn batches(self) -> Batches<'static> {
        Batches::new().bytes(self.bytes).rows(self.rows)
    }
}

/// Returns limits from one row per batch to one batch in all, for rows of at most `largest_row` bytes.
fn limits(largest_row: u64) -> impl Iterator<Item = Limits> {
    let (some, all) = (5 * largest_row, usize::MAX);
    let cuts =
        [(largest_row, all), (largest_row + 1, 7), (some, all), (some, 3), (1 << 26, 1), (u64::MAX, all)];
    cuts.into_iter().map(|(bytes, rows)| Limits { bytes, rows })
}

/// The rows of all batches.
#[derive(Debug)]
struct Whole<C> {
    offsets: Vec<u64>,
    ids: Vec<u32>,
    dist2: Vec<C>,
    /// The rows of each batch.
    batches: Vec<Range<usize>>,
}

impl<C: Scalar> Whole<C> {
    fn new() -> Self {
        Self { offsets: vec![0], ids: Vec::new(), dist2: Vec::new(), batches: Vec::new() }
    }

    /// Adds a batch with these ids and distances. `row_of` returns the ids and distances of a row.
    fn add<'a, T: RowItem>(
        &mut self,
        limits: Limits,
        batch: RowsBatch<'a, T>,
        (ids, dist2): (&[u32], &[C]),
        row_of: impl Fn(usize) -> (&'a [u32], &'a [C]),
    ) {
        let rows = batch.rows();
        assert_eq!(rows.start, self.offsets.len() - 1, "batches come in order");
        assert!((1..=limits.rows).contains(&rows.len()), "{rows:?} within {limits:?}");
        let item_bytes = 4 + if dist2.is_empty() { 0 } else { size_of::<C>() };
        assert!((ids.len() * item_bytes) as u64 <= limits.bytes, "{rows:?} within {limits:?}");
        assert_eq!(batch.offsets().len(), rows.len() + 1);
        let before = self.ids.len() as u64;
        for row in rows.clone() {
            let (ids, dist2) = row_of(row);
            self.ids.extend_from_slice(ids);
            self.dist2.extend_from_slice(dist2);
            self.offsets.push(self.ids.len() as u64);
            assert_eq!(before + batch.offsets()[row - rows.start + 1], self.ids.len() as u64);
        }
        assert_eq!(self.ids.len() as u64, before + ids.len() as u64);
        self.batches.push(rows);
    }

    fn check(&self, delivered: &Delivered, what: &str) {
        assert!(delivered.is_complete, "{what}");
        assert_eq!(delivered.rows, self.offsets.len() as u64 - 1, "{what}");
        assert_eq!(delivered.items, self.ids.len() as u64, "{what}");
        assert_eq!(delivered.bytes, (4 * self.ids.len() + size_of_val(&self.dist2[..])) as u64, "{what}");
        assert_eq!(delivered.batches, self.batches.len() as u64, "{what}");
        let names: Vec<_> = delivered.stats.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(names, ["make", "wait", "callback"]);
    }
}

fn within<C: Scalar, const D: usize>(
    tree: &KdTree<[C; D]>,
    queries: Queries<'_, [C; D]>,
    radius: C,
    options: &QueryOptions<[C; D]>,
    limits: Limits,
) -> Result<(Whole<C>, Delivered)> {
    let mut whole = Whole::new();
    let delivered = tree.within_batches(queries, radius, options, &mut limits.batches(), |batch| {
        let row_of = |row| (batch.row(row).ids(), batch.row(row).dist2());
        whole.add(limits, batch, (batch.ids(), batch.dist2()), row_of);
        Continue(())
    })?;
    Ok((whole, delivered))
}

fn build<P: Point>(device: &Device, points: &[P]) -> KdTree<P> {
    KdTree::build(device, points, &KdTreeOptions::default()).unwrap()
}

/// Options of several kinds.
fn options<C: Scalar, const D: usize>(num_points: usize) -> Vec<QueryOptions<[C; D]>> {
    let mask = PointMask::from_fn(num_points, |id| id % 3 != 1).unwrap();
    vec![
        QueryOptions::default(),
        QueryOptions::default().sorted(),
        QueryOptions::default().norm(Norm::Manhattan).mask(mask).coherent(),
    ]
}

fn within_is_whole<C: Scalar, const D: usize>(devices: Vec<Device>, num_points: usize, num_queries: usize) {
    let points = Shape::Lattice.points::<C, D>(num_points, 3);
    let others = queries(&points, num_queries, 4);
    let radius = C::from_f64(1.0);
    for options in options(num_points) {
        for asked in [
            Queries::Points(&others),
            Queries::SelfQuery { include_self: true },
            Queries::SelfQuery { include_self: false },
        ] {
            let mut cuts: Option<Vec<Vec<Range<usize>>>> = None;
            for device in &devices {
                let tree = build(device, &points);
                let expected = tree.within(asked, radius, &options).unwrap();
                let largest = expected.offsets().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap();
                let mut batches = Vec::new();
                for limits in limits(largest * (4 + size_of::<C>() as u64)) {
                    let what = format!("{asked:?} of {options:?} within {limits:?} on {device}");
                    let (whole, delivered) = within(&tree, asked, radius, &options, limits).unwrap();
                    assert!(whole.offsets == expected.offsets(), "{what}");
                    assert!(whole.ids == expected.ids(), "{what}");
                    assert!(whole.dist2 == expected.dist2(), "{what}");
                    whole.check(&delivered, &what);
                    if limits.rows == usize::MAX && limits.bytes == u64::MAX {
                        assert_eq!(whole.batches.len(), 1, "{what}");
                    }
                    batches.push(whole.batches);
                }
                let cuts = cuts.get_or_insert_with(|| batches.clone());
                assert!(*cuts == batches, "{options:?} has other batches on {device}");
            }
        }
    }
}

#[test]
fn batches_of_few_points_within_a_radius() {
    within_is_whole::<f32, 2>(devices_for(14), 14, 6);
    within_is_whole::<f64, 3>(devices_for(9), 9, 5);
}

#[test]
fn batches_of_many_points_within_a_radius() {
    within_is_whole::<f32, 3>(devices(), 3000, 2500);
    within_is_whole::<f64, 5>(devices(), 2000, 2500);
}

fn in_boxes_is_whole(devices: Vec<Device>, num_points: usize, num_boxes: usize) {
    let points = Shape::Lattice.points::<f32, 2>(num_points, 5);
    let corners = queries(&points, num_boxes, 6);
    let boxes: Vec<_> = corners.iter().map(|&low| [low, low.map(|x| x + 1.0)]).collect();
    let mask = PointMask::from_fn(num_points, |id| id % 5 != 1).unwrap();
    for device in devices {
        let tree = build(&device, &points);
        for mask in [None, Some(&mask)] {
            let expected = tree.in_boxes(&boxes, mask).unwrap();
            let largest = expected.offsets().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap();
            for limits in limits(4 * largest) {
                let mut whole = Whole::<f32>::new();
                let visit = |batch: RowsBatch<'_>| {
                    whole.add(limits, batch, (batch.ids(), &[]), |row| (batch.row(row), &[]));
                    Continue(())
                };
                let delivered = tree.in_boxes_batches(&boxes, mask, &mut limits.batches(), visit).unwrap();
                assert!(whole.offsets == expected.offsets(), "{limits:?} on {device}");
                assert!(whole.ids == expected.ids(), "{limits:?} on {device}");
                whole.check(&delivered, "boxes");
            }
        }
    }
}

#[test]
fn batches_of_points_in_boxes() {
    in_boxes_is_whole(devices_for(33), 33, 10);
    in_boxes_is_whole(devices(), 3000, 2500);
}

fn nearest_is_whole<C: Scalar, const D: usize>(devices: Vec<Device>, num_points: usize, num_queries: usize) {
    let points = Shape::Lattice.points::<C, D>(num_points, 7);
    let others = queries(&points, num_queries, 8);
    for device in devices {
        let tree = build(&device, &points);
        for (options, k) in options(num_points).into_iter().zip([1, 5, 40]) {
            for asked in [
                Queries::Points(&others),
                Queries::SelfQuery { include_self: true },
                Queries::SelfQuery { include_self: false },
            ] {
                let expected = tree.nearest_with(asked, k, &options).unwrap();
                let row_bytes = k * (4 + size_of::<C>());
                for limits in limits(row_bytes as u64) {
                    let (mut next, mut num_batches) = (0, 0);
                    let mut batches = limits.batches();
                    let visit = |batch: NearestBatch<'_, [C; D]>| {
                        let rows = batch.rows();
                        assert!(rows.start == next && (1..=limits.rows).contains(&rows.len()));
                        assert!((rows.len() * row_bytes) as u64 <= limits.bytes);
                        assert!(rows.end == expected.len() || rows.len() == most_rows(limits, row_bytes));
                        let entries = rows.start * k..rows.end * k;
                        assert!(batch.ids() == &expected.ids()[entries.clone()], "{limits:?} on {device}");
                        assert!(batch.dist2() == &expected.dist2()[entries], "{limits:?} on {device}");
                        assert!(rows.clone().all(|row| batch.padded_row(row) == expected.padded_row(row)));
                        (next, num_batches) = (rows.end, num_batches + 1);
                        Continue(())
                    };
                    let delivered = tree.nearest_batches(asked, k, &options, &mut batches, visit).unwrap();
                    assert_eq!(next, expected.len());
                    assert!(delivered.is_complete);
                    assert_eq!((delivered.batches, delivered.rows), (num_batches, expected.len() as u64));
                    assert_eq!(delivered.bytes, (expected.len() * row_bytes) as u64);
                }
            }
        }
    }
}

/// Returns the number of rows of `row_bytes` bytes in a full batch.
fn most_rows(limits: Limits, row_bytes: usize) -> usize {
    (limits.bytes as usize / row_bytes).min(limits.rows)
}

#[test]
fn batches_of_nearest_points() {
    nearest_is_whole::<f32, 2>(devices_for(20), 20, 8);
    nearest_is_whole::<f32, 3>(devices(), 3000, 2500);
    nearest_is_whole::<f64, 5>(devices(), 2000, 2500);
}

#[test]
fn batches_of_longitudes_and_latitudes() {
    let places = [LonLat::new(18.07, 59.33), LonLat::new(24.94, 60.17), LonLat::new(10.75, 59.91)];
    for device in devices_for(3) {
        let tree = build(&device, &places);
        let expected = tree.nearest(&places, 2).unwrap();
        let mut meters = Vec::new();
        let (options, mut batches) = (QueryOptions::default(), Batches::new().rows(2));
        let visit = |batch: NearestBatch<'_, LonLat>| {
            batch.rows().for_each(|row| meters.extend(batch.meters(row)));
            Continue(())
        };
        tree.nearest_batches(&places, 2, &options, &mut batches, visit).unwrap();
        assert!(meters.into_iter().eq((0..3).flat_map(|row| expected.meters(row))));
    }
}

#[test]
fn empty_inputs() {
    let options = QueryOptions::default();
    for device in devices_for(3) {
        let (full, empty) = (build(&device, &[[0.0f32], [1.0], [2.0]]), build(&device, &[[0.0f32]; 0]));
        let mut batches = Batches::new().rows(2);
        // No queries: no batch.
        let none: &[[f32; 1]] = &[];
        let delivered = full.within_batches(none, 1.0, &options, &mut batches, |_| panic!("no rows"));
        assert!(delivered.unwrap().is_complete);
        let delivered = full.nearest_batches(none, 3, &options, &mut batches, |_| panic!("no rows"));
        assert!(delivered.unwrap().is_complete);
        let delivered = full.in_boxes_batches(&[], None, &mut batches, |_| panic!("no rows"));
        assert!(delivered.unwrap().is_complete);
        let own = Queries::SelfQuery { include_self: true };
        let delivered = empty.within_batches(own, 1.0, &options, &mut batches, |_| panic!("no rows"));
        assert!(delivered.unwrap().is_complete);

        // Empty rows fit in a batch of 0 bytes.
        for tree in [&full, &empty] {
            let mut batches = Batches::new().bytes(0).rows(2);
            let mut rows = Vec::new();
            let far = [[9.0]; 3];
            let delivered = tree.within_batches(&far, 0.5, &options, &mut batches, |batch| {
                assert!(batch.ids().is_empty() && batch.rows().all(|row| batch.row(row).is_empty()));
                rows.push(batch.rows());
                Continue(())
            });
            assert_eq!(delivered.unwrap().rows, 3);
            assert_eq!(rows.iter().cloned().flatten().collect::<Vec<_>>(), [0, 1, 2]);
            rows.clear();
            let delivered = tree.nearest_batches(&far, 0, &options, &mut batches, |batch| {
                assert!(batch.ids().is_empty() && batch.k() == 0);
                rows.push(batch.rows());
                Continue(())
            });
            assert_eq!(delivered.unwrap().rows, 3);
            assert_eq!(rows, [0..2, 2..3]);
        }
        // No points: rows of padding.
        let mut seen = Vec::new();
        let visit = |batch: NearestBatch<'_, [f32; 1]>| {
            seen.extend_from_slice(batch.ids());
            Continue(())
        };
        empty.nearest_batches(&[[1.0]], 2, &options, &mut batches, visit).unwrap();
        assert_eq!(seen, [u32::MAX; 2]);
    }
}

/// Returns points on a line; each has up to two others within a distance of 1.
fn line(n: usize) -> Vec<[f32; 1]> {
    (0..n).map(|x| [x as f32]).collect()
}

#[test]
fn the_callback_stops_a_call() {
    let (points, options) = (line(30), QueryOptions::default());
    for device in devices_for(30) {
        let tree = build(&device, &points);
        let mut batches = Batches::new().rows(4);
        for stop in 1..=9 {
            let mut num_batches = 0;
            let mut visit = |rows: Range<usize>| {
                assert_eq!(rows.start, 4 * num_batches);
                num_batches += 1;
                if num_batches == stop { Break(()) } else { Continue(()) }
            };
            let delivered = if stop % 2 == 0 {
                tree.within_batches(&points, 1.0, &options, &mut batches, |batch| visit(batch.rows()))
            } else {
                tree.nearest_batches(&points, 3, &options, &mut batches, |batch| visit(batch.rows()))
            }
            .unwrap();
            // The eighth batch is the last one, so a stop after it changes nothing.
            assert_eq!(delivered.batches, stop.min(8) as u64);
            assert_eq!(delivered.rows, (4 * stop).min(30) as u64);
            assert_eq!(delivered.is_complete, stop >= 8);
        }
        // The next call has the same batches.
        let mut num_found = 0;
        let delivered = tree.within_batches(&points, 1.0, &options, &mut batches, |batch| {
            num_found += batch.ids().len();
            Continue(())
        });
        assert!(delivered.unwrap().is_complete && num_found == 3 * 30 - 2);
    }
}

#[test]
fn progress_is_reported_and_may_stop_a_call() {
    let (points, options) = (line(10), QueryOptions::default());
    for device in devices_for(10) {
        let tree = build(&device, &points);
        let mut steps = Vec::new();
        let mut batches = Batches::new().rows(4).progress(|step: Step| {
            steps.push((step.phase, step.done, step.total, step.bytes));
            Continue(())
        });
        tree.within_batches(&points, 1.0, &options, &mut batches, |_| Continue(())).unwrap();
        drop(batches);
        // Points of a line have two neighbors within 1, those at the ends one: an id and an `f32` for each of them and the point itself.
        let items = [(0, 0), (4, 11), (8, 23), (10, 28)];
        let expected = items.map(|(done, items)| ("rows", done, Some(10), 8 * items));
        assert_eq!(steps, expected, "on {device}");

        for end in [0, 4, 10] {
            let mut num_batches = 0;
            let mut batches = Batches::new()
                .rows(4)
                .progress(move |step: Step| if step.done >= end { Break(()) } else { Continue(()) });
            let delivered = tree.nearest_batches(&points, 1, &options, &mut batches, |_| {
                num_batches += 1;
                Continue(())
            });
            let delivered = delivered.unwrap();
            assert_eq!((delivered.rows, delivered.is_complete), (end, end == 10));
            assert_eq!(delivered.batches, num_batches);
        }
    }
}

/// Returns handles of the GPUs of a list, which count their own allocations.
fn gpus(devices: Vec<Device>) -> impl Iterator<Item = Gpu> {
    devices.into_iter().filter_map(|device| Some(device.gpu()?.with_memory_limit(u64::MAX)))
}

#[test]
fn a_panic_of_the_callback_frees_all_memory() {
    let (points, options) = (line(30), QueryOptions::default());
    for device in devices_for(30) {
        let device =
            device.gpu().map_or(device.clone(), |gpu| Device::from_gpu(gpu.with_memory_limit(1 << 40)));
        let tree = build(&device, &points);
        let live_bytes = || device.gpu().map_or(0, |gpu| gpu.memory_use().live_bytes);
        let held = live_bytes();
        for at in 0..5 {
            let mut batches = Batches::new().rows(7);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                tree.within_batches(&points, 1.0, &options, &mut batches, |batch| {
                    assert!(batch.rows().start != 7 * at, "the panic of the callback");
                    Continue(())
                })
            }));
            assert!(caught.is_err());
            assert_eq!(live_bytes(), held, "panic in batch {at} on {device}");
            // Both are usable.
            let again = tree.within_batches(&points, 1.0, &options, &mut batches, |_| Continue(()));
            assert_eq!(again.unwrap().items, 3 * 30 - 2);
            drop(batches);
            assert_eq!(live_bytes(), held, "after batch {at} on {device}");
        }
    }
}

#[test]
fn a_second_call_allocates_nothing() {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // Each call allocates its regions there.
    }
    let (points, options) = (line(30), QueryOptions::default());
    for gpu in gpus(devices_for(30)) {
        let device = Device::from_gpu(gpu.clone());
        let tree = build(&device, &points);
        let held = gpu.memory_use().live_bytes;
        let mut batches = Batches::new().rows(4);
        let mut counts = Vec::new();
        for _ in 0..2 {
            let visit = |_: RowsBatch<'_, Neighbor<f32>>| Continue(());
            let delivered = tree.within_batches(&points, 2.0, &options, &mut batches, visit).unwrap();
            assert!(delivered.stats.temp_bytes > 0);
            assert_eq!(gpu.memory_use().live_bytes, held + delivered.stats.temp_bytes);
            counts.push(gpu.memory_use().allocations);
        }
        // The second call allocates nothing, so both counts are equal.
        assert_eq!(counts[0], counts[1], "on {device}");
        drop(batches);
        assert_eq!(gpu.memory_use().live_bytes, held);
    }
}

#[test]
fn batches_move_between_devices() {
    let (points, options) = (line(12), QueryOptions::default());
    let mut batches = Batches::new().rows(5);
    let devices = [devices_for(12), devices_for(12)].concat();
    for device in devices {
        let tree = build(&device, &points);
        let delivered = tree.within_batches(&points, 1.0, &options, &mut batches, |_| Continue(())).unwrap();
        assert_eq!(delivered.items, 3 * 12 - 2);
        assert_eq!(delivered.stats.device, device.to_string());
    }
}

#[test]
fn a_row_that_is_too_large_is_named_after_the_rows_before_it() {
    // One location with 9 points, all other points alone.
    let mut points = line(20);
    points[12] = [5.0];
    points.extend([[5.0]; 7]);
    let options = QueryOptions::default();
    for device in devices_for(27) {
        let tree = build(&device, &points);
        for rows in [1, 3, usize::MAX] {
            let mut batches = Batches::new().bytes(8 * 8).rows(rows);
            let mut end = 0;
            let visit = |batch: RowsBatch<'_, Neighbor<f32>>| {
                assert_eq!(batch.rows().start, end);
                end = batch.rows().end;
                Continue(())
            };
            let error = tree.within_batches(&points[..20], 0.5, &options, &mut batches, visit).unwrap_err();
            let Error::RowTooLarge { row, count, bytes, most } = error else { panic!("{error}") };
            assert_eq!((row, count, bytes, most), (5, 9, 72, 64), "on {device}");
            assert_eq!(end, 5, "on {device}");
            // A stop before the large row ends the call without an error.
            let stop = |batch: RowsBatch<'_, Neighbor<f32>>| {
                if batch.rows().end == 5 { Break(()) } else { Continue(()) }
            };
            let delivered = tree.within_batches(&points[..20], 0.5, &options, &mut batches, stop).unwrap();
            assert!(delivered.rows == 5 && !delivered.is_complete);
            // Results in boxes have no distances, so the row fits.
            let boxes: Vec<_> = points[..20].iter().map(|&point| [point; 2]).collect();
            let delivered = tree.in_boxes_batches(&boxes, None, &mut batches, |_| Continue(())).unwrap();
            assert_eq!(delivered.items, 18 + 2 * 9);
        }
        let mut batches = Batches::new().bytes(23);
        let error =
            tree.nearest_batches(&points, 3, &options, &mut batches, |_| panic!("no batch")).unwrap_err();
        assert!(matches!(error, Error::RowTooLarge { row: 0, count: 3, bytes: 24, most: 23 }), "{error}");
    }
}

#[test]
fn bad_queries_are_refused_before_any_batch() {
    let points = line(10);
    let mut bad = points.clone();
    bad[9] = [f32::NAN];
    for device in devices_for(10) {
        let tree = build(&device, &points);
        let (options, mut batches) = (QueryOptions::default(), Batches::new().rows(1));
        let error =
            tree.within_batches(&bad, 1.0, &options, &mut batches, |_| panic!("no batch")).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "query", index: 9, .. }), "{error}");
        let error =
            tree.nearest_batches(&bad, 1, &options, &mut batches, |_| panic!("no batch")).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "query", index: 9, .. }), "{error}");
        let far = options.clone().periods([5.0]);
        let error =
            tree.within_batches(&points, 1.0, &far, &mut batches, |_| panic!("no batch")).unwrap_err();
        assert!(matches!(error, Error::BeyondPeriod { index: 0, .. }), "{error}");
        let error =
            tree.within_batches(&points, -1.0, &options, &mut batches, |_| panic!("no batch")).unwrap_err();
        assert!(matches!(error, Error::InvalidLength { .. }), "{error}");
    }
}

/// Asserts that a result that exceeds device memory is refused with its size, and is delivered in batches.
fn too_large_for(gpu: &Gpu, num_points: usize) {
    let points = line(num_points);
    let radius = num_points as f32;
    let (count, options) = ((num_points * num_points) as u64, QueryOptions::default());
    // Half of the result fits.
    let plan =
        KdTree::<[f32; 1]>::plan(&Device::from_gpu(gpu.clone()), num_points, &KdTreeOptions::default());
    let gpu = gpu.with_memory_limit(plan.tree_bytes + plan.temp_bytes + 4 * count);
    let tree = build(&Device::from_gpu(gpu.clone()), &points);
    let held = gpu.memory_use().live_bytes;
    let error = tree.within(&points, radius, &options).unwrap_err();
    let Error::ResultTooLarge { count: found, bytes, memory: "device", free } = error else {
        panic!("{error}")
    };
    assert_eq!((found, bytes), (count, 8 * count));
    assert!(free < bytes);
    assert_eq!(gpu.memory_use().live_bytes, held);
    // Two batches on the device, two in pinned memory, and the queries.
    let mut batches = Batches::new().bytes(count / 2).rows(num_points / 8);
    let delivered = tree.within_batches(&points, radius, &options, &mut batches, |_| Continue(())).unwrap();
    assert!(delivered.is_complete && delivered.items == count);
}

#[test]
fn a_result_too_large_for_a_device_is_refused_with_its_size() {
    for gpu in gpus(devices()) {
        too_large_for(&gpu, 3000);
    }
    too_large_for(Device::sim(SimOptions::default()).unwrap().gpu().unwrap(), 200);
}

#[test]
fn random_limits_and_random_rows() {
    let mut random = Random::new(11);
    for device in devices() {
        for _ in 0..30 {
            let points = Shape::Clustered.points::<f32, 2>(500, random.bits());
            let others = queries(&points, 1 + random.below(700) as usize, random.bits());
            let tree = build(&device, &points);
            let radius = (random.unit() * 0.3) as f32;
            let expected = tree.within(&others, radius, &QueryOptions::default()).unwrap();
            let largest = expected.offsets().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap();
            let limits = Limits {
                bytes: 8 * (largest + random.below(3 * largest + 1)),
                rows: 1 + random.below(400) as usize,
            };
            let (asked, options) = (Queries::Points(&others[..]), QueryOptions::default());
            let (whole, delivered) = within(&tree, asked, radius, &options, limits).unwrap();
            assert!(whole.offsets == expected.offsets(), "{limits:?} on {device}");
            assert!(whole.ids == expected.ids() && whole.dist2 == expected.dist2(), "{limits:?} on {device}");
            whole.check(&delivered, "random");
        }
    }
}
