//! Expand on the CPU; see [the GPU version](crate::primitives::expand).

use rayon::prelude::*;

/// Returns the begin of each segment, followed by the number of outputs.
pub fn offsets(counts: &[u32]) -> Vec<u64> {
    let mut offsets: Vec<u64> = counts.iter().map(|&count| count.into()).chain([0]).collect();
    let mut sum = 0;
    for offset in &mut offsets {
        sum += std::mem::replace(offset, sum);
    }
    offsets
}

/// Returns, for each output, its segment and its index in the segment.
///
/// # Panics
/// If there are 2^32 segments or more.
pub fn expand(offsets: &[u64]) -> Vec<(u32, u32)> {
    assert!(u32::try_from(offsets.len()).is_ok(), "fewer than 2^32 segments");
    let outputs = |(segment, ends): (usize, &[u64])| {
        (0..(ends[1] - ends[0]) as u32).map(move |index| (segment as u32, index))
    };
    offsets.par_windows(2).enumerate().flat_map_iter(outputs).collect()
}
