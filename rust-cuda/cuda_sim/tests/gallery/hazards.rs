//! A corpus of known miscompilations and hazards, each in PTX and in the simulator: see `kernels/hazards.rs`.

use crate::harness::{Case, Device, error, source};
use crate::kernels::hazards::*;
use crate::ptx::{Ptx, ptx};
use cuda_builder::lint::Rule;
use cuda_sim::SimError;
use cuda_std::prelude::*;
use cuda_std::shared::SharedSlice;
use cuda_std::warp;

const BLOCKS: usize = 8;
const CHOSEN: u32 = 1;

/// The form that jump threading gives [`hazard_barriers`]: the first thread waits at another barrier than the rest.
#[kernel(block = N)]
unsafe fn duplicated_barrier(out: SliceMut<u32>) {
    let tile = shared_array![u32; 2];
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    if t == 0 {
        tile.store(0, 7);
        thread::sync_threads(); // ! duplicated barrier
        tile.store(1, tile.load(0) * 3);
    } else {
        thread::sync_threads(); // ! duplicated barrier
    }
    thread::sync_threads();
    out.store(i, tile.load(0) + tile.load(1));
}

/// The form that sinking gives [`hazard_collectives`]: only the lanes with the chosen key take part in the match.
#[kernel(block = N)]
unsafe fn sunk_match(keys: Slice<u32>, peers: SliceMut<u32>, chosen: u32) {
    let i = thread::index_1d() as usize;
    let key = keys.load(i);
    if key == chosen {
        let same = warp::warp_match_any(warp::FULL_MASK, key); // ! sunk match
        peers.store(i, same);
    }
}

/// [`hazard_shared`] with one tile for all blocks.
#[kernel(block = 2)]
unsafe fn tile_of_all_blocks(tile: SliceMut<u32>, out: SliceMut<u32>) {
    let (t, b) = (thread::thread_idx_x() as usize, thread::block_idx_x());
    tile.store(t, b); // ! tile of all blocks
    thread::sync_threads();
    out.store(thread::index_1d() as usize, tile.load(1 - t)); // ! tile of all blocks
}

/// Reads the shared memory of the block before through its address.
#[kernel(block = 2)]
unsafe fn other_blocks_memory(addresses: SliceMut<u64>, out: SliceMut<u32>) {
    let tile = shared_array![u32; 2];
    let (t, b) = (thread::thread_idx_x() as usize, thread::block_idx_x());
    tile.store(t, b);
    thread::sync_threads();
    if t != 0 {
        return;
    }
    let order = addresses.atomic_add(BLOCKS, 1, Ordering::Relaxed, Scope::Device) as usize;
    addresses.atomic_store(order, tile.as_raw_ptr() as u64, Ordering::Release, Scope::Device);
    if order > 0 {
        let address = loop {
            let address = addresses.atomic_load(order - 1, Ordering::Acquire, Scope::Device);
            if address != 0 {
                break address;
            }
            thread::spin_hint();
        };
        let others = SharedSlice::<u32>::from_raw_parts(address as *mut u32, 2);
        out.store(b as usize, others.load(0)); // ! other block's memory
    }
}

fn keys() -> Vec<u32> {
    (0..N as u32).map(|i| i * i % 7 % 4).collect()
}

fn shared_values() -> Vec<u32> {
    (0..2 * BLOCKS as u32).map(|i| i / 2).collect()
}

fn shared(device: &Device) -> Result<Vec<u32>, SimError> {
    let out = device.fresh::<u32>(2 * BLOCKS);
    device.launch::<hazard_shared>(BLOCKS as u32, (out.slice_mut(),))?;
    device.read(out)
}

