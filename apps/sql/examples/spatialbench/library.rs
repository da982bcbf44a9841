//! The queries by calls of kauri, without SQL.

use crate::answer::Answer;
use crate::clock::{Begin, Times};
use crate::queries::{NEAR, NEAREST, Query};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use kauri::query::QueryOptions;
use kauri::{Batches, Device, DistanceJoin, KdTree, KdTreeOptions, SpatialIndex};
use std::ops::ControlFlow;

/// The rows of a result that are delivered at a time.
const BATCH_ROWS: usize = 1 << 20;

/// The keys and points of a table.
#[derive(Default)]
struct Table {
    keys: Vec<i64>,
    points: Vec<[f64; 2]>,
}

/// The points of both tables in host memory.
pub(crate) struct Points {
    trips: Table,
    buildings: Table,
}

impl Points {
    /// Reads the tables of a session. Buildings are in the order of their keys, by which the library and SQL choose among those at the same
    /// place.
    pub(crate) async fn of(session: &SessionContext) -> Result<Self> {
        Ok(Self {
            trips: Table::of(session, "t_tripkey", "t_pickuploc", "trip", "").await?,
            buildings: Table::of(session, "b_buildingkey", "center", "building", "ORDER BY b_buildingkey")
                .await?,
        })
    }

    /// Returns the best times of the runs of a query, and its answer. The answer is from a run before the measured ones.
    pub(crate) fn time(&self, query: Query, device: &Device, near: NearCounts, runs: u32) -> (Times, Answer) {
        let (trips, buildings) = (&self.trips, &self.buildings);
        let (answer, measured): (Answer, Box<dyn Fn()>) = match query {
            Query::Q8 => {
                let mut answer = Answer::default();
                let counts = near(device, &trips.points, &buildings.points);
                let found = buildings.keys.iter().zip(counts).filter(|(_, count)| *count > 0);
                found.for_each(|(&building, count)| answer.add(building, count));
                (answer, Box::new(|| drop(near(device, &trips.points, &buildings.points))))
            }
            Query::Q12 => {
                let mut answer = Answer::default();
                nearest(device, &trips.points, &buildings.points, |trip, ids| {
                    ids.iter().for_each(|&id| answer.add(trips.keys[trip], buildings.keys[id as usize]));
                });
                (answer, Box::new(|| nearest(device, &trips.points, &buildings.points, |_, _| {})))
            }
        };
        let mut times = Times::NONE;
        for _ in 0..runs.max(1) {
            let begin = Begin::now();
            measured();
            times.add(&begin);
        }
        (times, answer)
    }
}

/// Counts the trips near each building, from the points of both.
pub(crate) type NearCounts = fn(&Device, &[[f64; 2]], &[[f64; 2]]) -> Vec<i64>;

/// Counts the trips near each building by a tree of the buildings.
pub(crate) fn near_by_tree(device: &Device, trips: &[[f64; 2]], buildings: &[[f64; 2]]) -> Vec<i64> {
    let mut counts = vec![0; buildings.len()];
    let tree = tree(device, buildings);
    let mut batches = Batches::new().rows(BATCH_ROWS);
    tree.within_batches(trips, NEAR, &QueryOptions::default(), &mut batches, |batch| {
        count_ids(batch.ids(), &mut counts);
        ControlFlow::Continue(())
    })
    .expect("the points are finite");
    counts
}

/// Counts the trips near each building by a join, which sorts both by cell.
pub(crate) fn near_by_join(device: &Device, trips: &[[f64; 2]], buildings: &[[f64; 2]]) -> Vec<i64> {
    let mut counts = vec![0; buildings.len()];
    let mut batches = Batches::new().rows(BATCH_ROWS);
    DistanceJoin::new(NEAR)
        .rows_batches(device, trips, buildings, &mut batches, |batch| {
            count_ids(batch.ids(), &mut counts);
            ControlFlow::Continue(())
        })
        .expect("the points are finite");
    counts
}

fn count_ids(ids: &[u32], counts: &mut [i64]) {
    ids.iter().for_each(|&id| counts[id as usize] += 1);
}

fn tree(device: &Device, points: &[[f64; 2]]) -> KdTree<[f64; 2]> {
    KdTree::build(device, points, &KdTreeOptions::default()).expect("the points are finite")
}

/// Visits the ids of the nearest buildings of each trip.
fn nearest(
    device: &Device,
    trips: &[[f64; 2]],
    buildings: &[[f64; 2]],
    mut visit: impl FnMut(usize, &[u32]),
) {
    let tree = tree(device, buildings);
    let mut batches = Batches::new().rows(BATCH_ROWS);
    tree.nearest_batches(trips, NEAREST, &QueryOptions::default(), &mut batches, |batch| {
        batch.iter().for_each(|(trip, near)| visit(trip, near.ids()));
        ControlFlow::Continue(())
    })
    .expect("the points are finite");
}

impl Table {
    async fn of(session: &SessionContext, key: &str, point: &str, table: &str, order: &str) -> Result<Self> {
        let sql = format!("SELECT {key}, ST_X({point}), ST_Y({point}) FROM {table} {order}");
        let mut stream = session.sql(&sql).await?.execute_stream().await?;
        let mut read = Self::default();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let [x, y] = [1, 2].map(|axis| batch.column(axis).as_primitive::<Float64Type>().values());
            read.keys.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
            read.points.extend(x.iter().zip(y).map(|(&x, &y)| [x, y]));
        }
        Ok(read)
    }
}
