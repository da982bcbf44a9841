//! Points of Arrow arrays.

use crate::error::{Error, Result, check_count};
use crate::parallel;
use crate::point::{LonLat, MAX_POINTS, Point};
use crate::{memory, wkb};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::DataType;
use sealed::Layout;
use std::borrow::Cow;
use std::ops::Deref;

/// The points that a task puts together.
const TASK_POINTS: usize = 1 << 14;

/// The purpose of allocations.
const LABEL: &str = "points of an Arrow array";

/// The use of a row without a point: one that is null, has a null coordinate, or is an empty point in well-known binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nulls {
    /// It is an error.
    #[default]
    Refuse,
    /// It is left out.
    Skip,
    /// It stays, with arbitrary coordinates; [`ArrowPoints::nulls`] marks it.
    Keep,
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
        /// Makes a point of x and y in `f64`; `None` if it has other numbers.
        fn of_xy(xy: [f64; 2]) -> Option<Self>;
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
            fn of_xy(xy: [f64; 2]) -> Option<Self> {
                let is_exact = D == 2 && <$Type>::DATA_TYPE == DataType::Float64;
                is_exact.then(|| std::array::from_fn(|axis| xy[axis] as $float))
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
    fn of_xy([lon, lat]: [f64; 2]) -> Option<Self> {
        Some(Self::new(lon, lat))
    }
}

/// The points of an array: a slice of points, borrowed from the array where its layout allows.
#[derive(Clone, Debug)]
pub struct ArrowPoints<'a, P: ArrowPoint> {
    points: Cow<'a, [P]>,
    /// The row of each point; `None` if no row is left out.
    rows: Option<Vec<u32>>,
    /// The rows that have a point, if some that have none are kept.
    nulls: Option<NullBuffer>,
}

impl<'a, P: ArrowPoint> ArrowPoints<'a, P> {
    /// Returns the row of a point, which the id of the point in an index or a join is the number of.
    ///
    /// # Panics
    /// If there are not that many points.
    pub fn row(&self, id: u32) -> u32 {
        assert!((id as usize) < self.points.len(), "point {id} of {}", self.points.len());
        self.rows.as_ref().map_or(id, |rows| rows[id as usize])
    }

    /// Returns which rows have a point, if some have none and were kept ([`Nulls::Keep`]).
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// Returns true if the points are in the memory of the array.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.points, Cow::Borrowed(_))
    }

    /// Returns the points, without a copy.
    pub fn into_cow(self) -> Cow<'a, [P]> {
        self.points
    }
}

impl<P: ArrowPoint> Deref for ArrowPoints<'_, P> {
    type Target = [P];

    fn deref(&self) -> &[P] {
        &self.points
    }
}

/// Returns the points of an array of one of these types:
///
/// - a `FixedSizeList` of floats, or a `Struct` with a field of floats for each axis (GeoArrow's interleaved and separated points),
/// - `Binary`, `LargeBinary` or `BinaryView` with points in well-known binary, ISO or EWKB; for `[f64; 2]` and [`LonLat`].
///
/// Further numbers of a point, such as a height, are ignored.
///
/// Memory: none for a list whose points have as many floats as `P`, if no row is left out. Otherwise a copy of the points, and 4 bytes for
/// each of them if rows are left out.
///
/// # Errors
/// [`Error::NotPoints`] for another type; [`Error::InvalidWkb`] for bytes that are not a point; [`Error::NullRow`] for a row without a
/// point, if [`Nulls::Refuse`] is given; [`Error::TooManyItems`] for more than [`MAX_POINTS`] rows; [`Error::OutOfMemory`]. Coordinates are
/// checked where they are used.
pub fn points<P: ArrowPoint>(array: &dyn Array, nulls: Nulls) -> Result<ArrowPoints<'_, P>> {
    let found = array.data_type();
    match found {
        DataType::Struct(_) => {
            let array = array.as_struct();
            let columns: Vec<&dyn Array> =
                array.columns().iter().take(P::NUMBERS).map(AsRef::as_ref).collect();
            of_columns(&columns, array.nulls(), nulls, found)
        }
        DataType::FixedSizeList(..) => of_list(array.as_fixed_size_list(), nulls),
        DataType::Binary => of_wkb(array.as_binary::<i32>().iter(), nulls, found),
        DataType::LargeBinary => of_wkb(array.as_binary::<i64>().iter(), nulls, found),
        DataType::BinaryView => of_wkb(array.as_binary_view().iter(), nulls, found),
        _ => Err(not_points::<P>(found)),
    }
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

