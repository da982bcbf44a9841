//! Primitives, and k-d trees with queries, captured in a CUDA graph: after a first call there is nothing in them that a graph could not hold.

use crate::{noise, on_cuda};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::primitives::operator::Sum;
use kauri::primitives::order::Ascending;
use kauri::primitives::predicate::Below;
use kauri::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use kauri::primitives::top_k::Best;
use kauri::primitives::{merge_sort, reduce, scan, select, top_k};
use kauri::query::{DeviceQueries, PreparedQuery, QueryOptions};
use kauri::{KdTree, KdTreeOptions};
use std::ffi::c_void;
use std::ptr::null_mut;

// Of the driver, whose streams a caller may bring along.
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
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other tests may allocate meanwhile.
const OF_THIS_THREAD: u32 = 1;

fn ok(code: i32) {
    assert_eq!(code, 0, "the driver's result");
}

/// Calls that can be captured.
trait Captured {
    fn run(&mut self, stream: &Stream);
    /// All results, one behind the other.
    fn results(&self, stream: &Stream) -> Vec<u32>;
    /// Clears all results.
    fn forget(&mut self, stream: &Stream);
    /// Puts other input in the place of what there was.
    fn change(&mut self, stream: &Stream);
}

/// Inputs, room for results, and temporary memory.
struct Calls {
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

impl Calls {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let room = |len| Buffer::uninitialized(gpu, len, "room").unwrap();
        let ids: Vec<u32> = (0..n as u32).collect();
        Self {
            keys: Buffer::from_slice(stream, &noise(n, 7), "keys").unwrap(),
            ids: Buffer::from_slice(stream, &ids, "ids").unwrap(),
            sorted: room(n),
            sorted_ids: room(n),
            sums: room(n),
            sum: room(1),
            kept: room(n),
            num_kept: Buffer::uninitialized(gpu, 1, "number").unwrap(),
            merged: room(n),
            best: room(100),
            best_ids: room(100),
            workspace: Workspace::new(gpu),
        }
    }
}

impl Captured for Calls {
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

    fn forget(&mut self, stream: &Stream) {
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

    fn change(&mut self, stream: &Stream) {
        self.keys.copy_from_slice(stream, &noise(self.keys.len(), 8)).unwrap();
    }
}

/// Points with coordinates below 2^24.
fn coordinates(n: usize, seed: u32) -> Vec<f32> {
    noise(3 * n, seed).iter().map(|&x| (x >> 8) as f32).collect()
}

/// A tree that is built anew, and its queries.
struct Tree {
    coords: Buffer<f32>,
    queries: Buffer<f32>,
    tree: KdTree<[f32; 3]>,
    prepared: PreparedQuery<[f32; 3]>,
    ids: Buffer<u32>,
    own_ids: Buffer<u32>,
    dist2: Buffer<f32>,
    own_dist2: Buffer<f32>,
    workspace: Workspace,
}

const K: usize = 5;

impl Tree {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let coords = [1, 2].map(|seed| Buffer::from_slice(stream, &coordinates(n, seed), "points").unwrap());
        let mut workspace = Workspace::new(gpu);
        let tree = KdTree::build_on(stream, &mut workspace, &coords[0], &KdTreeOptions::default()).unwrap();
        let prepared = tree.prepare(stream, &QueryOptions::default()).unwrap();
        let [coords, queries] = coords;
        let ids = || Buffer::uninitialized(gpu, n * K, "ids").unwrap();
        let dist2 = || Buffer::uninitialized(gpu, n * K, "distances").unwrap();
        let (ids, own_ids, dist2, own_dist2) = (ids(), ids(), dist2(), dist2());
        Self { coords, queries, tree, prepared, ids, own_ids, dist2, own_dist2, workspace }
    }
}

impl Captured for Tree {
    fn run(&mut self, stream: &Stream) {
        let (tree, workspace, prepared) = (&mut self.tree, &mut self.workspace, &self.prepared);
        tree.rebuild_on(stream, workspace, &self.coords, &KdTreeOptions::default()).unwrap();
        let given = DeviceQueries::Coordinates(&self.queries);
        tree.nearest_on(stream, workspace, given, K, prepared, &mut self.ids, &mut self.dist2).unwrap();
        let own = DeviceQueries::SelfQuery { include_self: false };
        tree.nearest_on(stream, workspace, own, K, prepared, &mut self.own_ids, &mut self.own_dist2).unwrap();
    }

    fn results(&self, stream: &Stream) -> Vec<u32> {
        let ids = [&self.ids, &self.own_ids].map(|ids| ids.to_vec(stream).unwrap()).into_iter().flatten();
        let dist2 = [&self.dist2, &self.own_dist2].map(|dist2| dist2.to_vec(stream).unwrap());
        ids.chain(dist2.into_iter().flatten().map(f32::to_bits)).collect()
    }

    fn forget(&mut self, stream: &Stream) {
        self.ids.fill_bytes(stream, 0).unwrap();
        self.own_ids.fill_bytes(stream, 0).unwrap();
        self.dist2.fill_bytes(stream, 0).unwrap();
        self.own_dist2.fill_bytes(stream, 0).unwrap();
    }

    fn change(&mut self, stream: &Stream) {
        self.coords.copy_from_slice(stream, &coordinates(self.tree.len(), 3)).unwrap();
    }
}

/// A tree that is built anew, and the points that it has within a distance and in boxes.
struct Found {
    coords: Buffer<f32>,
    queries: Buffer<f32>,
    boxes: Buffer<f32>,
    tree: KdTree<[f32; 3]>,
    prepared: PreparedQuery<[f32; 3]>,
    counts: Buffer<u32>,
    within: Rows,
    own: Rows,
    in_boxes: Rows,
    workspace: Workspace,
}

