//! The points that a build over several GPUs has kept in place of equal ones.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::memory::Parts;
use crate::once::Once;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::threads::lock;
use std::sync::{Arc, Mutex};

const LABEL: &str = "representatives of the points";

/// Ids of points of a part, and for each the id of the equal point that a step of the build kept.
pub(crate) struct KeptPoints {
    pub(crate) ids: Buffer<u32>,
    pub(crate) kept: Buffer<u32>,
}

/// The representative of each point: the first point that equals it. They stay on the devices until the first call that needs them, and then
/// on the host.
pub(crate) struct Representatives {
    num_points: usize,
    /// In the order of the steps. A point is in one list of each step at most. Empty once `by_point` is known.
    steps: Mutex<Vec<Arc<KeptPoints>>>,
    by_point: Once<Vec<u32>>,
}

impl Representatives {
    pub(crate) fn new(num_points: usize) -> Self {
        Self { num_points, steps: Mutex::default(), by_point: Once::new() }
    }

    /// Adds the lists of the parts of one step.
    pub(crate) fn record(&mut self, kept: impl Iterator<Item = KeptPoints>) {
        lock(&self.steps).extend(kept.map(Arc::new));
    }

    /// Returns the representatives, by point; none if all points are distinct.
    pub(crate) fn by_point(&self) -> Result<&[u32]> {
        let by_point = self.by_point.get_or_try_init(|| {
            let steps = lock(&self.steps).clone();
            if steps.is_empty() {
                return Ok(Vec::new());
            }
            let mut by_point = parallel::collect(self.num_points, TASK_ITEMS, LABEL, |i| i as u32)?;
            let parts = Parts::of_initialized(&mut by_point);
            for points in &steps {
                let KeptPoints { ids, kept } = &**points;
                let stream = Stream::new(ids.gpu())?;
                let (ids, kept) = (ids.to_vec(&stream)?, kept.to_vec(&stream)?);
                Ranges::new(ids.len(), TASK_ITEMS).for_each(&|range| {
                    for (&id, &kept) in ids[range.clone()].iter().zip(&kept[range]) {
                        // SAFETY: the ids of a list are different.
                        unsafe { parts.write(id as usize, kept) };
                    }
                });
            }
            // The point that the first step kept may have been removed by the second.
            let resolved = |i: usize| by_point[by_point[i] as usize];
            parallel::collect(self.num_points, TASK_ITEMS, LABEL, resolved)
        })?;
        // Not before: another thread that finds no steps, and no result either, would take all points for distinct ones.
        lock(&self.steps).clear();
        Ok(by_point)
    }
}
