//! Primitives, builds of k-d trees and queries are captured in a CUDA graph: after a first call they neither allocate nor wait.

use crate::{noise, on_cuda};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::primitives::operator::Sum;
use kauri::primitives::order::Ascending;
use kauri::primitives::predicate::Below;
use kauri::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use kauri::primitives::top_k::Best;
use kauri::primitives::{merge_sort, reduce, scan, select, top_k};
use kauri::query::{DeviceIndex, DeviceQueries, PreparedQuery, QueryOptions};
use kauri::{BalancedKdTree, BalancedOptions, KdTree, KdTreeOptions};
use std::ffi::c_void;
use std::ptr::null_mut;

// Functions of the driver that kauri does not call: the test plays a program with its own streams and graphs.
unsafe extern "C" {
    fn cuStreamCreate(stream: *mut *mut c_void, flags: u32) -> i32;
    fn cuStreamDestroy_v2(stream: *mut c_void) -> i32;
    fn cuStreamBeginCapture_v2(stream: *mut c_void, mode: u32) -> i32;
    fn cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) -> i32;
    fn cuGraphInstantiateWithFlags(run: *mut *mut c_void, graph: *mut c_void, flags: u64) -> i32;
    fn cuGraphLaunch(run: *mut c_void, stream: *mut c_void) -> i32;
    fn cuGraphExecDestroy(run: *mut c_void) -> i32;
    fn cuGraphDestroy(graph: *mut c_void) -> i32;
}

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other tests may allocate during the capture.
const THREAD_LOCAL_CAPTURE: u32 = 1;

fn ok(code: i32) {
    assert_eq!(code, 0, "the driver's result");
}

/// Work that can be captured.
trait Capturable {
    fn run(&mut self, stream: &Stream);
    /// Returns all results, concatenated.
    fn results(&self, stream: &Stream) -> Vec<u32>;
    /// Clears all results.
    fn clear(&mut self, stream: &Stream);
    /// Replaces the input.
    fn replace_input(&mut self, stream: &Stream);
}

/// Inputs, results and scratch memory of the primitives.
struct Primitives {
    keys: Buffer<u32>,
    ids: Buffer<u32>,
    sorted: Buffer<u32>,
    sorted_ids: Buffer<u32>,
    sums: Buffer<u32>,
    sum: Buffer<u32>,
    kept: Buffer<u32>,
    num_kept: Buffer<u64>,
    merged: Buffer<u32>,
    best: Buffer<u32>,
    best_ids: Buffer<u32>,
    workspace: Workspace,
}

impl Primitives {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let result = |len| Buffer::uninitialized(gpu, len, "result").unwrap();
        let ids: Vec<u32> = (0..n as u32).collect();
        Self {
            keys: Buffer::from_slice(stream, &noise(n, 7), "keys").unwrap(),
            ids: Buffer::from_slice(stream, &ids, "ids").unwrap(),
            sorted: result(n),
            sorted_ids: result(n),
            sums: result(n),
            sum: result(1),
            kept: result(n),
            num_kept: Buffer::uninitialized(gpu, 1, "number").unwrap(),
            merged: result(n),
            best: result(100),
            best_ids: result(100),
            workspace: Workspace::new(gpu),
        }
    }
}

impl Capturable for Primitives {
    fn run(&mut self, stream: &Stream) {
        let (keys, workspace) = (&self.keys, &mut self.workspace);
        let options = RadixSortOptions::default();
        sort_pairs(stream, workspace, keys, &self.ids, &mut self.sorted, &mut self.sorted_ids, &options)
            .unwrap();
        scan::inclusive::<u32, Sum>(stream, workspace, keys, &mut self.sums).unwrap();
        reduce::reduce::<u32, Sum>(stream, workspace, keys, &mut self.sum).unwrap();
        let below = 1 << 31;
        select::matching::<u32, Below>(stream, workspace, keys, below, &mut self.kept, &mut self.num_kept)
            .unwrap();
        merge_sort::sort_keys::<u32, Ascending>(stream, workspace, keys, &mut self.merged).unwrap();
        let (best, ids) = (&mut self.best, &mut self.best_ids);
        top_k::top_k(stream, workspace, keys, Best::Largest, best, ids).unwrap();
    }

    fn results(&self, stream: &Stream) -> Vec<u32> {
        let num_kept = self.num_kept.to_vec(stream).unwrap()[0] as usize;
        let mut kept = self.kept.to_vec(stream).unwrap();
        kept.truncate(num_kept);
        let others =
            [&self.sorted, &self.sorted_ids, &self.sums, &self.sum, &self.merged, &self.best, &self.best_ids];
        others.iter().map(|buffer| buffer.to_vec(stream).unwrap()).chain([kept]).flatten().collect()
    }

