//! Points that can be indexed: arrays of coordinates, and places on the Earth.

mod checked;
mod coordinate;
mod dims;
mod lattice;
#[cfg(feature = "mint")]
mod mint;
mod scalar;
mod source;

use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::Norm;
use std::borrow::Cow;

pub(crate) use checked::{
    are_floats_copied, check_each_coordinate, checked_coordinates, checked_floats, dims, is_usable,
};
pub use coordinate::Coordinate;
pub(crate) use coordinate::{Dispatch, NoValue, PerCoordinate, Typed, with_coordinate, with_float};
pub(crate) use dims::{with_dims, with_kernel_dims};
pub use lattice::Lattice;
pub use scalar::Scalar;
#[cfg(feature = "io")]
pub(crate) use scalar::first_unusable;
#[cfg(feature = "io")]
pub(crate) use source::read_chunks;
pub use source::{PointChunk, PointSource, VisitPoints};

use crate::error::{Error, Result, check_count};
use crate::parallel;

/// The most points of an index: ids are 32-bit, and the largest one marks padding.
pub const MAX_POINTS: u64 = u32::MAX as u64 - 1;

/// The most dimensions of a point.
pub const MAX_DIMS: usize = 8;

/// The mean radius of the Earth in meters (IUGG).
pub const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// The numbers that a task checks. Fewer are checked and converted on the calling thread.
const CHECK_CHUNK: usize = 1 << 14;

/// A point that can be indexed: `[f32; D]`, `[f64; D]`, `[i32; D]` and `[i64; D]` with D from 1 to 8, [`LonLat`], and with the feature
/// `mint` the points and vectors of two and three dimensions of the crate `mint`.
///
/// An index sees a point as [`DIMS`](Point::DIMS) coordinates with the Euclidean distance. Items of other types are indexed by
/// [`KdTree::build_by`](crate::KdTree::build_by), which maps each to a point, or by an implementation of this trait:
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, Point, Result, SpatialIndex};
/// use std::borrow::Cow;
///
/// #[derive(Clone, Copy)]
/// struct City {
///     x: f64,
///     y: f64,
///     population: u32,
/// }
///
/// impl Point for City {
///     type Coord = f64;
///     const DIMS: usize = 2;
///     const CONVERTED: bool = true;
///     const KEEPS_AXES: bool = true;
///
///     fn coordinates<'a>(cities: &'a [Self], _: &'static str) -> Result<Cow<'a, [f64]>> {
///         Ok(cities.iter().flat_map(|city| [city.x, city.y]).collect())
///     }
/// }
///
/// let cities = [City { x: 0.0, y: 0.0, population: 1000 }, City { x: 9.0, y: 9.0, population: 500 }];
/// let tree = KdTree::build(&Device::cpu(), &cities, &KdTreeOptions::default())?;
/// let nearest = tree.nearest_one(&City { x: 8.0, y: 8.0, population: 0 })?.expect("there are cities");
/// assert_eq!(cities[nearest.id as usize].population, 500);
/// # Ok::<(), kauri::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a point that can be indexed",
    label = "not a point",
    note = "points are arrays of 1 to 8 coordinates (`f32`, `f64`, `i32` or `i64`) and `kauri::LonLat`",
    note = "to index items of another type, map each to such a point, as in \
            `KdTree::build_by(&device, &items, |item| [item.x, item.y], &options)`, or implement `Point` for the type"
)]
pub trait Point: Copy + Send + Sync + 'static {
    /// The type of the coordinates inside the index. Distances, radii and periods have its type [`Distance`](Coord::Distance).
    type Coord: Coordinate;
    /// The number of coordinates inside the index, 1 to [`MAX_DIMS`].
    const DIMS: usize;
    /// True if [`coordinates`](Point::coordinates) makes a copy, which then counts as temporary memory.
    const CONVERTED: bool;
    /// True if the axes inside the index are the axes of the points, so that they can be periodic
    /// ([`QueryOptions::periods`](crate::query::QueryOptions::periods)).
    const KEEPS_AXES: bool;
    /// The name of the point type in index files, at most 16 bytes: "f32", "f64", "i32" or "i64" for arrays of these,
    /// "LonLat". An index can be loaded only with the name, coordinate type and number of coordinates that it was saved
    /// with. The default is the name of an array of coordinates.
    const NAME: &'static str = <Self::Coord as Coord>::NAME;
    /// kauri's own types check their coordinates in [`coordinates`](Point::coordinates).
    #[doc(hidden)]
    const TRUST: checked::Trust = checked::Trust(false);

    /// Checks every point, and returns the coordinates point by point. `what` names the points in errors.
    ///
    /// Implementations can delegate to `[S; D]` or [`LonLat`]. Indexes and joins verify that there are
    /// [`DIMS`](Point::DIMS) coordinates per point, which are finite and at most [`Float::LIMIT`](kauri_kernels::thread::coord::Float::LIMIT), whatever an
    /// implementation returns.
    ///
    /// # Errors
    /// The error of the first invalid point: [`Error::NonFinite`], [`Error::CoordinateTooLarge`],
    /// [`Error::InvalidLonLat`].
    fn coordinates<'a>(points: &'a [Self], what: &'static str) -> Result<Cow<'a, [Self::Coord]>>;

    /// kauri's own types return the coordinates before any check, if they need no conversion.
    #[doc(hidden)]
    fn unchecked(_points: &[Self]) -> Option<&[Self::Coord]> {
        None
    }

    /// Returns the bound for distances in results that corresponds to `radius`, which is not negative: for the
    /// Euclidean norm its square, rounded.
    fn bound(radius: DistanceOf<Self>, norm: Norm) -> DistanceOf<Self> {
        if norm == Norm::Euclidean { radius * radius } else { radius }
    }
}

