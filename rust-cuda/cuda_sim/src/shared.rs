//! Shared memory of one resident block.

use crate::clock::Released;
use crate::hash::FastMap;
use crate::region::Region;
use std::ops::Range;

pub(crate) struct Shared {
    /// The launch-sized region, then static arrays in the order of their first use.
    pub(crate) regions: Vec<Region>,
    /// Source location and size of each static array.
    keys: Vec<(usize, usize)>,
    /// Addresses and names of the fields that were viewed.
    fields: Vec<(Range<usize>, &'static str)>,
    /// Knowledge released by atomic operations, by address.
    pub(crate) released: FastMap<usize, Released>,
    limit: usize,
}

impl Shared {
    /// Creates memory with `dynamic` launch-sized bytes that can grow to `limit`.
    pub(crate) fn new(dynamic: usize, limit: usize) -> Self {
        let region = Self::new_region(dynamic, "launch-sized shared memory".into());
        Self { regions: vec![region], keys: vec![], fields: vec![], released: FastMap::default(), limit }
    }

    fn new_region(bytes: usize, label: String) -> Region {
        let mut region = Region::new(bytes, label);
        region.shadow.of_one_launch = true;
        region
    }

    /// Resets the memory for another block.
    pub(crate) fn reset(&mut self) {
        self.regions.iter_mut().for_each(Region::reset);
        self.released.clear();
    }

    /// Returns the launch-sized region for key 0, a separate array for every other key.
    ///
    /// # Errors
    /// The available bytes, if `bytes` exceeds them.
    pub(crate) fn region(&mut self, key: usize, bytes: usize) -> Result<*mut u8, usize> {
        if key == 0 {
            let dynamic = &self.regions[0];
            return if bytes <= dynamic.bytes() { Ok(dynamic.at(0, bytes)) } else { Err(dynamic.bytes()) };
        }
        // All instances of a generic function have one source location; their arrays differ in size.
        if let Some(i) = self.keys.iter().position(|&k| k == (key, bytes)) {
            return Ok(self.regions[i + 1].at(0, bytes));
        }
        let free = self.limit.saturating_sub(self.regions.iter().map(Region::bytes).sum());
        if bytes > free {
            return Err(free);
        }
        self.keys.push((key, bytes));
        let number = self.keys.len();
        self.regions.push(Self::new_region(bytes, format!("static shared array {number}")));
        Ok(self.regions[number].at(0, bytes))
    }

    /// Records the name of a field.
    pub(crate) fn name(&mut self, address: usize, bytes: usize, name: &'static str) {
        let field = (address..address + bytes, name);
        if !self.fields.contains(&field) {
            self.fields.push(field);
        }
    }

    /// Describes an address: label and offset. Fields of a union share addresses, so there may be several names.
    pub(crate) fn describe(&self, address: usize) -> Option<(String, usize)> {
        let region = &self.regions[self.find(address)?];
        let mut label = region.label.clone();
        let names = self.fields.iter().filter(|(field, _)| field.contains(&address)).map(|(_, name)| name);
        for (i, name) in names.enumerate() {
            label += if i == 0 { ", field " } else { " or " };
            label += &format!("`{name}`");
        }
        Some((label, region.offset_of(address)?))
    }

    pub(crate) fn find(&self, address: usize) -> Option<usize> {
        self.regions.iter().position(|r| r.offset_of(address).is_some())
    }

    /// Returns label and offset of a write next to a region.
    pub(crate) fn broken_red_zone(&self) -> Option<(String, i64)> {
        self.regions.iter().find_map(|r| Some((r.label.clone(), r.broken_red_zone()?)))
    }
}
