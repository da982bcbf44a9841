//! Plans joins part by part.

use super::cut::Cut;
use super::functions::{CORNERS, parts_of, region_of};
use super::partitioner::{CellRows, Partitioner};
use super::region::{Place, Region};
use super::repeatable::is_repeatable;
use crate::node::{OutputColumn, SpatialJoinNode};
use crate::options::{KauriOptions, NullsOption};
use crate::predicate::SpatialPredicate;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, NullHandling, UnnestOptions, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions::math::expr_fn::random;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::collect;
use futures::future::{BoxFuture, FutureExt};
use std::sync::Arc;

/// The rows of the sample in a cell.
const CELL_ROWS: usize = 16;

/// Returns the plan with all of its spatial joins made part by part that have more right rows than `kauri.shared_rows`. It runs queries for
/// the number of right rows, for a sample of them and for the regions of left rows.
///
/// # Errors
/// Errors of these queries.
pub fn partitioned<'a>(
    plan: &'a LogicalPlan,
    session: &'a dyn Session,
) -> BoxFuture<'a, Result<LogicalPlan>> {
    async move {
        let is_whole = KauriOptions::of(session.config_options()).shared_rows.is_none();
        if is_whole || session.config_options().execution.target_partitions < 2 || !has_join(plan)? {
            return Ok(plan.clone());
        }
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            inputs.push(partitioned(input, session).await?);
        }
        let plan = plan.with_new_exprs(plan.expressions(), inputs)?;
        match SpatialJoinNode::of(&plan).filter(|node| node.parts.is_none()) {
            Some(node) => Ok(of_join(node, session).await?.unwrap_or(plan)),
            None => Ok(plan),
        }
    }
    .boxed()
}

