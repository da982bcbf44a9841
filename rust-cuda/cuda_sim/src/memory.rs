//! Global memory of a simulated device.

use crate::error::{Kind, SimError};
use crate::region::{ALIGN, Region, Written};
use std::collections::VecDeque;

/// Bytes of freed memory that are kept, so that a freed address is not reused soon.
const QUARANTINE_BYTES: usize = 32 << 20;

pub(crate) struct Memory {
    /// Sorted by address.
    regions: Vec<Region>,
    freed: VecDeque<Region>,
    freed_bytes: usize,
    live_bytes: u64,
    capacity: u64,
    last_found: usize,
}

/// Copy of all memory contents.
#[derive(Default)]
pub(crate) struct Snapshot(Vec<(Vec<u8>, Written)>);

impl Memory {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            regions: vec![],
            freed: VecDeque::new(),
            freed_bytes: 0,
            live_bytes: 0,
            capacity,
            last_found: 0,
        }
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(crate) fn num_allocations(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn alloc(&mut self, bytes: u64, label: &str) -> Result<u64, SimError> {
        let free = self.capacity - self.live_bytes;
        let charged = Self::charge(bytes);
        if charged > free {
            let label = label.to_owned();
            return Err(SimError::host(Kind::OutOfMemory { requested: bytes, free, label }));
        }
        self.live_bytes += charged;
        Ok(self.insert(Region::new(bytes as usize, label.to_owned())))
    }

    /// Allocates host memory that kernels can access.
    pub(crate) fn alloc_host(&mut self, bytes: u64, label: &str) -> Result<u64, SimError> {
        let region = usize::try_from(bytes).ok().and_then(|bytes| Region::of_host(bytes, label.to_owned()));
        let region = region.ok_or_else(|| {
            SimError::host(Kind::OutOfMemory { requested: bytes, free: 0, label: label.to_owned() })
        })?;
        Ok(self.insert(region))
    }

    fn insert(&mut self, region: Region) -> u64 {
        let base = region.base();
        let place = self.regions.partition_point(|r| r.base() < base);
        self.regions.insert(place, region);
        base as u64
    }

    /// Device memory that an allocation takes.
    fn charge(bytes: u64) -> u64 {
        bytes.max(1).checked_next_multiple_of(ALIGN as u64).unwrap_or(u64::MAX)
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), SimError> {
        let place = self.regions.binary_search_by_key(&(address as usize), Region::base);
        let Ok(place) = place else {
            let what = format!("free of {address:#x}, which is not the beginning of an allocation");
            return Err(SimError::host(Kind::HostAddress { what }));
        };
        let mut region = self.regions.remove(place);
        if !region.is_host {
            self.live_bytes -= Self::charge(region.bytes() as u64);
        }
        region.shadow.forget();
        self.freed_bytes += region.bytes();
        self.freed.push_back(region);
        while self.freed_bytes > QUARANTINE_BYTES {
            self.freed_bytes -= self.freed.pop_front().map_or(0, |r| r.bytes());
        }
        Ok(())
    }

    /// Returns the index of the region that contains an address.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Option<usize> {
        if self.regions.get(self.last_found).is_some_and(|r| r.offset_of(address).is_some()) {
            return Some(self.last_found);
        }
        let i = self.regions.partition_point(|r| r.base() <= address).checked_sub(1)?;
        self.regions[i].offset_of(address)?;
        self.last_found = i;
        Some(i)
    }

    pub(crate) fn region(&mut self, index: usize) -> &mut Region {
        &mut self.regions[index]
    }

    /// Returns the freed region that contained an address.
    pub(crate) fn find_freed(&self, address: usize) -> Option<&Region> {
        self.freed.iter().rev().find(|r| r.offset_of(address).is_some())
    }

    /// Returns region and offset of a range of a host operation.
    fn host_range(&mut self, address: u64, len: usize, what: &str) -> Result<(usize, usize), SimError> {
        let error = |problem: String| {
            let what = format!("{what} of {len} bytes at {address:#x}, {problem}");
            Err(SimError::host(Kind::HostAddress { what }))
        };
        if let Some(index) = self.find(address as usize) {
            let region = &self.regions[index];
            let offset = address as usize - region.base();
            if len <= region.bytes() - offset {
                return Ok((index, offset));
            }
            let (label, bytes) = (&region.label, region.bytes());
            return error(format!(
                "which ends {} bytes behind the end of `{label}` ({bytes} bytes)",
                offset + len - bytes
            ));
        }
        match self.find_freed(address as usize) {
            // An empty range may be at the end of an allocation.
            _ if len == 0 && !self.regions.is_empty() => Ok((0, 0)),
            Some(freed) => error(format!("in `{}`, which was freed", freed.label)),
            None => error("which is not allocated".into()),
        }
    }

    pub(crate) fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SimError> {
        let (index, offset) = self.host_range(address, from.len(), "copy to the device")?;
        let region = &mut self.regions[index];
        region.contents_mut()[offset..][..from.len()].copy_from_slice(from);
        region.written.set(offset, from.len());
        Ok(())
    }

    pub(crate) fn fill(&mut self, address: u64, value: u8, len: usize) -> Result<(), SimError> {
        let (index, offset) = self.host_range(address, len, "fill")?;
        let region = &mut self.regions[index];
        region.contents_mut()[offset..][..len].fill(value);
        region.written.set(offset, len);
        Ok(())
    }

    pub(crate) fn read(&mut self, address: u64, to: &mut [u8], check: bool) -> Result<(), SimError> {
        let (index, offset) = self.host_range(address, to.len(), "copy to the host")?;
        let region = &mut self.regions[index];
        if check && let Some(offset) = region.first_unwritten(offset, to.len()) {
            return Err(SimError::host(Kind::HostRead { label: region.label.clone(), offset }));
        }
        to.copy_from_slice(&region.contents()[offset..][..to.len()]);
        Ok(())
    }

    pub(crate) fn copy(&mut self, from: u64, to: u64, len: usize) -> Result<(), SimError> {
        let (source, source_offset) = self.host_range(from, len, "copy on the device")?;
        let (target, target_offset) = self.host_range(to, len, "copy on the device")?;
        if len == 0 {
            return Ok(());
        }
        let (bytes, written) = {
            let region = &mut self.regions[source];
            region.notice_raw_writes(source_offset, len);
            let bytes = region.contents()[source_offset..][..len].to_vec();
            (bytes, region.written.part(source_offset, len))
        };
        let region = &mut self.regions[target];
        region.contents_mut()[target_offset..][..len].copy_from_slice(&bytes);
        region.written.copy_from(target_offset, &written);
        Ok(())
    }

    /// Finds a changed red zone and restores all.
    pub(crate) fn broken_red_zone(&mut self) -> Option<Kind> {
        let broken = self
            .regions
            .iter()
            .find_map(|r| r.broken_red_zone().map(|offset| Kind::RedZone { label: r.label.clone(), offset }));
        if broken.is_some() {
            self.regions.iter_mut().for_each(Region::restore_red_zones);
        }
        broken
    }

    /// Takes a snapshot; reuses the buffers of `to`.
    pub(crate) fn snapshot(&self, to: &mut Snapshot) {
        to.0.resize_with(self.regions.len(), Default::default);
        for (region, (bytes, written)) in self.regions.iter().zip(&mut to.0) {
            bytes.clear();
            bytes.extend_from_slice(region.contents());
            written.clone_from(&region.written);
        }
    }

    /// Restores a snapshot; nothing may have been allocated or freed since.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        for (region, (bytes, written)) in self.regions.iter_mut().zip(&snapshot.0) {
            region.contents_mut().copy_from_slice(bytes);
            region.written.clone_from(written);
        }
    }
}
