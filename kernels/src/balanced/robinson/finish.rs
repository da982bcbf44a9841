//! The last nodes: runs of one to three points, one thread per run (Robinson).

use super::Nodes;
use crate::balanced::Run;
use crate::policy::PER_ITEM_THREADS;
use cuda_std::prelude::*;

/// Writes the nodes of every run of a level. `primary` is sorted on the split axis of the level. One thread per run.
#[kernel(family = "research-balanced", block = PER_ITEM_THREADS)]
pub unsafe fn balanced_finish_runs(primary: Slice<u32>, level: u32, nodes: Nodes<'_>) {
    let address = thread::index_1d_u64() as u32;
    if address >> level == 0 {
        let run = Run::of(address, level, primary.len() as u32);
        nodes.store(level, address, primary.load(run.median() as usize));
        if run.len > 1 {
            nodes.store(level + 1, 2 * address + 1, primary.load(run.median() as usize + 1));
        }
        if run.len > 2 {
            nodes.store(level + 1, 2 * address, primary.load(run.begin as usize));
        }
    }
}