/// The type of the distances between points of a type.
pub(crate) type DistanceOf<P> = <<P as Point>::Coord as Coord>::Distance;

/// A point whose coordinates are the axes of the index, so that two points are the corners of a box: arrays, but not [`LonLat`].
///
/// A type with an own [`Point`] implementation implements it to be used in
/// [`in_boxes`](crate::SpatialIndex::in_boxes):
///
/// ```
/// use kauri::{Cartesian, Device, KdTree, KdTreeOptions, Point, Result, SpatialIndex};
/// use std::borrow::Cow;
///
/// #[derive(Clone, Copy)]
/// struct Pixel(u16, u16);
///
/// impl Point for Pixel {
///     type Coord = f32;
///     const DIMS: usize = 2;
///     const CONVERTED: bool = true;
///     const KEEPS_AXES: bool = true;
///
///     fn coordinates<'a>(pixels: &'a [Self], _: &'static str) -> Result<Cow<'a, [f32]>> {
///         Ok(pixels.iter().flat_map(|pixel| [pixel.0.into(), pixel.1.into()]).collect())
///     }
/// }
///
/// impl Cartesian for Pixel {}
///
/// let tree = KdTree::build(&Device::cpu(), &[Pixel(3, 4), Pixel(90, 80)], &KdTreeOptions::default())?;
/// assert_eq!(tree.in_boxes(&[[Pixel(0, 0), Pixel(50, 50)]], None)?.row(0), [0]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub trait Cartesian: Point {}

impl<S: Scalar, const D: usize> Cartesian for [S; D] {}

