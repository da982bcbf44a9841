//! The exchange of points between parts.

use kauri_kernels::thread::coord::Float;
use std::ops::Range;

use crate::balanced::multi_gpu::part::Part;
use crate::balanced::multi_gpu::points::Points;
use crate::error::Result;
use crate::threads::{each, even};

/// A range of the points of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The index of the part in its group.
    pub(crate) source: usize,
    pub(crate) range: Range<usize>,
}

/// Distributes the available points (one range per part) to the target parts in nearly equal numbers. Returns the pieces of each target. A
/// target keeps as many of its points as possible.
pub(crate) fn redistribute(available: &[Range<usize>], targets: Range<usize>) -> Vec<Vec<Piece>> {
    let len = available.iter().map(Range::len).sum();
    let mut available = available.to_vec();
    let mut take = |source: usize, max_len: usize| {
        let rest = &mut available[source];
        let end = rest.start + max_len.min(rest.len());
        let range = std::mem::replace(&mut rest.start, end)..end;
        Piece { source, range }
    };
    let mut targets: Vec<_> = even(len, targets.len())
        .zip(targets)
        .map(|(share, target)| (share.len(), take(target, share.len())))
        .collect();
    let filled = targets.iter_mut().map(|(share, kept)| {
        let mut pieces = vec![kept.clone()];
        let mut missing = *share - kept.range.len();
        let mut source = 0;
        while missing > 0 {
            let piece = take(source, missing);
            missing -= piece.range.len();
            pieces.push(piece);
            source += 1;
        }
        pieces.retain(|piece| !piece.range.is_empty());
        pieces
    });
    filled.collect()
}

/// Replaces the points of each part of a group by its pieces, one after another. `allocate` returns the memory for a number of points of
/// the part of an index.
pub(crate) fn exchange<C: Float>(
    parts: &mut [Part<C>],
    pieces: &[Vec<Piece>],
    allocate: impl Fn(usize, &mut Part<C>, usize) -> Result<Points<C>> + Sync,
) -> Result<()> {
    let targets = parts.iter_mut().zip(pieces).enumerate();
    let outputs = targets
        .map(|(i, (part, pieces))| allocate(i, part, pieces.iter().map(|piece| piece.range.len()).sum()));
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    let sources = &*parts;
    let new = each(sources.iter().zip(pieces).zip(outputs), |((part, pieces), mut points)| {
        let copied = gather(part, sources, pieces, &mut points);
        // Also after an error: copies that were enqueued read the memory of other parts.
        part.stream.synchronize().and(copied)?;
        Ok(points)
    })?;
    parts.iter_mut().zip(new).for_each(|(part, points)| part.replace(points));
    Ok(())
}

/// Copies the pieces of a part to its device.
fn gather<C: Float>(
    part: &Part<C>,
    sources: &[Part<C>],
    pieces: &[Piece],
    points: &mut Points<C>,
) -> Result<()> {
    let (stream, dims) = (&part.stream, part.dims);
    let (coords, ids) = points.write();
    let mut begin = 0;
    for Piece { source, range } in pieces {
        let (source, len) = (&sources[*source], range.len());
        let from = &source.points;
        // SAFETY: pieces are within the points of the parts. A part is synchronized after each step, and keeps its points during this one.
        unsafe {
            let piece = from.coords().part(range.start * dims, len * dims);
            stream.copy_from(coords.part(begin * dims, len * dims), &source.stream, piece)?;
            let piece = from.ids().part(range.start, len);
            stream.copy_from(ids.part(begin, len), &source.stream, piece)?;
        }
        begin += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_as_many_points_as_possible() {
        let piece = |source, range| Piece { source, range };
        // Two parts.
        assert_eq!(redistribute(&[0..3, 0..2], 0..1), [vec![piece(0, 0..3), piece(1, 0..2)]]);
        assert_eq!(redistribute(&[3..5, 2..5], 1..2), [vec![piece(1, 2..5), piece(0, 3..5)]]);
        // The first two of four parts get all points.
        let all = redistribute(&[0..4, 0..0, 2..4, 5..7], 0..2);
        assert_eq!(all, [vec![piece(0, 0..4)], vec![piece(2, 2..4), piece(3, 5..7)]]);
        // No points, and fewer points than parts.
        assert_eq!(redistribute(&[1..1, 2..2, 0..0], 0..2), [vec![], vec![]]);
        assert_eq!(redistribute(&[0..0, 0..0, 0..1], 0..2), [vec![], vec![piece(2, 0..1)]]);
    }

    #[test]
    fn no_point_is_lost() {
        for lens in [[7, 0, 5, 1], [0, 0, 0, 9], [100, 3, 3, 3]] {
            let available = lens.map(|len| 2..2 + len);
            for targets in [0..1, 0..2, 2..4, 1..4, 0..4] {
                let pieces = redistribute(&available, targets.clone());
                let mut moved: Vec<_> = pieces
                    .iter()
                    .flatten()
                    .flat_map(|piece| piece.range.clone().map(|position| (piece.source, position)))
                    .collect();
                moved.sort_unstable();
                let expected = available.iter().cloned().enumerate();
                assert!(
                    moved
                        .into_iter()
                        .eq(expected.flat_map(|(i, range)| range.map(move |position| (i, position))))
                );
                let lens: Vec<usize> =
                    pieces.iter().map(|pieces| pieces.iter().map(|piece| piece.range.len()).sum()).collect();
                assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1, "{lens:?}");
            }
        }
    }
}
