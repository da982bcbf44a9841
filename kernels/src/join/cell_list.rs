//! A list of the cells that are not empty (Gowanlock, Karsin 2018, *GPU accelerated self-join for the distance similarity metric*).

use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// Writes where the points of each cell of a list begin, and the number of points as the end; a thread per cell. The list is padded with
/// [`NOWHERE`](super::cells::NOWHERE) to the number of points.
#[kernel(family = "research-join", block = PER_ITEM_THREADS)]
pub unsafe fn join_cells(codes: Slice<u64>, cells: Slice<u64>, begins: SliceMut<u32>) {
    let len = codes.len();
    let Some(i) = own_item(begins.len()) else { return };
    let begin = if i < len { partition_point(0, len, |at| codes.load(at) < cells.load(i)) } else { len };
    begins.store(i, begin as u32);
}
