//! Joins whose condition is that one point is among the nearest ones of another.

use super::calls::{arguments, contains_call, measure, side_of};
use crate::error::Error;
use crate::functions::KNN_ADVICE;
use crate::node::{SpatialJoinNode, output_of};
use crate::options::KauriOptions;
use crate::predicate::{SpatialPredicate, check_k};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Turns an inner join with the condition `ST_KNN(a, b, k)` into a [`SpatialJoinNode`]. `a` is an expression of one input, and `b` of the
/// other; `k` is a constant.
///
/// All other conditions are applied to the result of the kNN join: they do not change which points are the nearest. To choose among fewer
/// points, join a subquery.
#[derive(Debug, Default)]
pub struct KnnConditions;

impl AnalyzerRule for KnnConditions {
    fn name(&self) -> &str {
        "kauri_knn_conditions"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| match &plan {
            LogicalPlan::Join(join) => replaced(of_join(join, config)?, plan),
            LogicalPlan::Filter(filter) => replaced(of_filter(filter, config)?, plan),
            _ => Ok(Transformed::no(plan)),
        })?;
        refuse_others(&plan.data)?;
        Ok(plan.data)
    }
}

fn replaced(new: Option<LogicalPlan>, old: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(new.map_or_else(|| Transformed::no(old), Transformed::yes))
}

/// Refuses calls of `ST_KNN` that are left.
fn refuse_others(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        if plan.expressions().iter().any(|expr| contains_call(expr, "st_knn")) {
            return plan_err!("{KNN_ADVICE}");
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Replaces a join with `ST_KNN` in its own condition.
fn of_join(join: &Join, config: &ConfigOptions) -> Result<Option<LogicalPlan>> {
    let Some((call, others)) = join.filter.as_ref().and_then(split) else { return Ok(None) };
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let others = equal.chain(others).collect::<Vec<_>>();
    Ok(match knn_join(&call, join, config)? {
        None => None,
        Some(node) => Some(filtered(node, others)?),
    })
}

/// Replaces the join below a filter with `ST_KNN`: the lowest one that has the points of both arguments.
fn of_filter(filter: &Filter, config: &ConfigOptions) -> Result<Option<LogicalPlan>> {
    let Some((call, others)) = split(&filter.predicate) else { return Ok(None) };
    let mut is_found = false;
    let input = filter.input.as_ref().clone().transform_up(|plan| {
        let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
        if is_found || join.filter.is_some() || !join.on.is_empty() {
            return Ok(Transformed::no(plan));
        }
        let node = knn_join(&call, join, config)?;
        is_found = node.is_some();
        replaced(node, plan)
    })?;
    if is_found { filtered(input.data, others).map(Some) } else { Ok(None) }
}

/// Splits a condition into a call of `ST_KNN` and the other terms.
fn split(condition: &Expr) -> Option<(Expr, Vec<Expr>)> {
    let terms = split_conjunction(condition);
    let call = terms.iter().position(|term| arguments::<3>(term, "st_knn").is_some())?;
    let others = terms.iter().enumerate().filter(|&(index, _)| index != call);
    Some((terms[call].clone(), others.map(|(_, &term)| term.clone()).collect()))
}

fn filtered(plan: LogicalPlan, terms: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(terms) {
        None => Ok(plan),
        Some(filter) => Ok(LogicalPlan::Filter(Filter::try_new(filter, Arc::new(plan))?)),
    }
}

/// Returns the kNN join of the inputs of an inner join; `None` if these are not the inputs of the call.
fn knn_join(call: &Expr, join: &Join, config: &ConfigOptions) -> Result<Option<LogicalPlan>> {
    let [a, b, k] = arguments(call, "st_knn").expect("the call has been found by this name");
    let mut inputs = [Arc::clone(&join.left), Arc::clone(&join.right)];
    let sides = {
        let schemas = [inputs[0].schema().as_ref(), inputs[1].schema().as_ref()];
        (side_of(a, schemas), side_of(b, schemas))
    };
    match sides {
        (Some(0), Some(1)) => {}
        (Some(1), Some(0)) => inputs.reverse(),
        _ => return Ok(None),
    }
    if join.join_type != JoinType::Inner {
        return plan_err!("{KNN_ADVICE}; this is a {} join", join.join_type);
    }
    if !KauriOptions::of(config).enabled {
        return plan_err!("ST_KNN needs the joins of kauri: SET kauri.enabled = true");
    }
    let k = constant_k(k)?;
    let measure = measure([a, b], [inputs[0].schema(), inputs[1].schema()], config)?;
    let predicate = SpatialPredicate::Knn { k, within: None, measure };
    let output = output_of(&join.schema).collect();
    SpatialJoinNode::try_new(inputs, predicate, [a.clone(), b.clone()], None, output)
        .map(|node| Some(node.into_plan()))
}

fn constant_k(k: &Expr) -> Result<usize> {
    let value = match k {
        Expr::Literal(value, _) => value.cast_to(&datafusion::arrow::datatypes::DataType::Int64).ok(),
        _ => None,
    };
    match value {
        Some(ScalarValue::Int64(Some(k))) => check_k(k, "ST_KNN").map_err(|error| error.in_plan()),
        _ => {
            let (function, argument, expected) = ("ST_KNN", "k", "integer");
            Err(Error::NotConstant { function, argument, expected, found: k.to_string() }.in_plan())
        }
    }
}
