//! Points within a distance and points in boxes. The radius is chosen so that a query finds a fixed number of points on average. The items
//! of a row are the points found.

use super::on_device::{AS_ON_THE_CPU, Bench};
use super::unless_too_large;
use crate::measure::Timing;
use crate::points::Number;
use crate::report::Row;
use kauri::device::{Buffer, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, PreparedQuery, QueryOptions, num_found};
use kauri::{KdTree, Result, SpatialIndex};

/// Number of points that a query finds on average.
const HITS: f64 = 30.0;
/// Number of sample queries that determine the radius.
const SAMPLED_QUERIES: usize = 10_000;

impl<C: Number, const D: usize> Bench<'_, C, D> {
    /// Measures the points within a radius: counts, ids, and optionally distances.
    pub(super) fn within(&mut self, with_distances: bool) -> Result<()> {
        let radius = self.radius()?;
        let prepared = self.tree.prepare(&self.stream, &QueryOptions::default().radius(radius))?;
        let search = Search { prepared, by: By::Radius(radius) };
        unless_too_large(self.searched("within radius, 30 hits", &search, with_distances))
    }

    /// Measures the points in boxes around the queries: counts and ids.
    pub(super) fn in_boxes(&mut self) -> Result<()> {
        let half = 0.5 * (HITS / self.input.points.len() as f64).powf(1.0 / D as f64);
        let moved = |query: &[C; D], by: f64| query.map(|x| C::from_f64(x.to_f64() + by));
        let boxes: Vec<_> =
            self.input.queries.iter().map(|query| [moved(query, -half), moved(query, half)]).collect();
        let corners =
            Buffer::from_slice(&self.stream, boxes.as_flattened().as_flattened(), "corners of boxes")?;
        let prepared = self.tree.prepare(&self.stream, &QueryOptions::default())?;
        let search = Search { prepared, by: By::Boxes(boxes, corners) };
        unless_too_large(self.searched("in boxes, 30 hits", &search, false))
    }

    /// Returns the radius within which a query finds [`HITS`] points on average.
    pub(super) fn radius(&self) -> Result<C> {
        let num_queries = self.input.queries.len();
        let step = num_queries.div_ceil(SAMPLED_QUERIES).max(1);
        let sample: Vec<_> = self.input.queries.iter().step_by(step).copied().collect();
        // Small trees have too few points for that.
        let target = HITS.min(num_queries as f64 / 2.0) * sample.len() as f64;
        let is_small = |radius: f64| -> Result<bool> {
            let counts = self.tree.count_within(&sample, C::from_f64(radius), &QueryOptions::default())?;
            Ok(counts.iter().map(|&count| f64::from(count)).sum::<f64>() < target)
        };
        // Brackets the radius between two powers of 2, then bisects.
        let (mut low, mut high) = (1.0, 1.0);
        while low > 1e-9 && !is_small(low)? {
            low /= 2.0;
        }
        while high < 1e9 && is_small(high)? {
            high *= 2.0;
        }
        for _ in 0..20 {
            let middle = f64::midpoint(low, high);
            *(if is_small(middle)? { &mut low } else { &mut high }) = middle;
        }
        Ok(C::from_f64(high))
    }

    /// Measures the rows of a search.
    fn searched(&mut self, work: &str, search: &Search<C, D>, with_distances: bool) -> Result<()> {
        let (gpu, num_rows) = (self.gpu, self.input.queries.len());
        let expected = match &self.reference {
            None => None,
            Some(reference) => Some(search.expected(self, &reference.tree, reference.num_queries)?),
        };
        let mut offsets = Buffer::uninitialized(gpu, num_rows + 1, "offsets of rows")?;
        let mut ids = Buffer::uninitialized(gpu, 0, "ids of points found")?;
        search.find(self, &mut Workspace::new(gpu), &mut offsets, &mut ids, None)?;
        let hits = num_found(&self.stream, &offsets)? as usize;

        let mut counts = Buffer::uninitialized(gpu, num_rows, "counts of points")?;
        let timed = self.timed(|workspace| search.count(self, workspace, &mut counts))?;
        let check = match &expected {
            None => None,
            Some((expected_offsets, _)) => {
                let got = counts.front_to_vec(&self.stream, expected_offsets.len() - 1)?;
                let lens = expected_offsets.windows(2).map(|ends| (ends[1] - ends[0]) as u32);
                assert!(lens.eq(got), "count {work}: the device and the CPU disagree");
                Some(AS_ON_THE_CPU)
            }
        };
        drop(counts);
        self.push_found(&format!("count {work}"), hits, timed, check);

        let mut ids = Buffer::uninitialized(gpu, hits, "ids of points found")?;
        let timed = self.timed(|workspace| search.find(self, workspace, &mut offsets, &mut ids, None))?;
        let check = match &expected {
            None => None,
            Some((expected_offsets, expected_ids)) => {
                let got = offsets.front_to_vec(&self.stream, expected_offsets.len())?;
                assert!(got == *expected_offsets, "{work}: the device and the CPU disagree");
                let got = ids.front_to_vec(&self.stream, expected_ids.len())?;
                assert!(got == *expected_ids, "{work}: the device and the CPU disagree");
                Some(AS_ON_THE_CPU)
            }
        };
        self.push_found(work, hits, timed, check);

        if with_distances {
            let mut dist2 = Buffer::uninitialized(gpu, hits, "distances of points found")?;
            let timed = self
                .timed(|workspace| search.find(self, workspace, &mut offsets, &mut ids, Some(&mut dist2)))?;
            self.push_found(&format!("{work}, with distances"), hits, timed, None);
        }
        Ok(())
    }

    /// Returns the time and the temporary bytes of a call.
    fn timed(&self, mut call: impl FnMut(&mut Workspace) -> Result<()>) -> Result<(Timing, u64)> {
        let mut workspace = Workspace::new(self.gpu);
        let timing = self.effort.events(&self.stream, || call(&mut workspace))?;
        Ok((timing, workspace.bytes()))
    }

    fn push_found(
        &mut self,
        work: &str,
        hits: usize,
        (timing, temp_bytes): (Timing, u64),
        check: Option<&'static str>,
    ) {
        self.push(work, timing, hits, Row { temp_bytes: Some(temp_bytes), check, ..Row::default() });
    }
}

