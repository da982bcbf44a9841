//! The physical operator of spatial joins.
//!
//! | step | file |
//! |---|---|
//! | collect the right side, or write it to disk if it does not fit into memory | `build`, `spilled` |
//! | gather left batches | `gather` |
//! | join them on a thread for blocking work | `probe` |
//! | call kauri | `joiner`, `nearest`, `distances` |
//! | merge the nearest rows of several parts of the right side | `merge` |
//! | copy the columns of pairs | `output` |

mod best;
mod build;
mod device;
mod distances;
mod gather;
mod joiner;
mod memory;
mod merge;
mod nearest;
mod order;
mod output;
mod part;
mod probe;
mod reader;
mod rows;
mod scored;
mod side;
mod spilled;

pub use device::set_devices;

use crate::options::KauriOptions;
use crate::predicate::SpatialPredicate;
use build::{Build, SharedBuild};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
    apply_expression_roots,
};
use gather::{Gather, GatherRows};
use joiner::Joiner;
use output::Output;
use probe::Probe;
use reader::SideReader;
use rows::Columns;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The batches of a result that may wait for their receiver. Threads that compute and threads that receive share the processors, so with few
/// batches each would often wait for the other.
const OUTPUT_BATCHES: usize = 16;

/// A column of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputIndex {
    /// A column of the left input.
    Left(usize),
    /// A column of the right input.
    Right(usize),
    /// The distance of the two points.
    Distance,
    /// The sum of the scores of the two points.
    Score,
}

