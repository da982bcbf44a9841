//! Points of Arrow arrays.

use crate::error::{Error, Result, check_count};
use crate::parallel;
use crate::point::{LonLat, MAX_POINTS, Point};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::NullBuffer;
use sealed::Layout;
use std::borrow::Cow;
use std::ops::Deref;

/// The points that a task puts together.
const TASK_POINTS: usize = 1 << 14;

/// The use of a row without a point: one that is null, or has a null coordinate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nulls {
    /// It is an error.
    #[default]
    Refuse,
    /// It is left out.
    Skip,
}

mod sealed {
    use arrow_array::ArrowPrimitiveType;

    /// How the numbers of an array make points.
    pub trait Layout: Copy {
        /// The type of the numbers.
        type Number: ArrowPrimitiveType;
        /// The numbers of a point.
        const NUMBERS: usize;
        /// Makes a point of its numbers.
        fn of(number: impl Fn(usize) -> <Self::Number as ArrowPrimitiveType>::Native) -> Self;
        /// Takes the numbers of points, one point behind the other, for points.
        fn all(numbers: &[<Self::Number as ArrowPrimitiveType>::Native]) -> &[Self];
    }
}

/// A point whose numbers an Arrow array has: `[f32; D]`, `[f64; D]`, and [`LonLat`], of which an array has the longitude before the latitude.
///
/// Only kauri implements it.
pub trait ArrowPoint: Point + Layout + Send + Sync {}

impl<P: Point + Layout + Send + Sync> ArrowPoint for P {}

/// Implements [`Layout`] for arrays of a type.
macro_rules! layouts {
    ($($float:ty: $Type:ty),*) => {$(
        impl<const D: usize> Layout for [$float; D] {
            type Number = $Type;
            const NUMBERS: usize = D;
            fn of(number: impl Fn(usize) -> $float) -> Self {
                std::array::from_fn(number)
            }
            fn all(numbers: &[$float]) -> &[Self] {
                numbers.as_chunks().0
            }
        }
    )*};
}

layouts!(f32: Float32Type, f64: Float64Type);

impl Layout for LonLat {
    type Number = Float64Type;
    const NUMBERS: usize = 2;
    fn of(number: impl Fn(usize) -> f64) -> Self {
        Self::new(number(0), number(1))
    }
    fn all(numbers: &[f64]) -> &[Self] {
        bytemuck::cast_slice(numbers)
    }
}

/// The points of an array: a slice of points, borrowed from the array where its layout allows.
#[derive(Clone, Debug)]
pub struct ArrowPoints<'a, P: ArrowPoint> {
    points: Cow<'a, [P]>,
    /// The row of each point; `None` if all rows have one.
    rows: Option<Vec<u32>>,
}

impl<P: ArrowPoint> ArrowPoints<'_, P> {
    /// Returns the row of a point, which the id of the point in an index or a join is the number of.
    ///
    /// # Panics
    /// If there are not that many points.
    pub fn row(&self, id: u32) -> u32 {
        assert!((id as usize) < self.points.len(), "point {id} of {}", self.points.len());
        self.rows.as_ref().map_or(id, |rows| rows[id as usize])
    }

    /// Returns true if the points are in the memory of the array.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.points, Cow::Borrowed(_))
    }
}

impl<P: ArrowPoint> Deref for ArrowPoints<'_, P> {
    type Target = [P];

    fn deref(&self) -> &[P] {
        &self.points
    }
}

