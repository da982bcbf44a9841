//! A gallery of wrong kernels, each with its correct twin: the wrong ones are caught under the standard schedules, with
//! the correct kind and location, and the correct ones pass under each of them.
//!
//! The kernels in `kernels` are also compiled to PTX: simulator and compiler must agree on the order of memory, on collectives and on
//! who shares memory.

// Kernels are unsafe as a whole; those here are wrong on purpose.
#![allow(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(clippy::if_same_then_else, clippy::manual_is_multiple_of)]

mod atomics;
mod barriers;
mod between_blocks;
mod harness;
mod hazards;
mod kernels;
mod memory;
mod prints;
mod progress;
mod ptx;
mod reports;
mod right_kernels;
mod warps;

use harness::Case;

fn all_cases() -> Vec<Case> {
    let cases = [
        barriers::cases(),
        warps::cases(),
        memory::cases(),
        between_blocks::cases(),
        progress::cases(),
        hazards::cases(),
    ];
    cases.concat()
}

#[test]
fn every_wrong_kernel_is_caught() {
    let cases = all_cases();
    assert!(cases.len() >= 25, "{} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|c| c.wrong_is_caught().err()).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

#[test]
fn every_right_twin_passes() {
    let failures: Vec<String> = all_cases().iter().filter_map(|c| c.right_passes().err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
