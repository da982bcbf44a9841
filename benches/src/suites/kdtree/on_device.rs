//! Calls from device memory to device memory, timed by device events.

use super::{Settings, unless_too_large};
use crate::measure::{Effort, Timing};
use crate::points::{self, Number, Uniform};
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::query::{DeviceIndex, DeviceQueries, PreparedQuery, QueryOptions, Traversal};
use kauri::{Device, KdTree, KdTreeOptions, Result, SpatialIndex};
use rayon::prelude::*;

/// Number of queries whose results are compared with those of the CPU before the measurement.
const CHECKED_QUERIES: usize = 1000;
/// Maximum number of points for which they are compared.
const CHECKED_POINTS: usize = 20_000_000;

/// Points and queries.
pub(super) struct Input<C, const D: usize> {
    /// Such as `f32 x 3, uniform`.
    pub(super) name: String,
    pub(super) points: Vec<[C; D]>,
    pub(super) queries: Vec<[C; D]>,
}

impl<C: Number, const D: usize> Input<C, D> {
    /// Generates `n` points and `n` queries of one distribution.
    pub(super) fn new(settings: &Settings, n: usize, how: &str, make: fn(usize, u64) -> Vec<[C; D]>) -> Self {
        let name = format!("{} x {D}, {how}", C::NAME);
        Self { name, points: make(n, settings.seed), queries: make(n, settings.seed + 1) }
    }

    /// Generates uniform points and queries.
    pub(super) fn uniform(settings: &Settings, n: usize) -> Self
    where
        C: Uniform,
    {
        Self::new(settings, n, "uniform", points::uniform)
    }
}

/// The state that the rows of one input share.
pub(super) struct Bench<'a, C: Number, const D: usize> {
    pub(super) gpu: &'a Gpu,
    pub(super) stream: Stream,
    pub(super) effort: Effort,
    pub(super) input: Input<C, D>,
    coords: Buffer<C>,
    pub(super) queries: Buffer<C>,
    pub(super) tree: KdTree<[C; D]>,
    /// `None` if there are too many points for the CPU.
    pub(super) reference: Option<Reference<C, D>>,
    report: &'a mut Report,
}

/// The tree of the CPU, and the number of queries to compare.
pub(super) struct Reference<C: Number, const D: usize> {
    pub(super) tree: KdTree<[C; D]>,
    pub(super) num_queries: usize,
}

/// The check of rows that were compared.
pub(super) const AS_ON_THE_CPU: &str = "1000 queries as on the CPU";

impl<'a, C: Number, const D: usize> Bench<'a, C, D> {
    /// Uploads the input and builds its tree.
    pub(super) fn new(
        settings: &Settings,
        gpu: &'a Gpu,
        input: Input<C, D>,
        report: &'a mut Report,
    ) -> Result<Self> {
        let options = KdTreeOptions::default();
        let reference = if input.points.len() <= CHECKED_POINTS {
            let tree = KdTree::build(&Device::cpu(), &input.points, &options)?;
            Some(Reference { tree, num_queries: input.queries.len().min(CHECKED_QUERIES) })
        } else {
            None
        };
        let stream = Stream::new(gpu)?;
        let coords = Buffer::from_slice(&stream, input.points.as_flattened(), "points")?;
        let queries = Buffer::from_slice(&stream, input.queries.as_flattened(), "queries")?;
        let tree = KdTree::build_on(&stream, &mut Workspace::new(gpu), &coords, &options)?;
        tree.verify()?;
        let effort = settings.effort;
        Ok(Self { gpu, stream, effort, input, coords, queries, tree, reference, report })
    }

    /// Measures the build and nearest neighbors of other points.
    pub(super) fn main_rows(&mut self) -> Result<()> {
        self.build("build", BuildAlgorithm::Selection)?;
        self.nearest("nearest k=1", 1, &QueryOptions::default())?;
        self.nearest("nearest k=8", 8, &QueryOptions::default())?;
        self.widest()
    }

    /// Measures the other build algorithms, more neighbors, the other traversals, and neighbors of the points themselves.
    pub(super) fn more_rows(&mut self) -> Result<()> {
        use Traversal::{ClosestCorner, Stack, StackFree};
        self.build("build, in place", BuildAlgorithm::SelectionInPlace)?;
        self.build("build, by tags", BuildAlgorithm::Tags)?;
        self.build("build, by tags in place", BuildAlgorithm::TagsInPlace)?;
        self.nearest("nearest k=32", 32, &QueryOptions::default())?;
        self.nearest("nearest k=100", 100, &QueryOptions::default())?;
        for (name, traversal) in
            [("stack-free", StackFree), ("stack", Stack), ("closest corner", ClosestCorner)]
        {
            let alone = QueryOptions::default().traversal(traversal);
            self.nearest(&format!("nearest k=1, {name}"), 1, &alone)?;
            self.nearest(&format!("nearest k=8, {name}"), 8, &alone)?;
        }
        [8, 16, 32].into_iter().try_for_each(|k| self.own_nearest(k))
    }

    /// Measures builds and neighbors, of queries in random order and of queries along a Z-order curve.
    pub(super) fn skewed_rows(&mut self) -> Result<()> {
        self.build("build", BuildAlgorithm::Selection)?;
        for k in [1, 8, 32] {
            self.nearest(&format!("nearest k={k}"), k, &QueryOptions::default())?;
        }
        [8, 32].into_iter().try_for_each(|k| self.own_nearest(k))?;
        self.widest()?;
        along_curve(&mut self.input.queries);
        self.queries = Buffer::from_slice(&self.stream, self.input.queries.as_flattened(), "queries")?;
        for k in [1, 8, 32] {
            let options = QueryOptions::default().coherent();
            self.nearest(&format!("nearest k={k}, along a curve"), k, &options)?;
        }
        Ok(())
    }

