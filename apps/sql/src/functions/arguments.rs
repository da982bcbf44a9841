//! Types of arguments, and their values.

use crate::geometry::{Geometries, decode_boxes, decode_points, is_box_type, is_point_type};
use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{ScalarFunctionArgs, Signature, Volatility};
use std::hash::{Hash, Hasher};

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Point,
    Box,
    Number,
    Integer,
    Text,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Point => "a point, as ST_Point(x, y) returns it",
            Self::Box => "a box, as ST_MakeBox(xmin, ymin, xmax, ymax) returns it",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Text => "a text",
        }
    }

    /// Returns the type that an argument is converted to.
    fn coerced(self, found: &DataType) -> Option<DataType> {
        let is_number = found.is_numeric() || found.is_null();
        match self {
            Self::Point => is_point_type(found).then(|| found.clone()),
            Self::Box => is_box_type(found).then(|| found.clone()),
            Self::Number => is_number.then_some(DataType::Float64),
            Self::Integer => (found.is_integer() || found.is_null()).then_some(DataType::Int64),
            Self::Text => (found.is_string() || found.is_null()).then_some(DataType::Utf8),
        }
    }
}

/// The signature of a function whose arguments [`coerce`] checks. All such signatures are equal.
#[derive(Clone, Debug)]
pub(super) struct Checked(Signature);

impl Default for Checked {
    fn default() -> Self {
        Self(Signature::user_defined(Volatility::Immutable))
    }
}

impl Checked {
    pub(super) fn signature(&self) -> &Signature {
        &self.0
    }
}

impl PartialEq for Checked {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Checked {}

impl Hash for Checked {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Returns the types that the arguments of a call are converted to. The last `optional` arguments may be missing.
pub(super) fn coerce(
    usage: &str,
    kinds: &[Kind],
    optional: usize,
    found: &[DataType],
) -> Result<Vec<DataType>> {
    if found.len() > kinds.len() || found.len() + optional < kinds.len() {
        return plan_err!("{usage}: got {} arguments", found.len());
    }
    let coerced = |(i, (found, kind)): (usize, (&DataType, &Kind))| match kind.coerced(found) {
        Some(coerced) => Ok(coerced),
        None => plan_err!("{usage}: argument {} has type {found}, expected {}", i + 1, kind.name()),
    };
    found.iter().zip(kinds).enumerate().map(coerced).collect()
}

/// The arguments of a call as arrays.
pub(super) struct Values {
    pub(super) args: ScalarFunctionArgs,
    arrays: Vec<ArrayRef>,
}

impl Values {
    pub(super) fn new(args: ScalarFunctionArgs) -> Result<Self> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<Result<_>>()?;
        Ok(Self { args, arrays })
    }

    pub(super) fn array(&self, index: usize) -> &ArrayRef {
        &self.arrays[index]
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.args.arg_fields[index].name()
    }

    pub(super) fn points(&self, index: usize) -> Result<Geometries<'_, [f64; 2]>> {
        decode_points(self.array(index), self.name(index), 0).map_err(|error| error.in_execution())
    }

    pub(super) fn boxes(&self, index: usize) -> Result<Geometries<'static, [f64; 4]>> {
        decode_boxes(self.array(index), self.name(index), 0).map_err(|error| error.in_execution())
    }

    pub(super) fn numbers(&self, index: usize) -> &Float64Array {
        self.arrays[index].as_primitive::<Float64Type>()
    }
}
