//! Joins whose condition is about the distance of points, or about boxes.

use super::calls::{arguments, constant, measure, side_of};
use crate::geometry::Measure;
use crate::node::{SpatialJoinNode, output_of};
use crate::options::KauriOptions;
use crate::predicate::{BoxRelation, Radius, SpatialPredicate};
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Turns an inner join without equal columns into a [`SpatialJoinNode`] if its condition has one of these terms:
///
/// - `ST_DWithin(a, b, d)`, `ST_Distance(a, b) <= d` or `< d` with a constant `d`
/// - `ST_Intersects(a, b)` or `ST_Contains(a, b)` of boxes
///
/// `a` and `b` are expressions of one input each, in any order. The other terms become a filter above the join.
#[derive(Debug, Default)]
pub struct JoinConditions;

impl OptimizerRule for JoinConditions {
    fn name(&self) -> &str {
        "kauri_join_conditions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let config = config.options();
        let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
        if !KauriOptions::of(&config).enabled {
            return Ok(Transformed::no(plan));
        }
        Ok(spatial_join(join, &config)?.map_or_else(|| Transformed::no(plan.clone()), Transformed::yes))
    }
}

/// Returns the spatial join that replaces a join, if there is one.
fn spatial_join(join: &Join, config: &ConfigOptions) -> Result<Option<LogicalPlan>> {
    let Some(filter) =
        join.filter.as_ref().filter(|_| join.join_type == JoinType::Inner && join.on.is_empty())
    else {
        return Ok(None);
    };
    let terms = split_conjunction(filter);
    for (index, term) in terms.iter().enumerate() {
        let Some(condition) = Condition::of(term, join, config)? else { continue };
        let others = terms.iter().enumerate().filter(|&(other, _)| other != index || !condition.is_exact);
        let others = conjunction(others.map(|(_, &term)| term.clone()));
        return condition.into_plan(join, others).map(Some);
    }
    Ok(None)
}

/// A term of a condition that a spatial join evaluates.
struct Condition {
    predicate: SpatialPredicate,
    /// The geometries of the left and the right input of the spatial join.
    geometry: [Expr; 2],
    /// True if the left input of the spatial join is the right input of the join.
    is_swapped: bool,
    /// False if the spatial join may find pairs for which the term is false.
    is_exact: bool,
}

impl Condition {
    fn of(term: &Expr, join: &Join, config: &ConfigOptions) -> Result<Option<Self>> {
        if let Some([a, b, radius]) = arguments(term, "st_dwithin") {
            let Some(radius) = constant(radius) else { return Ok(None) };
            return Self::within([a, b], radius, true, join, config);
        }
        if let Some((a, b, radius)) = distance_limit(term) {
            return Self::within([a, b], radius, false, join, config);
        }
        let relations = [("st_intersects", BoxRelation::Intersects), ("st_contains", BoxRelation::Contains)];
        Ok(relations.into_iter().find_map(|(function, relation)| {
            let [a, b] = arguments(term, function)?;
            let is_swapped = is_swapped([a, b], join)?;
            let predicate = SpatialPredicate::Boxes(relation);
            Some(Self { predicate, geometry: [a.clone(), b.clone()], is_swapped, is_exact: true })
        }))
    }

    fn within(
        [a, b]: [&Expr; 2],
        radius: f64,
        is_exact: bool,
        join: &Join,
        config: &ConfigOptions,
    ) -> Result<Option<Self>> {
        let Some(is_swapped) = is_swapped([a, b], join) else { return Ok(None) };
        // Distances are symmetric: the left input stays the left one.
        let [a, b] = if is_swapped { [b, a] } else { [a, b] };
        let measure = measure([a, b], [join.left.schema(), join.right.schema()], config)?;
        let radius = if is_exact { radius } else { enlarged(radius, measure) };
        let radius = Radius::new(radius, "distance of a join").map_err(|error| error.in_plan())?;
        let predicate = SpatialPredicate::Within { radius, measure };
        Ok(Some(Self { predicate, geometry: [a.clone(), b.clone()], is_swapped: false, is_exact }))
    }

    fn into_plan(self, join: &Join, filter: Option<Expr>) -> Result<LogicalPlan> {
        let mut inputs = [Arc::clone(&join.left), Arc::clone(&join.right)];
        if self.is_swapped {
            inputs.reverse();
        }
        let output = output_of(&join.schema).collect();
        let node = SpatialJoinNode::try_new(inputs, self.predicate, self.geometry, None, output)?.into_plan();
        match filter {
            None => Ok(node),
            Some(filter) => Ok(LogicalPlan::Filter(Filter::try_new(filter, Arc::new(node))?)),
        }
    }
}

/// Returns whether the first expression is about the right input and the second one about the left input; `None` unless each is
/// about another input.
fn is_swapped([a, b]: [&Expr; 2], join: &Join) -> Option<bool> {
    let inputs = [join.left.schema().as_ref(), join.right.schema().as_ref()];
    match (side_of(a, inputs)?, side_of(b, inputs)?) {
        (0, 1) => Some(false),
        (1, 0) => Some(true),
        _ => None,
    }
}

/// Returns the points and the limit of a term `ST_Distance(a, b) <= limit`, in any order and also with `<`.
fn distance_limit(term: &Expr) -> Option<(&Expr, &Expr, f64)> {
    let Expr::BinaryExpr(binary) = term else { return None };
    let (distance, limit) = match binary.op {
        Operator::LtEq | Operator::Lt => (&binary.left, &binary.right),
        Operator::GtEq | Operator::Gt => (&binary.right, &binary.left),
        _ => return None,
    };
    let [a, b] = arguments(distance, "st_distance")?;
    // A distance is never below a negative limit or NaN: no join is needed for that.
    constant(limit).filter(|&limit| limit >= 0.0).map(|limit| (a, b, limit))
}

/// Returns a distance within which all pairs of a distance up to `radius` are, whatever is rounded. Near the antipodes, chords hardly
/// change with the distance.
fn enlarged(radius: f64, measure: Measure) -> f64 {
    let slack = match measure {
        Measure::Planar => 0.0,
        Measure::LonLat if radius < 1.9e7 => 1e-6,
        Measure::LonLat => 1.0,
    };
    radius * (1.0 + 1e-12) + slack
}
