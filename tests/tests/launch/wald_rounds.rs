//! The example of Wald 2022: the kernel that updates tags, on ten points, level by level.

use crate::on_each_gpu;
use kauri::device::{Buffer, Stream};
use kauri_kernels::kdtree::tags::{kdtree_first_tags, kdtree_update_tags};
use kauri_kernels::query::axes::Axes;

const POINTS: [[u32; 2]; 10] =
    [[10, 15], [46, 63], [68, 21], [40, 33], [25, 54], [15, 43], [44, 58], [45, 40], [62, 69], [53, 67]];

/// For each level: the axis, the ids after the sort, and the tags before and after the update.
type Round = (usize, [u32; 10], [u32; 10], [u32; 10]);

const ROUNDS: [Round; 3] = [
    (0, [0, 5, 4, 3, 6, 7, 1, 9, 8, 2], [0; 10], [1, 1, 1, 1, 1, 1, 0, 2, 2, 2]),
    (1, [1, 0, 3, 7, 5, 4, 6, 2, 9, 8], [0, 1, 1, 1, 1, 1, 1, 2, 2, 2], [0, 3, 3, 3, 1, 4, 4, 5, 2, 6]),
    (0, [1, 5, 9, 0, 3, 7, 4, 6, 2, 8], [0, 1, 2, 3, 3, 3, 4, 4, 5, 6], [0, 1, 2, 7, 3, 8, 9, 4, 5, 6]),
];

/// Returns the rank of each point on an axis.
fn ranks(axis: usize) -> Vec<u32> {
    let mut ids: Vec<usize> = (0..10).collect();
    ids.sort_by_key(|&i| (POINTS[i][axis], i));
    let mut ranks = vec![0; 10];
    ids.iter().enumerate().for_each(|(rank, &id)| ranks[id] = rank as u32);
    ranks
}

/// Sorts by key on the host, as a build does on the device.
fn sort(stream: &Stream, keys: &mut Buffer<u64>, ids: &mut Buffer<u32>) {
    let mut pairs: Vec<(u64, u32)> =
        keys.to_vec(stream).unwrap().into_iter().zip(ids.to_vec(stream).unwrap()).collect();
    pairs.sort();
    keys.copy_from_slice(stream, &pairs.iter().map(|p| p.0).collect::<Vec<_>>()).unwrap();
    ids.copy_from_slice(stream, &pairs.iter().map(|p| p.1).collect::<Vec<_>>()).unwrap();
}

#[test]
fn every_round_is_as_published() {
    on_each_gpu(|gpu, stream| {
        let ranks = Buffer::from_slice(stream, &[ranks(0), ranks(1)].concat(), "ranks").unwrap();
        // No stored axes, and no mask: levels split on both axes in turn.
        let axes = Buffer::<u8>::uninitialized(gpu, 0, "axes").unwrap();
        let varying = Buffer::<u32>::uninitialized(gpu, 0, "axes that vary").unwrap();
        let axes = Axes { axes: axes.slice(), varying: varying.slice(), dims: 2 };
        let mut keys = Buffer::<u64>::uninitialized(gpu, 10, "keys").unwrap();
        let mut ids = Buffer::<u32>::uninitialized(gpu, 10, "ids").unwrap();
        let args = (ranks.slice(), axes, keys.slice_mut(), ids.slice_mut());
        // SAFETY: all buffers have ten items; the ranks have ten per axis.
        unsafe { stream.launch_items::<kdtree_first_tags>(10, args) }.unwrap();
        for (level, (axis, sorted_ids, before, after)) in ROUNDS.into_iter().enumerate() {
            assert_eq!(axis, level % 2);
            sort(stream, &mut keys, &mut ids);
            let tags = |keys: &Buffer<u64>| -> Vec<u32> {
                keys.to_vec(stream).unwrap().iter().map(|key| (key >> 32) as u32).collect()
            };
            assert_eq!(ids.to_vec(stream).unwrap(), sorted_ids, "round {level}");
            assert_eq!(tags(&keys), before, "round {level}");
            let args = (keys.slice_mut(), ids.slice(), ranks.slice(), axes, level as u32);
            // SAFETY: as above.
            unsafe { stream.launch_items::<kdtree_update_tags>(10, args) }.unwrap();
            assert_eq!(tags(&keys), after, "round {level}");
        }
        sort(stream, &mut keys, &mut ids);
        assert_eq!(ids.to_vec(stream).unwrap(), [1, 5, 9, 3, 6, 2, 8, 0, 7, 4]);
    });
}
