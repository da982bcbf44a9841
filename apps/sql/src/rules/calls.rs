//! Calls of functions in expressions.

use crate::geometry::{Measure, measure_of};
use crate::options::KauriOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable};

/// Returns the arguments of a call of a function.
pub(super) fn arguments<'a, const N: usize>(expr: &'a Expr, function: &str) -> Option<&'a [Expr; N]> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == function => call.args.as_slice().try_into().ok(),
        _ => None,
    }
}

/// Returns true if an expression contains a call of a function.
pub(super) fn contains_call(expr: &Expr, function: &str) -> bool {
    let mut found = false;
    // The closure has no errors.
    let _ = expr.apply(|expr| {
        found |= matches!(expr, Expr::ScalarFunction(call) if call.name() == function);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Returns a constant number.
pub(super) fn constant(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&datafusion::arrow::datatypes::DataType::Float64) {
            Ok(ScalarValue::Float64(value)) => value,
            _ => None,
        },
        Expr::Cast(cast) => constant(&cast.expr),
        _ => None,
    }
}

/// Returns 0 or 1 for the input that has all columns of an expression; `None` if none has, or if there are no columns.
pub(super) fn side_of(expr: &Expr, inputs: [&DFSchema; 2]) -> Option<usize> {
    let columns = expr.column_refs();
    let has_all = |input: &DFSchema| columns.iter().all(|column| input.has_column(column));
    if columns.is_empty() { None } else { inputs.iter().position(|input| has_all(input)) }
}

/// Returns the measure of the distances of two expressions, each of which is about one input.
pub(super) fn measure(exprs: [&Expr; 2], inputs: [&DFSchema; 2], config: &ConfigOptions) -> Result<Measure> {
    let field =
        |index: usize| Ok::<_, datafusion::error::DataFusionError>(exprs[index].to_field(inputs[index])?.1);
    let (left, right) = (field(0)?, field(1)?);
    measure_of(&left, &right, KauriOptions::of(config).crs).map_err(|error| error.in_plan())
}
