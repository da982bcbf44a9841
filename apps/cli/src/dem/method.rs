//! Options of the interpolation.

use clap::{Args, ValueEnum};

use kauri::terrain::{Method, Spline, Statistic};

/// The method of interpolation, named as in PDAL and lidR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MethodName {
    /// Linear interpolation in the Delaunay triangulation (TIN)
    Tin,
    /// Natural neighbor interpolation (Sibson)
    Natural,
    /// Regularized spline with tension (Mitasova)
    Spline,
    /// Height of the nearest point
    Nearest,
    /// Average of the --k nearest points, weighted by inverse distance
    Idw,
    /// Average of all points within --radius, weighted by inverse distance, as PDAL's idw
    IdwRadius,
    /// Average of the points within --radius
    Mean,
    /// Least height within --radius
    Min,
    /// Greatest height within --radius
    Max,
    /// Number of points within --radius
    Count,
    /// Standard deviation of the points within --radius
    Stdev,
}

#[derive(Args)]
pub(super) struct MethodOptions {
    /// How the value of a cell is computed from the points around its center
    #[arg(long, value_enum, default_value = "tin")]
    pub(super) method: MethodName,
    /// Greatest distance of points from the center of a cell [default: resolution * sqrt(2), as in PDAL; for nearest and idw any]
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true)]
    radius: Option<f64>,
    /// Number of points of idw, up to 32
    #[arg(long, value_name = "N", default_value_t = 10)]
    k: u32,
    /// Power of the distance in the weights of idw and idw-radius
    #[arg(long, value_name = "N", default_value_t = 2)]
    power: u32,
    /// Greatest length of the edges of triangles of tin; cells of larger triangles have no value [default: any]
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true)]
    max_edge: Option<f64>,
}

impl MethodOptions {
    /// Returns the method of a raster.
    pub(super) fn method(&self, resolution: f64) -> Method {
        let any = self.radius.unwrap_or(f64::INFINITY);
        let statistic = |statistic| Method::Statistic {
            statistic,
            radius: self.radius.unwrap_or(resolution * std::f64::consts::SQRT_2),
        };
        match self.method {
            MethodName::Tin => self.tin(),
            MethodName::Natural => Method::NaturalNeighbor,
            MethodName::Spline => Method::Spline(Spline::default()),
            MethodName::Nearest => Method::Nearest { radius: any },
            MethodName::Idw => Method::Idw { k: self.k, radius: any, power: self.power },
            MethodName::IdwRadius => statistic(Statistic::Idw { power: self.power }),
            MethodName::Mean => statistic(Statistic::Mean),
            MethodName::Min => statistic(Statistic::Min),
            MethodName::Max => statistic(Statistic::Max),
            MethodName::Count => statistic(Statistic::Count),
            MethodName::Stdev => statistic(Statistic::StandardDeviation),
        }
    }

    /// Returns linear interpolation in the triangulation.
    pub(super) fn tin(&self) -> Method {
        Method::Tin { max_edge: self.max_edge.unwrap_or(f64::INFINITY) }
    }

    /// Returns the name on the command line.
    pub(super) fn name(&self) -> String {
        self.method.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
