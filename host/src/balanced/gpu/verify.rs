//! The check of a tree in device memory.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::Tree;
use kauri_kernels::balanced::verify::{LEVELS, balanced_verify, wrong};
use kauri_kernels::query::left_balanced::num_levels;
use kauri_kernels::thread::coord::Float;

use crate::balanced::super_key::WRONG_SIDE;
use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};

/// Counters of the number of nodes; several, so that blocks rarely add to the same word.
const NUM_COUNTERS: usize = 64;

/// Checks the shape, the ids, the children if there are any, and every node against its ancestors. There is at least one node.
pub(super) fn verify<C: Float>(stream: &Stream, tree: Tree<'_, C>, children: Slice<'_, u32>) -> Result<()> {
    let (num_nodes, num_points) = (tree.num_nodes, tree.coords.len() / tree.dims as usize);
    let num_words = num_points.div_ceil(64);
    let mut words = Buffer::<u64>::uninitialized(stream.gpu(), 1 + NUM_COUNTERS + num_words, "seen ids")?;
    let all = words.slice_mut();
    // SAFETY: the parts are within the buffer, and a bit mask of u64 words is one of twice as many u32 words.
    let (finding, counts, seen) = unsafe {
        let seen = all.part(1 + NUM_COUNTERS, num_words);
        (
            all.part(0, 1),
            all.part(1, NUM_COUNTERS),
            SliceMut::from_raw_parts(seen.as_ptr().cast(), 2 * num_words),
        )
    };
    // SAFETY: nothing else uses the words.
    unsafe {
        stream.fill_bytes(all, 0)?;
        stream.fill_bytes(finding, 0xff)?;
    }
    // SAFETY: the view covers the same memory; the two children of a point are one word.
    let children = unsafe { Slice::from_raw_parts(children.as_ptr().cast(), children.len() / 2) };
    let mut end = num_levels(num_nodes);
    while end > 0 {
        let begin = end.saturating_sub(LEVELS);
        let args = (tree, num_points as u32, children, begin, end, seen, finding, counts);
        // SAFETY: the buffers live until the finding has been copied.
        unsafe { stream.launch::<balanced_verify<C>>(1 << begin, args)? };
        end = begin;
    }
    // SAFETY: the part is within the buffer.
    let words: Vec<u64> = unsafe { stream.read(all.part(0, 1 + NUM_COUNTERS).read_only())? };
    match words[0] {
        u64::MAX => {}
        found => {
            let what = match found as u32 {
                wrong::SHAPE => {
                    "there is a node although its subtree is empty, or no node although it is not"
                }
                wrong::ID_RANGE => "its id is not the id of a point",
                wrong::DUPLICATE_ID => "another node has the same id",
                wrong::CHILD => "a stored child differs from the median at its address",
                _ => WRONG_SIDE,
            };
            return Err(Error::corrupt((found >> 32) as usize, what));
        }
    }
    match words[1..].iter().sum::<u64>() {
        count if count == u64::from(num_nodes) => Ok(()),
        count => Err(Error::corrupt(0, format!("{count} nodes instead of {num_nodes}"))),
    }
}
