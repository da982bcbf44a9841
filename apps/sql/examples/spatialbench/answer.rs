//! The answer of a query, reduced to what engines can compare.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

/// The number of rows, and the sum of their hashes modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) rows: u64,
    pub(crate) checksum: u64,
}

impl Answer {
    /// Adds a row with two integers.
    pub(crate) fn add(&mut self, a: i64, b: i64) {
        let hash =
            (a as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (b as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(hash);
    }

    /// Reads an answer of SQL, whose rows have integers in two columns.
    pub(crate) async fn of(mut stream: SendableRecordBatchStream, columns: [&str; 2]) -> Result<Self> {
        let mut answer = Self::default();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let [a, b] = columns.map(|name| {
                let column = batch.column_by_name(name).expect("the query returns the column");
                column.as_primitive::<Int64Type>().values()
            });
            a.iter().zip(b).for_each(|(&a, &b)| answer.add(a, b));
        }
        Ok(answer)
    }
}