    fn clear(&mut self, stream: &Stream) {
        let results = [
            &mut self.sorted,
            &mut self.sorted_ids,
            &mut self.sums,
            &mut self.sum,
            &mut self.kept,
            &mut self.merged,
            &mut self.best,
            &mut self.best_ids,
        ];
        for buffer in results {
            buffer.fill_bytes(stream, 0).unwrap();
        }
        self.num_kept.fill_bytes(stream, 0).unwrap();
    }

    fn replace_input(&mut self, stream: &Stream) {
        self.keys.copy_from_slice(stream, &noise(self.keys.len(), 8)).unwrap();
    }
}

/// Points with coordinates below 2^24.
fn coordinates(n: usize, seed: u32) -> Vec<f32> {
    noise(3 * n, seed.into()).iter().map(|&x| (x >> 8) as f32).collect()
}

/// A tree that is rebuilt, and its nearest-neighbor queries.
struct NearestQueries {
    coords: Buffer<f32>,
    queries: Buffer<f32>,
    tree: KdTree<[f32; 3]>,
    prepared: PreparedQuery<[f32; 3]>,
    ids: Buffer<u32>,
    self_ids: Buffer<u32>,
    dist2: Buffer<f32>,
    self_dist2: Buffer<f32>,
    workspace: Workspace,
}

const K: usize = 5;

impl NearestQueries {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let coords = [1, 2].map(|seed| Buffer::from_slice(stream, &coordinates(n, seed), "points").unwrap());
        let mut workspace = Workspace::new(gpu);
        let tree = KdTree::build_on(stream, &mut workspace, &coords[0], &KdTreeOptions::default()).unwrap();
        let prepared = tree.prepare(stream, &QueryOptions::default()).unwrap();
        let [coords, queries] = coords;
        let ids = || Buffer::uninitialized(gpu, n * K, "ids").unwrap();
        let dist2 = || Buffer::uninitialized(gpu, n * K, "distances").unwrap();
        let (ids, self_ids, dist2, self_dist2) = (ids(), ids(), dist2(), dist2());
        Self { coords, queries, tree, prepared, ids, self_ids, dist2, self_dist2, workspace }
    }
}

impl Capturable for NearestQueries {
    fn run(&mut self, stream: &Stream) {
        let (tree, workspace, prepared) = (&mut self.tree, &mut self.workspace, &self.prepared);
        tree.rebuild_on(stream, workspace, &self.coords, &KdTreeOptions::default()).unwrap();
        let queries = DeviceQueries::Coordinates(&self.queries);
        tree.nearest_on(stream, workspace, queries, K, prepared, &mut self.ids, &mut self.dist2).unwrap();
        let self_query = DeviceQueries::SelfQuery { include_self: false };
        tree.nearest_on(stream, workspace, self_query, K, prepared, &mut self.self_ids, &mut self.self_dist2)
            .unwrap();
    }

    fn results(&self, stream: &Stream) -> Vec<u32> {
        let ids = [&self.ids, &self.self_ids].map(|ids| ids.to_vec(stream).unwrap()).into_iter().flatten();
        let dist2 = [&self.dist2, &self.self_dist2].map(|dist2| dist2.to_vec(stream).unwrap());
        ids.chain(dist2.into_iter().flatten().map(f32::to_bits)).collect()
    }

    fn clear(&mut self, stream: &Stream) {
        self.ids.fill_bytes(stream, 0).unwrap();
        self.self_ids.fill_bytes(stream, 0).unwrap();
        self.dist2.fill_bytes(stream, 0).unwrap();
        self.self_dist2.fill_bytes(stream, 0).unwrap();
    }

    fn replace_input(&mut self, stream: &Stream) {
        self.coords.copy_from_slice(stream, &coordinates(self.tree.len(), 3)).unwrap();
    }
}

/// Nearest-neighbor queries to a balanced tree, and a copy of its nodes. A rebuild waits for the device.
struct BalancedQueries {
    queries: Buffer<f32>,
    tree: BalancedKdTree<[f32; 3]>,
    prepared: PreparedQuery<[f32; 3]>,
    ids: Buffer<u32>,
    dist2: Buffer<f32>,
    medians: Buffer<u32>,
    workspace: Workspace,
}

