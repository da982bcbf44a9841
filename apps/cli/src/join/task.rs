//! Runs joins: chooses the device, prints the plan, shows progress.

use clap::Args;
use std::io::Write;

use crate::device::{DeviceChoice, DeviceOption, Work};
use crate::items::Item;
use crate::output::Destination;
use crate::progress::Steps;
use crate::tables::JoinTable;
use crate::{Result, Streams};
use kauri::Device;
use kauri::io::TakePairs;
use kauri::join::JoinPlan;

#[derive(Args)]
pub(super) struct Running {
    #[command(flatten)]
    device: DeviceOption,
    /// Before the run, print the plan to standard error: device, method, memory, estimated number of pairs
    #[arg(long)]
    plan: bool,
    /// Hide the progress bar (which is shown only on a terminal)
    #[arg(long, short)]
    quiet: bool,
}

impl Running {
    /// Opens the device if the command line names one.
    pub(super) fn begin(&self, streams: &Streams<'_>) -> Result<Task> {
        let steps = Steps { are_shown: streams.shows_progress && !self.quiet };
        Ok(Task { choice: self.device.choice()?, steps, says_plan: self.plan })
    }
}

/// A join of two sets of places or boxes.
pub(super) trait Search {
    type Item: Item;

    /// Number of items of both sets.
    fn num_items(&self) -> usize;
    /// Estimates the time on the CPU.
    fn work(&self) -> Work;
    /// Plans the join: the method, and the memory except that of the pairs.
    fn plan(&self, on: &Device) -> kauri::Result<JoinPlan>;
    /// Estimates the number of pairs, as text.
    fn expected_pairs(&self, on: &Device) -> kauri::Result<String>;
    /// Passes all pairs to `take`, in batches.
    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> kauri::Result<()>;
}

/// A join that is about to run.
pub(super) struct Task {
    choice: DeviceChoice,
    pub(super) steps: Steps,
    says_plan: bool,
}

impl Task {
    /// Runs a join, and writes its pairs.
    pub(super) fn write<S: Search>(
        self,
        search: &S,
        destination: &Destination<'_>,
        tables: [&JoinTable<S::Item>; 2],
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let steps = self.steps;
        let device = self.device(search, streams.err)?;
        destination.write(streams.out, tables, |take| {
            steps.step("join", S::Item::NAME, || Ok(search.find(&device, take)?), |_| search.num_items())
        })
    }

    /// Prints the number of pairs of a join, which `count` returns.
    pub(super) fn count<S: Search>(
        self,
        search: &S,
        count: impl FnOnce(&Device) -> kauri::Result<u64>,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let steps = self.steps;
        let device = self.device(search, streams.err)?;
        let count = steps.step("join", S::Item::NAME, || Ok(count(&device)?), |_| search.num_items())?;
        Ok(writeln!(streams.out, "{count}")?)
    }

    /// Chooses the device, and prints the plan if requested.
    fn device(self, search: &impl Search, err: &mut dyn Write) -> Result<Device> {
        let device = self.choice.for_work(search.work(), err)?;
        if self.says_plan {
            let (plan, pairs) = (search.plan(&device)?, search.expected_pairs(&device)?);
            // A failure to write to standard error cannot be reported.
            let _ = writeln!(err, "{plan}\npairs     {pairs}");
        }
        Ok(device)
    }
}
