//! The tables that are arguments of a table function.

use super::arguments::text_of;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, ObjectName, TableFactor};
use std::fmt;
use std::sync::Arc;

/// Finds the tables of a session.
pub(super) struct Tables {
    /// Returns the state of the session, unless the session is gone.
    state: Box<dyn Fn() -> Option<SessionState> + Send + Sync>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl Tables {
    pub(super) fn new(session: &SessionContext) -> Self {
        let state = session.state_weak_ref();
        Self { state: Box::new(move || state.upgrade().map(|state| state.read().clone())) }
    }

    /// Plans an argument that is a table: a name, a subquery, or the name of a file in quotes.
    pub(super) fn plan(
        &self,
        usage: &str,
        expr: SqlExpr,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        if let Some(file) = text_of(&expr) {
            return self.scan(TableReference::bare(file));
        }
        match expr {
            SqlExpr::Subquery(subquery) => {
                context.plan(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })
            }
            SqlExpr::Nested(expr) => self.plan(usage, *expr, context),
            SqlExpr::Identifier(name) => self.named(ObjectName::from(vec![name]), context),
            SqlExpr::CompoundIdentifier(names) => self.named(ObjectName::from(names), context),
            other => plan_err!(
                "{usage}: {other} is not a table; give a name, a subquery in parentheses, or a file in quotes"
            ),
        }
    }

    /// Plans a name of `WITH` or of a table. The engine has resolved only tables that it found outside of arguments.
    fn named(&self, name: ObjectName, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let reference = context.object_name_to_table_reference(name.clone())?;
        let relation = TableFactor::Table {
            name,
            alias: None,
            args: None,
            with_hints: vec![],
            version: None,
            with_ordinality: false,
            partitions: vec![],
            json_path: None,
            sample: None,
            index_hints: vec![],
        };
        context.plan(relation).or_else(|_| self.scan(reference))
    }

    /// Plans the scan of a table or a file.
    fn scan(&self, reference: TableReference) -> Result<LogicalPlan> {
        let Some(state) = (self.state)() else { return plan_err!("the session has ended") };
        match block_on(find(&state, &reference))? {
            Some(table) => LogicalPlanBuilder::scan(reference, provider_as_source(table), None)?.build(),
            None => plan_err!("table or file '{}' not found", reference.table()),
        }
    }
}

async fn find(state: &SessionState, reference: &TableReference) -> Result<Option<Arc<dyn TableProvider>>> {
    let schema = state.schema_for_ref(reference.clone())?;
    schema.table(reference.table()).await
}

/// Waits for a future on another thread, because the planner of the engine is not asynchronous.
fn block_on<T: Send>(future: impl Future<Output = Result<T>> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let run = || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future);
        scope
            .spawn(run)
            .join()
            .unwrap_or_else(|_| Err(DataFusionError::Internal("the lookup of a table panicked".into())))
    })
}