impl BalancedQueries {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let [coords, queries] =
            [1, 2].map(|seed| Buffer::from_slice(stream, &coordinates(n, seed), "points").unwrap());
        let (mut workspace, options) = (Workspace::new(gpu), BalancedOptions::default());
        let tree = BalancedKdTree::build_on(stream, &mut workspace, &coords, &options).unwrap();
        let prepared = tree.prepare(stream, &QueryOptions::default()).unwrap();
        let ids = Buffer::uninitialized(gpu, n * K, "ids").unwrap();
        let dist2 = Buffer::uninitialized(gpu, n * K, "distances").unwrap();
        let medians = Buffer::uninitialized(gpu, (1 << tree.num_levels()) - 1, "medians").unwrap();
        Self { queries, tree, prepared, ids, dist2, medians, workspace }
    }
}

impl Capturable for BalancedQueries {
    fn run(&mut self, stream: &Stream) {
        let Self { queries, tree, prepared, ids, dist2, medians, workspace } = self;
        let queries = DeviceQueries::Coordinates(queries);
        tree.nearest_on(stream, workspace, queries, K, prepared, ids, dist2).unwrap();
        tree.medians_on(stream, medians).unwrap();
    }

    fn results(&self, stream: &Stream) -> Vec<u32> {
        let dist2 = self.dist2.to_vec(stream).unwrap().into_iter().map(f32::to_bits);
        let ids = [&self.ids, &self.medians].map(|ids| ids.to_vec(stream).unwrap());
        ids.into_iter().flatten().chain(dist2).collect()
    }

    fn clear(&mut self, stream: &Stream) {
        self.ids.fill_bytes(stream, 0).unwrap();
        self.medians.fill_bytes(stream, 0).unwrap();
        self.dist2.fill_bytes(stream, 0).unwrap();
    }

    fn replace_input(&mut self, stream: &Stream) {
        self.queries.copy_from_slice(stream, &coordinates(self.tree.len(), 3)).unwrap();
    }
}

/// A tree that is rebuilt, and its range queries.
struct RangeQueries {
    coords: Buffer<f32>,
    queries: Buffer<f32>,
    boxes: Buffer<f32>,
    tree: KdTree<[f32; 3]>,
    prepared: PreparedQuery<[f32; 3]>,
    counts: Buffer<u32>,
    within: Rows,
    self_query: Rows,
    in_boxes: Rows,
    workspace: Workspace,
}

/// Results of a range query, with a fixed capacity.
struct Rows {
    offsets: Buffer<u64>,
    ids: Buffer<u32>,
    dist2: Buffer<f32>,
}

impl Rows {
    fn new(gpu: &Gpu, num_rows: usize, capacity: usize) -> Self {
        Self {
            offsets: Buffer::uninitialized(gpu, num_rows + 1, "offsets").unwrap(),
            ids: Buffer::uninitialized(gpu, capacity, "ids").unwrap(),
            dist2: Buffer::uninitialized(gpu, capacity, "distances").unwrap(),
        }
    }
}

/// Average number of points that a query finds.
const HITS: f64 = 10.0;

impl RangeQueries {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let queries = coordinates(n, 2);
        // The side of a box, and the radius of a ball, with that many points.
        let side = (HITS / n as f64).cbrt() * f64::from(1 << 24);
        let radius = side * (0.75 / std::f64::consts::PI).cbrt();
        let corners = |query: &[f32]| {
            let (low, high) = (query.iter().copied(), query.iter().map(|x| x + side as f32));
            low.chain(high).collect::<Vec<f32>>()
        };
        let boxes: Vec<f32> = queries.chunks(3).flat_map(corners).collect();
        let coords = Buffer::from_slice(stream, &coordinates(n, 1), "points").unwrap();
        let mut workspace = Workspace::new(gpu);
        let tree = KdTree::build_on(stream, &mut workspace, &coords, &KdTreeOptions::default()).unwrap();
        let prepared = tree.prepare(stream, &QueryOptions::default().radius(radius as f32)).unwrap();
        // A capacity for all results, and one for less than half of them.
        let rows = |per_query| Rows::new(gpu, n, per_query * n);
        Self {
            coords,
            queries: Buffer::from_slice(stream, &queries, "queries").unwrap(),
            boxes: Buffer::from_slice(stream, &boxes, "boxes").unwrap(),
            tree,
            prepared,
            counts: Buffer::uninitialized(gpu, n, "counts").unwrap(),
            within: rows(20),
            self_query: rows(4),
            in_boxes: rows(20),
            workspace,
        }
    }

    fn rows(&mut self) -> [&mut Rows; 3] {
        [&mut self.within, &mut self.self_query, &mut self.in_boxes]
    }
}

