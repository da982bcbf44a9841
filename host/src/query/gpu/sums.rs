//! Bits with their sums.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::primitives::scan::{Scan, ScanKind};
use cuda_std::mem::Slice;
use kauri_kernels::query::sums::{SummedBits, query_count_bits};
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

/// Scratch memory of the sums of some bits.
pub(crate) struct SumsPlan {
    before: Region<u32>,
    scan: Scan,
}

impl SumsPlan {
    pub(crate) fn plan(layout: &mut Layout, num_bits: usize) -> Self {
        let num_words = num_bits.div_ceil(32);
        Self { before: layout.reserve(num_words), scan: Scan::plan::<u32, Decoupled>(layout, num_words) }
    }

    /// Counts the set bits before each word.
    ///
    /// # Safety
    /// There are as many bits as planned. Nothing else writes them until the stream has done the work.
    pub(crate) unsafe fn run<'a>(&self, temp: &Temp<'a>, words: Slice<'a, u32>) -> Result<SummedBits<'a>> {
        let before = temp.view(self.before);
        // SAFETY: passed on to the caller.
        unsafe {
            temp.stream.launch_items::<query_count_bits>(before.len() as u64, (words, before))?;
            self.scan.run::<u32, Sum, Decoupled>(temp, before.read_only(), before, ScanKind::Exclusive)?;
        }
        Ok(SummedBits { words, before: before.read_only() })
    }
}
