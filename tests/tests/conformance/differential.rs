//! Every index and join against loops over all points, on coordinates of the kinds that break indexes.
//!
//! Cases are drawn from seeds and shrink; what a failure says replays it. `KAURI_ATTACK=10000` goes on for hours, and with
//! `KAURI_SIM_ORDERS=0` on the CPU and a GPU alone.

mod indexes;
mod joins;
mod places;
mod quadtrees;

use kauri::Device;
use kauri_tests::nasty::{Case, Choice, Draw, Nasty, Outcome, attack};
use kauri_tests::{devices, devices_for};
use proptest::prelude::*;

/// Where cases run, and how much of each.
struct Run {
    devices: Vec<Device>,
    /// All calls with all their options, in place of one of each kind.
    is_thorough: bool,
}

impl Run {
    /// All of some options, or the one that is drawn.
    fn some<T: Copy>(&self, draw: &Draw, choice: Choice, among: &[T]) -> Vec<T> {
        if self.is_thorough { among.to_vec() } else { vec![draw.choose(choice, among)] }
    }
}

/// Attacks the devices of this machine with so many cases a seed, and the simulator with a small one a seed.
fn attack_everywhere(what: &str, cases: u32, check: &dyn Fn(&Run, &Draw) -> Outcome) {
    attack(what, cases, 120, &|draw| check(&Run { devices: devices(), is_thorough: true }, draw));
    let what = format!("{what}, simulated");
    attack(&what, 1, 20, &|draw| {
        let simulated = devices_for(0).split_off(devices().len());
        check(&Run { devices: simulated, is_thorough: false }, draw)
    });
}

/// What failed, with the case.
fn told<S: Nasty, const D: usize>(outcome: Outcome, case: &Case<S, D>) -> Outcome {
    outcome.map_err(|error| TestCaseError::fail(format!("{error}\n{case:?}")))
}
