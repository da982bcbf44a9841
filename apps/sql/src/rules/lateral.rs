//! Lateral joins with the nearest rows.

use super::calls::{arguments, contains_call, measure};
use crate::node::{SpatialJoinNode, output_of};
use crate::options::KauriOptions;
use crate::predicate::{SpatialPredicate, check_k};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, FetchType, Join, JoinType, LogicalPlan, Projection, SkipType, Sort};
use datafusion::optimizer::AnalyzerRule;
use std::collections::HashMap;
use std::sync::Arc;

/// Turns `a CROSS JOIN LATERAL (SELECT … FROM b ORDER BY ST_Distance(a.geom, b.geom) LIMIT k)` into a [`SpatialJoinNode`].
///
/// The subquery may have conditions on `b`, which choose the rows among which the nearest are. The engine cannot run other subqueries
/// that order by a distance of a row outside; they are refused with advice.
#[derive(Debug, Default)]
pub struct LateralNearest;

const ADVICE: &str = "a lateral subquery with ORDER BY ST_Distance must have the form: a CROSS JOIN LATERAL \
                      (SELECT … FROM b ORDER BY ST_Distance(a.geom, b.geom) LIMIT k), with different names for a and b and without \
                      other columns of a in WHERE and ORDER BY; otherwise use the table function knn_join(a, b, k)";

impl AnalyzerRule for LateralNearest {
    fn name(&self) -> &str {
        "kauri_lateral_nearest"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !KauriOptions::of(config).enabled {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
            let Some((alias, subquery)) = lateral(&join.right) else { return Ok(Transformed::no(plan)) };
            if !orders_by_outer_distance(subquery)? {
                return Ok(Transformed::no(plan));
            }
            match nearest(join, alias, subquery, config)? {
                None => plan_err!("{ADVICE}"),
                Some(new) => Ok(Transformed::yes(new)),
            }
        })
        .data()
    }
}

/// Returns the alias and the plan of a lateral subquery.
fn lateral(right: &LogicalPlan) -> Option<(Option<&TableReference>, &LogicalPlan)> {
    match right {
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some((Some(&alias.alias), &subquery.subquery)),
            _ => None,
        },
        LogicalPlan::Subquery(subquery) => Some((None, &subquery.subquery)),
        _ => None,
    }
}

/// Returns true if a plan sorts, and has a distance of a row outside of it.
fn orders_by_outer_distance(plan: &LogicalPlan) -> Result<bool> {
    let (mut sorts, mut has_distance) = (false, false);
    plan.apply(|plan| {
        sorts |= matches!(plan, LogicalPlan::Sort(_));
        has_distance |=
            plan.expressions().iter().any(|expr| contains_call(expr, "st_distance") && expr.contains_outer());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(sorts && has_distance)
}

/// The parts of a subquery that finds the nearest rows, in expressions of its input and of the row outside.
struct Nearest {
    k: usize,
    input: Arc<LogicalPlan>,
    key: Expr,
    /// The columns of the subquery's result and their expressions.
    columns: Vec<(Column, Expr)>,
}

/// Returns the plan of a lateral join with the nearest rows; `None` if it has another form.
fn nearest(
    join: &Join,
    alias: Option<&TableReference>,
    subquery: &LogicalPlan,
    config: &ConfigOptions,
) -> Result<Option<LogicalPlan>> {
    let is_plain = join.join_type == JoinType::Inner && join.on.is_empty() && join.filter.is_none();
    let Some(parts) = Nearest::of(subquery)?.filter(|_| is_plain) else { return Ok(None) };
    let Some([a, b]) = arguments(&parts.key, "st_distance") else { return Ok(None) };
    let [outer, inner] = if a.contains_outer() { [a, b] } else { [b, a] };
    if inner.contains_outer() || !is_only_outer(outer) || !share_no_column(join, &parts.input) {
        return Ok(None);
    }
    let geometry = [without_outer(outer.clone())?, inner.clone()];
    let inputs = [Arc::clone(&join.left), Arc::clone(&parts.input)];
    let measure = measure([&geometry[0], &geometry[1]], [inputs[0].schema(), inputs[1].schema()], config)?;
    let predicate = SpatialPredicate::Knn { k: parts.k, within: None, measure };
    let output = output_of(inputs[0].schema()).chain(output_of(inputs[1].schema())).collect();
    let node = SpatialJoinNode::try_new(inputs, predicate, geometry, None, output)?.into_plan();
    let mut exprs: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    for (column, expr) in parts.columns {
        let relation = alias.cloned().or(column.relation);
        exprs.push(without_outer(expr)?.alias_qualified(relation, column.name));
    }
    Ok(Some(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(node))?)))
}

