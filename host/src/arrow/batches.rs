//! Results as record batches.

use crate::error::{Error, Result};
use crate::join::{PairScore, TopPairs};
use crate::point::{DistanceOf, Point};
use crate::query::{Neighbor, Neighbors};
use crate::rows::Rows;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray, Float64Array, Int64Array, LargeListArray,
    PrimitiveArray, RecordBatch, StructArray, UInt32Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};
use sealed::Distance;
use std::sync::Arc;

/// A result that becomes a record batch, of the columns that the documentation of [`arrow`](crate::arrow) names.
pub trait IntoRecordBatch {
    /// Makes a record batch.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for [`Neighbors`] with 2^31 or more neighbors of a query, which a `FixedSizeList` cannot have.
    fn into_record_batch(self) -> Result<RecordBatch>;
}

mod sealed {
    use arrow_array::ArrowPrimitiveType;
    use arrow_array::types::{Float32Type, Float64Type};
    use arrow_buffer::ArrowNativeType;
    use kauri_kernels::thread::coord::Float;

    /// A type of distances.
    pub trait Distance: Float + ArrowNativeType {
        /// The type in Arrow.
        type Type: ArrowPrimitiveType<Native = Self>;
    }

    impl Distance for f32 {
        type Type = Float32Type;
    }

    impl Distance for f64 {
        type Type = Float64Type;
    }
}

impl<P: Point> IntoRecordBatch for Neighbors<P>
where
    DistanceOf<P>: Distance,
{
    fn into_record_batch(self) -> Result<RecordBatch> {
        let (len, k) = (self.len(), self.k());
        let out_of_range = |_| {
            let (what, value) = ("neighbors of each query in a record batch", k as u64);
            Error::OutOfRange { what, value, least: 0, most: i32::MAX as u64 }
        };
        let list_len = i32::try_from(k).map_err(out_of_range)?;
        let (ids, dist2) = self.into_parts();
        let is_padded = ids.contains(&u32::MAX);
        let found = is_padded.then(|| ids.iter().map(|&id| id != u32::MAX).collect::<NullBuffer>());
        let rows = |name: &'static str, values: ArrayRef| {
            let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            let rows = FixedSizeListArray::try_new_with_length(item, list_len, values, None, len);
            (name, Arc::new(rows.expect("there are k values for each query")) as ArrayRef)
        };
        Ok(batch([
            rows("ids", Arc::new(UInt32Array::new(ids.into(), found.clone()))),
            rows("dist2", Arc::new(distances(dist2, found))),
        ]))
    }
}

impl IntoRecordBatch for Rows<u32> {
    fn into_record_batch(self) -> Result<RecordBatch> {
        let (offsets, ids) = self.into_parts();
        Ok(batch([("ids", lists(offsets, Arc::new(UInt32Array::from(ids))))]))
    }
}

impl<C: Distance> IntoRecordBatch for Rows<Neighbor<C>> {
    fn into_record_batch(self) -> Result<RecordBatch> {
        let (offsets, (ids, dist2)) = self.into_parts();
        let fields: Fields = [("id", DataType::UInt32), ("dist2", C::Type::DATA_TYPE)]
            .map(|(name, of)| Field::new(name, of, false))
            .into_iter()
            .collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(ids)), Arc::new(distances(dist2, None))];
        Ok(batch([("neighbors", lists(offsets, Arc::new(StructArray::new(fields, columns, None))))]))
    }
}

impl IntoRecordBatch for TopPairs {
    fn into_record_batch(self) -> Result<RecordBatch> {
        let pairs = self.pairs();
        let is_integer = |score: PairScore| matches!(score, PairScore::Integer(_));
        let scores: ArrayRef = if pairs.iter().all(|pair| is_integer(pair.score)) {
            let integer = |score: PairScore| if let PairScore::Integer(score) = score { score } else { 0 };
            Arc::new(Int64Array::from_iter_values(pairs.iter().map(|pair| integer(pair.score))))
        } else {
            Arc::new(Float64Array::from_iter_values(pairs.iter().map(|pair| pair.score.to_f64())))
        };
        Ok(batch([
            ("left", Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.left)))),
            ("right", Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.right)))),
            ("score", scores),
        ]))
    }
}

fn distances<C: Distance>(dist2: Vec<C>, found: Option<NullBuffer>) -> PrimitiveArray<C::Type> {
    PrimitiveArray::new(ScalarBuffer::from(dist2), found)
}

/// Makes lists of values, of which each list has those from its offset to the next one.
fn lists(offsets: Vec<u64>, values: ArrayRef) -> ArrayRef {
    let len = offsets.len();
    let offsets = OffsetBuffer::new(ScalarBuffer::new(Buffer::from_vec(offsets), 0, len));
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), false));
    Arc::new(LargeListArray::new(item, offsets, values, None))
}

fn batch<const N: usize>(columns: [(&'static str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns have a value for each row")
}
