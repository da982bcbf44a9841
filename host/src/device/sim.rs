//! The simulator as a device: `cuda_sim` runs the same kernels on the CPU, and checks them as they run.
//!
//! Work is done immediately, so streams need no ordering, and an event is a point in time.

use super::driver::{DeviceInfo, Driver, Launch, Memory, RawEvent, RawStream, Transfer, peer_of};
use super::images::KernelId;
use super::pieces::in_vectors;
use crate::error::{Error, Result};
use crate::threads::lock;
use cuda_sim::{Kind, LaunchSpec, Machine, MachineInfo};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::slice;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

pub use cuda_sim::Options as Schedule;

/// The properties and the schedule of a simulated device, for [`Device::sim`](super::Device::sim).
///
/// ```
/// use kauri::device::SimOptions;
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
///
/// // Schedule 3 of the standard ones; a failure reports the seed and the order that replay it.
/// let device = Device::sim(SimOptions::nth_order(3, 1))?;
/// let tree = KdTree::build(&device, &[[0.0f32, 0.0], [3.0, 4.0]], &KdTreeOptions::default())?;
/// assert_eq!(tree.nearest(&[[2.9, 4.0]], 1)?.row(0).ids(), [1]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimOptions {
    /// The compute capability, major and minor.
    pub capability: (u32, u32),
    /// The number of multiprocessors.
    pub num_sms: u32,
    /// The bytes of device memory.
    pub memory_bytes: u64,
    /// The order of threads and blocks, the checks, and limits.
    pub schedule: Schedule,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self { capability: (9, 0), num_sms: 4, memory_bytes: 4 << 30, schedule: Schedule::default() }
    }
}

impl SimOptions {
    /// Returns the default device with one of the [`Schedule::ORDERS`] standard schedules; see [`Schedule::nth_order`].
    /// Odd schedules have one multiprocessor, to cover code that depends on their number.
    pub fn nth_order(i: usize, seed: u64) -> Self {
        let all = Self::default();
        let num_sms = if i.is_multiple_of(2) { all.num_sms } else { 1 };
        Self { num_sms, schedule: Schedule::nth_order(i, seed), ..all }
    }
}

pub(super) struct SimDriver {
    info: DeviceInfo,
    machine: Machine,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_handle: usize,
    events: HashMap<usize, Instant>,
    kernels: HashSet<String>,
}

