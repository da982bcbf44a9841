//! Boxes: `ST_MakeBox`, `ST_Intersects`, `ST_Contains`.

use super::arguments::{Checked, Kind, Values, coerce};
use crate::geometry::{box_type, extension_metadata};
use datafusion::arrow::array::{BooleanArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// `ST_MakeBox(xmin, ymin, xmax, ymax)`: a box.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct StMakeBox(Checked);

impl ScalarUDFImpl for StMakeBox {
    fn name(&self) -> &str {
        "st_makebox"
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        coerce("ST_MakeBox(xmin, ymin, xmax, ymax)", &[Kind::Number; 4], 0, found)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(box_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let metadata = extension_metadata("geoarrow.box", None);
        Ok(Arc::new(Field::new(self.name(), box_type(), true).with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = Values::new(args)?;
        let DataType::Struct(fields) = box_type() else { unreachable!("boxes are structs") };
        let corners = (0..4).map(|corner| Arc::clone(values.array(corner))).collect::<Vec<_>>();
        let nulls = corners.iter().fold(None, |nulls: Option<NullBuffer>, corner| {
            NullBuffer::union(nulls.as_ref(), corner.nulls())
        });
        Ok(ColumnarValue::Array(Arc::new(StructArray::try_new(fields, corners, nulls)?)))
    }
}

/// Defines a predicate of two boxes.
macro_rules! predicate {
    ($(#[$docs:meta])* $Type:ident, $name:literal, $usage:literal, $holds:expr) => {
        $(#[$docs])*
        #[derive(Debug, Default, PartialEq, Eq, Hash)]
        pub struct $Type(Checked);

        impl ScalarUDFImpl for $Type {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                self.0.signature()
            }

            fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
                coerce($usage, &[Kind::Box; 2], 0, found)
            }

            fn return_type(&self, _: &[DataType]) -> Result<DataType> {
                Ok(DataType::Boolean)
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
                compare(&Values::new(args)?, $holds)
            }
        }
    };
}

predicate! {
    /// `ST_Intersects(a, b)`: true if two boxes have a common point.
    StIntersects, "st_intersects", "ST_Intersects(a, b)",
    |a, b| a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]
}

predicate! {
    /// `ST_Contains(a, b)`: true if box `b` is inside box `a`. Borders may touch, and equal boxes contain each other.
    StContains, "st_contains", "ST_Contains(a, b)",
    |a, b| a[0] <= b[0] && b[2] <= a[2] && a[1] <= b[1] && b[3] <= a[3]
}

fn compare(values: &Values, holds: fn(&[f64; 4], &[f64; 4]) -> bool) -> Result<ColumnarValue> {
    let (a, b) = (values.boxes(0)?, values.boxes(1)?);
    let results = a.values.iter().zip(&*b.values).map(|(a, b)| holds(a, b)).collect::<Vec<bool>>();
    let present = NullBuffer::union(a.present.as_ref(), b.present.as_ref());
    Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(results.into(), present))))
}
