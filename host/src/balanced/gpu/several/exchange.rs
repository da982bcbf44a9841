//! What parts send each other.

use kauri_kernels::thread::coord::Coord;
use std::ops::Range;

use crate::balanced::gpu::several::part::Part;
use crate::balanced::gpu::several::points::Points;
use crate::error::Result;
use crate::threads::each;

/// A piece of the points of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The part, by its number in its group.
    pub(crate) source: usize,
    pub(crate) range: Range<usize>,
}

/// So many items in nearly equal ranges.
pub(crate) fn even(len: usize, ranges: usize) -> impl Iterator<Item = Range<usize>> {
    let begin = move |i: usize| (len as u128 * i as u128 / ranges as u128) as usize;
    (0..ranges).map(move |i| begin(i)..begin(i + 1))
}

/// Which pieces of what the parts have, a range each, go to which of some parts, so that these get nearly equal numbers: each keeps of its
/// own what it may.
pub(crate) fn moves(available: &[Range<usize>], targets: Range<usize>) -> Vec<Vec<Piece>> {
    let len = available.iter().map(Range::len).sum();
    let mut available = available.to_vec();
    let mut take = |source: usize, most: usize| {
        let rest = &mut available[source];
        let end = rest.start + most.min(rest.len());
        let range = std::mem::replace(&mut rest.start, end)..end;
        Piece { source, range }
    };
    let mut targets: Vec<_> = even(len, targets.len())
        .zip(targets)
        .map(|(room, target)| (room.len(), take(target, room.len())))
        .collect();
    let filled = targets.iter_mut().map(|(room, own)| {
        let mut pieces = vec![own.clone()];
        let mut missing = *room - own.range.len();
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

/// Gives each part of a group its pieces, one behind the other, in place of what it has. `room` makes room for so many points in the part
/// of a number.
pub(crate) fn exchange<C: Coord>(
    parts: &mut [Part<C>],
    pieces: &[Vec<Piece>],
    room: impl Fn(usize, &mut Part<C>, usize) -> Result<Points<C>> + Sync,
) -> Result<()> {
    let rooms = each(parts.iter_mut().zip(pieces).enumerate(), |(i, (part, pieces))| {
        room(i, part, pieces.iter().map(|piece| piece.range.len()).sum())
    })?;
    let all = &*parts;
    let new = each(all.iter().zip(pieces).zip(rooms), |((part, pieces), mut points)| {
        let copied = gather(part, all, pieces, &mut points);
        // Also after an error: what has been asked for reads the memory of others.
        part.stream().synchronize().and(copied)?;
        Ok(points)
    })?;
    for (part, points) in parts.iter_mut().zip(new) {
        part.replace(points);
    }
    Ok(())
}

/// Copies the pieces of a part to its device.
fn gather<C: Coord>(part: &Part<C>, all: &[Part<C>], pieces: &[Piece], points: &mut Points<C>) -> Result<()> {
    let (stream, dims) = (part.stream(), part.dims());
    let (coords, names) = points.write();
    let mut begin = 0;
    for Piece { source, range } in pieces {
        let (source, len) = (&all[*source], range.len());
        let from = source.points();
        // SAFETY: pieces are within what the parts have, which waits for its work after each step, and keeps it until this one is over.
        unsafe {
            let piece = from.coords().part(range.start * dims, len * dims);
            stream.copy_from(coords.part(begin * dims, len * dims), source.stream(), piece)?;
            let piece = from.names().part(range.start, len);
            stream.copy_from(names.part(begin, len), source.stream(), piece)?;
        }
        begin += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_what_they_may() {
        let piece = |source, range| Piece { source, range };
        // Two halves that change places.
        assert_eq!(moves(&[0..3, 0..2], 0..1), [vec![piece(0, 0..3), piece(1, 0..2)]]);
        assert_eq!(moves(&[3..5, 2..5], 1..2), [vec![piece(1, 2..5), piece(0, 3..5)]]);
        // Four parts, of which the first two get all.
        let all = moves(&[0..4, 0..0, 2..4, 5..7], 0..2);
        assert_eq!(all, [vec![piece(0, 0..4)], vec![piece(2, 2..4), piece(3, 5..7)]]);
        // Nothing at all, and less than a point a part.
        assert_eq!(moves(&[1..1, 2..2, 0..0], 0..2), [vec![], vec![]]);
        assert_eq!(moves(&[0..0, 0..0, 0..1], 0..2), [vec![], vec![piece(2, 0..1)]]);
    }

    #[test]
    fn nothing_is_lost() {
        for lens in [[7, 0, 5, 1], [0, 0, 0, 9], [100, 3, 3, 3]] {
            let available = lens.map(|len| 2..2 + len);
            for targets in [0..1, 0..2, 2..4, 1..4, 0..4] {
                let moves = moves(&available, targets.clone());
                let mut places: Vec<_> = moves
                    .iter()
                    .flatten()
                    .flat_map(|piece| piece.range.clone().map(|place| (piece.source, place)))
                    .collect();
                places.sort_unstable();
                let expected = available.iter().cloned().enumerate();
                assert!(
                    places.into_iter().eq(expected.flat_map(|(i, range)| range.map(move |place| (i, place))))
                );
                let lens: Vec<usize> =
                    moves.iter().map(|pieces| pieces.iter().map(|piece| piece.range.len()).sum()).collect();
                assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1, "{lens:?}");
            }
        }
    }
}