/// Joins two inputs by their points or boxes.
///
/// The right input is collected once and indexed. The left input is streamed: each of its partitions is joined with all of the right
/// input. A join of the best pairs collects both inputs. The results are equal on every device and for any partitioning, except for the
/// choice among pairs of equal scores.
///
/// With the parts of rows, both inputs are partitioned by them, and each partition of the left input is joined with that of the right one.
/// A top-k join then returns the best pairs of each partition.
///
/// If the right input does not fit into memory, it is written to disk, and the left rows are joined with one part of it after another.
#[derive(Debug)]
pub struct SpatialJoinExec {
    inputs: [Arc<dyn ExecutionPlan>; 2],
    predicate: SpatialPredicate,
    geometry: [Arc<dyn PhysicalExpr>; 2],
    scores: Option<[Arc<dyn PhysicalExpr>; 2]>,
    parts: Option<[Arc<dyn PhysicalExpr>; 2]>,
    output: Vec<OutputIndex>,
    /// The right side of a join of all rows, which the first partition that runs begins to collect.
    build: OnceLock<SharedBuild>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl SpatialJoinExec {
    /// Creates a join of the left and the right input. The expressions are about the inputs of the same index.
    ///
    /// # Errors
    /// Errors of the engine for a column that an input does not have.
    pub fn try_new(
        inputs: [Arc<dyn ExecutionPlan>; 2],
        predicate: SpatialPredicate,
        geometry: [Arc<dyn PhysicalExpr>; 2],
        scores: Option<[Arc<dyn PhysicalExpr>; 2]>,
        parts: Option<[Arc<dyn PhysicalExpr>; 2]>,
        output: Vec<OutputIndex>,
    ) -> Result<Self> {
        let is_single = parts.is_none() && matches!(predicate, SpatialPredicate::TopK { .. });
        let partitions = if is_single { 1 } else { inputs[0].output_partitioning().partition_count() };
        let properties = Arc::new(properties(&inputs, partitions, &output)?);
        let (build, metrics) = (OnceLock::new(), ExecutionPlanMetricsSet::new());
        Ok(Self { inputs, predicate, geometry, scores, parts, output, build, metrics, properties })
    }

    /// Returns the pairs that it finds.
    pub fn predicate(&self) -> &SpatialPredicate {
        &self.predicate
    }

    /// Returns the geometries of the left and the right input.
    pub fn geometry(&self) -> &[Arc<dyn PhysicalExpr>; 2] {
        &self.geometry
    }

    /// Returns the scores of the left and the right input.
    pub fn scores(&self) -> Option<&[Arc<dyn PhysicalExpr>; 2]> {
        self.scores.as_ref()
    }

    /// Returns the parts of the rows of the left and the right input.
    pub fn parts(&self) -> Option<&[Arc<dyn PhysicalExpr>; 2]> {
        self.parts.as_ref()
    }

    /// Returns the columns of the result.
    pub fn output(&self) -> &[OutputIndex] {
        &self.output
    }

    /// Returns the join of other inputs with equal schemas.
    fn with_inputs(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let Ok(inputs) = <[_; 2]>::try_from(inputs) else {
            return internal_err!("a spatial join has two inputs");
        };
        let (geometry, scores, parts) = (self.geometry.clone(), self.scores.clone(), self.parts.clone());
        Self::try_new(inputs, self.predicate, geometry, scores, parts, self.output.clone())
    }

    fn reader(&self, side: usize, options: &KauriOptions) -> SideReader {
        let score = self.scores.as_ref().map(|scores| Arc::clone(&scores[side]));
        let column = |output: &OutputIndex| match (side, *output) {
            (0, OutputIndex::Left(index)) | (1, OutputIndex::Right(index)) => Some(index),
            _ => None,
        };
        let columns = Columns::Some(self.output.iter().filter_map(column).collect());
        let geometry = Arc::clone(&self.geometry[side]);
        SideReader::new(geometry, score, self.predicate.measure(), options.nulls, columns)
    }

    /// Returns the right side of a partition, which is collected once if it is that of all partitions.
    fn build(&self, partition: usize, options: &KauriOptions, context: &Arc<TaskContext>) -> SharedBuild {
        let build = |partition| {
            let input = Arc::clone(&self.inputs[1]);
            let reader = self.reader(1, options);
            Build::new(input, partition, reader, self.predicate, options, context, &self.metrics).shared()
        };
        match self.parts {
            Some(_) => build(partition),
            None => self.build.get_or_init(|| build(0)).clone(),
        }
    }
}

fn properties(
    inputs: &[Arc<dyn ExecutionPlan>; 2],
    partitions: usize,
    output: &[OutputIndex],
) -> Result<PlanProperties> {
    let schemas = [inputs[0].schema(), inputs[1].schema()];
    let field = |schema: &Schema, index: usize| match schema.fields().get(index) {
        Some(field) => Ok(Arc::clone(field)),
        None => internal_err!("a spatial join has no input column {index}"),
    };
    let fields = output.iter().map(|output| match *output {
        OutputIndex::Left(index) => field(&schemas[0], index),
        OutputIndex::Right(index) => field(&schemas[1], index),
        OutputIndex::Distance => Ok(Arc::new(Field::new("distance", DataType::Float64, false))),
        OutputIndex::Score => Ok(Arc::new(Field::new("score", DataType::Float64, false))),
    });
    let fields: Vec<FieldRef> = fields.collect::<Result<_>>()?;
    Ok(PlanProperties::new(
        EquivalenceProperties::new(Arc::new(Schema::new(fields))),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for SpatialJoinExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.geometry;
        match format {
            DisplayFormatType::TreeRender => write!(f, "{}", self.predicate)?,
            _ => write!(f, "SpatialJoinExec: {}, left={left}, right={right}", self.predicate)?,
        }
        if self.parts.is_some() {
            return f.write_str(", part by part");
        }
        // The device is known once the right side has been collected: EXPLAIN ANALYZE shows it.
        match self.build.get().and_then(SharedBuild::peek) {
            Some(Ok(build)) => write!(f, ", device={}", build.device()),
            _ => Ok(()),
        }
    }
}

impl ExecutionPlan for SpatialJoinExec {
    fn name(&self) -> &str {
        "SpatialJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        if let Some(parts) = &self.parts {
            let by_part = parts.iter().map(|part| Distribution::KeyPartitioned(vec![Arc::clone(part)]));
            return InputDistributionRequirements::co_partitioned(by_part.collect());
        }
        let left = match self.predicate {
            SpatialPredicate::TopK { .. } => Distribution::SinglePartition,
            _ => Distribution::UnspecifiedDistribution,
        };
        InputDistributionRequirements::new(vec![left, Distribution::SinglePartition])
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let optional = [&self.scores, &self.parts].into_iter().flatten().flatten();
        apply_expression_roots(self.geometry.iter().chain(optional), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_inputs(children)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_inputs(self.inputs.to_vec())?))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let config: &ConfigOptions = context.session_config().options();
        let options = KauriOptions::of(config);
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), OUTPUT_BATCHES);
        let output =
            Output::new(self.schema(), self.output.clone(), builder.tx(), &context, &self.metrics, partition);
        let gather_rows = match self.predicate {
            SpatialPredicate::TopK { .. } => GatherRows::All,
            _ => GatherRows::Some(options.probe_rows.max(1)),
        };
        let input = self.inputs[0].execute(partition, Arc::clone(&context))?;
        let input_rows = MetricBuilder::new(&self.metrics).counter("input_rows", partition);
        let left = Gather::new(input, self.reader(0, &options), gather_rows, &context, input_rows);
        let build = self.build(partition, &options, &context);
        let joiner = Joiner::new(self.predicate, &options, &self.output);
        let time = MetricBuilder::new(&self.metrics).subset_time("join_time", partition);
        builder.spawn(Probe { joiner, output, context, time }.run(left, build));
        Ok(builder.build())
    }
}
