//! The condition of a kNN join: `ST_KNN`.

use super::arguments::{Checked, Kind, coerce};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature};

/// `ST_KNN(a, b, k)`: in an inner join, `b` is one of the `k` points nearest to `a`. The rule
/// [`KnnConditions`](crate::rules::KnnConditions) replaces it, so it is never invoked.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct StKnn(Checked);

/// Advice for a call elsewhere.
pub const ADVICE: &str = "ST_KNN(a, b, k) is a condition of an inner join of the tables of a and b, alone or combined by AND: \
                          SELECT … FROM a JOIN b ON ST_KNN(a.geom, b.geom, 5), or the table function knn_join(a, b, 5)";

impl ScalarUDFImpl for StKnn {
    fn name(&self) -> &str {
        "st_knn"
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn coerce_types(&self, found: &[DataType]) -> Result<Vec<DataType>> {
        coerce("ST_KNN(a, b, k)", &[Kind::Point, Kind::Point, Kind::Integer], 0, found)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{ADVICE}")
    }
}
