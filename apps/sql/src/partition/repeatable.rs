//! Whether a side of a join has the same rows whenever it runs.

use crate::node::SpatialJoinNode;
use crate::predicate::SpatialPredicate;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

/// Returns true if a plan has the same rows in each run. The parts of a join are made of the rows of one run, and are right for these rows:
/// not for a choice of rows that another run makes differently, as `LIMIT` or `random()` may.
///
/// # Errors
/// Errors of the engine.
pub(super) fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let mut is_repeatable = true;
    plan.apply(|plan| {
        let has_chosen = match plan {
            LogicalPlan::TableScan(scan) => scan.fetch.is_some(),
            LogicalPlan::Sort(sort) => sort.fetch.is_some(),
            LogicalPlan::Extension(_) => match SpatialJoinNode::of(plan) {
                Some(join) => matches!(join.predicate, SpatialPredicate::TopK { .. }),
                None => true,
            },
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Unnest(_) => false,
            // Among them limits, windows, and `DISTINCT ON`.
            _ => true,
        };
        is_repeatable &= !has_chosen && !plan.expressions().iter().any(|expr| expr.is_volatile());
        Ok(if is_repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_repeatable)
}
