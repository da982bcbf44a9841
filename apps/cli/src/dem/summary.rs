//! The text at the end of a run.

use std::io::Write;

use super::Dem;
use super::method::{MethodName, MethodOptions};
use crate::Result;
use crate::step::Step;
use crate::text::thousands;
use kauri::Device;
use kauri::terrain::Raster;

/// Prints a warning if no cell has a value.
pub(super) fn warn_if_empty(raster: &Raster, method: &MethodOptions, err: &mut dyn Write) {
    if raster.values().iter().any(|value| !value.is_nan()) {
        return;
    }
    let reason = match method.method {
        MethodName::Tin | MethodName::Natural => {
            "no triangle contains the center of a cell: all points may be on one line, or far apart for --max-edge"
        }
        _ => "no point is near the center of a cell: choose a larger --radius",
    };
    // A failure to write to standard error cannot be reported.
    let _ = writeln!(err, "warning: no cell has a value; {reason}");
}

/// Times and counts of a run.
pub(super) struct Summary {
    pub(super) read: Step,
    pub(super) raster: Step,
    pub(super) write: Step,
    pub(super) shade: Step,
    /// The name of each layer, the number of its points, and the number of those that were read for it.
    pub(super) kept: Vec<(&'static str, usize, u64)>,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self {
            read: Step::of("read", "points"),
            raster: Step::of("interpolate", "cells"),
            write: Step::of("write", "cells"),
            shade: Step::of("hillshade", "cells"),
            kept: Vec::new(),
        }
    }

    pub(super) fn write(
        &self,
        dem: &Dem,
        raster: &Raster,
        device: &Device,
        out: &mut dyn Write,
    ) -> Result<()> {
        let (grid, method) = (raster.grid(), dem.method.name());
        let known = || raster.values().iter().filter(|value| !value.is_nan());
        let (num_cells, num_known) = (grid.len(), known().count());
        let percent = 100.0 * (num_cells - num_known) as f64 / num_cells as f64;
        writeln!(
            out,
            "{} by {method}: {} x {} cells of {}, {} without a value ({percent:.1} %)",
            dem.model.name(),
            thousands(grid.columns() as usize),
            thousands(grid.rows() as usize),
            grid.resolution(),
            thousands(num_cells - num_known),
        )?;
        if num_known > 0 {
            let least = known().copied().fold(f32::INFINITY, f32::min);
            let greatest = known().copied().fold(f32::NEG_INFINITY, f32::max);
            writeln!(out, "values from {least:.2} to {greatest:.2}")?;
        }
        for (name, num, of) in &self.kept {
            writeln!(out, "{name}: {} of {} points", thousands(*num), thousands(*of as usize))?;
        }
        let mut steps = vec![&self.read, &self.raster, &self.write];
        steps.extend(dem.hillshade.as_ref().map(|_| &self.shade));
        writeln!(out, "\n{}\ndevice  {device}; {}", Step::table(steps).trim_end(), device.reason())?;
        for path in [Some(&dem.out), dem.hillshade.as_ref()].into_iter().flatten() {
            writeln!(out, "wrote   {}", path.display())?;
        }
        Ok(())
    }
}
