//! Inverse distance weighting of the nearest points.

use super::disk::relative_weight;
use super::tree::{Corners, Missing, NO_SLOT, NOWHERE2, Points, Search, distance2, distance2_to_box};
use cuda_std::float::sqrt_f64;

/// The nearest points of a position in registers, the nearest first; of equally near points the one with the least slot. If fewer than `K` points
/// are sought, the list begins with entries that are nearer than all points.
#[derive(Clone, Copy, Debug)]
struct NearestK<const K: usize> {
    position: [i32; 2],
    /// Squared distances and slots; [`NO_SLOT`] where no point was found.
    entries: [(i64, u32); K],
}

impl<const K: usize> Search for NearestK<K> {
    type Key = i64;

    #[inline(always)]
    fn bound(&self) -> i64 {
        self.entries[K - 1].0
    }

    #[inline(always)]
    fn key(&self, corners: Corners) -> i64 {
        distance2_to_box(self.position, corners)
    }

    #[inline(always)]
    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        let mut entry = (distance2(self.position, position), slot);
        if is_before(entry, self.entries[K - 1]) {
            for i in 0..K {
                if is_before(entry, self.entries[i]) {
                    (entry, self.entries[i]) = (self.entries[i], entry);
                }
            }
        }
    }
}

#[inline(always)]
fn is_before(a: (i64, u32), b: (i64, u32)) -> bool {
    a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
}

/// Returns the average of the `k` nearest points of a position within a radius, weighted by inverse distance, in steps; `k` is at most `K`.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn weighted_nearest<P: Points, const K: usize>(
    points: &P,
    position: Option<[i32; 2]>,
    k: usize,
    radius2: i64,
    power: u32,
) -> Result<f64, Missing> {
    let radius2 = if position.is_some() { radius2 } else { NOWHERE2 };
    let position = position.unwrap_or_default();
    let mut entries = [(radius2, NO_SLOT); K];
    for i in 0..K {
        if i + k < K {
            entries[i].0 = NOWHERE2 - 1;
        }
    }
    let mut nearest = NearestK { position, entries };
    points.search(None, &mut nearest);
    // Without `k` points, this is the radius.
    points.check_disk(position.map(f64::from), sqrt_f64(nearest.bound() as f64))?;
    let (mut nearest2, mut reference, mut weighted, mut weights) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..K {
        let (distance2, slot) = nearest.entries[i];
        if slot != NO_SLOT {
            let (distance2, height) = (distance2 as f64, f64::from(points.height(slot)));
            if weights == 0.0 {
                (nearest2, reference) = (distance2, height);
            }
            let weight = relative_weight(nearest2, distance2, power);
            weights += weight;
            weighted += weight * (height - reference);
        }
    }
    if weights == 0.0 { Err(Missing::NoValue) } else { Ok(reference + weighted / weights) }
}
