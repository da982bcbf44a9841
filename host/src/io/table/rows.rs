//! Chosen rows of a table, as text or as values with types.

use ::csv::ByteRecord;

use super::{Rows, Table};
#[cfg(feature = "parquet")]
use super::{Values, csv::Kind};
use crate::error::Result;
#[cfg(feature = "parquet")]
use crate::memory;

/// The rows of tables up to this size stay in memory while they are written. Larger files are read again for each batch of rows.
const KEPT_BYTES: u64 = 64 << 20;

impl Table {
    /// Reads a row as text. A null becomes an empty text, and bytes become hexadecimal digits. For a Parquet file this reads the row group.
    ///
    /// # Errors
    /// Errors of [`texts`](Self::texts).
    ///
    /// # Panics
    /// Panics if the row does not exist.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("cities.csv");
    /// std::fs::write(&path, "name,lon\nStockholm,18.07\nHelsinki,24.94\n").unwrap();
    /// let table = kauri::io::Table::read(&path)?;
    /// assert_eq!(table.row(1)?, ["Helsinki", "24.94"]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    pub fn row(&self, row: usize) -> Result<Vec<String>> {
        assert!(row < self.len(), "row {row} of {}", self.len());
        let mut fields = Vec::new();
        self.each_row(Some(&[row as u32]), |record| {
            fields.extend(record.iter().map(|field| String::from_utf8_lossy(field).into_owned()));
            Ok(())
        })?;
        Ok(fields)
    }

    /// Returns true if the rows should stay in memory while they are written.
    pub(in super::super) fn is_small(&self) -> bool {
        let bytes = match &self.rows {
            Rows::Csv(csv) => csv.bytes(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.bytes(),
        };
        #[cfg(test)]
        if tests::IS_LARGE.get() {
            return false;
        }
        bytes <= KEPT_BYTES
    }

    /// Calls `visit` with the fields of all rows, or of these rows, which must be in ascending order. For a Parquet file the values of all
    /// these rows are in memory.
    pub(in super::super) fn each_row(
        &self,
        rows: Option<&[u32]>,
        mut visit: impl FnMut(&ByteRecord) -> Result<()>,
    ) -> Result<()> {
        match (&self.rows, rows) {
            (Rows::Csv(csv), None) => csv.each(|_, record| visit(record)),
            (Rows::Csv(csv), Some(rows)) => csv.each_of(rows, visit),
            #[cfg(feature = "parquet")]
            (Rows::Parquet(parquet), _) => {
                let read = |column| match rows {
                    None => parquet.values(&self.source, column),
                    Some(rows) => parquet.values_of(&self.source, column, rows),
                };
                let columns = (0..self.columns().len()).map(read).collect::<Result<Vec<Values>>>()?;
                let mut record = ByteRecord::new();
                (0..rows.map_or(self.len(), <[u32]>::len)).try_for_each(|row| {
                    record.clear();
                    columns.iter().for_each(|values| record.push_field(values.text(row).as_bytes()));
                    visit(&record)
                })
            }
        }
    }
}

/// Reads chosen rows of a table as values with types. The rows of a small table are read once.
#[cfg(feature = "parquet")]
pub(crate) struct TypedRows<'a> {
    table: &'a Table,
    /// The types of the columns of a CSV file.
    kinds: Vec<Kind>,
    /// All columns of a small table.
    kept: Option<Vec<Values>>,
}

#[cfg(feature = "parquet")]
impl<'a> TypedRows<'a> {
    /// Finds the types of the columns. This reads all rows of a CSV file.
    pub(crate) fn new(table: &'a Table) -> Result<Self> {
        let kinds = match &table.rows {
            Rows::Csv(csv) => csv.kinds()?,
            Rows::Parquet(_) => Vec::new(),
        };
        let mut typed = Self { table, kinds, kept: None };
        if table.is_small() {
            let all = memory::collect(0..table.len() as u32, "rows of a table")?;
            let mut columns = Vec::new();
            typed.each_column(&all, |values| {
                columns.push(values);
                Ok(())
            })?;
            typed.kept = Some(columns);
        }
        Ok(typed)
    }

