//! The list of the cells that are not empty, on a GPU.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::primitives::select::{Select, Selected};
use cuda_std::mem::Slice;
use kauri_kernels::join::cell_list::join_cells;
use kauri_kernels::primitives::unique::primitives_unique;
use kauri_kernels::thread::predicate::EqualBits;

/// Scratch memory of a list of the cells that are not empty.
pub(super) struct CellListPlan {
    cells: Region<u64>,
    begins: Region<u32>,
    count: Region<u64>,
    select: Select,
}

impl CellListPlan {
    pub(super) fn plan(layout: &mut Layout, len: usize) -> Self {
        let select = Select::plan::<u64>(layout, len);
        Self { cells: layout.reserve(len), begins: layout.reserve(len + 1), count: layout.reserve(1), select }
    }

    /// Returns the cells of sorted codes, and where the points of each cell begin.
    ///
    /// # Safety
    /// The number of codes is as planned; nothing else uses the memory of the plan until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        codes: Slice<'_, u64>,
    ) -> Result<(Slice<'a, u64>, Slice<'a, u32>)> {
        let (cells, begins) = (temp.view(self.cells), temp.view(self.begins));
        let to = Selected { kept: cells, others: empty_view(), count: temp.view(self.count) };
        let (num_tiles, select) = self.select.prepare(temp, codes, to)?;
        // SAFETY: passed on to the caller; the arrays have an element for each point.
        unsafe {
            temp.stream.fill_bytes(cells, 0xFF)?;
            temp.stream.launch::<primitives_unique<u64, EqualBits>>(num_tiles, (select,))?;
            let args = (codes, cells.read_only(), begins);
            temp.stream.launch_items::<join_cells>(begins.len() as u64, args)?;
        }
        Ok((cells.read_only(), begins.read_only()))
    }
}