/// Returns true if the inputs have no column of the same name and table.
fn share_no_column(join: &Join, input: &LogicalPlan) -> bool {
    !input.schema().columns().iter().any(|column| join.left.schema().has_column(column))
}

/// Returns true if all columns of an expression are those of the row outside.
fn is_only_outer(expr: &Expr) -> bool {
    expr.column_refs().is_empty()
}

/// Replaces references to the row outside by its columns.
fn without_outer(expr: Expr) -> Result<Expr> {
    expr.transform(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            expr => Transformed::no(expr),
        })
    })
    .data()
}

impl Nearest {
    /// Takes a plan apart: a limit, projections, a sort by one key, projections, and an input that does not depend on the row outside.
    fn of(plan: &LogicalPlan) -> Result<Option<Self>> {
        let mut projections = Vec::new();
        let mut fetch = None;
        let mut sort: Option<(&Sort, usize)> = None;
        let mut input = plan;
        loop {
            match input {
                LogicalPlan::Limit(limit) if fetch.is_none() && sort.is_none() => {
                    let (FetchType::Literal(Some(k)), SkipType::Literal(0)) =
                        (limit.get_fetch_type()?, limit.get_skip_type()?)
                    else {
                        return Ok(None);
                    };
                    fetch = Some(k);
                    input = &limit.input;
                }
                LogicalPlan::Projection(projection) => {
                    projections.push(projection);
                    input = &projection.input;
                }
                LogicalPlan::Sort(found) if sort.is_none() && found.fetch.is_none() => {
                    sort = Some((found, projections.len()));
                    input = &found.input;
                }
                LogicalPlan::SubqueryAlias(alias) if has_outer(&alias.input)? => return Ok(None),
                _ => break,
            }
            if !has_outer(input)? {
                break;
            }
        }
        let (Some(k), Some((sort, above))) = (fetch, sort) else { return Ok(None) };
        let [key] = sort.expr.as_slice() else { return Ok(None) };
        if has_outer(input)? || !key.asc {
            return Ok(None);
        }
        // From the input upwards: the expression of each column of a projection, in columns of the input.
        let mut columns: Vec<(Column, Expr)> =
            input.schema().columns().into_iter().map(|c| (c.clone(), Expr::Column(c))).collect();
        let mut sort_key =
            if projections.len() == above { Some(resolved(&key.expr, &columns)?) } else { None };
        for (index, projection) in projections.iter().enumerate().rev() {
            columns = projected(projection, &columns)?;
            if index == above {
                sort_key = Some(resolved(&key.expr, &columns)?);
            }
        }
        let k = check_k(k as i64, "LIMIT of a lateral subquery").map_err(|error| error.in_plan())?;
        let Some(key) = sort_key else { return Ok(None) };
        Ok(Some(Self { k, input: Arc::new(input.clone()), key, columns }))
    }
}

/// Returns true if a plan refers to a row outside of it.
fn has_outer(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|plan| Ok(plan.expressions().iter().any(Expr::contains_outer)))
}

/// Returns the columns of a projection in expressions of the input.
fn projected(projection: &Projection, columns: &[(Column, Expr)]) -> Result<Vec<(Column, Expr)>> {
    let exprs = projection.expr.iter().zip(projection.schema.columns());
    exprs.map(|(expr, column)| Ok((column, resolved(&expr.clone().unalias(), columns)?))).collect()
}

/// Replaces the columns of an expression by their expressions.
fn resolved(expr: &Expr, columns: &[(Column, Expr)]) -> Result<Expr> {
    let exprs: HashMap<&Column, &Expr> = columns.iter().map(|(column, expr)| (column, expr)).collect();
    expr.clone()
        .transform(|expr| {
            Ok(match &expr {
                Expr::Column(column) => match exprs.get(column) {
                    Some(&expr) => Transformed::new(expr.clone(), true, TreeNodeRecursion::Jump),
                    None => Transformed::no(expr),
                },
                _ => Transformed::no(expr),
            })
        })
        .data()
}
