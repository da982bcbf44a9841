//! The logical plan of a spatial join.

use crate::predicate::SpatialPredicate;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, DFSchemaRef, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The qualifier of the columns that a join computes.
const QUALIFIER: &str = "spatial_join";

/// A column of a join's result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub enum OutputColumn {
    /// A column of the left or the right input.
    Input(Column),
    /// The distance of the two points.
    Distance,
    /// The sum of the scores of the two points.
    Score,
}

impl OutputColumn {
    /// Returns the column of the result that has it.
    pub fn column(&self) -> Column {
        match self {
            Self::Input(column) => column.clone(),
            Self::Distance => computed("distance"),
            Self::Score => computed("score"),
        }
    }
}

fn computed(name: &str) -> Column {
    Column::new(Some(QUALIFIER), name)
}

/// A spatial join of two inputs. The left one is streamed and the right one is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpatialJoinNode {
    /// The left input.
    pub left: Arc<LogicalPlan>,
    /// The right input.
    pub right: Arc<LogicalPlan>,
    /// The pairs that it finds.
    pub predicate: SpatialPredicate,
    /// The geometries of the left and the right input.
    pub geometry: [Expr; 2],
    /// The scores of the left and the right input, for [`SpatialPredicate::TopK`].
    pub scores: Option<[Expr; 2]>,
    /// The columns of the result.
    pub output: Vec<OutputColumn>,
    /// The part of each left and each right row; `None` if all rows are joined together.
    pub parts: Option<[Expr; 2]>,
    schema: DFSchemaRef,
}

impl SpatialJoinNode {
    /// Creates a join of all rows.
    ///
    /// # Errors
    /// The engine's errors of a column that no input has, or that both have.
    pub fn try_new(
        [left, right]: [Arc<LogicalPlan>; 2],
        predicate: SpatialPredicate,
        geometry: [Expr; 2],
        scores: Option<[Expr; 2]>,
        output: Vec<OutputColumn>,
    ) -> Result<Self> {
        let schema = Arc::new(schema_of([left.schema(), right.schema()], &output)?);
        Ok(Self { left, right, predicate, geometry, scores, output, parts: None, schema })
    }

    /// Returns the join with other columns of its result.
    ///
    /// # Errors
    /// The errors of [`try_new`](Self::try_new).
    pub fn with_output(&self, output: Vec<OutputColumn>) -> Result<Self> {
        self.with_inputs([Arc::clone(&self.left), Arc::clone(&self.right)], self.parts.clone(), output)
    }

    /// Returns the join of other inputs, part by part if the parts of their rows are given.
    ///
    /// # Errors
    /// The errors of [`try_new`](Self::try_new).
    pub fn with_inputs(
        &self,
        inputs: [Arc<LogicalPlan>; 2],
        parts: Option<[Expr; 2]>,
        output: Vec<OutputColumn>,
    ) -> Result<Self> {
        let join = Self::try_new(inputs, self.predicate, self.geometry.clone(), self.scores.clone(), output)?;
        Ok(Self { parts, ..join })
    }

    /// Returns the join as a plan.
    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// Returns the join if a plan is one.
    pub fn of(plan: &LogicalPlan) -> Option<&Self> {
        let LogicalPlan::Extension(extension) = plan else { return None };
        extension.node.as_any().downcast_ref()
    }
}

/// Returns the columns of a schema as columns of a join's result.
pub fn output_of(schema: &DFSchema) -> impl Iterator<Item = OutputColumn> + '_ {
    schema.columns().into_iter().map(OutputColumn::Input)
}

fn schema_of(inputs: [&DFSchemaRef; 2], output: &[OutputColumn]) -> Result<DFSchema> {
    let field_of = |output: &OutputColumn| match output {
        OutputColumn::Input(column) => {
            let input = inputs[usize::from(!inputs[0].has_column(column))];
            let (qualifier, field) = input.qualified_field_from_column(column)?;
            Ok((qualifier.cloned(), Arc::clone(field)))
        }
        OutputColumn::Distance | OutputColumn::Score => {
            let column = output.column();
            Ok((column.relation, Arc::new(Field::new(column.name, DataType::Float64, false))))
        }
    };
    let fields: Vec<(Option<TableReference>, _)> = output.iter().map(field_of).collect::<Result<_>>()?;
    DFSchema::new_with_metadata(fields, Default::default())
}

impl Hash for SpatialJoinNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.left, &self.right, &self.predicate, &self.geometry, &self.scores, &self.output, &self.parts)
            .hash(state);
    }
}

impl PartialOrd for SpatialJoinNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.predicate, node.geometry.clone(), node.output.clone());
        key(self).partial_cmp(&key(other)).filter(|&order| order != Ordering::Equal || self == other)
    }
}

impl UserDefinedLogicalNodeCore for SpatialJoinNode {
    fn name(&self) -> &str {
        "SpatialJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let optional = [&self.scores, &self.parts].into_iter().flatten().flatten();
        self.geometry.iter().chain(optional).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpatialJoin: {}, left={}, right={}", self.predicate, self.geometry[0], self.geometry[1])
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut exprs = exprs.into_iter();
        let mut pair = || exprs.next().zip(exprs.next()).map(|(left, right)| [left, right]);
        let geometry = pair().expect("a join has two geometries");
        let scores = self.scores.as_ref().and_then(|_| pair());
        let parts = self.parts.as_ref().and_then(|_| pair());
        let mut inputs = inputs.into_iter().map(Arc::new);
        let (left, right) = inputs.next().zip(inputs.next()).expect("a join has two inputs");
        let join = Self::try_new([left, right], self.predicate, geometry, scores, self.output.clone())?;
        Ok(Self { parts, ..join })
    }

    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        // All columns of `output`, which the rule `PruneOutput` reduces.
        let necessary = |input: &LogicalPlan| {
            let index = |output: &OutputColumn| match output {
                OutputColumn::Input(column) => input.schema().maybe_index_of_column(column),
                OutputColumn::Distance | OutputColumn::Score => None,
            };
            let mut indices: Vec<usize> = self.output.iter().filter_map(index).collect();
            indices.sort_unstable();
            indices
        };
        Some(vec![necessary(&self.left), necessary(&self.right)])
    }
}
