//! Every index and join against loops over all points, on coordinates of the kinds that break indexes.
//!
//! Cases are drawn from seeds and shrink; what a failure says replays it. `KAURI_ATTACK=1000` goes on for hours.

mod indexes;
mod joins;
mod places;
mod quadtrees;

use kauri::Device;
use kauri_tests::nasty::{Case, Draw, Nasty, Outcome, attack};
use kauri_tests::{devices, devices_for};
use proptest::prelude::*;

/// Where cases run, and how much of each.
struct Run {
    devices: Vec<Device>,
    /// All queries and all their options, in place of some.
    is_thorough: bool,
}

/// Attacks the devices of this machine with many cases, and the simulator with a few small ones.
fn attack_everywhere(what: &str, cases: u32, check: &dyn Fn(&Run, &Draw) -> Outcome) {
    attack(what, cases, 120, &|draw| check(&Run { devices: devices(), is_thorough: true }, draw));
    attack(what, 1, 24, &|draw| {
        let simulated = devices_for(0).split_off(devices().len());
        check(&Run { devices: simulated, is_thorough: false }, draw)
    });
}

/// What failed, with the case.
fn told<S: Nasty, const D: usize>(outcome: Outcome, case: &Case<S, D>) -> Outcome {
    outcome.map_err(|error| TestCaseError::fail(format!("{error}\n{case:?}")))
}
