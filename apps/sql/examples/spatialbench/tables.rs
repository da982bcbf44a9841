//! The tables `trip` (t_tripkey, t_pickuploc) and `building` (b_buildingkey, b_name, center).

use crate::generate::Clusters;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray, StructArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// The rows of a generated batch.
const BATCH_ROWS: u64 = 1 << 16;

/// Registers the files of SpatialBench's generator. The centers of buildings are computed here.
pub(crate) async fn read(session: &SessionContext, folder: &Path) -> Result<()> {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    session.register_parquet("all_trips", file("trip.parquet"), ParquetReadOptions::new()).await?;
    let buildings = session.read_parquet(file("building.parquet"), ParquetReadOptions::new()).await?;
    let buildings = buildings.select_columns(&["b_buildingkey", "b_name", "b_boundary"])?.collect().await?;
    let mut batches = Vec::new();
    for batch in buildings {
        let polygons = cast(batch.column(2), &DataType::Binary)?;
        let centers = polygons.as_binary::<i32>().iter().map(|polygon| polygon.and_then(box_center));
        let centers: Option<Vec<[f64; 2]>> = centers.collect();
        let centers =
            centers.ok_or_else(|| DataFusionError::Execution("b_boundary is not a polygon".into()))?;
        batches.push(building_batch(
            Arc::clone(batch.column(0)),
            cast(batch.column(1), &DataType::Utf8)?,
            &centers,
        )?);
    }
    add_table(session, "building", vec![batches])
}

/// Registers generated tables of a scale factor.
pub(crate) fn generate(session: &SessionContext, scale: f64) -> Result<()> {
    // SpatialBench's numbers of rows.
    let len = (6e6 * scale) as u64;
    let buildings = (2e4 * (1.0 + scale.log2())) as u64;
    let clusters = Clusters::trips();
    let starts: Vec<u64> = (0..len).step_by(BATCH_ROWS as usize).collect();
    let batches: Result<Vec<RecordBatch>> = starts
        .into_par_iter()
        .map(|start| trip_batch(&clusters, start..len.min(start + BATCH_ROWS)))
        .collect();
    let batches = batches?;
    let partition = batches.len().div_ceil(rayon::current_num_threads()).max(1);
    add_table(session, "all_trips", batches.chunks(partition).map(<[_]>::to_vec).collect())?;

    let clusters = Clusters::buildings();
    let centers: Vec<[f64; 2]> = (0..buildings).map(|row| clusters.point(row)).collect();
    let keys = Int64Array::from_iter_values(1..=buildings as i64);
    let names = StringArray::from_iter_values((1..=buildings).map(|key| format!("building {key}")));
    add_table(session, "building", vec![vec![building_batch(Arc::new(keys), Arc::new(names), &centers)?]])
}

/// Makes the view `trip` of the trips with keys up to a number, or of all.
pub(crate) async fn take_trips(session: &SessionContext, trips: Option<u64>) -> Result<()> {
    let limit = trips.map_or_else(String::new, |trips| format!(" WHERE t_tripkey <= {trips}"));
    let view = format!("CREATE OR REPLACE VIEW trip AS SELECT t_tripkey, t_pickuploc FROM all_trips{limit}");
    session.sql(&view).await?.collect().await?;
    Ok(())
}

/// Generates rows of the table of trips.
fn trip_batch(clusters: &Clusters, rows: std::ops::Range<u64>) -> Result<RecordBatch> {
    let points: Vec<[f64; 2]> = rows.clone().map(|row| clusters.point(row)).collect();
    let keys = Int64Array::from_iter_values(rows.map(|row| row as i64 + 1));
    batch(vec![("t_tripkey", Arc::new(keys)), ("t_pickuploc", points_array(&points))])
}

fn building_batch(keys: ArrayRef, names: ArrayRef, centers: &[[f64; 2]]) -> Result<RecordBatch> {
    batch(vec![("b_buildingkey", keys), ("b_name", names), ("center", points_array(centers))])
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// Makes GeoArrow's separated points.
fn points_array(points: &[[f64; 2]]) -> ArrayRef {
    let fields: Fields =
        ["x", "y"].map(|name| Field::new(name, DataType::Float64, false)).into_iter().collect();
    let column = |axis: usize| {
        Arc::new(Float64Array::from_iter_values(points.iter().map(|point| point[axis]))) as ArrayRef
    };
    Arc::new(StructArray::new(fields, vec![column(0), column(1)], None))
}

fn add_table(session: &SessionContext, name: &str, partitions: Vec<Vec<RecordBatch>>) -> Result<()> {
    let batch = partitions.iter().flatten().next();
    let schema = batch.ok_or_else(|| DataFusionError::Execution(format!("{name} has no rows")))?.schema();
    session.register_table(name, Arc::new(MemTable::try_new(schema, partitions)?))?;
    Ok(())
}

/// Returns the center of the bounding box of a polygon in little-endian well-known binary; `None` for other bytes.
fn box_center(wkb: &[u8]) -> Option<[f64; 2]> {
    let word = |at: usize| Some(u32::from_le_bytes(wkb.get(at..at + 4)?.try_into().ok()?));
    let number = |at: usize| Some(f64::from_le_bytes(wkb.get(at..at + 8)?.try_into().ok()?));
    if wkb.first() != Some(&1) || word(1)? != 3 || word(5)? == 0 {
        return None;
    }
    // The first ring is the outer one.
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for corner in 0..word(9)? as usize {
        for axis in 0..2 {
            let value = number(13 + 16 * corner + 8 * axis)?;
            low[axis] = low[axis].min(value);
            high[axis] = high[axis].max(value);
        }
    }
    Some([0, 1].map(|axis| (low[axis] + high[axis]) / 2.0))
}
