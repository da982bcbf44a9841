//! From device memory to device memory, by device events.

use super::Settings;
use crate::measure::{Effort, Timing};
use crate::points::{self, Uniform};
use crate::report::{Report, Row};
use cust_core::DeviceCopy;
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::kdtree::{Builder, DeviceQueries, QueryOptions, SplitRule, Traversal};
use kauri::{Device, KdTree, KdTreeOptions, Point, Result};

/// Queries whose answers are compared with the CPU's before any is timed.
const CHECKED_QUERIES: usize = 1000;
/// Up to so many points they are.
const CHECKED_POINTS: usize = 20_000_000;

/// What the rows of one kind of points share.
struct Bench<'a, P: Point> {
    gpu: &'a Gpu,
    stream: Stream,
    workspace: Workspace,
    effort: Effort,
    input: String,
    coords: Buffer<P::Coord>,
    queries: Buffer<P::Coord>,
    tree: KdTree<P>,
    /// The tree of the CPU, and queries to compare by.
    reference: Option<(KdTree<P>, Vec<P>)>,
    report: &'a mut Report,
}

/// Measures builds and queries of uniform points; of the most used kind all that there is.
pub(super) fn run<C: Uniform + DeviceCopy, const D: usize>(
    settings: &Settings,
    gpu: &Gpu,
    n: usize,
    all: bool,
    report: &mut Report,
) -> Result<()>
where
    [C; D]: Point<Coord = C>,
{
    let points: Vec<[C; D]> = points::uniform(n, settings.seed);
    let queries: Vec<[C; D]> = points::uniform(n, settings.seed + 1);
    let reference = if n <= CHECKED_POINTS {
        let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
        Some((tree, queries[..n.min(CHECKED_QUERIES)].to_vec()))
    } else {
        None
    };
    let stream = Stream::new(gpu)?;
    let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let queries = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
    let mut workspace = Workspace::new(gpu);
    let tree = KdTree::build_on(&stream, &mut workspace, &coords, &KdTreeOptions::default())?;
    tree.verify()?;
    let input = format!("{} x {D}, uniform", C::NAME);
    let effort = settings.effort;
    let mut bench = Bench { gpu, stream, workspace, effort, input, coords, queries, tree, reference, report };
    bench.build("build", Builder::Selection)?;
    if all {
        bench.build("build, in place", Builder::SelectionInPlace)?;
        bench.build("build, by tags", Builder::Tags)?;
        bench.build("build, by tags in place", Builder::TagsInPlace)?;
    }
    bench.widest()?;
    let plain = QueryOptions::default;
    for k in if all { &[1, 8, 32, 100][..] } else { &[1, 8][..] } {
        bench.nearest(&format!("nearest k={k}"), *k, &plain())?;
    }
    if all {
        use Traversal::{ClosestCorner, Stack, StackFree};
        for (way, traversal) in
            [("stack-free", StackFree), ("stack", Stack), ("closest corner", ClosestCorner)]
        {
            for k in [1, 8] {
                bench.nearest(&format!("nearest k={k}, {way}"), k, &plain().traversal(traversal))?;
            }
        }
        for k in [8, 16, 32] {
            bench.own_nearest(k)?;
        }
    }
    Ok(())
}

impl<P: Point> Bench<'_, P> {
    fn row(&self, work: &str, timing: Timing) -> Row {
        let n = self.tree.len() as u64;
        Row {
            work: work.to_owned(),
            input: self.input.clone(),
            n,
            timing: Some(timing),
            items: Some(n),
            ..Row::default()
        }
    }

    fn build(&mut self, work: &str, builder: Builder) -> Result<()> {
        let options = KdTreeOptions::default().builder(builder);
        let (stream, workspace, tree) = (&self.stream, &mut self.workspace, &mut self.tree);
        let coords = &self.coords;
        let timing = self.effort.events(stream, || tree.rebuild_on(stream, workspace, coords, &options))?;
        self.tree.verify()?;
        let built =
            KdTree::<P>::build_on(&self.stream, &mut Workspace::new(self.gpu), &self.coords, &options)?;
        let (temp_bytes, check) = (Some(built.stats().temp_bytes), Some("verify"));
        self.report.push(Row { temp_bytes, check, ..self.row(work, timing) });
        Ok(())
    }

    /// Builds and queries of a tree that splits on the widest axes.
    fn widest(&mut self) -> Result<()> {
        let options = KdTreeOptions::default().split(SplitRule::Widest);
        let tree = KdTree::build_on(&self.stream, &mut self.workspace, &self.coords, &options)?;
        let by_levels = std::mem::replace(&mut self.tree, tree);
        self.build("build, widest", Builder::Selection)?;
        self.nearest("nearest k=8, widest", 8, &QueryOptions::default())?;
        self.tree = by_levels;
        Ok(())
    }

    fn nearest(&mut self, work: &str, k: usize, options: &QueryOptions<P>) -> Result<()> {
        let entries = self.tree.len() * k;
        let mut ids = Buffer::uninitialized(self.gpu, entries, "ids of neighbours")?;
        let mut dist2 = Buffer::uninitialized(self.gpu, entries, "distances of neighbours")?;
        let (stream, workspace, tree) = (&self.stream, &mut self.workspace, &self.tree);
        let prepared = tree.prepare(stream, options)?;
        let queries = DeviceQueries::Coordinates(&self.queries);
        let timing = self.effort.events(stream, || {
            tree.nearest_on(stream, workspace, queries, k, &prepared, &mut ids, &mut dist2)
        })?;
        let check = match &self.reference {
            None => None,
            Some((reference, queries)) => {
                let got = ids.front_to_vec(stream, queries.len() * k)?;
                assert!(
                    got == reference.nearest(queries, k)?.ids(),
                    "{work}: the device and the CPU disagree"
                );
                Some("1000 queries as on the CPU")
            }
        };
        self.report.push(Row { check, ..self.row(work, timing) });
        Ok(())
    }

    /// The neighbours of all points among themselves, and the build of the tree before that.
    fn own_nearest(&mut self, k: usize) -> Result<()> {
        let entries = self.tree.len() * k;
        let mut ids = Buffer::uninitialized(self.gpu, entries, "ids of neighbours")?;
        let mut dist2 = Buffer::uninitialized(self.gpu, entries, "distances of neighbours")?;
        let (stream, workspace, tree) = (&self.stream, &mut self.workspace, &mut self.tree);
        let (coords, options) = (&self.coords, KdTreeOptions::default());
        let prepared = tree.prepare(stream, &QueryOptions::default())?;
        let queries = DeviceQueries::Own { itself: true };
        let timing = self.effort.events(stream, || {
            tree.rebuild_on(stream, workspace, coords, &options)?;
            tree.nearest_on(stream, workspace, queries, k, &prepared, &mut ids, &mut dist2)
        })?;
        let row = self.row(&format!("build, nearest k={k} of all points"), timing);
        self.report.push(row);
        Ok(())
    }
}