/// Room for points found.
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

/// Points that a query finds on average.
const HITS: f64 = 10.0;

impl Found {
    fn new(gpu: &Gpu, stream: &Stream, n: usize) -> Self {
        let queries = coordinates(n, 2);
        // The side of a box, and the radius of a ball, of as many points.
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
        // Room for all, and for less than half of them.
        let rows = |per_query| Rows::new(gpu, n, per_query * n);
        Self {
            coords,
            queries: Buffer::from_slice(stream, &queries, "queries").unwrap(),
            boxes: Buffer::from_slice(stream, &boxes, "boxes").unwrap(),
            tree,
            prepared,
            counts: Buffer::uninitialized(gpu, n, "counts").unwrap(),
            within: rows(20),
            own: rows(4),
            in_boxes: rows(20),
            workspace,
        }
    }

    fn rows(&mut self) -> [&mut Rows; 3] {
        [&mut self.within, &mut self.own, &mut self.in_boxes]
    }
}

impl Captured for Found {
    fn run(&mut self, stream: &Stream) {
        let (tree, workspace, prepared) = (&mut self.tree, &mut self.workspace, &self.prepared);
        tree.rebuild_on(stream, workspace, &self.coords, &KdTreeOptions::default()).unwrap();
        let given = DeviceQueries::Coordinates(&self.queries);
        tree.count_within_on(stream, workspace, given, prepared, &mut self.counts).unwrap();
        let mut within = |queries, rows: &mut Rows| {
            let Rows { offsets, ids, dist2 } = rows;
            tree.within_on(stream, workspace, queries, prepared, offsets, ids, Some(dist2)).unwrap();
        };
        within(given, &mut self.within);
        within(DeviceQueries::SelfQuery { include_self: false }, &mut self.own);
        let Rows { offsets, ids, .. } = &mut self.in_boxes;
        tree.in_boxes_on(stream, workspace, &self.boxes, prepared, offsets, ids).unwrap();
    }

    fn results(&self, stream: &Stream) -> Vec<u32> {
        let mut all = self.counts.to_vec(stream).unwrap();
        for Rows { offsets, ids, dist2 } in [&self.within, &self.own, &self.in_boxes] {
            all.extend(offsets.to_vec(stream).unwrap().iter().map(|&offset| offset as u32));
            all.extend(ids.to_vec(stream).unwrap());
            all.extend(dist2.to_vec(stream).unwrap().into_iter().map(f32::to_bits));
        }
        all
    }

    fn forget(&mut self, stream: &Stream) {
        self.counts.fill_bytes(stream, 0).unwrap();
        for Rows { offsets, ids, dist2 } in self.rows() {
            offsets.fill_bytes(stream, 0).unwrap();
            ids.fill_bytes(stream, 0).unwrap();
            dist2.fill_bytes(stream, 0).unwrap();
        }
    }

    fn change(&mut self, stream: &Stream) {
        self.coords.copy_from_slice(stream, &coordinates(self.tree.len(), 3)).unwrap();
    }
}

#[test]
fn primitives_run_from_a_graph() {
    run_from_a_graph(&[1000, 300_001], Calls::new);
}

#[test]
fn trees_are_built_and_asked_from_a_graph() {
    run_from_a_graph(&[500, 100_003], Tree::new);
}

#[test]
fn points_are_found_from_a_graph() {
    run_from_a_graph(&[500, 100_003], Found::new);
}

/// Captures calls of several sizes, and compares what their graphs write with what they wrote themselves, also of other input
/// than there was when they were captured.
fn run_from_a_graph<C: Captured>(sizes: &[usize], new: impl Fn(&Gpu, &Stream, usize) -> C) {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // every call allocates
    }
    on_cuda(|gpu, _| {
        for &n in sizes {
            let (mut raw, mut graph, mut run) = (null_mut(), null_mut(), null_mut());
            // SAFETY: a stream that outlives all that uses it; the context is current since the GPU was used on this thread.
            let stream = unsafe {
                Stream::new(gpu).unwrap().synchronize().unwrap();
                ok(cuStreamCreate(&mut raw, NON_BLOCKING));
                Stream::from_raw(gpu, raw)
            };
            let mut calls = new(gpu, &stream, n);
            calls.forget(&stream);
            // Loads the kernels, and takes the memory.
            calls.run(&stream);
            let mut expected = calls.results(&stream);

            // SAFETY: the buffers are alive while the graph is.
            unsafe {
                ok(cuStreamBeginCapture_v2(raw, OF_THIS_THREAD));
                calls.run(&stream);
                ok(cuStreamEndCapture(raw, &mut graph));
                ok(cuGraphInstantiateWithFlags(&mut run, graph, 0));
            }
            for run_number in 0..4 {
                if run_number == 2 {
                    calls.change(&stream);
                    calls.forget(&stream);
                    calls.run(&stream);
                    let of_others = calls.results(&stream);
                    assert!(of_others != expected, "{n} items");
                    expected = of_others;
                }
                calls.forget(&stream);
                // SAFETY: as above.
                unsafe { ok(cuGraphLaunch(run, raw)) };
                assert!(calls.results(&stream) == expected, "{n} items");
            }
            drop(calls);
            drop(stream);
            // SAFETY: nothing uses them any more.
            unsafe {
                ok(cuGraphExecDestroy(run));
                ok(cuGraphDestroy(graph));
                ok(cuStreamDestroy_v2(raw));
            }
        }
    });
}