    /// Measures a build and queries of a tree that splits on the widest axes.
    fn widest(&mut self) -> Result<()> {
        let options = KdTreeOptions::default().split(SplitRule::Widest);
        let mut workspace = Workspace::new(self.gpu);
        let tree = KdTree::build_on(&self.stream, &mut workspace, &self.coords, &options)?;
        let round_robin = std::mem::replace(&mut self.tree, tree);
        self.build("build, widest", BuildAlgorithm::Selection)?;
        self.nearest("nearest k=8, widest", 8, &QueryOptions::default())?;
        self.tree = round_robin;
        Ok(())
    }

    /// Adds a row of `items` items.
    pub(super) fn push(&mut self, work: &str, timing: Timing, items: usize, row: Row) {
        self.report.push(Row {
            work: work.to_owned(),
            input: self.input.name.clone(),
            n: self.tree.len() as u64,
            timing: Some(timing),
            items: Some(items as u64),
            ..row
        });
    }

    pub(super) fn build(&mut self, work: &str, algorithm: BuildAlgorithm) -> Result<()> {
        let options = KdTreeOptions::default().algorithm(algorithm);
        let (stream, coords, tree) = (&self.stream, &self.coords, &mut self.tree);
        let mut workspace = Workspace::new(self.gpu);
        let timing =
            self.effort.events(stream, || tree.rebuild_on(stream, &mut workspace, coords, &options))?;
        drop(workspace);
        self.tree.verify()?;
        let built =
            KdTree::<[C; D]>::build_on(&self.stream, &mut Workspace::new(self.gpu), &self.coords, &options)?;
        let (temp_bytes, check) = (Some(built.stats().temp_bytes), Some("verify"));
        self.push(work, timing, self.tree.len(), Row { temp_bytes, check, ..Row::default() });
        Ok(())
    }

    pub(super) fn nearest(&mut self, work: &str, k: usize, options: &QueryOptions<[C; D]>) -> Result<()> {
        let prepared = self.tree.prepare(&self.stream, options)?;
        unless_too_large(self.nearest_prepared(work, k, &prepared))
    }

    fn nearest_prepared(&mut self, work: &str, k: usize, prepared: &PreparedQuery<[C; D]>) -> Result<()> {
        let entries = self.input.queries.len() * k;
        let mut ids = Buffer::uninitialized(self.gpu, entries, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(self.gpu, entries, "distances of neighbors")?;
        let (stream, tree, mut workspace) = (&self.stream, &self.tree, Workspace::new(self.gpu));
        let queries = DeviceQueries::Coordinates(&self.queries);
        let timing = self.effort.events(stream, || {
            tree.nearest_on(stream, &mut workspace, queries, k, prepared, &mut ids, &mut dist2)
        })?;
        let check = match &self.reference {
            None => None,
            Some(Reference { tree, num_queries }) => {
                let got = ids.front_to_vec(stream, num_queries * k)?;
                let expected = tree.nearest(&self.input.queries[..*num_queries], k)?;
                assert!(got == expected.ids(), "{work}: the device and the CPU disagree");
                Some(AS_ON_THE_CPU)
            }
        };
        let temp_bytes = Some(workspace.bytes());
        self.push(work, timing, self.input.queries.len(), Row { check, temp_bytes, ..Row::default() });
        Ok(())
    }

    /// Measures a build, followed by the nearest neighbors of all its points.
    fn own_nearest(&mut self, k: usize) -> Result<()> {
        let prepared = self.tree.prepare(&self.stream, &QueryOptions::default())?;
        unless_too_large(self.own_nearest_prepared(k, &prepared))
    }

    fn own_nearest_prepared(&mut self, k: usize, prepared: &PreparedQuery<[C; D]>) -> Result<()> {
        let entries = self.tree.len() * k;
        let mut ids = Buffer::uninitialized(self.gpu, entries, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(self.gpu, entries, "distances of neighbors")?;
        let (stream, tree, mut workspace) = (&self.stream, &mut self.tree, Workspace::new(self.gpu));
        let (coords, options) = (&self.coords, KdTreeOptions::default());
        let queries = DeviceQueries::SelfQuery { include_self: true };
        let timing = self.effort.events(stream, || {
            tree.rebuild_on(stream, &mut workspace, coords, &options)?;
            tree.nearest_on(stream, &mut workspace, queries, k, prepared, &mut ids, &mut dist2)
        })?;
        let work = format!("build, nearest k={k} of all points");
        let temp_bytes = Some(workspace.bytes());
        self.push(&work, timing, self.tree.len(), Row { temp_bytes, ..Row::default() });
        Ok(())
    }
}

/// Sorts points by the interleaved bits of their coordinates in the bounding cube.
pub(in crate::suites) fn along_curve<C: Number, const D: usize>(points: &mut [[C; D]]) {
    let coordinates = || points.as_flattened().iter().map(|x| x.to_f64());
    let (low, high) = (coordinates().fold(f64::MAX, f64::min), coordinates().fold(f64::MIN, f64::max));
    let bits = 60 / D;
    let scale = (1_u64 << bits) as f64 / (high - low).max(f64::MIN_POSITIVE);
    points.par_sort_by_cached_key(|point| {
        let cells = point.map(|x| ((x.to_f64() - low) * scale) as u64);
        (0..bits)
            .rev()
            .flat_map(|bit| cells.map(|cell| cell >> bit & 1))
            .fold(0_u64, |code, bit| code << 1 | bit)
    });
}
