//! The columns of LAS files.

use crate::geometry::CRS_KEY;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, PrimitiveArray, RecordBatch, RecordBatchOptions, UInt16Array,
    new_null_array,
};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float32Type, Float64Type, SchemaRef, UInt8Type, UInt16Type,
};
use datafusion::error::Result;
use kauri::Lattice;
use kauri::io::{Attributes, CloudChunk};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A column of points.
pub(super) struct LasColumn {
    name: &'static str,
    data_type: DataType,
    /// Returns the attribute that the column has values of; `None` for a coordinate.
    attribute: fn(&mut Attributes) -> Option<&mut bool>,
    values: fn(&Rows<'_>) -> ArrayRef,
}

/// Some points of a chunk.
pub(super) struct Rows<'a> {
    pub(super) chunk: &'a CloudChunk,
    pub(super) lattice: &'a Lattice,
    pub(super) range: Range<usize>,
}

/// Defines a column.
macro_rules! column {
    ($name:literal, $data_type:ident, axis $axis:literal) => {
        LasColumn {
            name: $name,
            data_type: DataType::$data_type,
            attribute: |_| None,
            values: |rows| rows.axis($axis),
        }
    };
    ($name:literal, $data_type:ident, $attribute:ident, $values:expr) => {
        LasColumn {
            name: $name,
            data_type: DataType::$data_type,
            attribute: |attributes| Some(&mut attributes.$attribute),
            values: $values,
        }
    };
}

/// All columns, in the order of a table.
static COLUMNS: [LasColumn; 16] = [
    column!("x", Float64, axis 0),
    column!("y", Float64, axis 1),
    column!("z", Float64, axis 2),
    column!("intensity", UInt16, intensity, |rows| {
        rows.numbers::<UInt16Type>(&rows.chunk.attributes.intensity)
    }),
    column!("return_number", UInt8, return_number, |rows| {
        rows.numbers::<UInt8Type>(&rows.chunk.attributes.return_number)
    }),
    column!("number_of_returns", UInt8, number_of_returns, |rows| {
        rows.numbers::<UInt8Type>(&rows.chunk.attributes.number_of_returns)
    }),
    column!("classification", UInt8, class, |rows| {
        rows.numbers::<UInt8Type>(&rows.chunk.attributes.class)
    }),
    column!("withheld", Boolean, withheld, |rows| {
        Arc::new(BooleanArray::from(rows.chunk.attributes.withheld[rows.range.clone()].to_vec()))
    }),
    column!("scan_angle", Float32, scan_angle, |rows| {
        rows.numbers::<Float32Type>(&rows.chunk.attributes.scan_angle)
    }),
    column!("user_data", UInt8, user_data, |rows| {
        rows.numbers::<UInt8Type>(&rows.chunk.attributes.user_data)
    }),
    column!("point_source_id", UInt16, source_id, |rows| {
        rows.numbers::<UInt16Type>(&rows.chunk.attributes.source_id)
    }),
    column!("gps_time", Float64, gps_time, |rows| {
        rows.numbers::<Float64Type>(&rows.chunk.attributes.gps_time)
    }),
    column!("red", UInt16, color, |rows| rows.color(0)),
    column!("green", UInt16, color, |rows| rows.color(1)),
    column!("blue", UInt16, color, |rows| rows.color(2)),
    column!("nir", UInt16, infrared, |rows| { rows.numbers::<UInt16Type>(&rows.chunk.attributes.infrared) }),
];

impl Rows<'_> {
    fn axis(&self, axis: usize) -> ArrayRef {
        let points = self.chunk.points[self.range.clone()].iter();
        Arc::new(Float64Array::from_iter_values(points.map(|&point| self.lattice.position(point)[axis])))
    }

    fn color(&self, channel: usize) -> ArrayRef {
        let colors = self.chunk.attributes.color[self.range.clone()].iter();
        Arc::new(UInt16Array::from_iter_values(colors.map(|color| color[channel])))
    }

    fn numbers<T: ArrowPrimitiveType>(&self, values: &[T::Native]) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(values[self.range.clone()].to_vec().into(), None))
    }
}

impl LasColumn {
    /// Returns true if files with these attributes have the column.
    fn is_in(&self, mut attributes: Attributes) -> bool {
        (self.attribute)(&mut attributes).is_none_or(|is_there| *is_there)
    }
}

/// Returns the fields of the columns that files with these attributes have, in the reference system `crs`.
pub(super) fn fields(attributes: Attributes, crs: Option<&str>) -> Vec<Field> {
    let field = |column: &LasColumn| {
        let is_coordinate = (column.attribute)(&mut Attributes::default()).is_none();
        let field = Field::new(column.name, column.data_type.clone(), !is_coordinate);
        match crs.filter(|_| is_coordinate) {
            Some(crs) => field.with_metadata(HashMap::from([(CRS_KEY.into(), crs.into())])),
            None => field,
        }
    };
    COLUMNS.iter().filter(|column| column.is_in(attributes)).map(field).collect()
}

/// The columns that a query reads of a file.
pub(super) struct Selection {
    schema: SchemaRef,
    /// The column of each field; `None` if the file does not have it.
    columns: Vec<Option<&'static LasColumn>>,
    /// The attributes that are read.
    pub(super) attributes: Attributes,
}

impl Selection {
    /// Selects the columns of `schema` from a file that has the attributes `available`.
    pub(super) fn new(schema: SchemaRef, available: Attributes) -> Self {
        let mut attributes = Attributes::default();
        let column = |field: &Arc<Field>| {
            let column = COLUMNS.iter().find(|column| column.name == field.name())?;
            column.is_in(available).then_some(column)
        };
        let columns: Vec<_> = schema.fields().iter().map(column).collect();
        for column in columns.iter().flatten() {
            if let Some(is_read) = (column.attribute)(&mut attributes) {
                *is_read = true;
            }
        }
        Self { schema, columns, attributes }
    }

    /// Makes a batch of some points.
    pub(super) fn batch(&self, rows: &Rows<'_>) -> Result<RecordBatch> {
        let array = |(column, field): (&Option<&LasColumn>, &Arc<Field>)| match column {
            Some(column) => (column.values)(rows),
            None => new_null_array(field.data_type(), rows.range.len()),
        };
        let arrays = self.columns.iter().zip(self.schema.fields()).map(array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.range.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }
}