/// Arrays of floats and of `i32` are indexed without a copy, arrays of `i64` are converted to `f64`; see [`Scalar`]. More than 8
/// or 0 dimensions do not compile:
///
/// ```compile_fail
/// use kauri::{Device, KdTree, KdTreeOptions};
/// let _ = KdTree::build(&Device::cpu(), &[[0.0f32; 9]], &KdTreeOptions::default());
/// ```
impl<S: Scalar, const D: usize> Point for [S; D] {
    type Coord = S::Coord;
    const DIMS: usize = {
        assert!(D >= 1 && D <= MAX_DIMS, "points have 1 to 8 coordinates");
        D
    };
    const CONVERTED: bool = S::CONVERTED;
    const KEEPS_AXES: bool = true;
    const NAME: &'static str = S::TYPE_NAME;
    const TRUST: checked::Trust = checked::Trust(true);

    fn coordinates<'a>(points: &'a [Self], what: &'static str) -> Result<Cow<'a, [S::Coord]>> {
        let flat = points.as_flattened();
        match scalar::first_unusable(flat, S::is_usable) {
            None => S::coordinates(flat),
            Some(position) => {
                let (index, axis) = ((position / Self::DIMS) as u64, position % Self::DIMS);
                let value = flat[position].to_coord().to_f64();
                Err(Error::invalid_coordinate(what, index, axis, value, S::LARGEST))
            }
        }
    }

    fn unchecked(points: &[Self]) -> Option<&[S::Coord]> {
        if S::CONVERTED {
            return None;
        }
        match S::coordinates(points.as_flattened()) {
            Ok(Cow::Borrowed(coords)) => Some(coords),
            _ => None,
        }
    }
}

/// Returns the error of the first item that has one. A task checks `sequential` items; `error` may be called twice for an item.
pub(crate) fn check_each<T: Sync>(
    items: &[T],
    sequential: usize,
    error: impl Fn(usize, &T) -> Option<Error> + Send + Sync,
) -> Result<()> {
    parallel::find_some(items.len(), sequential, |i| error(i, &items[i])).map_or(Ok(()), Err)
}

/// The points of items, in order.
///
/// # Errors
/// [`Error::TooManyItems`], [`Error::OutOfMemory`].
pub(crate) fn points_by<T: Sync, P: Point>(
    items: &[T],
    point_of: impl Fn(&T) -> P + Send + Sync,
) -> Result<Vec<P>> {
    check_count("points", items.len() as u64, MAX_POINTS)?;
    converted(items, CHECK_CHUNK / 8, "points of the items", point_of)
}

/// Converts all items, in order. A task converts `sequential` items.
fn converted<T: Sync, U: Send>(
    items: &[T],
    sequential: usize,
    label: &'static str,
    convert: impl Fn(&T) -> U + Send + Sync,
) -> Result<Vec<U>> {
    parallel::collect(items.len(), sequential, label, |i| convert(&items[i]))
}

/// A point on the Earth: longitude and latitude in degrees (WGS84, treated as a sphere of radius [`EARTH_RADIUS_M`]).
///
/// Inside an index it is a unit vector, so the date line and the poles need no special treatment. Squared distances are
/// squared chords of the unit sphere; [`LonLat::chord2_to_meters`] converts them to great-circle meters. The order of
/// chords is the order of great-circle distances.
///
/// Latitudes range from -90 to 90 and longitudes from -360 to 360, since data come in both conventions, -180..180 and
/// 0..360. -180 and 180 are the same point to the last bit, and so are all longitudes at a pole.
///
/// Compared with the WGS84 ellipsoid, distances are wrong by up to 0.56 %. The rounding error is below a micrometer for
/// near points; it grows to some centimeters for antipodes, where a chord hardly changes with the angle.
///
/// ```
/// use kauri::LonLat;
///
/// let (stockholm, helsinki) = (LonLat::new(18.07, 59.33), LonLat::new(24.94, 60.17));
/// let kilometers = stockholm.meters_to(&helsinki) / 1e3;
/// assert!((390.0..400.0).contains(&kilometers));
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LonLat {
    /// The longitude in degrees, positive to the east.
    pub lon: f64,
    /// The latitude in degrees, positive to the north.
    pub lat: f64,
}

