//! Primitives captured in a CUDA graph: after a first call there is nothing in them that a graph could not hold.

use crate::{noise, on_cuda};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::primitives::operator::Sum;
use kauri::primitives::order::Ascending;
use kauri::primitives::predicate::Below;
use kauri::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use kauri::primitives::top_k::Best;
use kauri::primitives::{merge_sort, reduce, scan, select, top_k};
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

    /// All results, one behind the other.
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
}

#[test]
fn primitives_run_from_a_graph() {
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // every call allocates
    }
    on_cuda(|gpu, _| {
        for n in [1000, 300_001] {
            let (mut raw, mut graph, mut run) = (null_mut(), null_mut(), null_mut());
            // SAFETY: a stream that outlives all that uses it; the context is current since the GPU was used on this thread.
            let stream = unsafe {
                Stream::new(gpu).unwrap().synchronize().unwrap();
                ok(cuStreamCreate(&mut raw, NON_BLOCKING));
                Stream::from_raw(gpu, raw)
            };
            let mut calls = Calls::new(gpu, &stream, n);
            // Loads the kernels, and takes the memory.
            calls.run(&stream);
            let expected = calls.results(&stream);

            // SAFETY: the buffers are alive while the graph is.
            unsafe {
                ok(cuStreamBeginCapture_v2(raw, OF_THIS_THREAD));
                calls.run(&stream);
                ok(cuStreamEndCapture(raw, &mut graph));
                ok(cuGraphInstantiateWithFlags(&mut run, graph, 0));
            }
            for _ in 0..3 {
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