pub(crate) fn cases() -> Vec<Case> {
    let source = source!("hazards.rs");
    vec![
        Case {
            name: "duplicated barrier",
            caught_as: error!(BarrierMismatch),
            always: true,
            wrong: |d| {
                let out = d.fresh::<u32>(N);
                d.launch::<duplicated_barrier>(1, (out.slice_mut(),))?;
                d.read(out)
            },
            right: |d| {
                let out = d.fresh::<u32>(N);
                d.launch::<hazard_barriers>(1, (out.slice_mut(),))?;
                d.read(out)
            },
            values: || vec![28; N],
            source,
        },
        Case {
            name: "sunk match",
            caught_as: error!(Deadlock | ExitedLane),
            always: true,
            wrong: |d| {
                let peers = d.zeros(N);
                d.launch::<sunk_match>(1, (d.array(&keys()).slice(), peers.slice_mut(), CHOSEN))?;
                d.read(peers)
            },
            right: |d| {
                let (peers, active) = (d.zeros(N), d.fresh::<u32>(N));
                let args = (d.array(&keys()).slice(), peers.slice_mut(), active.slice_mut(), CHOSEN);
                d.launch::<hazard_collectives>(1, args)?;
                // The simulator returns any lanes that could run with the caller.
                let is_active = |(i, lanes): (usize, u32)| lanes >> (i % 32) & 1 != 0;
                assert!(d.read::<u32>(active)?.into_iter().enumerate().all(is_active));
                d.read(peers)
            },
            values: || {
                let keys = keys();
                let peers =
                    |i: usize| (0..32).filter(|l| keys[i / 32 * 32 + l] == CHOSEN).fold(0, |m, l| m | 1 << l);
                (0..N).map(|i| if keys[i] == CHOSEN { peers(i) } else { 0 }).collect()
            },
            source,
        },
        Case {
            name: "tile of all blocks",
            caught_as: error!(Race),
            always: true,
            wrong: |d| {
                let (tile, out) = (d.fresh::<u32>(2), d.fresh::<u32>(2 * BLOCKS));
                d.launch::<tile_of_all_blocks>(BLOCKS as u32, (tile.slice_mut(), out.slice_mut()))?;
                d.read(out)
            },
            right: shared,
            values: shared_values,
            source,
        },
        Case {
            name: "other block's memory",
            caught_as: error!(BadAddress),
            // A block that runs in the place of one that has ended has the same address.
            always: false,
            wrong: |d| {
                let (addresses, out) = (d.array(&[0u64; BLOCKS + 1]), d.zeros(BLOCKS));
                d.launch::<other_blocks_memory>(BLOCKS as u32, (addresses.slice_mut(), out.slice_mut()))?;
                d.read(out)
            },
            right: shared,
            values: shared_values,
            source,
        },
    ]
}

/// Returns the position of the first conditional branch, and the positions of an opcode, among a kernel's instructions.
fn branch_and(ptx: &Ptx, kernel: &str, opcode: &str) -> (Option<usize>, Vec<usize>) {
    ptx.with(kernel, |function| {
        let positions = |is: &dyn Fn(&str) -> bool| {
            let found = function.instructions.iter().enumerate().filter(|(_, i)| is(i.opcode));
            found.map(|(position, _)| position).collect::<Vec<_>>()
        };
        let branches = positions(&|other| other == "bra");
        (branches.first().copied(), positions(&|other| other.starts_with(opcode)))
    })
}

fn barriers_are_in_place(ptx: &Ptx, kernel: &str) -> bool {
    let (_, barriers) = branch_and(ptx, kernel, "bar");
    let is_copied = ptx.findings_in(kernel).iter().any(|finding| finding.rule == Rule::DuplicatedCollective);
    barriers.len() == 2 && !is_copied
}

/// One match, before the branch that uses its result, and an activemask in each branch.
fn collectives_are_in_place(ptx: &Ptx, kernel: &str) -> bool {
    let (branch, matches) = branch_and(ptx, kernel, "match.any.sync");
    let (_, masks) = branch_and(ptx, kernel, "activemask");
    matches.len() == 1 && branch.is_some_and(|branch| matches[0] < branch) && masks.len() == 2
}

/// A store and a load of shared memory with the barrier between them; global memory only for the result.
fn tile_is_the_blocks_own(ptx: &Ptx, kernel: &str) -> bool {
    let accesses = ptx.opcodes(kernel, &["ld", "st", "bar"]);
    let names: Vec<String> = accesses
        .iter()
        .filter(|opcode| !opcode.starts_with("ld.param"))
        .map(|opcode| opcode.split('.').take(2).collect::<Vec<_>>().join("."))
        .collect();
    let in_shared = ptx.with(kernel, |function| {
        let words = function.instructions.iter().flat_map(|i| i.operands.split([' ', ',', '[', ']', '+']));
        let spaces: Vec<&str> = words.filter_map(|word| ptx.space_of(word)).collect();
        !spaces.is_empty() && spaces.iter().all(|space| *space == ".shared")
    });
    names == ["st.shared", "bar.sync", "ld.shared", "st.global"] && in_shared
}

#[test]
fn ptx_keeps_barriers_collectives_and_tiles() {
    let Some(ptx) = ptx() else { return };
    assert!(barriers_are_in_place(ptx, "hazard_barriers"));
    assert!(collectives_are_in_place(ptx, "hazard_collectives"));
    assert!(tile_is_the_blocks_own(ptx, "hazard_shared"));
    let clean = ["hazard_barriers", "hazard_collectives", "hazard_shared"];
    assert!(clean.iter().all(|kernel| ptx.findings_in(kernel).is_empty()), "{:#?}", ptx.findings);
}

/// This compiler does break the forms that avoid the library: the checks above are able to fail.
#[test]
fn ptx_of_the_broken_forms_is_noticed() {
    let Some(ptx) = ptx() else { return };
    assert!(!barriers_are_in_place(ptx, "broken_barriers"));
    assert!(!collectives_are_in_place(ptx, "broken_collectives"));
    assert!(!tile_is_the_blocks_own(ptx, "broken_shared"));
}
