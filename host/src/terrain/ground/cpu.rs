//! The ground filter on the CPU.

use super::{Window, reach, steps};
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use kauri_kernels::terrain::ground::{GroundCells, NO_HEIGHT, height_of_point, lowered};
use std::sync::atomic::{AtomicI32, Ordering};

const LABEL: &str = "cells of a ground filter";

/// Returns true for each point that is ground.
pub(super) fn run(points: &[[i32; 3]], cells: &GroundCells, windows: &[Window]) -> Result<Vec<bool>> {
    let mut surface = minima(points, cells)?;
    fill(&mut surface, cells, reach(windows, cells));
    let mut limits = memory::filled(cells.len(), i32::MAX, LABEL)?;
    let mut other = memory::filled(cells.len(), 0, LABEL)?;
    for window in windows {
        for is_min in [true, false] {
            for is_along_x in [true, false] {
                for step in steps(window.radius) {
                    parallel::for_chunks(&mut other, TASK_ITEMS, |chunk, widened| {
                        for (i, widened) in (chunk * TASK_ITEMS..).zip(widened) {
                            *widened = cells.widened(|i| surface[i], i, step, is_along_x, is_min);
                        }
                    });
                    std::mem::swap(&mut surface, &mut other);
                }
            }
        }
        parallel::for_chunks(&mut limits, TASK_ITEMS, |chunk, limits| {
            for (limit, &opened) in limits.iter_mut().zip(&surface[chunk * TASK_ITEMS..]) {
                *limit = lowered(*limit, opened, window.threshold);
            }
        });
    }
    parallel::collect(points.len(), TASK_ITEMS, "ground points", |i| {
        let [x, y, z] = points[i];
        z <= limits[cells.cell([x, y])]
    })
}

/// Returns the least height of the points of each cell.
fn minima(points: &[[i32; 3]], cells: &GroundCells) -> Result<Vec<i32>> {
    let heights = parallel::collect(cells.len(), TASK_ITEMS, LABEL, |_| AtomicI32::new(NO_HEIGHT))?;
    parallel::Ranges::new(points.len(), TASK_ITEMS).for_each(&|range| {
        for &[x, y, z] in &points[range] {
            heights[cells.cell([x, y])].fetch_min(height_of_point(z), Ordering::Relaxed);
        }
    });
    parallel::collect(cells.len(), TASK_ITEMS, LABEL, |i| heights[i].load(Ordering::Relaxed))
}

/// Fills cells without heights from the cells around them, `rounds` times.
fn fill(heights: &mut [i32], cells: &GroundCells, rounds: u32) {
    let is_empty = |i: &usize| heights[*i] == NO_HEIGHT;
    let mut empty = parallel::concat(heights.len(), TASK_ITEMS, |range| range.filter(is_empty).collect());
    for _ in 0..rounds {
        let filled = parallel::map(empty.len(), TASK_ITEMS, |i| cells.filled(|i| heights[i], empty[i]));
        for (&i, filled) in empty.iter().zip(filled) {
            heights[i] = filled;
        }
        empty.retain(|&i| heights[i] == NO_HEIGHT);
        if empty.is_empty() {
            break;
        }
    }
}
