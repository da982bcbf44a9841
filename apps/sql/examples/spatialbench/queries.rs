//! The queries in SQL.

use clap::ValueEnum;

/// The distance of Q8 in degrees, about 500 m.
pub(crate) const NEAR: f64 = 0.0045;
/// The buildings that Q12 finds for each trip.
pub(crate) const NEAREST: usize = 5;

/// A query of SpatialBench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Query {
    /// Counts the pickups within 500 m of each building.
    Q8,
    /// Finds the five nearest buildings of each pickup.
    Q12,
}

/// How the SQL engine joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// By kauri.
    Kauri,
    /// It compares all pairs of rows, and for Q12 ranks them by `row_number()`.
    AllPairs,
    /// As `AllPairs`; for Q8 by a hash join of cells: each building is in its cell and the eight around it.
    Cells,
}

impl Query {
    /// Returns the text of the query: SpatialBench's with `b.center` for the polygon, or an equal one for a plan without kauri.
    pub(crate) fn sql(self, plan: Plan, is_unordered: bool) -> String {
        let order = if is_unordered { "" } else { "ORDER BY distance_to_building, b_buildingkey" };
        let count = "SELECT b.b_buildingkey, b.b_name, count(*) AS nearby_pickup_count";
        let group = "GROUP BY b.b_buildingkey, b.b_name ORDER BY nearby_pickup_count DESC, b.b_buildingkey";
        match (self, plan) {
            (Self::Q8, Plan::Kauri | Plan::AllPairs) => format!(
                "{count} FROM trip t JOIN building b ON ST_DWithin(t.t_pickuploc, b.center, {NEAR}) {group}"
            ),
            (Self::Q8, Plan::Cells) => {
                let cell = |axis, point| format!("CAST(floor(ST_{axis}({point}) / {NEAR}) AS BIGINT)");
                format!(
                    "WITH near AS (SELECT *, {} + dx AS x, {} + dy AS y FROM building \
                     CROSS JOIN (VALUES (-1), (0), (1)) AS h(dx) CROSS JOIN (VALUES (-1), (0), (1)) AS v(dy)) \
                     {count} FROM trip t JOIN near b ON {} = b.x AND {} = b.y \
                     WHERE ST_Distance(t.t_pickuploc, b.center) <= {NEAR} {group}",
                    cell("X", "center"),
                    cell("Y", "center"),
                    cell("X", "t.t_pickuploc"),
                    cell("Y", "t.t_pickuploc"),
                )
            }
            (Self::Q12, Plan::Kauri) => format!(
                "SELECT t.t_tripkey, t.t_pickuploc, b.b_buildingkey, b.b_name AS building_name, \
                 ST_Distance(t.t_pickuploc, b.center) AS distance_to_building \
                 FROM trip t JOIN building b ON ST_KNN(t.t_pickuploc, b.center, {NEAREST}) {order}"
            ),
            (Self::Q12, Plan::AllPairs | Plan::Cells) => format!(
                "SELECT t_tripkey, t_pickuploc, b_buildingkey, building_name, distance_to_building FROM (\
                 SELECT *, row_number() OVER (PARTITION BY t_tripkey ORDER BY distance_to_building) AS rank FROM (\
                 SELECT t.t_tripkey, t.t_pickuploc, b.b_buildingkey, b.b_name AS building_name, \
                 ST_Distance(t.t_pickuploc, b.center) AS distance_to_building \
                 FROM trip t CROSS JOIN building b)) WHERE rank <= {NEAREST} {order}"
            ),
        }
    }

    /// Returns the columns of integers that the checksum of an answer is of.
    pub(crate) fn checked_columns(self) -> [&'static str; 2] {
        match self {
            Self::Q8 => ["b_buildingkey", "nearby_pickup_count"],
            Self::Q12 => ["t_tripkey", "b_buildingkey"],
        }
    }
}
