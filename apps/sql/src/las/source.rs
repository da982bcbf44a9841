//! Scans of LAS files.

use super::columns::{Rows, Selection};
use crate::error::from_kauri;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_datafusion_err, not_impl_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::object_store::path::Path;
use datafusion::object_store::{GetOptions, GetResultPayload, ObjectStore};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::apply_expression_roots;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::{FutureExt, StreamExt};
use kauri::io::{CloudChunk, CloudFiles};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows of a batch, unless the session has another number.
const BATCH_ROWS: usize = 8192;

/// Batches that are ready while the engine uses the one before.
const BATCHES_AHEAD: usize = 2;

/// The scan of LAS files, within a [`DataSourceExec`](datafusion::datasource::source::DataSourceExec).
///
/// It has no state but the schema of its table and its projection. A codec for plans therefore rebuilds it by [`new`](Self::new) and the
/// projection of the `FileScanConfig`.
#[derive(Clone)]
pub struct LasSource {
    table_schema: TableSchema,
    projection: SplitProjection,
    batch_rows: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl LasSource {
    /// Creates the scan of all columns of a table.
    pub fn new(table_schema: impl Into<TableSchema>) -> Self {
        let table_schema = table_schema.into();
        let projection = SplitProjection::unprojected(&table_schema);
        let metrics = ExecutionPlanMetricsSet::new();
        Self { table_schema, projection, batch_rows: BATCH_ROWS, metrics }
    }
}

impl FileSource for LasSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        _: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let schema = self.table_schema.file_schema();
        let projected = Arc::new(schema.project(&self.projection.file_indices)?);
        let opener = LasOpener { store, schema: projected, batch_rows: self.batch_rows };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_rows: batch_size.max(1), ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "las"
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Opens the files of a scan.
struct LasOpener {
    store: Arc<dyn ObjectStore>,
    /// The columns that are read.
    schema: SchemaRef,
    batch_rows: usize,
}

impl FileOpener for LasOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, schema, batch_rows) =
            (Arc::clone(&self.store), Arc::clone(&self.schema), self.batch_rows);
        let stream = async move {
            let files = open(local_path(&store, &file.object_meta.location).await?).await?;
            let selection = Selection::new(Arc::clone(&schema), files.files()[0].attributes());
            let mut builder = RecordBatchReceiverStream::builder(schema, BATCHES_AHEAD);
            let batches = builder.tx();
            builder.spawn_blocking(move || {
                let lattice = files.lattice();
                let read = files.for_each_chunk(&selection.attributes, |chunk| {
                    for rows in rows_of(&chunk, batch_rows, &lattice) {
                        let batch = selection.batch(&rows);
                        // A receiver that is gone needs no more rows.
                        if batches.blocking_send(batch).is_err() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                });
                read.map_err(from_kauri)
            });
            Ok(builder.build().boxed())
        };
        Ok(stream.boxed())
    }
}

/// Returns the path of a file in a store.
///
/// # Errors
/// For a file that is not on this computer.
pub(super) async fn local_path(store: &Arc<dyn ObjectStore>, location: &Path) -> Result<PathBuf> {
    match store.get_opts(location, GetOptions::default()).await?.payload {
        GetResultPayload::File(_, path) => Ok(path),
        GetResultPayload::Stream(_) => not_impl_err!("{location}: LAS files are read from local disks only"),
    }
}

/// Reads what describes the points of a file.
pub(super) async fn open(path: PathBuf) -> Result<CloudFiles> {
    let open = SpawnedTask::spawn_blocking(move || CloudFiles::open(&[path]).map_err(from_kauri));
    open.join_unwind().await.map_err(|error| exec_datafusion_err!("a file was not opened: {error}"))?
}

/// Returns the points of a chunk in ranges of `batch_rows`.
fn rows_of<'a>(
    chunk: &'a CloudChunk,
    batch_rows: usize,
    lattice: &'a kauri::Lattice,
) -> impl Iterator<Item = Rows<'a>> {
    let len = chunk.points.len();
    let begins = (0..len).step_by(batch_rows);
    begins.map(move |begin| Rows { chunk, lattice, range: begin..len.min(begin + batch_rows) })
}
