//! The nearest points of a position.

use super::model::MAX_NEAREST;
use kauri_kernels::terrain::tree::{Corners, Search};

/// The `k` nearest points within a radius, the nearest first; of equally near points the one with the least slot. Distances are computed as those of
/// queries to indexes.
pub(super) struct NearestK {
    position: [i32; 2],
    k: usize,
    radius2: f64,
    len: usize,
    /// Squared distances and slots.
    entries: [(f64, u32); MAX_NEAREST as usize],
}

impl NearestK {
    pub(super) fn new(position: [i32; 2], k: usize, radius: f64) -> Self {
        let entries = [(f64::INFINITY, u32::MAX); MAX_NEAREST as usize];
        Self { position, k, radius2: radius * radius, len: 0, entries }
    }

    /// Returns the squared distance and the slot of an entry; an infinite distance where there is none.
    pub(super) fn entry(&self, i: usize) -> (f64, u32) {
        self.entries[i]
    }

    fn distance2(&self, to: [i32; 2]) -> f64 {
        let [x, y] = [0, 1].map(|axis| f64::from(self.position[axis]) - f64::from(to[axis]));
        x * x + y * y
    }
}

impl Search for NearestK {
    type Key = f64;

    fn bound(&self) -> f64 {
        if self.len < self.k { self.radius2 } else { self.entries[self.k - 1].0 }
    }

    fn key(&self, [low, high]: Corners) -> f64 {
        self.distance2([0, 1].map(|axis| self.position[axis].clamp(low[axis], high[axis])))
    }

    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        let entry = (self.distance2(position), slot);
        let at = self.entries[..self.len].partition_point(|other| *other < entry);
        if entry.0 > self.radius2 || at == self.k {
            return;
        }
        self.len = self.k.min(self.len + 1);
        self.entries[at..self.len].rotate_right(1);
        self.entries[at] = entry;
    }
}
