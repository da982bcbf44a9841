//! The arguments of a table function.

use super::tables::Tables;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, FunctionArg, FunctionArgExpr, Value};
use std::collections::{HashMap, VecDeque};

/// The arguments of a call that have not been read yet: by position, and by name.
pub(super) struct Arguments<'a, 'c> {
    usage: &'static str,
    positional: VecDeque<SqlExpr>,
    named: HashMap<String, SqlExpr>,
    tables: &'a Tables,
    context: &'a mut (dyn RelationPlannerContext + 'c),
}

impl<'a, 'c> Arguments<'a, 'c> {
    pub(super) fn new(
        usage: &'static str,
        args: Vec<FunctionArg>,
        tables: &'a Tables,
        context: &'a mut (dyn RelationPlannerContext + 'c),
    ) -> Result<Self> {
        let (mut positional, mut named) = (VecDeque::new(), HashMap::new());
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if named.is_empty() => {
                    positional.push_back(expr)
                }
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                    named.insert(name.value.to_ascii_lowercase(), expr);
                }
                FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                    named.insert(name.to_string().to_ascii_lowercase(), expr);
                }
                other => return plan_err!("{usage}: unexpected argument {other}"),
            }
        }
        Ok(Self { usage, positional, named, tables, context })
    }

    /// Returns the session's options.
    pub(super) fn config(&self) -> &ConfigOptions {
        self.context.context_provider().options()
    }

    /// Checks that all arguments have been read.
    pub(super) fn finish(self) -> Result<()> {
        let left_over =
            self.positional.iter().map(ToString::to_string).chain(self.named.keys().cloned()).next();
        left_over.map_or(Ok(()), |argument| plan_err!("{}: unexpected argument {argument}", self.usage))
    }

    /// Reads a table, whose columns get the qualifier `name`.
    pub(super) fn table(&mut self, name: &'static str) -> Result<LogicalPlan> {
        let expr = self.required(name)?;
        let plan = self.tables.plan(self.usage, expr, self.context)?;
        LogicalPlanBuilder::from(plan).alias(TableReference::bare(name))?.build()
    }

    /// Reads the name of a column, if the argument is given.
    pub(super) fn optional_name(&mut self, name: &'static str) -> Result<Option<String>> {
        self.named.remove(name).map(|expr| self.name_of(name, expr)).transpose()
    }

    /// Reads the name of a numeric column of a table, and returns its values as `f64`.
    pub(super) fn score(&mut self, name: &'static str, table: &LogicalPlan) -> Result<Expr> {
        let expr = self.required(name)?;
        let column = self.name_of(name, expr)?;
        let schema = table.schema();
        let Some((qualifier, field)) =
            schema.iter().find(|(_, field)| field.name().eq_ignore_ascii_case(&column))
        else {
            return plan_err!(
                "{}: {name}: no column '{column}'; the columns are: {}",
                self.usage,
                names(schema)
            );
        };
        if !field.data_type().is_numeric() {
            return plan_err!(
                "{}: {name}: column '{column}' has type {}, expected numbers",
                self.usage,
                field.data_type()
            );
        }
        Ok(cast(Expr::Column(Column::new(qualifier.cloned(), field.name())), DataType::Float64))
    }

    /// Reads a text.
    pub(super) fn text(&mut self, name: &'static str) -> Result<String> {
        let expr = self.required(name)?;
        match text_of(&expr) {
            Some(text) => Ok(text),
            None => plan_err!("{}: {name} must be a text in quotes, not {expr}", self.usage),
        }
    }

    /// Reads a constant number.
    pub(super) fn number(&mut self, name: &'static str) -> Result<f64> {
        let expr = self.required(name)?;
        self.number_of(name, expr)
    }

    /// Reads a constant number, if the argument is given.
    pub(super) fn optional_number(&mut self, name: &'static str) -> Result<Option<f64>> {
        self.optional(name).map(|expr| self.number_of(name, expr)).transpose()
    }

    /// Reads a constant integer.
    pub(super) fn integer(&mut self, name: &'static str) -> Result<i64> {
        let expr = self.required(name)?;
        let text = expr.to_string();
        match self.constant(expr)?.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(value))) => Ok(value),
            _ => plan_err!("{}: {name} must be an integer, not {text}", self.usage),
        }
    }

    fn optional(&mut self, name: &str) -> Option<SqlExpr> {
        self.positional.pop_front().or_else(|| self.named.remove(name))
    }

    fn required(&mut self, name: &str) -> Result<SqlExpr> {
        match self.optional(name) {
            Some(expr) => Ok(expr),
            None => plan_err!("{}: the argument {name} is missing", self.usage),
        }
    }

    fn name_of(&self, name: &str, expr: SqlExpr) -> Result<String> {
        match (&expr, text_of(&expr)) {
            (_, Some(text)) => Ok(text),
            (SqlExpr::Identifier(identifier), None) => Ok(self.context.normalize_ident(identifier.clone())),
            _ => plan_err!("{}: {name} must be the name of a column, not {expr}", self.usage),
        }
    }

    fn number_of(&mut self, name: &str, expr: SqlExpr) -> Result<f64> {
        let text = expr.to_string();
        match self.constant(expr)?.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(Some(value))) => Ok(value),
            _ => plan_err!("{}: {name} must be a number, not {text}", self.usage),
        }
    }

    /// Evaluates a constant expression.
    fn constant(&mut self, expr: SqlExpr) -> Result<ScalarValue> {
        let text = expr.to_string();
        let expr = self.context.sql_to_expr(expr, &DFSchema::empty());
        let simplifier = ExprSimplifier::new(SimplifyContext::default());
        match expr.and_then(|expr| simplifier.simplify(expr)) {
            Ok(Expr::Literal(value, _)) => Ok(value),
            _ => plan_err!("{}: {text} is not a constant", self.usage),
        }
    }
}

/// Returns the value of a text in quotes.
pub(super) fn text_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the names of a schema's columns for an error.
pub(super) fn names(schema: &DFSchema) -> String {
    schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
}
