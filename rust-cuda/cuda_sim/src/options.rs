//! How a launch is simulated: schedule, checks, limits. These options determine a launch completely, so seed and order
//! replay it.

use std::fmt;
use std::str::FromStr;

/// How launches are simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Order of runnable threads.
    pub order: Order,
    /// Seed of all random choices.
    pub seed: u64,
    /// Blocks that are on the device at the same time.
    pub resident: Resident,
    /// Optional checks.
    pub checks: Checks,
    /// Delays plain and relaxed stores to global memory for other blocks as long as the memory model allows.
    pub delay_stores: bool,
    /// Accesses and suspensions after which a launch counts as hung.
    pub step_budget: u64,
}

/// Order in which runnable threads run. Each runs until it waits for others or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lowest runnable thread.
    Ascending,
    /// The highest runnable thread.
    Descending,
    /// A random thread; threads are also preempted at atomic operations.
    Random,
    /// A random warp, its lanes in order; threads are also preempted at atomic operations.
    WarpShuffled,
    /// Random priorities that change at a few random accesses; finds bugs that need few preemptions (PCT, Burckhardt et
    /// al., ASPLOS 2010).
    FewPreemptions {
        /// Number of accesses at which the running thread drops to the lowest priority.
        changes: u32,
    },
}

/// Blocks that run at the same time. A real device only guarantees that started blocks make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Number of resident blocks, limited to 4096 threads in total; the next block starts when one ends.
    pub blocks: usize,
    /// Order in which blocks start.
    pub start: Start,
}

/// Order in which blocks start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Block 0 first, as hardware mostly does.
    InOrder,
    /// A random block.
    Random,
    /// The highest first. Hangs every kernel that waits for a block of lower index without making sure that it runs.
    LowestLast,
}

/// Optional checks. Barriers, warp operations, bounds and progress are always checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Unordered accesses to the same bytes of which one writes; atomics whose scope is too narrow; read-only loads of
    /// memory that the launch writes.
    pub races: bool,
    /// Reads of unwritten bytes by kernels.
    pub uninitialized: bool,
    /// Reads of unwritten bytes by the host.
    pub host_reads: bool,
    /// Distinguishes calls of one barrier or warp operation by their whole call chain, not only by the calling line. Slow.
    pub call_chains: bool,
}

impl Checks {
    /// No optional checks.
    pub const fn none() -> Self {
        Self { races: false, uninitialized: false, host_reads: false, call_chains: false }
    }

    /// All checks except [`call_chains`](Self::call_chains), which is slow.
    pub const fn standard() -> Self {
        Self { races: true, uninitialized: true, host_reads: true, call_chains: false }
    }

    /// All checks.
    pub const fn all() -> Self {
        Self { call_chains: true, ..Self::standard() }
    }

    /// True if a launch keeps a snapshot of memory to restore after an error.
    pub(crate) fn any(self) -> bool {
        self != Self::none()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            order: Order::Ascending,
            seed: 0,
            resident: Resident { blocks: 4, start: Start::InOrder },
            checks: Checks::standard(),
            delay_stores: false,
            step_budget: 1 << 28,
        }
    }
}

impl Options {
    /// Number of schedules in the standard list.
    pub const ORDERS: usize = 20;

    /// Returns schedule `i` (modulo [`ORDERS`](Self::ORDERS)) of the standard list. Run every kernel under all of them:
    /// each order with several seeds, one to many resident blocks, some with delayed stores, one with call chains.
    pub fn nth_order(i: usize, seed: u64) -> Self {
        use Order::{Ascending, Descending, FewPreemptions, Random, WarpShuffled};
        use Start::{InOrder, LowestLast};
        const FEW: Order = FewPreemptions { changes: 3 };
        const MANY: Order = FewPreemptions { changes: 20 };
        let any = Start::Random;
        let (order, blocks, start, delay_stores) = [
            (Ascending, 4, InOrder, false),
            (Descending, 4, LowestLast, false),
            (WarpShuffled, 4, InOrder, false),
            (Random, 4, InOrder, true),
            (FEW, 4, any, false),
            (Random, 2, LowestLast, false),
            (WarpShuffled, 1, any, true),
            (FEW, 8, InOrder, true),
            (Random, 8, any, false),
            (WarpShuffled, 3, LowestLast, true),
            (MANY, 4, any, false),
            (Random, 1, any, true),
            (Ascending, 16, any, true),
            (WarpShuffled, 8, any, false),
            (FEW, 2, LowestLast, true),
            (Random, 16, any, true),
            (Descending, 2, any, true),
            (MANY, 8, LowestLast, true),
            (WarpShuffled, 5, InOrder, true),
            (Random, 5, LowestLast, false),
        ][i % Self::ORDERS];
        let mut checks = Checks::standard();
        // A random order without delayed stores: divergent calls meet most often in it.
        checks.call_chains = i % Self::ORDERS == 8;
        Self {
            order,
            seed: seed.wrapping_add(i as u64),
            resident: Resident { blocks, start },
            checks,
            delay_stores,
            ..Self::default()
        }
    }