// SAFETY: two floats without padding.
unsafe impl bytemuck::Zeroable for LonLat {}
// SAFETY: as above; all bits are valid.
unsafe impl bytemuck::Pod for LonLat {}

impl LonLat {
    /// The largest longitude accepted, in degrees east or west.
    pub const MAX_LON: f64 = 360.0;
    /// The largest latitude accepted, in degrees north or south.
    pub const MAX_LAT: f64 = 90.0;

    /// Creates a point. Its range is checked when it is used.
    pub const fn new(lon: f64, lat: f64) -> Self {
        Self { lon, lat }
    }

    /// Returns the great-circle distance in meters, equal to the bit to the distance through an index.
    pub fn meters_to(&self, other: &LonLat) -> f64 {
        let (a, b) = (self.unit_vector(), other.unit_vector());
        Self::chord2_to_meters(kauri_kernels::thread::coord::dist2(3, |axis| a[axis], |axis| b[axis]))
    }

    /// Converts a squared chord of the unit sphere, the `dist2` of an index of `LonLat`, to great-circle meters.
    /// Infinity, which marks padding, stays infinity.
    pub fn chord2_to_meters(chord2: f64) -> f64 {
        if chord2 == f64::INFINITY {
            return chord2;
        }
        2.0 * EARTH_RADIUS_M * (chord2.sqrt() / 2.0).min(1.0).asin()
    }

    /// Returns the point on the unit sphere.
    pub(crate) fn unit_vector(&self) -> [f64; 3] {
        let (sin_lon, cos_lon) = sin_cos_degrees(self.lon);
        let (sin_lat, cos_lat) = sin_cos_degrees(self.lat);
        // Adding zero turns -0.0 into 0.0, so that equal points have equal bits.
        [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat].map(|x| x + 0.0)
    }

    /// Returns the error of an invalid point.
    fn check(&self, what: &'static str, index: usize) -> Result<()> {
        let index = index as u64;
        let sides = [(self.lon, "longitude", Self::MAX_LON), (self.lat, "latitude", Self::MAX_LAT)];
        for (axis, (value, name, limit)) in sides.into_iter().enumerate() {
            if !value.is_finite() {
                return Err(Error::NonFinite { what, index, axis, value });
            }
            if value.abs() > limit {
                return Err(Error::InvalidLonLat { what, index, axis: name, value, limit });
            }
        }
        Ok(())
    }
}

/// Points are converted once, on the host before any backend sees them, so that every backend gets the same bits.
impl Point for LonLat {
    type Coord = f64;
    const DIMS: usize = 3;
    const CONVERTED: bool = true;
    const KEEPS_AXES: bool = false;
    const NAME: &'static str = "LonLat";
    const TRUST: checked::Trust = checked::Trust(true);

    fn coordinates<'a>(points: &'a [Self], what: &'static str) -> Result<Cow<'a, [f64]>> {
        const SEQUENTIAL: usize = CHECK_CHUNK / 8;
        check_each(points, SEQUENTIAL, |i, point| point.check(what, i).err())?;
        let vectors = converted(points, SEQUENTIAL, "unit vectors", LonLat::unit_vector)?;
        Ok(Cow::Owned(vectors.into_flattened()))
    }

    /// Returns the squared chord of an arc of `meters`. For norms other than the Euclidean, which are of no use on a
    /// sphere, returns the chord.
    fn bound(meters: f64, norm: Norm) -> f64 {
        let half_angle = meters / (2.0 * EARTH_RADIUS_M);
        // No two points are farther apart than half of the circumference.
        let chord =
            if half_angle < std::f64::consts::FRAC_PI_2 { 2.0 * half_angle.sin() } else { f64::INFINITY };
        if norm == Norm::Euclidean { chord * chord } else { chord }
    }
}

