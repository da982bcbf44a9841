//! Results in batches on the CPU: one after another.

use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};

use super::nearest::{self, nearest};
use super::walk::Nodes;
use super::within::{Look, count, find};
use crate::batches::{Delivery, Rows, equal_rows};
use crate::error::Result;
use crate::kdtree::batches::{ShowFound, ShowNearest};
use crate::kdtree::item_bytes;
use crate::memory;

/// Some rows of a look, from the first on.
struct Part<'a, L> {
    look: &'a L,
    rows: Range<usize>,
}

impl<C: Coord, L: Look<C, D>, const D: usize> Look<C, D> for Part<'_, L> {
    type Region = L::Region;
    const EVERYWHERE: L::Region = L::EVERYWHERE;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn place(&self, row: usize) -> &[C; D] {
        self.look.place(self.rows.start + row)
    }

    #[inline(always)]
    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C> {
        self.look.distance(self.rows.start + row, point, id)
    }

    #[inline(always)]
    fn parts(&self, row: usize, region: L::Region, axis: usize, plane: C) -> [Option<L::Region>; 2] {
        self.look.parts(self.rows.start + row, region, axis, plane)
    }
}

/// The points of each row in the order of the tree, of so many bytes each, with distances or without.
pub(super) fn find_batches<C: Coord, L: Look<C, D>, const D: usize>(
    tree: Nodes<'_, C, D>,
    look: &L,
    with_distances: bool,
    delivery: &mut Delivery<'_, '_>,
    show: &mut ShowFound<'_, C>,
) -> Result<ControlFlow<()>> {
    let item_bytes = if with_distances { item_bytes::<C>() } else { size_of::<u32>() as u64 };
    let mut rows = Rows::new(look.len(), item_bytes, delivery.limits());
    while let Some(part) = rows.next_part() {
        let first = part.start;
        let mut found = delivery.make(|| {
            let counts = count(tree, &Part { look, rows: part })?;
            let fit = rows.that_fit(&offsets(&counts)?)?;
            let mut found = find(tree, &Part { look, rows: first..first + fit })?;
            if !with_distances {
                found.dist2 = Vec::new();
            }
            Ok(found)
        })?;
        let (num_rows, num_items) = (found.offsets.len() - 1, found.ids.len());
        rows.took(num_rows, num_items as u64);
        let flow = delivery.hand_over(num_rows, num_items, item_bytes, || show(first, found.rows_mut()));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Where rows of those counts begin, and where the last ends.
fn offsets(counts: &[u32]) -> Result<Vec<u64>> {
    let mut offsets = memory::vec_with_capacity(counts.len() + 1, "offsets of rows")?;
    let mut end = 0;
    offsets.push(end);
    offsets.extend(counts.iter().map(|&count| {
        end += u64::from(count);
        end
    }));
    Ok(offsets)
}

/// Rows of the nearest neighbours.
pub(super) fn nearest_batches<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    queries: &[[C; D]],
    asked: &nearest::Asked<'_, C, D>,
    delivery: &mut Delivery<'_, '_>,
    show: &mut ShowNearest<'_, C>,
) -> Result<ControlFlow<()>> {
    let (k, item_bytes) = (asked.k, item_bytes::<C>());
    let (mut ids, mut dist2) = (Vec::new(), Vec::new());
    for rows in equal_rows(queries.len(), k, item_bytes, delivery.limits())? {
        (ids, dist2) = delivery.make(|| {
            ids.clear();
            dist2.clear();
            memory::reserve(&mut ids, rows.len() * k, "ids of neighbours")?;
            memory::reserve(&mut dist2, rows.len() * k, "distances of neighbours")?;
            let except_from = asked.except_from.map(|first| first + rows.start);
            let asked = nearest::Asked { except_from, ..asked.clone() };
            nearest(tree, &queries[rows.clone()], &asked, ids, dist2)
        })?;
        let flow = delivery.hand_over(rows.len(), ids.len(), item_bytes, || show(rows.clone(), &ids, &dist2));
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}
