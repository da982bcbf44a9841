//! How the height of a cell is computed.

/// How the height of a cell is computed from the points. Lengths are in the units of positions.
///
/// | | value of a cell | no value |
/// |---|---|---|
/// | [`Statistic`](Self::Statistic) | a statistic of the heights within a radius of its center | no point within the radius |
/// | [`Nearest`](Self::Nearest) | the height of the point nearest to its center | no point within the radius |
/// | [`Idw`](Self::Idw) | the average of the nearest heights, weighted by inverse distance | no point within the radius |
/// | [`Tin`](Self::Tin) | linear interpolation in the Delaunay triangle of its center | outside of the triangulation, or an edge is too long |
/// | [`NaturalNeighbor`](Self::NaturalNeighbor) | the average of the natural neighbors, weighted by stolen area (Sibson 1981) | outside of the triangulation |
/// | [`Spline`](Self::Spline) | a regularized spline with tension (Mitasova, Mitas 1993) in each leaf of a quadtree | no point in the leaf of its center and in the adjacent leaves |
///
/// Points at one position count as one point with the least of their heights, except in statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// A statistic of the points within `radius` of the center of a cell.
    Statistic {
        /// The statistic.
        statistic: Statistic,
        /// The radius.
        radius: f64,
    },
    /// The nearest point.
    Nearest {
        /// The greatest distance; infinity for any.
        radius: f64,
    },
    /// Inverse distance weighting of the `k` nearest points.
    Idw {
        /// Number of points, 1 to 32.
        k: u32,
        /// The greatest distance; infinity for any.
        radius: f64,
        /// Weights are `1 / distance^power`; 1 to 16.
        power: u32,
    },
    /// Linear interpolation in the Delaunay triangulation (TIN).
    Tin {
        /// The greatest length of a triangle's edge; infinity for any.
        max_edge: f64,
    },
    /// Natural neighbor interpolation.
    NaturalNeighbor,
    /// Regularized spline with tension.
    Spline(Spline),
}

/// A statistic of the heights around the center of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Statistic {
    /// The least height.
    Min,
    /// The greatest height.
    Max,
    /// The average.
    Mean,
    /// The number of points.
    Count,
    /// The standard deviation of the population.
    StandardDeviation,
    /// The average weighted by `1 / distance^power`.
    Idw {
        /// The power, 1 to 16.
        power: u32,
    },
}

/// Options of [`Method::Spline`]. Tension and smoothing have the units of `v.surf.rst` of GRASS GIS with its default options.
///
/// The surface of a leaf is computed from the points of the leaf and of its adjacent leaves: at most 12 times `leaf_points`, the nearest
/// if there are more. Without smoothing, a constant is reproduced, and a plane with an error that falls as leaves have more points: 2 %
/// of its rise between neighbors of a lattice for leaves of 20 points, 0.2 % for 80. The time is proportional to the number of points, and
/// grows with the square of `leaf_points` at most.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spline {
    /// Tension: with a greater one the surface is more like a membrane, with a smaller one more like a plate. It applies to distances in
    /// units of the side of a square that has 300 points on average.
    pub tension: f64,
    /// Smoothing. With 0 the surface passes through the points, except those that are so close to others that their heights cannot be told
    /// apart.
    pub smoothing: f64,
    /// Maximum number of points of a leaf, 1 to 100.
    pub leaf_points: u32,
}

impl Default for Spline {
    fn default() -> Self {
        Self { tension: 40.0, smoothing: 0.1, leaf_points: 20 }
    }
}

impl Spline {
    setters! {
        /// Sets the tension.
        tension: f64;

        /// Sets the smoothing.
        smoothing: f64;

        /// Sets the maximum number of points of a leaf.
        leaf_points: u32;
    }
}
