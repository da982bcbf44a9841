//! All pairs of two tables or of one table with itself.

use super::condition::Condition;
use super::options::How;
use super::stream::{PairStream, batches};
use super::task::Search;
use crate::device::Work;
use crate::tables::JoinTable;
use crate::text::thousands;
use kauri::Device;
use kauri::io::{NO_ROW, TakePairs};
use kauri::join::JoinPlan;

/// Number of left items whose pairs are counted to estimate the number of all pairs.
const SAMPLE: usize = 1000;

/// A join that finds all pairs of a left and a right item, or of two left items; each pair once.
pub(super) struct AllPairs<'p, C: Condition> {
    condition: C,
    left: &'p JoinTable<C::Item>,
    right: Option<&'p JoinTable<C::Item>>,
    how: How,
}

impl<'p, C: Condition> AllPairs<'p, C> {
    pub(super) fn new(
        condition: C,
        left: &'p JoinTable<C::Item>,
        right: Option<&'p JoinTable<C::Item>>,
        how: How,
    ) -> Self {
        Self { condition, left, right, how }
    }

    pub(super) fn count(&self, on: &Device) -> kauri::Result<u64> {
        self.condition.count(on, &self.left.items, self.right())
    }

    fn right(&self) -> Option<&'p [C::Item]> {
        self.right.map(|table| &table.items[..])
    }

    fn tables(&self) -> [&'p JoinTable<C::Item>; 2] {
        [self.left, self.right.unwrap_or(self.left)]
    }
}

impl<C: Condition> Search for AllPairs<'_, C> {
    type Item = C::Item;

    fn num_items(&self) -> usize {
        self.left.items.len() + self.right().map_or(0, <[_]>::len)
    }

    fn work(&self) -> Work {
        self.condition.work(self.tables().map(|table| &table.items[..]))
    }

    fn plan(&self, on: &Device) -> kauri::Result<JoinPlan> {
        // Only one batch of pairs is in memory at a time.
        let mut plan = self.condition.plan(on, &self.left.items, self.right())?;
        plan.pair_bytes = 0;
        Ok(plan)
    }

    fn expected_pairs(&self, on: &Device) -> kauri::Result<String> {
        let count = self.condition.estimate(on, &self.left.items, self.right(), SAMPLE)?;
        Ok(format!("about {}", thousands(usize::try_from(count).unwrap_or(usize::MAX))))
    }

    /// Finds the pairs in the order of left, then right rows; in a symmetric self-join the smaller row is the left one.
    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> kauri::Result<()> {
        let tables = self.tables();
        let mut stream = PairStream::new(tables, self.condition.has_distances(), take);
        let mut batches = batches(tables[1].items.len(), size_of::<u32>() as u64);
        // A self-join has both directions, so that pairs are in the order of their smaller row.
        let is_once = self.right.is_none() && self.condition.is_symmetric();
        let joined = self.condition.find(on, &self.left.items, self.right(), &mut batches, |batch| {
            for row in batch.rows() {
                let begin = stream.items.len();
                let row_of = row as u32;
                let ids = batch.row(row).iter().filter(|&&id| !is_once || id > row_of);
                stream.items.extend(ids.map(|&id| [row_of, id]));
                stream.items[begin..].sort_unstable();
                if self.how == How::Left && stream.items.len() == begin {
                    stream.items.push([row_of, NO_ROW]);
                }
            }
            stream.flush()
        });
        stream.end(joined)
    }
}
