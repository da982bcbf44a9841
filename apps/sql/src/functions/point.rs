//! Points: `ST_Point`, `ST_SetCRS`, `ST_X`, `ST_Y`.

use super::arguments::{Checked, Kind, Values, coerce};
use crate::error::Error;
use crate::geometry::{extension_metadata, point_type};
use datafusion::arrow::array::{ArrayRef, Float64Array, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// `ST_Point(x, y [, crs])`: a point.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct StPoint(Checked);

impl ScalarUDFImpl for StPoint {
    fn name(&self) -> &str {
        "st_point"
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        coerce("ST_Point(x, y [, crs])", &[Kind::Number, Kind::Number, Kind::Text], 1, found)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(point_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let crs = constant_crs("ST_Point", &args, 2)?;
        let metadata = extension_metadata("geoarrow.point", crs.as_deref());
        Ok(Arc::new(Field::new(self.name(), point_type(), true).with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = Values::new(args)?;
        let DataType::Struct(fields) = point_type() else { unreachable!("points are structs") };
        let axes = vec![Arc::clone(values.array(0)), Arc::clone(values.array(1))];
        let (x, y) = (axes[0].nulls(), axes[1].nulls());
        let nulls = datafusion::arrow::buffer::NullBuffer::union(x, y);
        Ok(ColumnarValue::Array(Arc::new(StructArray::try_new(fields, axes, nulls)?)))
    }
}

/// `ST_SetCRS(point, crs)`: the point in a reference system.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct StSetCrs(Checked);

impl ScalarUDFImpl for StSetCrs {
    fn name(&self) -> &str {
        "st_setcrs"
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        coerce("ST_SetCRS(point, crs)", &[Kind::Point, Kind::Text], 0, found)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let crs = constant_crs("ST_SetCRS", &args, 1)?;
        let point = &args.arg_fields[0];
        let is_wkb =
            matches!(point.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
        let extension = if is_wkb { "geoarrow.wkb" } else { "geoarrow.point" };
        let metadata = extension_metadata(extension, crs.as_deref());
        Ok(Arc::new(Field::new(self.name(), point.data_type().clone(), true).with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}

/// Returns the reference system that is an argument of a call, if there is one.
fn constant_crs(function: &'static str, args: &ReturnFieldArgs<'_>, index: usize) -> Result<Option<String>> {
    match args.scalar_arguments.get(index) {
        None => Ok(None),
        Some(Some(ScalarValue::Utf8(crs) | ScalarValue::Utf8View(crs) | ScalarValue::LargeUtf8(crs))) => {
            Ok(crs.clone())
        }
        Some(_) => {
            let (argument, expected, found) = ("crs", "text", args.arg_fields[index].name().clone());
            Err(Error::NotConstant { function, argument, expected, found }.in_plan())
        }
    }
}

/// Defines a function that returns a coordinate of a point.
macro_rules! coordinate {
    ($(#[$docs:meta])* $Type:ident, $name:literal, $usage:literal, $axis:literal) => {
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
                coerce($usage, &[Kind::Point], 0, found)
            }

            fn return_type(&self, _: &[DataType]) -> Result<DataType> {
                Ok(DataType::Float64)
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
                Ok(ColumnarValue::Array(axis(&Values::new(args)?, $axis)?))
            }
        }
    };
}

coordinate! {
    /// `ST_X(point)`: the x coordinate, or the longitude.
    StX, "st_x", "ST_X(point)", 0
}

coordinate! {
    /// `ST_Y(point)`: the y coordinate, or the latitude.
    StY, "st_y", "ST_Y(point)", 1
}

fn axis(values: &Values, axis: usize) -> Result<ArrayRef> {
    let points = values.points(0)?;
    let coordinates = points.values.iter().map(|point| point[axis]).collect::<Vec<f64>>();
    Ok(Arc::new(Float64Array::new(coordinates.into(), points.present)))
}