impl Capturable for RangeQueries {
    fn run(&mut self, stream: &Stream) {
        let (tree, workspace, prepared) = (&mut self.tree, &mut self.workspace, &self.prepared);
        tree.rebuild_on(stream, workspace, &self.coords, &KdTreeOptions::default()).unwrap();
        let queries = DeviceQueries::Coordinates(&self.queries);
        tree.count_within_on(stream, workspace, queries, prepared, &mut self.counts).unwrap();
        let mut within = |queries, rows: &mut Rows| {
            let Rows { offsets, ids, dist2 } = rows;
            tree.within_on(stream, workspace, queries, prepared, offsets, ids, Some(dist2)).unwrap();
        };
        within(queries, &mut self.within);
        within(DeviceQueries::SelfQuery { include_self: false }, &mut self.self_query);
        let Rows { offsets, ids, .. } = &mut self.in_boxes;
        tree.in_boxes_on(stream, workspace, &self.boxes, prepared, offsets, ids).unwrap();
    }

    fn results(&self, stream: &Stream) -> Vec<u32> {
        let mut all = self.counts.to_vec(stream).unwrap();
        for Rows { offsets, ids, dist2 } in [&self.within, &self.self_query, &self.in_boxes] {
            all.extend(offsets.to_vec(stream).unwrap().iter().map(|&offset| offset as u32));
            all.extend(ids.to_vec(stream).unwrap());
            all.extend(dist2.to_vec(stream).unwrap().into_iter().map(f32::to_bits));
        }
        all
    }

    fn clear(&mut self, stream: &Stream) {
        self.counts.fill_bytes(stream, 0).unwrap();
        for Rows { offsets, ids, dist2 } in self.rows() {
            offsets.fill_bytes(stream, 0).unwrap();
            ids.fill_bytes(stream, 0).unwrap();
            dist2.fill_bytes(stream, 0).unwrap();
        }
    }

    fn replace_input(&mut self, stream: &Stream) {
        self.coords.copy_from_slice(stream, &coordinates(self.tree.len(), 3)).unwrap();
    }
}

#[test]
fn primitives_run_from_a_graph() {
    run_from_a_graph(&[1000, 300_001], Primitives::new);
}

#[test]
fn trees_are_built_and_queried_from_a_graph() {
    run_from_a_graph(&[500, 100_003], NearestQueries::new);
}

#[test]
fn balanced_trees_are_queried_from_a_graph() {
    run_from_a_graph(&[500, 100_003], BalancedQueries::new);
}

#[test]
fn range_queries_run_from_a_graph() {
    run_from_a_graph(&[500, 100_003], RangeQueries::new);
}

/// Captures work of several sizes, and compares the results of the graph with the results of direct work, also after the input
/// was replaced.
fn run_from_a_graph<C: Capturable>(sizes: &[usize], new: impl Fn(&Gpu, &Stream, usize) -> C) {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // in this mode every call allocates
    }
    on_cuda(|gpu, _| {
        for &n in sizes {
            let (mut raw, mut graph, mut run) = (null_mut(), null_mut(), null_mut());
            // SAFETY: the stream outlives its users; the context is current since the GPU was used on this thread.
            let stream = unsafe {
                Stream::new(gpu).unwrap().synchronize().unwrap();
                ok(cuStreamCreate(&mut raw, NON_BLOCKING));
                Stream::from_raw(gpu, raw)
            };
            let mut work = new(gpu, &stream, n);
            work.clear(&stream);
            // The first call loads the kernels and allocates the memory.
            work.run(&stream);
            let mut expected = work.results(&stream);

            // SAFETY: the buffers outlive the graph.
            unsafe {
                ok(cuStreamBeginCapture_v2(raw, THREAD_LOCAL_CAPTURE));
                work.run(&stream);
                ok(cuStreamEndCapture(raw, &mut graph));
                ok(cuGraphInstantiateWithFlags(&mut run, graph, 0));
            }
            for run_number in 0..4 {
                if run_number == 2 {
                    work.replace_input(&stream);
                    work.clear(&stream);
                    work.run(&stream);
                    let new_results = work.results(&stream);
                    assert!(new_results != expected, "{n} items");
                    expected = new_results;
                }
                work.clear(&stream);
                // SAFETY: as above.
                unsafe { ok(cuGraphLaunch(run, raw)) };
                assert!(work.results(&stream) == expected, "{n} items");
            }
            drop(work);
            drop(stream);
            // SAFETY: nothing uses them anymore.
            unsafe {
                ok(cuGraphExecDestroy(run));
                ok(cuGraphDestroy(graph));
                ok(cuStreamDestroy_v2(raw));
            }
        }
    });
}