impl SimDriver {
    pub(super) fn new(options: SimOptions) -> Self {
        let SimOptions { capability, num_sms, memory_bytes, schedule } = options;
        // The limit of hardware of that capability, approximately.
        let max_shared_bytes = if capability >= (9, 0) { 227 << 10 } else { 99 << 10 };
        let info = DeviceInfo {
            id: "sim".into(),
            name: format!("simulator, {}", schedule.order_text()),
            capability,
            num_sms,
            memory_bytes,
            max_shared_bytes,
            driver_version: (0, 0),
        };
        let machine = MachineInfo { capability, num_sms, memory_bytes, max_shared_bytes };
        Self { info, machine: Machine::new(machine, schedule), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

// SAFETY: the machine's memory has the requested size and lives until it is freed.
unsafe impl Driver for SimDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(self.info.memory_bytes - self.machine.live_bytes())
    }

    fn keep_memory(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn alloc(&self, memory: Memory, bytes: usize, label: &'static str) -> Result<u64> {
        let allocated = match memory {
            Memory::Device => self.machine.alloc(bytes as u64, label),
            Memory::PinnedHost => self.machine.alloc_host(bytes as u64, label),
        };
        allocated.map_err(|error| match *error.kind() {
            Kind::OutOfMemory { requested, free, .. } => memory.exhausted(requested, free, label),
            _ => Error::Simulator(error),
        })
    }

    unsafe fn free(&self, _: Memory, address: u64) {
        // Freeing an allocation cannot fail.
        let _ = self.machine.free(address);
    }

    fn create_stream(&self) -> Result<RawStream> {
        let mut state = self.state();
        state.next_handle += 1;
        Ok(RawStream(state.next_handle))
    }

    fn destroy_stream(&self, _: RawStream) {}

    fn synchronize(&self, _: RawStream) -> Result<()> {
        Ok(())
    }

    fn create_event(&self) -> Result<RawEvent> {
        let mut state = self.state();
        state.next_handle += 1;
        let handle = state.next_handle;
        state.events.insert(handle, Instant::now());
        Ok(RawEvent(handle))
    }

    fn destroy_event(&self, event: RawEvent) {
        self.state().events.remove(&event.0);
    }

    fn record(&self, event: RawEvent, _: RawStream) -> Result<()> {
        self.state().events.insert(event.0, Instant::now());
        Ok(())
    }

    fn wait(&self, _: RawStream, _: RawEvent) -> Result<()> {
        Ok(())
    }

    fn synchronize_event(&self, _: RawEvent) -> Result<()> {
        Ok(())
    }

    fn elapsed_ms(&self, start: RawEvent, end: RawEvent) -> Result<f32> {
        let state = self.state();
        let at = |event: RawEvent| state.events.get(&event.0).copied();
        let elapsed = at(end).zip(at(start)).map(|(end, start)| end.saturating_duration_since(start));
        Ok(elapsed.unwrap_or_default().as_secs_f32() * 1e3)
    }

    fn can_reach(&self, peer: &dyn Driver) -> Result<bool> {
        Ok((peer as &dyn Any).is::<Self>())
    }

    unsafe fn transfer(&self, transfer: Transfer<'_>, bytes: usize, _: RawStream) -> Result<()> {
        let machine = &self.machine;
        match transfer {
            Transfer::ToDevice { to, from } => {
                // SAFETY: the caller passes `bytes` initialized bytes.
                machine.copy_to_device(to, unsafe { slice::from_raw_parts(from, bytes) })
            }
            Transfer::ToHost { to, from } => {
                // SAFETY: passed on to the caller. The bytes may be uninitialized, so they are set before they become a slice.
                let to = unsafe {
                    to.write_bytes(0, bytes);
                    slice::from_raw_parts_mut(to, bytes)
                };
                machine.copy_to_host(to, from)
            }
            Transfer::OnDevice { to, from } => machine.copy_on_device(to, from, bytes),
            Transfer::FromPeer { to, peer, from } => {
                let peer = peer_of(self, peer)?;
                // Simulated machines share no memory.
                let mut items = crate::memory::vec_with_capacity(bytes, "a copy between devices")?;
                items.resize(bytes, 0);
                peer.machine.copy_to_host(&mut items, from).and_then(|()| machine.copy_to_device(to, &items))
            }
            Transfer::ToDeviceBy { to, unit, write } => {
                return in_vectors(bytes, unit, &mut |begin, piece| {
                    // SAFETY: initialized bytes.
                    write(begin, unsafe {
                        slice::from_raw_parts_mut(piece.as_mut_ptr().cast(), piece.len())
                    })?;
                    machine.copy_to_device(to + begin as u64, piece).map_err(Error::Simulator)
                });
            }
            Transfer::ToHostBy { from, unit, read } => {
                return in_vectors(bytes, unit, &mut |begin, piece| {
                    machine.copy_to_host(piece, from + begin as u64).map_err(Error::Simulator)?;
                    read(begin, piece)
                });
            }
            Transfer::Fill { to, byte } => machine.fill(to, byte, bytes),
        }
        .map_err(Error::Simulator)
    }

    fn loads_images(&self) -> bool {
        false
    }

    fn has_kernel(&self, kernel: KernelId<'_>) -> bool {
        self.state().kernels.contains(kernel.name)
    }

    fn load_kernel(&self, kernel: KernelId<'_>) -> Result<()> {
        // The kernels are functions of this program. Loading is recorded, so that tests can let it fail.
        self.state().kernels.insert(kernel.name.into());
        Ok(())
    }

    fn load_family(&self, _: &'static str, _: &str) -> Result<()> {
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch<'_>, _: RawStream) -> Result<()> {
        let Launch { name, blocks, threads_per_block, shared_bytes, run, .. } = *launch;
        let spec = LaunchSpec::new(name, blocks, threads_per_block, shared_bytes, run);
        self.machine.launch(&spec).map_err(Error::Simulator)?;
        Ok(())
    }
}
