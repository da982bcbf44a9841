//! The functions that send rows to parts.

use super::partitioner::Partitioner;
use super::region::regions;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, Int64Builder, ListBuilder, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{DataFusionError, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use prost::Message;
use std::sync::{Arc, Mutex, PoisonError};

/// The result of a function for a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Output {
    /// Its cell and its region.
    Region,
    /// The key of its part, as a row of the left side.
    Home,
    /// The keys of the parts that need it, as a row of the right side.
    Near,
}

const OUTPUTS: [(Output, &str); 3] =
    [(Output::Region, "kauri_region"), (Output::Home, "kauri_home"), (Output::Near, "kauri_near")];

/// The names of the corners of a region.
pub(super) const CORNERS: [&str; 6] = ["x0", "y0", "z0", "x1", "y1", "z1"];

/// A function of a geometry and of the bytes of a [`Partitioner`]: `kauri_region`, `kauri_home` or `kauri_near`. Plans have them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PartFunction {
    output: Output,
    signature: Signature,
}

/// Returns the functions, which machines that run joins part by part must know.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    OUTPUTS.into_iter().map(|(output, _)| function(output))
}

fn function(output: Output) -> ScalarUDF {
    ScalarUDF::from(PartFunction { output, signature: Signature::any(2, Volatility::Immutable) })
}

/// Returns the cells and the regions of geometries.
pub(super) fn region_of(geometry: Expr, partitioner: &Partitioner) -> Expr {
    function(Output::Region).call(vec![geometry, lit(partitioner.encode_to_vec())])
}

/// Returns the parts of left and of right geometries.
pub(super) fn parts_of([left, right]: [Expr; 2], partitioner: &Partitioner) -> [Expr; 2] {
    let bytes = lit(partitioner.encode_to_vec());
    [function(Output::Home).call(vec![left, bytes.clone()]), function(Output::Near).call(vec![right, bytes])]
}

/// The partitioner that was decoded last: a function is called for each of many batches.
static DECODED: Mutex<Option<(Vec<u8>, Arc<Partitioner>)>> = Mutex::new(None);

fn decode(bytes: &[u8]) -> Result<Arc<Partitioner>> {
    let mut decoded = DECODED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, partitioner)) = &*decoded
        && known == bytes
    {
        return Ok(Arc::clone(partitioner));
    }
    let partitioner = Partitioner::decode(bytes)
        .or_else(|error| exec_err!("the parts of a spatial join cannot be decoded: {error}"))?;
    partitioner.check()?;
    let partitioner = Arc::new(partitioner);
    *decoded = Some((bytes.to_vec(), Arc::clone(&partitioner)));
    Ok(partitioner)
}

impl ScalarUDFImpl for PartFunction {
    fn name(&self) -> &str {
        OUTPUTS[self.output as usize].1
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.output {
            Output::Region => DataType::Struct(region_fields()),
            Output::Home => DataType::Int64,
            Output::Near => DataType::new_list(DataType::Int64, true),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let ColumnarValue::Scalar(ScalarValue::Binary(Some(bytes))) = &args.args[1] else {
            return exec_err!("{}: the second argument is not the bytes of parts", self.name());
        };
        let parts = &*decode(bytes)?;
        if self.output != Output::Region && !parts.has_keys() {
            return exec_err!("{}: the second argument has cells and no parts", self.name());
        }
        let found = regions(&array, parts.measure(), args.arg_fields[0].name(), 0)?;
        let rows = 0..found.values.len();
        let array: ArrayRef = match self.output {
            Output::Region => {
                let cell = |region: &[[f64; 3]; 2]| parts.cell_of(&region[0]) as i64;
                let mut columns: Vec<ArrayRef> =
                    vec![Arc::new(found.values.iter().map(cell).collect::<Int64Array>())];
                columns.extend((0..6).map(|corner| -> ArrayRef {
                    Arc::new(Float64Array::from_iter_values(
                        found.values.iter().map(|region| region.as_flattened()[corner]),
                    ))
                }));
                Arc::new(StructArray::try_new(region_fields(), columns, found.present)?)
            }
            Output::Home => {
                let key = |row| match found.has(row) {
                    true => parts.home(&found.values[row]).ok_or_else(|| changed(&found.values[row])),
                    false => Ok(parts.any_key()),
                };
                Arc::new(Int64Array::from(rows.map(key).collect::<Result<Vec<i64>>>()?))
            }
            Output::Near => {
                let (mut lists, mut keys) = (ListBuilder::new(Int64Builder::new()), Vec::new());
                for row in rows {
                    keys.clear();
                    match found.has(row) {
                        true => parts.near(&found.values[row], &mut keys),
                        false => keys.push(parts.any_key()),
                    }
                    lists.values().append_slice(&keys);
                    lists.append(true);
                }
                Arc::new(lists.finish())
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

fn changed(region: &[[f64; 3]; 2]) -> DataFusionError {
    exec_datafusion_err!(
        "a row at {:?} was not on the left side of the join when its parts were made: do not change tables while a query runs, or \
         SET kauri.shared_rows = 18446744073709551615 to join without parts",
        region[0]
    )
}

fn region_fields() -> Fields {
    let corners = CORNERS.map(|name| Field::new(name, DataType::Float64, false));
    [Field::new("cell", DataType::Int64, false)].into_iter().chain(corners).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_no_parts_are_errors() {
        assert!(decode(&[255; 5]).is_err());
        // No message at all has no keys.
        assert!(decode(&[]).is_ok_and(|parts| parts.measure().is_some() && !parts.has_keys()));
        // Cells without parts of their own.
        let cut = Partitioner::of_cut(super::super::cut::Cut::new(&mut [[0.0; 3]; 9], 4), None);
        assert!(decode(&cut.encode_to_vec()).is_ok());
        // An axis that does not exist.
        assert!(decode(&[0x12, 5, 0x0a, 1, 7, 0x12, 0]).is_err());
    }
}
