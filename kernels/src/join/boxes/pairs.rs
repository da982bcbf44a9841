//! All pairs of boxes by cells: counts, then rows or pairs.

use super::output::PairOutput;
use super::search::{BoxSides, Pass, bits_of};
use crate::policy::{JOIN_THREADS, boxes_min_blocks};
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Counts the pairs of one pass, of each row or all; a thread per probe box. The pass that probes the left boxes comes first, and
/// initializes the counts.
#[kernel(family = "join-boxes", block = JOIN_THREADS, min_blocks = boxes_min_blocks(D, size_of::<C>()), hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_count<C: Float, const D: usize>(
    sides: BoxSides<'_, C>,
    pass: u32,
    output: PairOutput<'_>,
) {
    let search = sides.search::<D>(Pass::from_word(pass));
    let (i, has_rows) = (thread::index_1d_u64() as usize, !output.counts.is_empty());
    let mut count = 0;
    if i < search.probe.ids.len() {
        let visit = |position: usize, hits: u32| {
            if has_rows && !search.pass.probes_left {
                for member in bits_of(hits) {
                    output.reserve(search.build.ids.load(position + member as usize), 1);
                }
            }
            count += hits.count_ones();
        };
        search.for_each_group(i, || true, |_| true, visit);
        if has_rows && search.pass.probes_left {
            output.counts.store(search.probe.ids.load(i) as usize, count);
        }
    }
    output.add_to_total(count);
}

/// Writes the rows or pairs of one pass; a thread per probe box. The pass that probes the left boxes comes first, and initializes the
/// counts if the other pass has pairs. The items of a row are in no particular order.
#[kernel(family = "join-boxes", block = JOIN_THREADS, min_blocks = boxes_min_blocks(D, size_of::<C>()), hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_emit<C: Float, const D: usize>(
    sides: BoxSides<'_, C>,
    pass: u32,
    output: PairOutput<'_>,
) {
    let search = sides.search::<D>(Pass::from_word(pass));
    let Some(i) = own_item(search.probe.ids.len()) else { return };
    let own_id = search.probe.ids.load(i);
    if search.pass.probes_left {
        let (begin, mut count) = (output.begin(own_id), 0);
        let visit = |position: usize, hits: u32| {
            for member in bits_of(hits) {
                output.write(begin, own_id, count, search.build.ids.load(position + member as usize));
                count += 1;
            }
        };
        search.for_each_group(i, || true, |_| true, visit);
        if sides.has_second_pass(search.pass) {
            output.counts.store(own_id as usize, count);
        }
    } else {
        let visit = |position: usize, hits: u32| {
            for member in bits_of(hits) {
                output.append(search.build.ids.load(position + member as usize), own_id);
            }
        };
        search.for_each_group(i, || true, |_| true, visit);
    }
}
