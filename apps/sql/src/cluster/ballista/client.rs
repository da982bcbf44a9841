//! Sessions whose queries run in a cluster.

use super::{codec, config};
use crate::planner::SpatialQueryPlanner;
use crate::session::{register, register_tables};
use async_trait::async_trait;
use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use ballista_core::planner::scans_only_information_schema;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// Creates a session of the cluster whose scheduler is at a URL, such as `ballista://127.0.0.1:50050`.
///
/// # Errors
/// A plan error for another URL. A scheduler that cannot be reached is an error of the first query.
pub fn session(url: &str) -> Result<SessionContext> {
    session_with(url, config())
}

/// Creates a session as [`session`] does, with a configuration that was made from [`config`].
///
/// # Errors
/// As [`session`].
pub fn session_with(url: &str, config: SessionConfig) -> Result<SessionContext> {
    let Some(address) = url.strip_prefix("ballista://").filter(|address| !address.is_empty()) else {
        return plan_err!("{url} is not the address of a cluster; expected ballista://HOST:PORT");
    };
    let planner = ClusterPlanner { scheduler: format!("http://{address}") };
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let state = register(builder).with_query_planner(Arc::new(planner)).build();
    let session = SessionContext::new_with_state(state).enable_url_table();
    register_tables(&session)?;
    Ok(session)
}

/// Plans queries here, and makes one operator of their plans, which the cluster runs.
#[derive(Debug)]
struct ClusterPlanner {
    scheduler: String,
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let physical = SpatialQueryPlanner.create_physical_plan(plan, session).await?;
        let is_local = matches!(plan, LogicalPlan::Explain(_)) || scans_only_information_schema(plan)?;
        if is_local {
            return Ok(physical);
        }
        Ok(Arc::new(ClusterExec::new(self.scheduler.clone(), physical)))
    }
}

/// Runs a plan in a cluster.
#[derive(Debug)]
struct ClusterExec {
    scheduler: String,
    plan: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ClusterExec {
    fn new(scheduler: String, plan: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(plan.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { scheduler, plan, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for ClusterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterExec: scheduler={}", self.scheduler)
    }
}

impl ExecutionPlan for ClusterExec {
    fn name(&self) -> &str {
        "ClusterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    // Nobody here may change the plan.
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (scheduler, plan) = (self.scheduler.clone(), Arc::clone(&self.plan));
        let rows = async move {
            let config = context.session_config();
            execute_physical_plan::<PhysicalPlanNode>(
                scheduler,
                &config.ballista_config(),
                plan,
                codec().as_ref(),
                context.session_id(),
                config.clone(),
            )
            .await
        };
        let received = MetricBuilder::new(&self.metrics).output_rows(partition);
        let count = move |batch: &RecordBatch| received.add(batch.num_rows());
        let rows = futures::stream::once(rows).try_flatten().inspect_ok(count).boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
