//! A kernel that prints, in the simulator.

use cuda_sim::{LaunchSpec, Machine, MachineInfo, Options, SimError};
use cuda_std::kernel::Kernel;
use cuda_std::prelude::*;

/// Prints the squares of some threads.
#[kernel(block = 32)]
unsafe fn squares(every: u32) {
    let i = thread::index_1d();
    if i.is_multiple_of(every) {
        cuda_std::println!("{} squared is {}, half of it {}", i, i * i, f64::from(i * i) / 2.0);
    }
}

fn main() -> Result<(), SimError> {
    let machine = Machine::new(MachineInfo::default(), Options::default());
    // SAFETY: the kernel accesses no memory.
    let run = || unsafe { squares::call(&(15,)) };
    machine.launch(&LaunchSpec::new("squares", 2, 32, 0, &run))?;
    assert_eq!(machine.printed().len(), 5);
    Ok(())
}