fn has_join(plan: &LogicalPlan) -> Result<bool> {
    let mut has_join = false;
    plan.apply(|plan| {
        has_join |= SpatialJoinNode::of(plan).is_some_and(|node| node.parts.is_none());
        Ok(if has_join { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_join)
}

/// Returns the plan of a join part by part; `None` if its right side is small, or if the rows of a side may change from run to run.
async fn of_join(node: &SpatialJoinNode, session: &dyn Session) -> Result<Option<LogicalPlan>> {
    let options = KauriOptions::of(session.config_options());
    if !is_repeatable(&node.left)? || !is_repeatable(&node.right)? {
        return Ok(None);
    }
    if count_rows(&node.right, session).await? <= options.shared_rows.unwrap_or(usize::MAX) {
        return Ok(None);
    }
    let node = &above_threshold(node, session).await?;
    let sample = sample(node, session).await?;
    if sample.is_empty() {
        return Ok(None);
    }
    let parts = session.config_options().execution.target_partitions;
    let cells = (sample.len() / CELL_ROWS).max(parts).next_power_of_two();
    let cut = Cut::new(&mut sample.clone(), cells);
    let left = cells_of_left(node, &cut, session).await?;
    let partitioner = Partitioner::new(cut, node.predicate, &left, &sample, parts)?;
    part_by_part(node, &partitioner).map(Some)
}

async fn run(plan: LogicalPlan, session: &dyn Session) -> Result<Vec<RecordBatch>> {
    let plan = session.create_physical_plan(&plan).await?;
    collect(plan, session.task_ctx()).await
}

/// Runs a query for one row of numbers; NULL is `None`.
async fn numbers(plan: LogicalPlan, session: &dyn Session) -> Result<Vec<Option<f64>>> {
    let batches = run(plan, session).await?;
    let row = batches.iter().find(|batch| batch.num_rows() > 0);
    let row = row.ok_or_else(|| internal_datafusion_err!("an aggregation has no row"))?;
    let number = |column: &Arc<dyn Array>| -> Result<Option<f64>> {
        let column = cast(column, &DataType::Float64)?;
        Ok(column.is_valid(0).then(|| column.as_primitive::<Float64Type>().value(0)))
    };
    row.columns().iter().map(number).collect()
}

fn aggregate(input: LogicalPlanBuilder, aggregates: Vec<Expr>) -> Result<LogicalPlan> {
    input.aggregate(Vec::<Expr>::new(), aggregates)?.build()
}

async fn count_rows(plan: &Arc<LogicalPlan>, session: &dyn Session) -> Result<usize> {
    let plan = aggregate(LogicalPlanBuilder::new_from_arc(Arc::clone(plan)), vec![count(lit(1))])?;
    Ok(numbers(plan, session).await?[0].unwrap_or(0.0) as usize)
}

/// Returns the regions of a side, in a column `region`.
fn regions(
    plan: &Arc<LogicalPlan>,
    geometry: &Expr,
    partitioner: &Partitioner,
) -> Result<LogicalPlanBuilder> {
    let region = region_of(geometry.clone(), partitioner);
    LogicalPlanBuilder::new_from_arc(Arc::clone(plan))
        .filter(geometry.clone().is_not_null())?
        .project(vec![region.alias("region")])
}

fn region_column() -> Expr {
    Expr::Column(Column::from_name("region"))
}

/// Returns places of right rows that are chosen at random.
async fn sample(node: &SpatialJoinNode, session: &dyn Session) -> Result<Vec<Place>> {
    let partitioner = Partitioner::of_cut(Cut::default(), node.predicate.measure());
    let plan = regions(&node.right, &node.geometry[1], &partitioner)?
        .filter(region_column().is_not_null())?
        .sort_with_limit(
            vec![random().sort(true, false)],
            Some(KauriOptions::of(session.config_options()).sample_rows),
        )?
        .build()?;
    let batches = run(plan, session).await?;
    let mut places = Vec::new();
    for batch in &batches {
        let region = batch.column(0).as_struct();
        let axis = |index: usize| region.column(1 + index).as_primitive::<Float64Type>().values();
        let axes = [axis(0), axis(1), axis(2)];
        places.extend((0..batch.num_rows()).map(|row| axes.map(|axis| axis[row])));
    }
    Ok(places)
}

/// Returns the left rows of each cell.
async fn cells_of_left(node: &SpatialJoinNode, cut: &Cut, session: &dyn Session) -> Result<Vec<CellRows>> {
    let partitioner = Partitioner::of_cut(cut.clone(), node.predicate.measure());
    let field = |name: &str| get_field(region_column(), name);
    let corners = CORNERS.iter().enumerate();
    let mut aggregates = vec![count(lit(1))];
    aggregates
        .extend(corners.map(|(corner, name)| if corner < 3 { min(field(name)) } else { max(field(name)) }));
    let plan = regions(&node.left, &node.geometry[0], &partitioner)?
        .filter(region_column().is_not_null())?
        .aggregate(vec![field("cell")], aggregates)?
        .build()?;
    let mut cells = vec![CellRows::NONE; cut.cells()];
    for batch in run(plan, session).await? {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values();
        let corner = |index: usize| batch.column(2 + index).as_primitive::<Float64Type>().values();
        let (cell, rows) = (column(0), column(1));
        for row in 0..batch.num_rows() {
            let at = |first: usize| std::array::from_fn(|axis| corner(first + axis)[row]);
            let region: Region = [at(0), at(3)];
            cells[cell[row] as usize] = CellRows { rows: rows[row] as u64, region };
        }
    }
    Ok(cells)
}

/// Returns the join part by part.
fn part_by_part(node: &SpatialJoinNode, partitioner: &Partitioner) -> Result<LogicalPlan> {
    let [home, near] = parts_of(node.geometry.clone(), partitioner);
    let with = |side: &Arc<LogicalPlan>, part: Expr| {
        let columns = side.schema().columns().into_iter().map(Expr::Column);
        LogicalPlanBuilder::new_from_arc(Arc::clone(side)).project(columns.chain([part]).collect::<Vec<_>>())
    };
    let [left, right] = ["kauri_home", "kauri_near"].map(Column::from_name);
    let drop_empty = UnnestOptions { null_handling: NullHandling::Drop, ..UnnestOptions::default() };
    let inputs = [
        with(&node.left, home.alias(&left.name))?.build()?,
        with(&node.right, near.alias(&right.name))?
            .unnest_column_with_options(right.clone(), drop_empty)?
            .build()?,
    ];
    let parts = [left, right].map(Expr::Column);
    let mut output = node.output.clone();
    let SpatialPredicate::TopK { k, .. } = node.predicate else {
        return Ok(node.with_inputs(inputs.map(Arc::new), Some(parts), output)?.into_plan());
    };
    // Each part has its best pairs; the best of all are among them.
    let columns: Vec<Expr> = output.iter().map(|column| Expr::Column(column.column())).collect();
    if !output.contains(&OutputColumn::Score) {
        output.push(OutputColumn::Score);
    }
    let join = node.with_inputs(inputs.map(Arc::new), Some(parts), output)?.into_plan();
    let score = Expr::Column(OutputColumn::Score.column());
    LogicalPlanBuilder::from(join)
        .sort_with_limit(vec![score.sort(false, false)], Some(k))?
        .project(columns)?
        .build()
}

/// Returns a top-k join without the rows whose score is too small for a pair that is one of the best, whatever its partner is; other joins
/// as they are.
///
/// The pairs of all left rows with the right rows of greatest score have a `k`-th best score, a threshold that no pair sought is below.
/// Source: the three phases of P. Cao and Z. Wang, 2004.
async fn above_threshold(node: &SpatialJoinNode, session: &dyn Session) -> Result<SpatialJoinNode> {
    let (SpatialPredicate::TopK { k, .. }, Some(scores)) = (node.predicate, &node.scores) else {
        return Ok(node.clone());
    };
    let options = KauriOptions::of(session.config_options());
    // A filter by score would hide rows without one, which are then an error.
    if options.nulls == NullsOption::Error {
        return Ok(node.clone());
    }
    let builder = |side: &Arc<LogicalPlan>| LogicalPlanBuilder::new_from_arc(Arc::clone(side));
    let best_rows = options.sample_rows.max(k);
    let best = builder(&node.right)
        .filter(scores[1].clone().is_not_null().and(node.geometry[1].clone().is_not_null()))?
        .sort_with_limit(vec![scores[1].clone().sort(false, false)], Some(best_rows))?
        .build()?;
    let inputs = [Arc::clone(&node.left), Arc::new(best)];
    let join = node.with_inputs(inputs, None, vec![OutputColumn::Score])?.into_plan();
    let score = Expr::Column(OutputColumn::Score.column());
    let found = aggregate(LogicalPlanBuilder::from(join), vec![count(lit(1)), min(score)])?;
    let [Some(pairs), Some(threshold)] = numbers(found, session).await?[..] else { return Ok(node.clone()) };
    if pairs < k as f64 {
        return Ok(node.clone());
    }
    let mut inputs = Vec::new();
    for (side, input) in [&node.left, &node.right].into_iter().enumerate() {
        let other = [&node.right, &node.left][side];
        let greatest = aggregate(builder(other), vec![max(scores[1 - side].clone())])?;
        let [Some(greatest)] = numbers(greatest, session).await?[..] else { return Ok(node.clone()) };
        // Rounding keeps the order: the sum with the greatest score is not below a sum with another one.
        let reaches = (scores[side].clone() + lit(greatest)).gt_eq(lit(threshold));
        inputs.push(Arc::new(builder(input).filter(reaches)?.build()?));
    }
    let inputs = <[_; 2]>::try_from(inputs).map_err(|_| internal_datafusion_err!("a join has two inputs"))?;
    node.with_inputs(inputs, None, node.output.clone())
}