    /// Returns the defaults, overridden by the environment: `SIM_SEED` (a number), `SIM_ORDER` (in the format of
    /// [`set_order`](Self::set_order)), `SIM_STEPS` (the step budget), `SIM_CHECKS` (`none`, `standard`, `all`). An
    /// error's report ends with the `SIM_SEED` and `SIM_ORDER` that replay it.
    ///
    /// # Errors
    /// A message that names the variable and its valid values.
    pub fn from_env() -> Result<Self, String> {
        Self::default().with_env()
    }

    /// True if the environment selects one schedule.
    pub fn env_is_set() -> bool {
        std::env::var_os("SIM_SEED").is_some() || std::env::var_os("SIM_ORDER").is_some()
    }

    /// Overrides these options by the environment, as [`from_env`](Self::from_env).
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn with_env(mut self) -> Result<Self, String> {
        let value = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
        let number = |name: &str, text: String| {
            text.parse::<u64>().map_err(|_| format!("{name} is a number, not `{text}`"))
        };
        if let Some(text) = value("SIM_ORDER") {
            self.set_order(&text).map_err(|e| format!("SIM_ORDER: {e}"))?;
        }
        if let Some(text) = value("SIM_SEED") {
            self.seed = number("SIM_SEED", text)?;
        }
        if let Some(text) = value("SIM_STEPS") {
            self.step_budget = number("SIM_STEPS", text)?;
        }
        match value("SIM_CHECKS").as_deref() {
            None => {}
            Some("none") => self.checks = Checks::none(),
            Some("standard") => self.checks = Checks::standard(),
            Some("all") => self.checks = Checks::all(),
            Some(other) => return Err(format!("SIM_CHECKS is none, standard or all, not `{other}`")),
        }
        Ok(self)
    }

    /// Returns the schedule without the seed as text: `random,blocks=4,start=any,delay`.
    pub fn order_text(&self) -> String {
        let Resident { blocks, start } = self.resident;
        let delay = if self.delay_stores { ",delay" } else { "" };
        let chains = if self.checks.call_chains { ",chains" } else { "" };
        format!("{},blocks={blocks},start={start}{delay}{chains}", self.order)
    }

    /// Sets the schedule from text in the format of [`order_text`](Self::order_text); items may be missing.
    ///
    /// # Errors
    /// A message that names the invalid item.
    pub fn set_order(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("blocks", n)) => {
                    self.resident.blocks = n
                        .parse()
                        .ok()
                        .filter(|&n| n > 0)
                        .ok_or_else(|| format!("blocks is a number of at least 1, not `{n}`"))?;
                }
                Some(("start", s)) => self.resident.start = s.parse()?,
                None if part == "delay" => self.delay_stores = true,
                None if part == "chains" => self.checks.call_chains = true,
                _ => self.order = part.parse()?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ascending => f.write_str("ascending"),
            Self::Descending => f.write_str("descending"),
            Self::Random => f.write_str("random"),
            Self::WarpShuffled => f.write_str("warp-shuffled"),
            Self::FewPreemptions { changes } => write!(f, "preemptions:{changes}"),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ascending" => Ok(Self::Ascending),
            "descending" => Ok(Self::Descending),
            "random" => Ok(Self::Random),
            "warp-shuffled" => Ok(Self::WarpShuffled),
            "preemptions" => Ok(Self::FewPreemptions { changes: 3 }),
            _ => text
                .strip_prefix("preemptions:")
                .and_then(|n| n.parse().ok())
                .map(|changes| Self::FewPreemptions { changes })
                .ok_or_else(|| {
                    format!(
                        "an order is ascending, descending, random, warp-shuffled or preemptions:N, not `{text}`"
                    )
                }),
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InOrder => "in-order",
            Self::Random => "any",
            Self::LowestLast => "lowest-last",
        })
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::InOrder, Self::Random, Self::LowestLast]
            .into_iter()
            .find(|s| s.to_string() == text)
            .ok_or_else(|| format!("start is in-order, any or lowest-last, not `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_text_round_trips() {
        for i in 0..Options::ORDERS {
            let options = Options::nth_order(i, 7);
            let mut read = Options { seed: options.seed, ..Options::default() };
            read.set_order(&options.order_text()).unwrap();
            assert_eq!(read, options);
        }
        assert!(Options::default().set_order("sideways").is_err());
        assert!(Options::default().set_order("blocks=0").is_err());
    }
}
