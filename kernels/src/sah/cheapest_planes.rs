//! The cheapest planes of large nodes, of all that touch a box of their references (Wald, Havran 2006: On building fast kd-Trees for Ray Tracing, and
//! on doing that in O(N log N)). Each reference has two events on an axis, where it begins and where it ends. They are sorted by node and
//! coordinate, and their numbers before each event are summed.

use super::chunks::LevelReferences;
use super::cost::SplitCost;
use super::large_nodes::{LargeNode, NO_PLANE};
use crate::block::scan::exclusive_over_warps;
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use crate::rays::aabb::component;
use crate::thread::items::own_item;
use crate::thread::operator::Min;
use crate::thread::words::split;
use crate::warp::scan::reduce;
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::prelude::*;

/// The bits of an event below its node: the key of the coordinate, and the kind.
pub const COORDINATE_BITS: u32 = 32 + KIND_BITS;

const KIND_BITS: u32 = 2;

/// The kinds of events, in their order at one coordinate: those up to a plane, then those above it.
const END: u64 = 0;
/// A reference without an extent: both its begin and its end. It is below a plane in which it lies.
const FLAT: u64 = 1;
const BEGIN: u64 = 2;
/// No event. These are the last ones of a node.
const NONE: u64 = 3;

/// Writes the two events of each reference on an axis; one block per chunk.
#[kernel(family = "sah", block = THREADS)]
pub unsafe fn sah_events(level: LevelReferences<'_>, axis: u32, events: SliceMut<u64>) {
    let reference = level.reference();
    let event =
        |key: u32, kind: u64| (reference.node as u64) << COORDINATE_BITS | u64::from(key) << KIND_BITS | kind;
    let (low, high) = (component(reference.bounds.low, axis), component(reference.bounds.high, axis));
    let (low, high) = (low + 0.0, high + 0.0);
    let none = event(u32::MAX, NONE);
    let pair = if !reference.exists {
        [none; 2]
    } else if low == high {
        [event(f32_to_key(low), FLAT), none]
    } else {
        [event(f32_to_key(low), BEGIN), event(f32_to_key(high), END)]
    };
    events.store_16(thread::index_1d_u64() as usize, pair);
}

/// Writes 1 for each event, in the low half if it is a begin, in the high half if it is an end; one thread per event.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_event_counts(events: Slice<u64>, counts: SliceMut<u64>) {
    let Some(i) = own_item(events.len()) else { return };
    counts.store(i, count(events.load(i) & NONE));
}

/// Returns the number of begins, and in the high half that of ends, of an event.
#[inline(always)]
fn count(kind: u64) -> u64 {
    u64::from(kind == BEGIN || kind == FLAT) | u64::from(kind == END || kind == FLAT) << 32
}

/// The sorted events of a level on an axis.
#[derive(Clone, Copy, KernelArgs)]
pub struct SortedEvents<'a> {
    /// The nodes.
    pub nodes: Slice<'a, crate::sah::large_nodes::LargeNode>,
    /// The node of each chunk.
    pub chunk_nodes: Slice<'a, u32>,
    /// The sorted events. Each chunk has two for each of its threads.
    pub events: Slice<'a, u64>,
    /// The sums of the counts of all events before each.
    pub before: Slice<'a, u64>,
    /// The axis.
    pub axis: u32,
}

/// Shared memory of a block that finds the cheapest plane.
#[repr(C)]
pub struct CostSmem {
    best: [u64; THREADS / 32],
}

impl SortedEvents<'_> {
    /// Returns the cost of the split at event `i` of a node, and the key of its plane; [`NO_PLANE`] if this or a later event of the same
    /// plane has no part in a split there.
    #[inline(always)]
    unsafe fn cost(&self, i: usize, node: &LargeNode, step_cost: f32) -> u64 {
        let event = self.events.load(i);
        let (kind, place) = (event & NONE, event >> KIND_BITS);
        // A plane is between the ends and the begins there.
        let is_plane = if kind == BEGIN {
            i == 0 || self.events.load(i - 1) >> KIND_BITS != place
        } else {
            let next = if i + 1 < self.events.len() { self.events.load(i + 1) } else { u64::MAX };
            kind != NONE && (next >> KIND_BITS != place || next & NONE == BEGIN)
        };
        let of_node = self.before.load(2 * THREADS * node.first_chunk as usize);
        let own = if kind == BEGIN { 0 } else { count(kind) };
        let [begins, ends, ..] = split(self.before.load(i) - of_node + own);
        let (model, plane) = (SplitCost::new(node.bounds, step_cost), f32_from_key(place as u32));
        let cost = model.cost(self.axis, plane, begins, node.len - ends);
        let counts = is_plane && model.is_inside(self.axis, plane) && cost < f32::INFINITY;
        if counts { u64::from(cost.to_bits()) << 32 | place & 0xFFFF_FFFF } else { NO_PLANE }
    }
}

/// Computes the least cost of a split of each node on the axis, and the key of its plane, the lowest of equally cheap ones; two blocks per chunk.
/// `best` has a row of nodes for each axis, and all bits set at the start.
#[kernel(family = "sah", block = THREADS, shared = CostSmem)]
pub unsafe fn sah_cheapest(sorted: SortedEvents<'_>, step_cost: f32, best: SliceMut<u64>) {
    let number = sorted.chunk_nodes.load(thread::block_idx_x() as usize / 2) as usize;
    let node = sorted.nodes.load(number);
    let own = sorted.cost(thread::index_1d_u64() as usize, &node, step_cost);
    let of_warps = shared_field!(shared_mem::<CostSmem>(), best);
    let (_, least) = exclusive_over_warps::<u64, Min>(reduce::<u64, Min>(own), of_warps);
    if thread::thread_idx_x() == 0 && least != NO_PLANE {
        let at = sorted.axis as usize * sorted.nodes.len() + number;
        best.atomic_min(at, least, Ordering::Relaxed, Scope::Device);
    }
}