/// A search for points, with one row per query.
struct Search<C: Number, const D: usize> {
    prepared: PreparedQuery<[C; D]>,
    by: By<C, D>,
}

enum By<C: Number, const D: usize> {
    Radius(C),
    /// Boxes in host memory and in device memory.
    Boxes(Vec<[[C; D]; 2]>, Buffer<C>),
}

impl<C: Number, const D: usize> Search<C, D> {
    fn count(
        &self,
        bench: &Bench<'_, C, D>,
        workspace: &mut Workspace,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        let (tree, stream, queries) = (&bench.tree, &bench.stream, &bench.queries);
        match &self.by {
            By::Radius(_) => {
                let queries = DeviceQueries::Coordinates(queries);
                tree.count_within_on(stream, workspace, queries, &self.prepared, counts)
            }
            By::Boxes(_, corners) => {
                tree.count_in_boxes_on(stream, workspace, corners, &self.prepared, counts)
            }
        }
    }

    fn find(
        &self,
        bench: &Bench<'_, C, D>,
        workspace: &mut Workspace,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()> {
        let (tree, stream, queries) = (&bench.tree, &bench.stream, &bench.queries);
        match &self.by {
            By::Radius(_) => {
                let queries = DeviceQueries::Coordinates(queries);
                tree.within_on(stream, workspace, queries, &self.prepared, offsets, ids, dist2)
            }
            By::Boxes(_, corners) => {
                tree.in_boxes_on(stream, workspace, corners, &self.prepared, offsets, ids)
            }
        }
    }

    /// The offsets and ids of the first rows of a tree in host memory.
    fn expected(
        &self,
        bench: &Bench<'_, C, D>,
        tree: &KdTree<[C; D]>,
        num_rows: usize,
    ) -> Result<(Vec<u64>, Vec<u32>)> {
        Ok(match &self.by {
            By::Radius(radius) => {
                let queries = &bench.input.queries[..num_rows];
                let (offsets, (ids, _)) =
                    tree.within(queries, *radius, &QueryOptions::default())?.into_parts();
                (offsets, ids)
            }
            By::Boxes(boxes, _) => tree.in_boxes(&boxes[..num_rows], None)?.into_parts(),
        })
    }
}