    /// Calls `visit` with the values of these rows, which must be in ascending order, column by column.
    pub(crate) fn each_column(
        &self,
        rows: &[u32],
        mut visit: impl FnMut(Values) -> Result<()>,
    ) -> Result<()> {
        match (&self.kept, &self.table.rows) {
            (Some(columns), _) => columns.iter().try_for_each(|values| visit(values.select(rows)?)),
            (None, Rows::Csv(csv)) => csv.values(&self.kinds, rows)?.into_iter().try_for_each(visit),
            (None, Rows::Parquet(parquet)) => (0..self.table.columns().len())
                .try_for_each(|column| visit(parquet.values_of(&self.table.source, column, rows)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use crate::Error;
    use crate::io::{Geometries, NO_ROW, PairTable, Pairs, Table};

    thread_local! {
        /// True if all tables are large.
        pub(super) static IS_LARGE: Cell<bool> = const { Cell::new(false) };
    }

    /// Writes pairs in two batches, with rows in any order, repeated and missing. Returns the bytes.
    fn written(tables: [&Table; 2], path: &std::path::Path) -> Vec<u8> {
        let points = vec![[5.0, 6.0]; tables[0].len()];
        let pairs = PairTable { left: tables[0], right: tables[1], geometries: Geometries::Points(&points) };
        let batches = [&[[0, 2], [0, 0], [3, 2], [1, NO_ROW]][..], &[[2, 1], [2, 1], [0, 3]]];
        let distances = [0.5; 4];
        pairs
            .write::<Error>(path, |take| {
                batches.iter().try_for_each(|&rows| {
                    let distances = Some(&distances[..rows.len()]);
                    take(Pairs { rows, distances, scores: None })
                })
            })
            .unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn large_tables_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.csv"), "n;t;x\r\n1;\"a\nb\";\r\n\r\n2;\u{feff};2,5\r\n3;c;7\r\n;d;\r\n").unwrap();
        fs::write(path("b.csv"), "t\tn\n007\t\n8\t1.5\n\t2\n\"q\"\"\t\"\t3").unwrap();
        let [left, right] = ["a.csv", "b.csv"].map(|name| Table::read(path(name)).unwrap());
        for name in ["o.csv", "o.parquet"] {
            IS_LARGE.set(false);
            let expected = written([&left, &right], &path(name));
            IS_LARGE.set(true);
            assert!(written([&left, &right], &path(name)) == expected, "{name}");
        }
        let text = fs::read_to_string(path("o.csv")).unwrap();
        assert_eq!(text.lines().nth(2), Some("b\",,,2"));
        assert!(text.contains("\n1,,,2,\u{feff},\"2,5\",,\n2,1,0.5,"), "{text}");
        // Parquet tables with several row groups.
        let [a, b] = [&path("o.parquet"), &path("o.parquet")].map(|path| Table::read(path).unwrap());
        for name in ["p.csv", "p.parquet"] {
            IS_LARGE.set(false);
            let expected = written([&a, &b], &path(name));
            IS_LARGE.set(true);
            assert!(written([&a, &b], &path(name)) == expected, "{name}");
        }
        IS_LARGE.set(false);
    }

    #[test]
    fn files_that_change_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        for changed in ["a,b\n1,2\n", "a,b\n1,2\n3", "a,b\n1,2\n3\n4,\n", "a,b\n1,2\n3,4\n5,6\n", ""] {
            fs::write(&path, "a,b\n1,2\n3,4\n").unwrap();
            let table = Table::read(&path).unwrap();
            fs::write(&path, changed).unwrap();
            for error in [table.numbers(1).unwrap_err(), table.row(1).unwrap_err()] {
                assert!(error.to_string().contains("t.csv: the file changed while it was read"), "{error}");
            }
        }
    }
}
