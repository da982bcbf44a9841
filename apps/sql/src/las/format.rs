//! The file format that the engine finds by the ending of a name.

use super::columns::fields;
use super::source::{LasSource, local_path, open};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{GetExt, Statistics, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_plan::ExecutionPlan;
use kauri::io::Attributes;
use std::collections::HashMap;
use std::sync::Arc;

/// Adds the file formats to the state of a session, and their names to `CREATE EXTERNAL TABLE`.
pub fn register(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    for format in LasFormatFactory::all() {
        let name = format.get_ext().to_uppercase();
        builder.file_formats().get_or_insert_default().push(Arc::new(format));
        builder = builder.with_table_factory(name, Arc::new(DefaultTableFactory::new()));
    }
    builder
}

/// Makes the [`LasFormat`] of an ending.
#[derive(Clone, Copy, Debug)]
pub struct LasFormatFactory {
    extension: &'static str,
}

impl LasFormatFactory {
    /// Returns the factories of the endings `las` and `laz`.
    pub fn all() -> [Self; 2] {
        ["las", "laz"].map(|extension| Self { extension })
    }
}

impl FileFormatFactory for LasFormatFactory {
    fn create(&self, _: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        match options.keys().next() {
            Some(option) => plan_err!("unknown option '{option}': LAS files have no options"),
            None => Ok(self.default()),
        }
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(LasFormat { extension: self.extension })
    }
}

impl GetExt for LasFormatFactory {
    fn get_ext(&self) -> String {
        self.extension.into()
    }
}

/// LAS and LAZ files.
#[derive(Clone, Copy, Debug)]
pub struct LasFormat {
    extension: &'static str,
}

#[async_trait]
impl FileFormat for LasFormat {
    fn get_ext(&self) -> String {
        self.extension.into()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match compression.is_compressed() {
            true => plan_err!("a LAS file is not compressed again"),
            false => Ok(self.get_ext()),
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let mut attributes = Attributes::default();
        let mut first: Option<(String, Option<String>)> = None;
        for object in objects {
            let path = local_path(store, &object.location).await?;
            let files = open(path).await?;
            let file = &files.files()[0];
            attributes = attributes.or(file.attributes());
            let crs = file.reference_system().map(|crs| match crs.epsg {
                Some(code) => format!("EPSG:{code}"),
                None => crs.to_string(),
            });
            match &first {
                None => first = Some((object.location.to_string(), crs)),
                Some((other, expected)) if crs != *expected => {
                    let name = |crs: &Option<String>| crs.clone().unwrap_or_else(|| "no system".into());
                    return plan_err!(
                        "{other} is in {} and {} in {}: convert one of them, or read them as two tables",
                        name(expected),
                        object.location,
                        name(&crs)
                    );
                }
                Some(_) => {}
            }
        }
        let crs = first.and_then(|(_, crs)| crs);
        Ok(Arc::new(Schema::new(fields(attributes, crs.as_deref()))))
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let path = local_path(store, &object.location).await?;
        let num_points = open(path).await?.num_points();
        let mut statistics = Statistics::new_unknown(&table_schema);
        statistics.num_rows = Precision::Exact(num_points as usize);
        Ok(statistics)
    }

    async fn create_physical_plan(
        &self,
        _: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(LasSource::new(table_schema))
    }
}
