//! The convex hull of points.

use crate::parallel::TASK_ITEMS;
use rayon::prelude::*;

/// Directions in which extreme points are sought.
const DIRECTIONS: [[i64; 2]; 8] = [[1, 0], [1, 1], [0, 1], [-1, 1], [-1, 0], [-1, -1], [0, -1], [1, -1]];

/// Returns the corners of the convex hull of points, of which there is at least one, by Andrew's monotone chain (1979).
///
/// Most points are inside of the polygon of the extreme points in eight directions and are left out first (Akl, Toussaint 1978).
pub(super) fn hull(points: &[[i32; 3]]) -> Vec<[i32; 3]> {
    let of_parts: Vec<[i32; 3]> = points.par_chunks(TASK_ITEMS).flat_map_iter(extreme).collect();
    let octagon: Vec<[i32; 3]> = extreme(&of_parts).collect();
    let edges = octagon.iter().zip(octagon.iter().cycle().skip(1));
    let edges: Vec<_> = edges.filter(|(from, to)| from[..2] != to[..2]).collect();
    let is_inside = |point: &[i32; 3]| edges.iter().all(|(from, to)| turn(**from, **to, *point) > 0);
    let is_outside = |point: &&[i32; 3]| edges.is_empty() || !is_inside(point);
    let mut rest: Vec<[i32; 3]> = points.par_iter().filter(is_outside).copied().collect();
    rest.par_sort_unstable();
    rest.dedup_by_key(|point| [point[0], point[1]]);
    let mut corners = chain(rest.iter());
    corners.extend(chain(rest.iter().rev()));
    corners.sort_unstable();
    corners.dedup();
    corners
}

/// Returns the extreme point in each direction.
fn extreme(points: &[[i32; 3]]) -> impl Iterator<Item = [i32; 3]> + '_ {
    DIRECTIONS.into_iter().filter_map(|[x, y]| {
        let key = |point: &&[i32; 3]| (x * i64::from(point[0]) + y * i64::from(point[1]), **point);
        points.iter().max_by_key(key).copied()
    })
}

/// Returns the corners of one half of the hull of sorted points.
fn chain<'a>(points: impl Iterator<Item = &'a [i32; 3]>) -> Vec<[i32; 3]> {
    let mut chain: Vec<[i32; 3]> = Vec::new();
    for &point in points {
        while let [.., a, b] = chain[..] {
            if turn(a, b, point) > 0 {
                break;
            }
            chain.pop();
        }
        chain.push(point);
    }
    chain
}

/// Positive if the way from `a` by `b` to `c` turns left.
fn turn(a: [i32; 3], b: [i32; 3], c: [i32; 3]) -> i128 {
    let of = |p: [i32; 3]| [0, 1].map(|axis| i128::from(p[axis]) - i128::from(a[axis]));
    let (b, c) = (of(b), of(c));
    b[0] * c[1] - b[1] * c[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_of_points() {
        assert_eq!(hull(&[[4, 4, 1], [4, 4, 0]]), [[4, 4, 0]]);
        let line: Vec<_> = (0..9).map(|i| [i, 2 * i, i]).collect();
        assert_eq!(hull(&line), [[0, 0, 0], [8, 16, 8]]);
        let lattice: Vec<_> = (0..100).map(|i| [i % 10, i / 10, i]).collect();
        assert_eq!(hull(&lattice), [[0, 0, 0], [0, 9, 90], [9, 0, 9], [9, 9, 99]]);
        let far: Vec<_> = [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]
            .map(|[x, y]: [i32; 2]| [x.wrapping_mul(i32::MAX), y.wrapping_mul(i32::MAX), 0])
            .into();
        assert_eq!(hull(&far).len(), 4);
    }
}
