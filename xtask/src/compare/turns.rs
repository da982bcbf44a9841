//! Turns: the suites of several variants run on threads of their own, and only one of them at a time. Run `i` of a measurement takes place
//! in each variant before run `i + 1` in any; the order of the variants alternates, so that a drift of the clock meets all of them.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A point in a suite at which it waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The number of the measurement.
    pub(super) measurement: u64,
    pub(super) phase: Phase,
    /// The number of the run in its phase.
    pub(super) run: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Before the first measurement.
    Begin,
    WarmUp,
    Run,
    End,
}

impl Position {
    pub(super) const BEGIN: Self = Self { measurement: 0, phase: Phase::Begin, run: 0 };
}

pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// For each variant the position at which it waits; `None` while it runs.
    waiting: Vec<Option<Position>>,
    has_ended: Vec<bool>,
    turn: Option<usize>,
    /// Whether a run takes place, for all variants as the first one decided.
    decisions: BTreeMap<Position, bool>,
}

impl Turns {
    pub(super) fn new(num_variants: usize) -> Self {
        let (waiting, has_ended) = (vec![None; num_variants], vec![false; num_variants]);
        let state = State { waiting, has_ended, turn: None, decisions: BTreeMap::new() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is the variant's turn. Returns the decision of the first variant that came to this position.
    pub(super) fn wait(&self, variant: usize, position: Position, wants: bool) -> bool {
        let mut state = self.lock();
        state.waiting[variant] = Some(position);
        state.pass_on(variant);
        self.changed.notify_all();
        let must_wait = |state: &mut State| state.turn != Some(variant);
        let mut state = self.changed.wait_while(state, must_wait).unwrap_or_else(PoisonError::into_inner);
        state.waiting[variant] = None;
        *state.decisions.entry(position).or_insert(wants)
    }

    /// Ends a variant, so that no other one waits for it.
    pub(super) fn end(&self, variant: usize) {
        let mut state = self.lock();
        state.has_ended[variant] = true;
        state.pass_on(variant);
        self.changed.notify_all();
    }
}

impl State {
    /// Gives the turn of `variant` to the variant that is furthest behind, once all others wait.
    fn pass_on(&mut self, variant: usize) {
        let has_turn = self.turn.is_none_or(|turn| turn == variant);
        let all_wait = self.waiting.iter().zip(&self.has_ended).all(|(at, ended)| *ended || at.is_some());
        if !has_turn || !all_wait {
            return;
        }
        let last = self.waiting.len() - 1;
        let waiting = self.waiting.iter().enumerate().filter(|(i, _)| !self.has_ended[*i]);
        let next = waiting.filter_map(|(i, at)| Some((i, (*at)?)));
        // In odd rounds the last variant is the first one.
        let order = |&(i, at): &(usize, Position)| (at, if at.run % 2 == 0 { i } else { last - i });
        self.turn = next.min_by_key(order).map(|(i, _)| i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Runs suites with these numbers of measurements and runs, and returns the order of their runs: variant, measurement, run.
    fn order(suites: &[(u64, u64)]) -> Vec<(usize, u64, u64)> {
        let (turns, log) = (Turns::new(suites.len()), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for (variant, &(measurements, runs)) in suites.iter().enumerate() {
                let (turns, log) = (&turns, &log);
                scope.spawn(move || {
                    turns.wait(variant, Position::BEGIN, false);
                    for measurement in 0..measurements {
                        let mut run = 0;
                        let at = |phase, run| Position { measurement, phase, run };
                        while turns.wait(variant, at(Phase::Run, run), run < runs) {
                            log.lock().unwrap().push((variant, measurement, run));
                            run += 1;
                        }
                        turns.wait(variant, at(Phase::End, 0), false);
                    }
                    turns.end(variant);
                });
            }
        });
        log.into_inner().unwrap()
    }

    #[test]
    fn runs_alternate() {
        let expected =
            [(0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1)];
        assert_eq!(order(&[(2, 2), (2, 2)]), expected);
        let rounds = order(&[(1, 2); 3]);
        assert_eq!(rounds.iter().map(|run| run.0).collect::<Vec<_>>(), [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn the_first_variant_decides_about_the_number_of_runs() {
        // The first one to come to the third run is variant 0, which has two.
        let runs = order(&[(1, 2), (1, 5)]);
        assert_eq!(runs.iter().filter(|run| run.0 == 1).count(), 2);
    }

    #[test]
    fn nobody_waits_for_a_variant_that_has_ended() {
        let runs = order(&[(1, 2), (3, 2)]);
        assert_eq!(runs.len(), 2 + 6);
        assert!(order(&[(0, 0), (0, 0)]).is_empty());
    }
}
