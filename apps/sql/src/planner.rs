//! Plans spatial joins physically.

use crate::exec::{OutputIndex, SpatialJoinExec};
use crate::node::{OutputColumn, SpatialJoinNode};
use crate::partition::partitioned;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use std::sync::Arc;

/// The engine's planner, which also plans spatial joins.
#[derive(Debug, Default)]
pub struct SpatialQueryPlanner;

#[async_trait]
impl QueryPlanner for SpatialQueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(SpatialJoinPlanner)]);
        // An explanation runs no query.
        if matches!(plan, LogicalPlan::Explain(_)) {
            return planner.create_physical_plan(plan, session).await;
        }
        planner.create_physical_plan(&partitioned(plan, session).await?, session).await
    }
}

/// Plans a [`SpatialJoinNode`] as a [`SpatialJoinExec`].
#[derive(Debug, Default)]
pub struct SpatialJoinPlanner;

#[async_trait]
impl ExtensionPlanner for SpatialJoinPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<SpatialJoinNode>() else { return Ok(None) };
        let schemas = [node.left.schema(), node.right.schema()];
        let pair = |exprs: &[Expr; 2]| -> Result<[Arc<dyn PhysicalExpr>; 2]> {
            let expr =
                |side: usize| planner.create_physical_expr(&exprs[side], schemas[side], session, context);
            Ok([expr(0)?, expr(1)?])
        };
        let scores = node.scores.as_ref().map(pair).transpose()?;
        let inputs = [Arc::clone(&inputs[0]), Arc::clone(&inputs[1])];
        let output = node.output.iter().map(|output| index_of(output, node)).collect::<Result<_>>()?;
        let parts = node.parts.as_ref().map(pair).transpose()?;
        let exec =
            SpatialJoinExec::try_new(inputs, node.predicate, pair(&node.geometry)?, scores, parts, output)?;
        Ok(Some(Arc::new(exec)))
    }
}

/// Returns the index of a column in its input.
fn index_of(output: &OutputColumn, node: &SpatialJoinNode) -> Result<OutputIndex> {
    Ok(match output {
        OutputColumn::Distance => OutputIndex::Distance,
        OutputColumn::Score => OutputIndex::Score,
        OutputColumn::Input(column) => match node.left.schema().maybe_index_of_column(column) {
            Some(index) => OutputIndex::Left(index),
            None => OutputIndex::Right(node.right.schema().index_of_column(column)?),
        },
    })
}
