//! Errors of columns and arguments, and the engine's errors for them.

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;

/// An invalid column, value or argument of a spatial function or join.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A column of another type was given as points.
    #[error(
        "column '{column}' has type {found}: expected points, that is Struct(x, y), FixedSizeList(Float64, 2) or WKB; \
         make them with ST_Point(x, y)"
    )]
    NotPoints {
        /// The column or expression.
        column: String,
        /// Its type.
        found: DataType,
    },
    /// A column of another type was given as boxes.
    #[error(
        "column '{column}' has type {found}: expected boxes, that is Struct(xmin, ymin, xmax, ymax); \
         make them with ST_MakeBox(xmin, ymin, xmax, ymax)"
    )]
    NotBoxes {
        /// The column or expression.
        column: String,
        /// Its type.
        found: DataType,
    },
    /// A coordinate or a score is NaN or infinite.
    #[error("column '{column}', row {row}: {value} is not finite; remove the row or correct it")]
    NotFinite {
        /// The column or expression.
        column: String,
        /// The row, from 0.
        row: u64,
        /// The value found.
        value: f64,
    },
    /// A longitude or a latitude is out of range.
    #[error(
        "column '{column}', row {row}: {axis} {value} is not within ±{limit} degrees; for plane coordinates \
         SET kauri.crs = 'planar'"
    )]
    NotOnEarth {
        /// The column or expression.
        column: String,
        /// The row, from 0.
        row: u64,
        /// "longitude" or "latitude".
        axis: &'static str,
        /// The value found.
        value: f64,
        /// The largest magnitude accepted.
        limit: f64,
    },
    /// The least coordinate of a box exceeds its greatest one.
    #[error(
        "column '{column}', row {row}: the box begins at {low} and ends at {high}; give the least coordinates first"
    )]
    InvertedBox {
        /// The column or expression.
        column: String,
        /// The row, from 0.
        row: u64,
        /// The least coordinate.
        low: f64,
        /// The greatest coordinate.
        high: f64,
    },
    /// Bytes are not a point in well-known binary.
    #[error("column '{column}', row {row}: {reason}")]
    InvalidWkb {
        /// The column or expression.
        column: String,
        /// The row, from 0.
        row: u64,
        /// The cause.
        reason: String,
    },
    /// There is not enough memory for the points, or there are too many of them.
    #[error(transparent)]
    Library(Box<kauri::Error>),
    /// A row has no geometry, and `kauri.nulls` is 'error'.
    #[error(
        "column '{column}', row {row}: the value is missing; SET kauri.nulls = 'skip' to leave such rows out"
    )]
    Missing {
        /// The column or expression.
        column: String,
        /// The row, from 0.
        row: u64,
    },
    /// The columns of a join or of a distance have different reference systems.
    #[error(
        "column '{left}' is in {left_crs} and column '{right}' in {right_crs}: transform one of them, or \
         SET kauri.crs = 'planar' or 'lonlat' if the metadata are wrong"
    )]
    DifferentCrs {
        /// The left column.
        left: String,
        /// Its reference system.
        left_crs: String,
        /// The right column.
        right: String,
        /// Its reference system.
        right_crs: String,
    },
    /// The unit of a column's coordinates is not known.
    #[error(
        "column '{column}' is in degrees of {crs}: distances are computed for OGC:CRS84 and EPSG:4326 and in the plane; \
         transform the column, or SET kauri.crs"
    )]
    UnknownUnit {
        /// The column.
        column: String,
        /// Its reference system.
        crs: String,
    },
    /// The metadata of a column are not valid.
    #[error("column '{column}': its metadata {name} are not valid: {reason}")]
    InvalidMetadata {
        /// The column.
        column: String,
        /// The key of the metadata.
        name: &'static str,
        /// The cause.
        reason: String,
    },
    /// A distance is negative or NaN.
    #[error("{function}: distance {value}: expected a number that is 0 or greater")]
    InvalidDistance {
        /// The function.
        function: &'static str,
        /// The value found.
        value: f64,
    },
    /// A number of neighbors is not positive.
    #[error("{function}: k = {value}: expected a number that is 1 or greater")]
    InvalidK {
        /// The function.
        function: &'static str,
        /// The value found.
        value: i64,
    },
    /// An argument that must be a constant is not one.
    #[error("{function}: argument {argument} must be a constant {expected}, not {found}")]
    NotConstant {
        /// The function.
        function: &'static str,
        /// The name of the argument.
        argument: &'static str,
        /// The kind of constant.
        expected: &'static str,
        /// The expression found.
        found: String,
    },
}

impl Error {
    /// Returns the error of a query that cannot be planned.
    pub fn in_plan(self) -> DataFusionError {
        DataFusionError::Plan(self.to_string())
    }

    /// Returns the error of a query whose data are not valid.
    pub fn in_execution(self) -> DataFusionError {
        match self {
            Self::Library(error) => from_kauri(*error),
            error => DataFusionError::Execution(error.to_string()),
        }
    }
}

/// Converts an error of kauri: memory that is missing is the engine's `ResourcesExhausted`.
pub fn from_kauri(error: kauri::Error) -> DataFusionError {
    match error {
        kauri::Error::OutOfMemory { .. }
        | kauri::Error::ResultTooLarge { .. }
        | kauri::Error::RowTooLarge { .. } => DataFusionError::ResourcesExhausted(error.to_string()),
        other => DataFusionError::External(Box::new(other)),
    }
}
