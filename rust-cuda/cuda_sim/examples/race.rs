//! A kernel without the barrier that it needs, and the simulator's report.

use cuda_sim::{Kind, LaunchSpec, Machine, MachineInfo, Options, SimError};
use cuda_std::kernel::Kernel;
use cuda_std::prelude::*;

/// Passes each thread's index to its neighbor.
#[kernel(block = 64)]
unsafe fn rotate(out: SliceMut<u32>) {
    let tile = shared_array![u32; 64];
    let t = thread::thread_idx_x() as usize;
    // SAFETY: there are 64 threads, elements of the tile and results. But nothing orders the store and the load.
    unsafe {
        tile.store(t, t as u32);
        out.store(t, tile.load((t + 1) % 64));
    }
}

fn main() -> Result<(), SimError> {
    let machine = Machine::new(MachineInfo::default(), Options::default());
    let out = machine.alloc(256, "out")?;
    // SAFETY: 64 words of the machine's memory.
    let args = (unsafe { SliceMut::<u32>::from_raw_parts(out as *mut u32, 64) },);
    // SAFETY: the machine calls this with a simulator in place.
    let run = || unsafe { rotate::call(&args) };
    let error = machine.launch(&LaunchSpec::new("rotate", 1, 64, 0, &run)).expect_err("a barrier is missing");
    assert!(matches!(error.kind(), Kind::Race { .. }));
    println!("{error}");
    Ok(())
}
