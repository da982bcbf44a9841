//! The ground filter on a GPU.

use super::{Window, reach, steps};
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::primitives::generate;
use kauri_kernels::terrain::ground::{
    GroundCells, NO_HEIGHT, terrain_ground_classify, terrain_ground_fill, terrain_ground_limit,
    terrain_ground_minima, terrain_ground_widen,
};

const LABEL: &str = "cells of a ground filter";

/// Returns true for each point that is ground.
pub(super) fn run(
    gpu: &Gpu,
    points: &[[i32; 3]],
    cells: &GroundCells,
    windows: &[Window],
) -> Result<Vec<bool>> {
    let stream = Stream::new(gpu)?;
    let points = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let mut surface = Buffer::uninitialized(gpu, cells.len(), LABEL)?;
    let mut other = Buffer::uninitialized(gpu, cells.len(), LABEL)?;
    let mut limits = Buffer::uninitialized(gpu, cells.len(), LABEL)?;
    let mut is_ground = Buffer::<u8>::uninitialized(gpu, points.len() / 3, "ground points")?;
    let (num_points, num_cells) = (is_ground.len() as u64, cells.len() as u64);
    generate::fill(&stream, NO_HEIGHT, &mut surface)?;
    generate::fill(&stream, i32::MAX, &mut limits)?;
    // SAFETY: the rasters have an item for each cell, and a launch reads and writes different ones; buffers wait for the device before they
    // are freed.
    unsafe {
        stream.launch_items::<terrain_ground_minima>(
            num_points,
            (points.slice(), *cells, surface.slice_mut()),
        )?;
        for _ in 0..reach(windows, cells) {
            let args = (surface.slice(), *cells, other.slice_mut());
            stream.launch_items::<terrain_ground_fill>(num_cells, args)?;
            std::mem::swap(&mut surface, &mut other);
        }
        for window in windows {
            for is_min in [true, false] {
                for is_along_x in [true, false] {
                    for step in steps(window.radius) {
                        let (is_along_x, is_min) = (u32::from(is_along_x), u32::from(is_min));
                        let args = (surface.slice(), *cells, step, is_along_x, is_min, other.slice_mut());
                        stream.launch_items::<terrain_ground_widen>(num_cells, args)?;
                        std::mem::swap(&mut surface, &mut other);
                    }
                }
            }
            let args = (surface.slice(), window.threshold, limits.slice_mut());
            stream.launch_items::<terrain_ground_limit>(num_cells, args)?;
        }
        let args = (points.slice(), *cells, limits.slice(), is_ground.slice_mut());
        stream.launch_items::<terrain_ground_classify>(num_points, args)?;
    }
    Ok(is_ground.to_vec(&stream)?.into_iter().map(|is_ground| is_ground != 0).collect())
}