/// Returns the points of an array: a `FixedSizeList` of as many floats as a point has, or a `Struct` with a field of floats for each axis (GeoArrow's
/// interleaved and separated points).
///
/// Memory: none for a list whose rows are all there; a copy of the points otherwise, and 4 bytes for each if rows are left out.
///
/// # Errors
/// [`Error::NotPoints`] for another type; [`Error::NullRow`] for a row without a point, unless such rows are skipped;
/// [`Error::TooManyItems`](crate::Error::TooManyItems) for more than [`MAX_POINTS`] rows; [`Error::OutOfMemory`]. Coordinates are checked where they are used.
pub fn points<P: ArrowPoint>(array: &dyn Array, nulls: Nulls) -> Result<ArrowPoints<'_, P>> {
    if let Some(array) = array.as_struct_opt() {
        let columns: Vec<&dyn Array> = array.columns().iter().map(AsRef::as_ref).collect();
        return of_columns(&columns, array.nulls(), nulls, array.data_type());
    }
    let not_points = || not_points::<P>(array.data_type());
    let list = array.as_fixed_size_list_opt().ok_or_else(not_points)?;
    let numbers = list.values().as_primitive_opt::<P::Number>().ok_or_else(not_points)?;
    if list.value_length() as usize != P::NUMBERS {
        return Err(not_points());
    }
    let has_all = |row: usize| (0..P::NUMBERS).all(|axis| numbers.is_valid(row * P::NUMBERS + axis));
    let children = (numbers.null_count() > 0).then(|| (0..list.len()).map(has_all).collect());
    present(
        Cow::Borrowed(P::all(numbers.values())),
        NullBuffer::union(list.nulls(), children.as_ref()),
        nulls,
    )
}

/// Returns the points of an array for each axis.
///
/// Memory: the points, and 4 bytes for each if rows are left out.
///
/// # Errors
/// As [`points`]; [`Error::NotPoints`] also for another number of arrays than a point has axes, and for arrays of different lengths.
pub fn points_of_columns<P: ArrowPoint>(
    columns: &[&dyn Array],
    nulls: Nulls,
) -> Result<ArrowPoints<'static, P>> {
    of_columns(columns, None, nulls, &columns.iter().map(|column| column.data_type()).collect::<Vec<_>>())
}

/// Puts points together. `found` is their type in errors.
fn of_columns<P: ArrowPoint>(
    columns: &[&dyn Array],
    whole: Option<&NullBuffer>,
    nulls: Nulls,
    found: &dyn std::fmt::Debug,
) -> Result<ArrowPoints<'static, P>> {
    let axes: Option<Vec<&PrimitiveArray<P::Number>>> =
        columns.iter().map(|column| column.as_primitive_opt()).collect();
    let axes = axes.filter(|axes| axes.len() == P::NUMBERS).ok_or_else(|| not_points::<P>(found))?;
    let len = axes.first().map_or(0, |axis| axis.len());
    if axes.iter().any(|axis| axis.len() != len) {
        return Err(not_points::<P>(&axes.iter().map(|axis| axis.len()).collect::<Vec<_>>()));
    }
    let numbers: Vec<_> = axes.iter().map(|axis| axis.values()).collect();
    let point = |row: usize| P::of(|axis| numbers[axis][row]);
    let points = parallel::collect(len, TASK_POINTS, "points of an Arrow array", point)?;
    let valid =
        axes.iter().fold(whole.cloned(), |valid, axis| NullBuffer::union(valid.as_ref(), axis.nulls()));
    present(Cow::Owned(points), valid, nulls)
}

/// Leaves rows out that have no point, or refuses them.
fn present<P: ArrowPoint>(
    points: Cow<'_, [P]>,
    valid: Option<NullBuffer>,
    nulls: Nulls,
) -> Result<ArrowPoints<'_, P>> {
    check_count("points", points.len() as u64, MAX_POINTS)?;
    let Some(valid) = valid.filter(|valid| valid.null_count() > 0) else {
        return Ok(ArrowPoints { points, rows: None });
    };
    if nulls == Nulls::Refuse {
        let row = valid.iter().position(|is_valid| !is_valid).unwrap_or(0) as u64;
        return Err(Error::NullRow { row });
    }
    let rows: Vec<u32> = valid.valid_indices().map(|row| row as u32).collect();
    let point = |id: usize| points[rows[id] as usize];
    let points = parallel::collect(rows.len(), TASK_POINTS, "points of an Arrow array", point)?;
    Ok(ArrowPoints { points: Cow::Owned(points), rows: Some(rows) })
}

fn not_points<P: ArrowPoint>(found: &(impl std::fmt::Debug + ?Sized)) -> Error {
    Error::NotPoints {
        found: format!("{found:?}"),
        numbers: P::NUMBERS,
        of: P::Number::DATA_TYPE.to_string(),
    }
}