/// Returns sine and cosine of an angle in degrees, exact at multiples of 90. The angle is reduced in degrees, where
/// that is exact, to -180..=180, so that equal directions such as 45 and -315, or -180 and 180, have equal bits.
fn sin_cos_degrees(degrees: f64) -> (f64, f64) {
    let reduced = match degrees % 360.0 {
        east if east > 180.0 => east - 360.0,
        west if west < -180.0 => west + 360.0,
        reduced => reduced,
    };
    let quarter = (reduced / 90.0).round();
    let (sin, cos) = (reduced - 90.0 * quarter).to_radians().sin_cos();
    match quarter as i32 & 3 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_coordinate_is_named() {
        let mut points = vec![[1.0f32; 3]; 50_000];
        points[40_000][2] = f32::NAN;
        points[30_001][1] = f32::NEG_INFINITY;
        let error = Point::coordinates(&points, "point").unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 30_001, axis: 1, .. }), "{error}");
        points[7][0] = 1e30;
        let error = Point::coordinates(&points, "query").unwrap_err();
        assert!(
            matches!(error, Error::CoordinateTooLarge { what: "query", index: 7, axis: 0, .. }),
            "{error}"
        );
        assert!(Point::coordinates(&[[f64::MAX / 1e200], [-1.0]], "point").is_ok());

        let beyond = (1i64 << 53) + 2;
        match Point::coordinates(&[[0, 1], [-beyond, i64::MIN]], "point").unwrap_err() {
            Error::CoordinateTooLarge { index: 1, axis: 0, value, limit, .. } => {
                assert_eq!((value, limit), (-beyond as f64, (1i64 << 53) as f64));
            }
            other => panic!("{other}"),
        }
        assert_eq!(*Point::coordinates(&[[i32::MIN, i32::MAX]], "point").unwrap(), [i32::MIN, i32::MAX]);
    }

    #[test]
    fn one_place_has_one_unit_vector() {
        let bits = |lon, lat| LonLat::new(lon, lat).unit_vector().map(f64::to_bits);
        assert_eq!(bits(180.0, 12.5), bits(-180.0, 12.5));
        assert_eq!(bits(-170.0, -33.0), bits(190.0, -33.0));
        for lon in [45.0, 135.0, 15.0, 180.0, 359.0] {
            assert_eq!(bits(lon, 12.5), bits(lon - 360.0, 12.5), "{lon}");
        }
        assert_eq!(bits(0.0, 90.0), bits(-123.4, 90.0));
        assert_eq!(bits(0.0, -90.0), bits(77.0, -90.0));
        assert_eq!(bits(0.0, 0.0), bits(-0.0, -0.0));
        assert_eq!(LonLat::new(90.0, 0.0).unit_vector(), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn known_distances() {
        let quarter = std::f64::consts::FRAC_PI_2 * EARTH_RADIUS_M;
        let (pole, equator) = (LonLat::new(50.0, 90.0), LonLat::new(-20.0, 0.0));
        assert!((pole.meters_to(&equator) - quarter).abs() < 1e-6);
        assert!((pole.meters_to(&LonLat::new(3.0, -90.0)) - 2.0 * quarter).abs() < 1e-6);
        let (east, west) = (LonLat::new(179.9, 0.0), LonLat::new(-179.9, 0.0));
        assert!((east.meters_to(&west) - quarter / 450.0).abs() < 1e-6);
        assert_eq!(LonLat::chord2_to_meters(f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn lon_lat_ranges() {
        let refused = |lon, lat| LonLat::coordinates(&[LonLat::new(lon, lat)], "point").unwrap_err();
        assert!(matches!(refused(0.0, 90.1), Error::InvalidLonLat { axis: "latitude", limit: 90.0, .. }));
        assert!(matches!(refused(-361.0, 0.0), Error::InvalidLonLat { axis: "longitude", .. }));
        assert!(matches!(refused(0.0, f64::NAN), Error::NonFinite { axis: 1, .. }));
        assert!(LonLat::coordinates(&[LonLat::new(360.0, -90.0)], "point").is_ok());
    }
}
