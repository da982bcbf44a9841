//! Partition on the CPU; see [the GPU version](crate::primitives::partition).

use rayon::prelude::*;

/// Rearranges every segment by the classes of its items. Returns the items, and for each segment how many are of class
/// 0 and of class 1.
///
/// # Panics
/// Panics if there are not as many classes as items, or if the offsets do not ascend from 0 to the number of items.
pub fn by_class<T: Copy + Send + Sync>(
    input: &[T],
    classes: &[u8],
    offsets: &[u64],
) -> (Vec<T>, Vec<[u64; 2]>) {
    assert_eq!(input.len(), classes.len(), "each item needs one class");
    let segments = offsets.par_windows(2).map(|ends| {
        let range = ends[0] as usize..ends[1] as usize;
        let (items, classes) = (&input[range.clone()], &classes[range]);
        let with_class = |class: fn(u8) -> bool| {
            items.iter().zip(classes).filter(move |(_, c)| class(**c)).map(|(item, _)| *item)
        };
        let first: Vec<T> = with_class(|c| c == 0).collect();
        let second: Vec<T> = with_class(|c| c == 1).collect();
        let counts = [first.len() as u64, second.len() as u64];
        (first.into_iter().chain(second).chain(with_class(|c| c > 1)).collect::<Vec<T>>(), counts)
    });
    let (items, counts): (Vec<_>, Vec<_>) = segments.unzip();
    (items.concat(), counts)
}
