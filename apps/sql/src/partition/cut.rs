//! A cut of space into cells by planes.

use super::region::{EMPTY, Place, union};

/// A k-d tree over space. Its cells are the leaves, in order; the children of plane `i` are `2 i + 1` and `2 i + 2`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Cut {
    /// The axis of each plane.
    #[prost(uint32, repeated, tag = "1")]
    axes: Vec<u32>,
    /// The coordinate of each plane: places at it and beyond are on the side of the second child.
    #[prost(double, repeated, tag = "2")]
    planes: Vec<f64>,
}

impl Cut {
    /// Cuts space into `cells`, a power of two, that have about equal numbers of the places.
    pub(super) fn new(places: &mut [Place], cells: usize) -> Self {
        debug_assert!(cells.is_power_of_two());
        let mut cut = Self { axes: vec![0; cells - 1], planes: vec![0.0; cells - 1] };
        cut.split(0, places);
        cut
    }

    /// Splits places by their median along the axis on which they extend farthest.
    fn split(&mut self, node: usize, places: &mut [Place]) {
        if node >= self.planes.len() {
            return;
        }
        let [low, high] = places.iter().fold(EMPTY, |bounds, &place| union(bounds, [place; 2]));
        let extent = |axis: &usize| high[*axis] - low[*axis];
        let axis = (0..3).max_by(|a, b| extent(a).total_cmp(&extent(b))).unwrap_or(0);
        let middle = places.len() / 2;
        if !places.is_empty() {
            let median = places.select_nth_unstable_by(middle, |a, b| a[axis].total_cmp(&b[axis])).1[axis];
            (self.axes[node], self.planes[node]) = (axis as u32, median);
        }
        let (first, second) = places.split_at_mut(middle);
        self.split(2 * node + 1, first);
        self.split(2 * node + 2, second);
    }

    /// Returns true if it has a power of two of cells, as one that was decoded must.
    pub(super) fn is_valid(&self) -> bool {
        self.axes.len() == self.planes.len()
            && self.cells().is_power_of_two()
            && self.axes.iter().all(|&axis| axis < 3)
    }

    pub(super) fn cells(&self) -> usize {
        self.planes.len() + 1
    }

    /// Returns the cell of a place.
    pub(super) fn cell_of(&self, place: &Place) -> usize {
        let mut node = 0;
        while node < self.planes.len() {
            node = 2 * node + 1 + usize::from(place[self.axes[node] as usize] >= self.planes[node]);
        }
        node - self.planes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_equal_numbers_of_places() {
        let mut places: Vec<Place> =
            (0..4096).map(|i| [(i * 37 % 4096) as f64, (i % 64) as f64, 0.0]).collect();
        let cut = Cut::new(&mut places, 16);
        let mut counts = [0; 16];
        places.iter().for_each(|place| counts[cut.cell_of(place)] += 1);
        assert!(counts.iter().all(|&count| (240..=272).contains(&count)), "{counts:?}");
    }

    #[test]
    fn few_and_equal_places() {
        let cut = Cut::new(&mut [], 8);
        assert!(cut.is_valid() && cut.cell_of(&[5.0, -1.0, 0.0]) < 8);
        let cut = Cut::new(&mut [[1.0, 1.0, 0.0]; 100], 8);
        assert!(cut.is_valid() && cut.cell_of(&[1.0, 1.0, 0.0]) < 8);
    }
}
