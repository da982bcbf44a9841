//! Table functions of spatial joins.
//!
//! | function | result |
//! |---|---|
//! | `knn_join(left, right, k [, within => d])` | for each left row the `k` nearest right rows, and their distances |
//! | `distance_join(left, right, d)` | all pairs within a distance, and their distances |
//! | `top_k_distance_join(left, right, d, k, left_score, right_score)` | the `k` pairs within a distance with the greatest sums of scores |
//! | `box_join(left, right, 'intersects')` | the pairs of boxes that intersect |
//! | `box_join(left, right, 'contains')` | the pairs of which the left box contains the right one |
//! | `box_join(left, right, 'within', d)` | the pairs of boxes within a distance |
//!
//! `left` and `right` are names of tables or of subqueries in `WITH`, subqueries in parentheses, or names of CSV, Parquet and LAS files
//! in quotes. A score is a column. The geometries are found by the types and names of columns ([`geometry`]), or named:
//! `left_geometry => 'start', right_geometry => 'position'`.
//!
//! The result has all columns of the left and of the right side, then `distance`, and `score` for `top_k_distance_join`. A column of the
//! right side gets the suffix `_right` if the left side has one of this name; a `distance` or `score` gets the suffix `_join` if a side
//! has one.

mod arguments;
pub mod geometry;
mod tables;

use crate::node::{OutputColumn, SpatialJoinNode, output_of};
use crate::options::KauriOptions;
use crate::predicate::{BoxRelation, Radius, SpatialPredicate, check_k};
use arguments::Arguments;
use datafusion::common::{Column, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::TableFactor;
use std::collections::HashSet;
use std::sync::Arc;
use tables::Tables;

/// Plans the table functions of a session.
#[derive(Debug)]
pub struct SpatialRelations {
    tables: Tables,
}

impl SpatialRelations {
    /// Creates the planner of a session's table functions.
    pub fn new(session: &SessionContext) -> Self {
        Self { tables: Tables::new(session) }
    }
}

impl RelationPlanner for SpatialRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, alias, args: Some(args), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(function) = Function::named(&name.to_string()) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let arguments = Arguments::new(function.usage(), args.args.clone(), &self.tables, context)?;
        let plan = function.plan(arguments)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// A table function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Knn,
    Distance,
    TopK,
    Boxes,
}

impl Function {
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "knn_join" => Some(Self::Knn),
            "distance_join" => Some(Self::Distance),
            "top_k_distance_join" => Some(Self::TopK),
            "box_join" => Some(Self::Boxes),
            _ => None,
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Knn => "knn_join(left, right, k [, within => d])",
            Self::Distance => "distance_join(left, right, d)",
            Self::TopK => "top_k_distance_join(left, right, d, k, left_score, right_score)",
            Self::Boxes => "box_join(left, right, 'intersects' | 'contains' | 'within' [, d])",
        }
    }

    fn plan(self, mut arguments: Arguments<'_, '_>) -> Result<LogicalPlan> {
        let sides = [arguments.table("left")?, arguments.table("right")?];
        let schemas = [sides[0].schema(), sides[1].schema()];
        let names = [arguments.optional_name("left_geometry")?, arguments.optional_name("right_geometry")?];
        let find = |side: usize| match self {
            Self::Boxes => geometry::box_column(schemas[side], names[side].as_deref(), SIDES[side]),
            _ => geometry::point_column(schemas[side], names[side].as_deref(), SIDES[side]),
        };
        let geometry = [find(0)?, find(1)?];
        let predicate = self.predicate(&mut arguments, &geometry, &sides)?;
        let scores = match self {
            Self::TopK => {
                Some([arguments.score("left_score", &sides[0])?, arguments.score("right_score", &sides[1])?])
            }
            _ => None,
        };
        arguments.finish()?;
        let mut output: Vec<OutputColumn> =
            schemas.into_iter().flat_map(|schema| output_of(schema)).collect();
        output.extend((self != Self::Boxes).then_some(OutputColumn::Distance));
        output.extend((self == Self::TopK).then_some(OutputColumn::Score));
        let node = SpatialJoinNode::try_new(sides.map(Arc::new), predicate, geometry, scores, output)?;
        with_unique_names(node)
    }

    fn predicate(
        self,
        arguments: &mut Arguments<'_, '_>,
        geometry: &[Expr; 2],
        sides: &[LogicalPlan; 2],
    ) -> Result<SpatialPredicate> {
        let radius = |value: f64| Radius::new(value, self.usage()).map_err(|error| error.in_plan());
        if self == Self::Boxes {
            return Ok(SpatialPredicate::Boxes(
                match arguments.text("predicate")?.to_ascii_lowercase().as_str() {
                    "intersects" => BoxRelation::Intersects,
                    "contains" => BoxRelation::Contains,
                    "within" => BoxRelation::Within(radius(arguments.number("d")?)?),
                    other => return plan_err!("{}: unknown predicate '{other}'", self.usage()),
                },
            ));
        }
        let options = arguments.config();
        let field = |side: usize| geometry[side].to_field(sides[side].schema().as_ref());
        let (left, right) = (field(0)?.1, field(1)?.1);
        let measure = crate::geometry::measure_of(&left, &right, KauriOptions::of(options).crs)
            .map_err(|error| error.in_plan())?;
        let check_k = |value: i64| check_k(value, self.usage()).map_err(|error| error.in_plan());
        Ok(match self {
            Self::Knn => SpatialPredicate::Knn {
                k: check_k(arguments.integer("k")?)?,
                within: arguments.optional_number("within")?.map(radius).transpose()?,
                measure,
            },
            Self::TopK => SpatialPredicate::TopK {
                radius: radius(arguments.number("d")?)?,
                k: check_k(arguments.integer("k")?)?,
                measure,
            },
            _ => SpatialPredicate::Within { radius: radius(arguments.number("d")?)?, measure },
        })
    }
}

/// The names of the sides, which qualify their columns below a join.
const SIDES: [&str; 2] = ["left", "right"];

/// Returns the result of a join with unqualified, unique names.
fn with_unique_names(node: SpatialJoinNode) -> Result<LogicalPlan> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut name_of = |output: &OutputColumn, column: &Column| {
        let suffix = if matches!(output, OutputColumn::Input(_)) { "_right" } else { "_join" };
        let mut name = column.name.clone();
        while !taken.insert(name.clone()) {
            name.push_str(suffix);
        }
        name
    };
    let exprs = node.output.iter().map(|output| {
        let column = output.column();
        let name = name_of(output, &column);
        Expr::Column(column).alias(name)
    });
    let exprs = exprs.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(node.into_plan()))?))
}
