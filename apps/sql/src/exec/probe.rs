//! Joins a partition of the left side with the right side.

use super::build::{BuildSide, SharedBuild, in_background};
use super::gather::Gather;
use super::joiner::Joiner;
use super::memory::probe_bytes;
use super::merge::NearestMerge;
use super::output::Output;
use super::side::Side;
use super::spilled::SpilledBuild;
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::metrics::Time;
use futures::join;
use std::sync::Arc;

/// The join of a partition of the left side.
pub(super) struct Probe {
    pub(super) joiner: Joiner,
    pub(super) output: Output,
    pub(super) context: Arc<TaskContext>,
    pub(super) time: Time,
}

impl Probe {
    /// Joins the left rows with the right side once it is there, and sends the result.
    pub(super) async fn run(self, mut left: Gather, build: SharedBuild) -> Result<()> {
        // Left rows are gathered while the right side is collected, unless the memory for them depends on it.
        let is_unlimited = probe_bytes(self.context.memory_pool()) == 0;
        let (build, first) = if is_unlimited {
            let (build, first) = join!(build, left.next());
            (build, first?)
        } else {
            (build.await, None)
        };
        let build = build.map_err(DataFusionError::Shared)?;
        match &*build {
            BuildSide::InMemory { part, .. } if part.side.len() == 0 => return Ok(()),
            BuildSide::InMemory { .. } => {}
            BuildSide::Spilled(_) => left.limit_memory(&self.context),
        }
        if let Some(side) = first {
            self.join_side(side, &mut left, &build).await?;
        }
        while !self.output.is_closed() && self.join_next(&mut left, &build).await? {}
        Ok(())
    }

    /// Gathers left rows and joins them; returns false if there are no more.
    async fn join_next(&self, left: &mut Gather, build: &Arc<BuildSide>) -> Result<bool> {
        let _turn = match &**build {
            BuildSide::InMemory { .. } => None,
            BuildSide::Spilled(spilled) => Some(spilled.turn().await),
        };
        let Some(side) = left.next().await? else { return Ok(false) };
        self.join_side(side, left, build).await?;
        Ok(true)
    }

    /// Joins left rows, and gives their memory back.
    async fn join_side(&self, side: Side, left: &mut Gather, build: &Arc<BuildSide>) -> Result<()> {
        match &**build {
            BuildSide::InMemory { .. } => self.join_in_memory(side, Arc::clone(build)).await?,
            BuildSide::Spilled(spilled) => self.join_parts(Arc::new(side), spilled).await?,
        }
        left.release();
        Ok(())
    }

    async fn join_in_memory(&self, left: Side, build: Arc<BuildSide>) -> Result<()> {
        let (joiner, output, time) = (self.joiner.clone(), self.output.clone(), self.time.clone());
        in_background(move || {
            let _timer = time.timer();
            match &*build {
                BuildSide::InMemory { part, .. } => joiner.join(&left, part, &output),
                BuildSide::Spilled(_) => unreachable!("the right side is in memory"),
            }
        })
        .await
    }

    /// Joins left rows with one part of the right side after another.
    async fn join_parts(&self, left: Arc<Side>, spilled: &SpilledBuild) -> Result<()> {
        let mut parts = spilled.parts(&self.context)?;
        let memory = MemoryConsumer::new("SpatialJoinMerge").register(self.context.memory_pool());
        let mut merge: Option<NearestMerge> = None;
        while let Some(part) = parts.next().await? {
            let (joiner, output, time) = (self.joiner.clone(), self.output.clone(), self.time.clone());
            let left = Arc::clone(&left);
            merge = in_background(move || {
                let _timer = time.timer();
                if joiner.merges() {
                    return joiner.merge(&left, &part, merge).map(Some);
                }
                joiner.join(&left, &part, &output)?;
                Ok(None)
            })
            .await?;
            parts.release();
            memory.try_resize(merge.as_ref().map_or(0, NearestMerge::bytes))?;
            if self.output.is_closed() {
                return Ok(());
            }
        }
        let Some(merge) = merge else { return Ok(()) };
        let (joiner, output) = (self.joiner.clone(), self.output.clone());
        in_background(move || {
            merge.send(&left, |dist2| joiner.distances(dist2), &output);
            Ok(())
        })
        .await
    }
}