/// Takes the points of a list, or the first numbers of its longer points.
fn of_list<P: ArrowPoint>(list: &FixedSizeListArray, nulls: Nulls) -> Result<ArrowPoints<'_, P>> {
    let len = list.value_length() as usize;
    let numbers = list.values().as_primitive_opt::<P::Number>().filter(|_| len >= P::NUMBERS);
    let numbers = numbers.ok_or_else(|| not_points::<P>(list.data_type()))?;
    let has_all = |row: usize| (0..P::NUMBERS).all(|axis| numbers.is_valid(row * len + axis));
    let children = (numbers.null_count() > 0).then(|| (0..list.len()).map(has_all).collect());
    let points = if len == P::NUMBERS {
        Cow::Borrowed(P::all(numbers.values()))
    } else {
        let point = |row: usize| P::of(|axis| numbers.values()[row * len + axis]);
        Cow::Owned(parallel::collect(list.len(), TASK_POINTS, LABEL, point)?)
    };
    present(points, NullBuffer::union(list.nulls(), children.as_ref()), nulls)
}

/// Decodes points in well-known binary.
fn of_wkb<'a, P: ArrowPoint>(
    values: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    nulls: Nulls,
    found: &DataType,
) -> Result<ArrowPoints<'static, P>> {
    let placeholder = P::of_xy([0.0; 2]).ok_or_else(|| not_points::<P>(found))?;
    let mut points = memory::vec_with_capacity(values.len(), LABEL)?;
    let mut valid = NullBufferBuilder::new(values.len());
    for (row, bytes) in values.enumerate() {
        let point = bytes.map_or(Ok(None), wkb::point);
        let point = point.map_err(|what| Error::InvalidWkb { row: row as u64, what })?;
        valid.append(point.is_some());
        points.push(point.and_then(P::of_xy).unwrap_or(placeholder));
    }
    present(Cow::Owned(points), valid.finish(), nulls)
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
    let points = parallel::collect(len, TASK_POINTS, LABEL, point)?;
    let valid =
        axes.iter().fold(whole.cloned(), |valid, axis| NullBuffer::union(valid.as_ref(), axis.nulls()));
    present(Cow::Owned(points), valid, nulls)
}

/// Leaves rows out that have no point, keeps or refuses them.
fn present<P: ArrowPoint>(
    points: Cow<'_, [P]>,
    valid: Option<NullBuffer>,
    nulls: Nulls,
) -> Result<ArrowPoints<'_, P>> {
    check_count("points", points.len() as u64, MAX_POINTS)?;
    let Some(valid) = valid.filter(|valid| valid.null_count() > 0) else {
        return Ok(ArrowPoints { points, rows: None, nulls: None });
    };
    match nulls {
        Nulls::Refuse => {
            let row = valid.iter().position(|is_valid| !is_valid).unwrap_or(0) as u64;
            return Err(Error::NullRow { row });
        }
        Nulls::Keep => return Ok(ArrowPoints { points, rows: None, nulls: Some(valid) }),
        Nulls::Skip => {}
    }
    let rows: Vec<u32> = valid.valid_indices().map(|row| row as u32).collect();
    let point = |id: usize| points[rows[id] as usize];
    let points = parallel::collect(rows.len(), TASK_POINTS, LABEL, point)?;
    Ok(ArrowPoints { points: Cow::Owned(points), rows: Some(rows), nulls: None })
}

fn not_points<P: ArrowPoint>(found: &(impl std::fmt::Debug + ?Sized)) -> Error {
    Error::NotPoints {
        found: format!("{found:?}"),
        numbers: P::NUMBERS,
        of: P::Number::DATA_TYPE.to_string(),
    }
}
