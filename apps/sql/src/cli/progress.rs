//! The progress of a query on standard error, if that is a terminal.

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, collect as collect_rows};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);

/// Runs a plan, and shows the rows that it has read, of how many if the tables know; in a cluster, the rows that have come back.
pub(super) async fn collect(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<Vec<RecordBatch>> {
    let bar = match rows_to_read(&plan) {
        Some(rows) => ProgressBar::new(rows)
            .with_style(style("{wide_bar} {human_pos} of {human_len} rows read, {elapsed}")),
        None => ProgressBar::no_length().with_style(style("{spinner} {human_pos} rows read, {elapsed}")),
    };
    let mut rows = std::pin::pin!(collect_rows(Arc::clone(&plan), context));
    let result = loop {
        match tokio::time::timeout(TICK, &mut rows).await {
            Ok(result) => break result,
            Err(_) => bar.set_position(rows_read(&plan)),
        }
    };
    bar.finish_and_clear();
    result
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Returns the rows of all tables of a plan, if these know them.
fn rows_to_read(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let children = plan.children();
    if children.is_empty() {
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
        return match statistics.ok()?.num_rows {
            Precision::Exact(rows) => Some(rows as u64),
            _ => None,
        };
    }
    children.into_iter().map(rows_to_read).sum()
}

/// Returns the rows that a plan has read from its tables.
fn rows_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let children = plan.children();
    if children.is_empty() {
        return plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as u64;
    }
    children.into_iter().map(rows_read).sum()
}
