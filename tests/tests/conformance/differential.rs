//! Every index and join against loops over all points, on coordinates that break indexes.
//!
//! Cases are drawn from seeds and shrink; the message of a failure says how to replay it. `KAURI_ATTACK=10000` runs for hours;
//! `KAURI_SIM_ORDERS=0` leaves out the simulator.

mod indexes;
mod joins;
mod places;
mod quadtrees;

use kauri::Device;
use kauri_tests::nasty::{Case, Choice, Draw, Nasty, Outcome, attack};
use kauri_tests::{devices, devices_for};
use proptest::prelude::*;

/// The devices of a run, and how many calls each case makes.
struct Run {
    devices: Vec<Device>,
    /// True for all calls with all their options; otherwise each case makes one call of each kind.
    is_thorough: bool,
}

impl Run {
    /// Returns all of some options, or the drawn one.
    fn some<T: Copy>(&self, draw: &Draw, choice: Choice, among: &[T]) -> Vec<T> {
        if self.is_thorough { among.to_vec() } else { vec![draw.choose(choice, among)] }
    }
}

/// Attacks the devices of this machine with `cases` cases per seed, and the simulator with one small case per seed.
fn attack_everywhere(what: &str, cases: u32, check: &dyn Fn(&Run, &Draw) -> Outcome) {
    attack(what, cases, 120, &|draw| check(&Run { devices: devices(), is_thorough: true }, draw));
    let what = format!("{what}, simulated");
    attack(&what, 1, 20, &|draw| {
        let simulated = devices_for(0).split_off(devices().len());
        check(&Run { devices: simulated, is_thorough: false }, draw)
    });
}

/// Adds the case to the message of a failure.
fn with_case<S: Nasty, const D: usize>(outcome: Outcome, case: &Case<S, D>) -> Outcome {
    outcome.map_err(|error| TestCaseError::fail(format!("{error}\n{case:?}")))
}
