//! Columns of a spatial join's result that are not read.

use crate::node::{OutputColumn, SpatialJoinNode};
use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::collections::HashSet;
use std::sync::Arc;

/// Removes the columns from the result of a spatial join that the projection, the aggregation or the filter and projection above it do
/// not read. A join without its distances is faster, and so is one that does not copy geometries.
#[derive(Debug, Default)]
pub struct PruneOutput;

impl OptimizerRule for PruneOutput {
    fn name(&self) -> &str {
        "kauri_prune_output"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(plan));
        }
        let mut read: HashSet<Column> = columns_of(&plan);
        let [input] = plan.inputs()[..] else { return Ok(Transformed::no(plan)) };
        let pruned = match input {
            LogicalPlan::Filter(filter) => {
                read.extend(columns_of(input));
                // The filter's columns stay, for which a projection selects those that are read above it.
                match pruned(&filter.input, &read)? {
                    None => None,
                    Some(join) => {
                        let predicate = filter.predicate.clone();
                        let filter = datafusion::logical_expr::Filter::try_new(predicate, Arc::new(join))?;
                        Some(LogicalPlan::Filter(filter))
                    }
                }
            }
            input => pruned(input, &read)?,
        };
        match pruned {
            None => Ok(Transformed::no(plan)),
            Some(input) => Ok(Transformed::yes(above(plan, input)?)),
        }
    }
}

/// Returns the plan with another input that has all the columns that the plan reads.
fn above(plan: LogicalPlan, input: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let schema = projection.schema;
            Projection::try_new_with_schema(projection.expr, Arc::new(input), schema)
                .map(LogicalPlan::Projection)
        }
        plan => {
            let exprs = plan.expressions();
            plan.with_new_exprs(exprs, vec![input])
        }
    }
}

fn columns_of(plan: &LogicalPlan) -> HashSet<Column> {
    plan.expressions()
        .iter()
        .flat_map(|expr| expr.column_refs().into_iter().cloned().collect::<Vec<_>>())
        .collect()
}

/// Returns a join with the columns that are read, if it has more of them.
fn pruned(plan: &LogicalPlan, read: &HashSet<Column>) -> Result<Option<LogicalPlan>> {
    let Some(node) = SpatialJoinNode::of(plan) else { return Ok(None) };
    let is_read = |output: &&OutputColumn| read.contains(&output.column());
    let output: Vec<OutputColumn> = node.output.iter().filter(is_read).cloned().collect();
    if output.len() == node.output.len() {
        return Ok(None);
    }
    Ok(Some(node.with_output(output)?.into_plan()))
}
