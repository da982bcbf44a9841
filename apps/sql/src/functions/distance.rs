//! Distances: `ST_Distance` and `ST_DWithin`.
//!
//! They are equal to the bit to the distances that a join computes.

use super::arguments::{Checked, Kind, Values, coerce};
use crate::error::{Error, from_kauri};
use crate::geometry::{Geometries, Measure, check_lon_lat, measure_of};
use crate::options::KauriOptions;
use datafusion::arrow::array::{Array, BooleanArray, Float64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};
use kauri::query::Norm;
use kauri::{LonLat, Point};
use std::sync::Arc;

/// `ST_Distance(a, b)`: the distance of two points.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct StDistance(Checked);

impl ScalarUDFImpl for StDistance {
    fn name(&self) -> &str {
        "st_distance"
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        coerce("ST_Distance(a, b)", &[Kind::Point, Kind::Point], 0, found)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = Values::new(args)?;
        let pairs = Pairs::new(&values)?;
        let distance = |(&a, &b)| point_distance(pairs.measure, a, b);
        let distances = pairs.a.values.iter().zip(&*pairs.b.values).map(distance).collect::<Vec<f64>>();
        let present = pairs.present();
        Ok(ColumnarValue::Array(Arc::new(Float64Array::new(distances.into(), present))))
    }
}

/// `ST_DWithin(a, b, d)`: true if the distance of two points is at most `d`.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct StDWithin(Checked);

impl ScalarUDFImpl for StDWithin {
    fn name(&self) -> &str {
        "st_dwithin"
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        coerce("ST_DWithin(a, b, d)", &[Kind::Point, Kind::Point, Kind::Number], 0, found)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = Values::new(args)?;
        let (pairs, radii) = (Pairs::new(&values)?, values.numbers(2));
        if let Some(value) = radii.iter().flatten().find(|&radius| radius < 0.0 || radius.is_nan()) {
            return Err(Error::InvalidDistance { function: "ST_DWithin", value }.in_execution());
        }
        let within = pairs
            .squared()?
            .into_iter()
            .zip(radii.values())
            .map(|(squared, &radius)| squared <= pairs.bound(radius));
        let within = within.collect::<Vec<bool>>();
        let present = NullBuffer::union(pairs.present().as_ref(), radii.nulls());
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(within.into(), present))))
    }
}

/// Returns the distance of two points.
pub fn point_distance(measure: Measure, [x0, y0]: [f64; 2], [x1, y1]: [f64; 2]) -> f64 {
    match measure {
        Measure::Planar => squared([x0, y0], [x1, y1]).sqrt(),
        Measure::LonLat => LonLat::new(x0, y0).meters_to(&LonLat::new(x1, y1)),
    }
}

/// The points of the first two arguments of a call.
struct Pairs<'a> {
    a: Geometries<'a, [f64; 2]>,
    b: Geometries<'a, [f64; 2]>,
    measure: Measure,
}

impl<'a> Pairs<'a> {
    fn new(values: &'a Values) -> Result<Self> {
        let option = KauriOptions::of(&values.args.config_options).crs;
        let fields = &values.args.arg_fields;
        let measure = measure_of(&fields[0], &fields[1], option).map_err(|error| error.in_execution())?;
        let pairs = Self { a: values.points(0)?, b: values.points(1)?, measure };
        if measure == Measure::LonLat {
            for (index, points) in [&pairs.a, &pairs.b].into_iter().enumerate() {
                check_lon_lat(points, values.name(index), 0).map_err(|error| error.in_execution())?;
            }
        }
        Ok(pairs)
    }

    fn present(&self) -> Option<NullBuffer> {
        NullBuffer::union(self.a.present.as_ref(), self.b.present.as_ref())
    }

    /// Returns the squared distances that a join compares: of the plane, or of unit vectors.
    fn squared(&self) -> Result<Vec<f64>> {
        match self.measure {
            Measure::Planar => {
                Ok(self.a.values.iter().zip(&*self.b.values).map(|(&a, &b)| squared(a, b)).collect())
            }
            Measure::LonLat => {
                let places = |points: &Geometries<'_, [f64; 2]>| -> Vec<LonLat> {
                    points.values.iter().map(|&[lon, lat]| LonLat::new(lon, lat)).collect()
                };
                let (a, b) = (unit_vectors(&places(&self.a))?, unit_vectors(&places(&self.b))?);
                let (a, b) = (a.as_chunks::<3>().0, b.as_chunks::<3>().0);
                Ok(a.iter().zip(b).map(|(&a, &b)| squared(a, b)).collect())
            }
        }
    }

    /// Returns the squared distance that a join compares with, of a radius.
    fn bound(&self, radius: f64) -> f64 {
        match self.measure {
            Measure::Planar => <[f64; 2]>::bound(radius, Norm::Euclidean),
            Measure::LonLat => LonLat::bound(radius, Norm::Euclidean),
        }
    }
}

/// Returns a squared distance, added in axis order as kauri does.
pub(crate) fn squared<const D: usize>(a: [f64; D], b: [f64; D]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).reduce(|sum, square| sum + square).unwrap_or(0.0)
}

/// Returns the unit vectors of places, three numbers each, which kauri's joins compare.
pub(crate) fn unit_vectors(places: &[LonLat]) -> Result<Vec<f64>> {
    LonLat::coordinates(places, "point").map(|vectors| vectors.into_owned()).map_err(from_kauri)
}
