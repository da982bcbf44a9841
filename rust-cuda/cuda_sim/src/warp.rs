//! Warp operations: the arrival of lanes, and the results.

use crate::chain::{may_be_same, same_site};
use cuda_std::simt::{ReduceOp, Site, WarpOp, WarpResult};

/// A warp operation at which lanes wait: all with the same operation, mask and location.
#[derive(Clone, Debug)]
pub(crate) struct PendingOperation {
    pub(crate) op: WarpOp,
    pub(crate) mask: u32,
    pub(crate) site: Site,
    pub(crate) chain: u32,
    /// Lanes that have arrived.
    pub(crate) arrived: u32,
}

/// The lanes of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warp {
    /// Lanes of this warp that the block has.
    pub(crate) exists: u32,
    /// Lanes that have ended.
    pub(crate) exited: u32,
    pending: Vec<PendingOperation>,
}

/// Result of a lane's arrival.
#[derive(Debug, PartialEq)]
pub(crate) enum Arrival {
    /// Other lanes have not arrived yet.
    Waits,
    /// All lanes of the mask have arrived.
    Complete(u32),
    /// This lane waits for the caller at another operation, and the caller for it.
    Mismatch(u32),
    /// This lane of the mask has ended.
    Exited(u32),
}

impl Warp {
    /// Creates a warp with the first `lanes` lanes.
    pub(crate) fn new(lanes: usize) -> Self {
        Self { exists: if lanes >= 32 { u32::MAX } else { (1 << lanes) - 1 }, exited: 0, pending: vec![] }
    }

    /// Records that a lane arrives at an operation. Lanes that the block does not have are ignored.
    pub(crate) fn arrive(&mut self, lane: u32, operation: PendingOperation) -> Arrival {
        let PendingOperation { op, mask, site, chain, .. } = operation;
        let dead = mask & self.exited;
        if dead != 0 {
            return Arrival::Exited(dead.trailing_zeros());
        }
        let same = |m: &PendingOperation| {
            m.mask == mask
                && same_operation(m.op, op)
                && same_site(m.site, site)
                && may_be_same(m.chain, chain)
        };
        let index = match self.pending.iter().position(same) {
            Some(index) => index,
            None => {
                let waits_for_us = |m: &&PendingOperation| m.mask >> lane & 1 != 0 && m.arrived & mask != 0;
                if let Some(other) = self.pending.iter().find(waits_for_us) {
                    return Arrival::Mismatch((other.arrived & mask).trailing_zeros());
                }
                self.pending.push(operation);
                self.pending.len() - 1
            }
        };
        let operation = &mut self.pending[index];
        operation.arrived |= 1 << lane;
        if operation.arrived != mask & self.exists {
            return Arrival::Waits;
        }
        Arrival::Complete(self.pending.swap_remove(index).arrived)
    }

    /// Records that a lane ends; returns a lane that waits for it.
    pub(crate) fn exit(&mut self, lane: u32) -> Option<u32> {
        self.exited |= 1 << lane;
        self.pending.iter().find(|m| m.mask >> lane & 1 != 0).map(|m| m.arrived.trailing_zeros())
    }
}

/// True if two lanes call the same kind of operation; operands such as lane numbers may differ.
fn same_operation(a: WarpOp, b: WarpOp) -> bool {
    match (a, b) {
        (WarpOp::Reduce(a), WarpOp::Reduce(b)) => a == b,
        _ => std::mem::discriminant(&a) == std::mem::discriminant(&b),
    }
}

/// The segment width of a shuffle.
pub(crate) fn width(op: WarpOp) -> Option<u32> {
    match op {
        WarpOp::ShuffleIdx { width, .. }
        | WarpOp::ShuffleUp { width, .. }
        | WarpOp::ShuffleDown { width, .. }
        | WarpOp::ShuffleXor { width, .. } => Some(width),
        _ => None,
    }
}

/// The lane that a shuffle reads, and the flag that comes with it: `shfl.sync` in the PTX manual.
fn source(op: WarpOp, lane: u32) -> Option<(u32, bool)> {
    let width = width(op)?;
    let first = lane & !(width - 1);
    let last = first + width - 1;
    let (source, in_range) = match op {
        WarpOp::ShuffleIdx { lane: of, .. } => (first | (of & (width - 1)), true),
        WarpOp::ShuffleUp { delta, .. } => (lane.wrapping_sub(delta & 31), lane >= first + (delta & 31)),
        WarpOp::ShuffleDown { delta, .. } => (lane + (delta & 31), lane + (delta & 31) <= last),
        // The lower bound of the segment is not checked.
        WarpOp::ShuffleXor { bits, .. } => (lane ^ (bits & 31), lane ^ (bits & 31) <= last),
        _ => return None,
    };
    Some(if in_range { (source, true) } else { (lane, false) })
}

/// Returns the result for one lane. `values` holds the operands of the lanes in `lanes`.
///
/// # Errors
/// The lane that a shuffle reads, if it is not one of `lanes`.
pub(crate) fn result(
    op: WarpOp,
    mask: u32,
    lanes: u32,
    values: &[u64; 32],
    lane: u32,
) -> Result<WarpResult, u32> {
    let each = || (0..32).filter(|l| lanes >> l & 1 != 0);
    let own = values[lane as usize];
    let those = |f: &dyn Fn(u64) -> bool| each().filter(|&l| f(values[l])).fold(0u32, |m, l| m | 1 << l);
    let value = |value: u32| WarpResult { value: value.into(), flag: false };
    let flag = |flag| WarpResult { value: 0, flag };
    Ok(match op {
        WarpOp::Sync => WarpResult::default(),
        WarpOp::Ballot => value(those(&|v| v != 0)),
        WarpOp::Any => flag(those(&|v| v != 0) != 0),
        WarpOp::All => flag(those(&|v| v != 0) == lanes),
        WarpOp::MatchAny => value(those(&|v| v == own)),
        WarpOp::MatchAll if those(&|v| v == own) == lanes => WarpResult { value: mask.into(), flag: true },
        WarpOp::MatchAll => WarpResult::default(),
        WarpOp::Reduce(op) => {
            let of = |f: &dyn Fn(u32, u32) -> u32| each().map(|l| values[l] as u32).reduce(f).unwrap_or(0);
            value(match op {
                ReduceOp::AddU32 => of(&u32::wrapping_add),
                ReduceOp::MinU32 => of(&u32::min),
                ReduceOp::MaxU32 => of(&u32::max),
                ReduceOp::MinI32 => of(&|a, b| (a as i32).min(b as i32) as u32),
                ReduceOp::MaxI32 => of(&|a, b| (a as i32).max(b as i32) as u32),
                ReduceOp::And => of(&|a, b| a & b),
                ReduceOp::Or => of(&|a, b| a | b),
                ReduceOp::Xor => of(&|a, b| a ^ b),
            })
        }
        _ => {
            let Some((from, flag)) = source(op, lane) else { return Ok(WarpResult::default()) };
            if lanes >> from & 1 == 0 {
                return Err(from);
            }
            WarpResult { value: values[from as usize], flag }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_read_what_the_manual_says() {
        let up = |delta| WarpOp::ShuffleUp { delta, width: 8 };
        assert_eq!(source(up(3), 12), Some((9, true)));
        assert_eq!(source(up(5), 12), Some((12, false)));
        let down = |delta| WarpOp::ShuffleDown { delta, width: 8 };
        assert_eq!((source(down(3), 12), source(down(4), 12)), (Some((15, true)), Some((12, false))));
        let xor = |bits| WarpOp::ShuffleXor { bits, width: 8 };
        assert_eq!((source(xor(8), 12), source(xor(8), 4)), (Some((4, true)), Some((4, false))));
        assert_eq!(source(WarpOp::ShuffleIdx { lane: 11, width: 8 }, 20), Some((19, true)));
    }

    #[test]
    fn meetings_need_the_same_mask_and_all_lanes() {
        let site = std::panic::Location::caller();
        let operation = |mask| PendingOperation { op: WarpOp::Ballot, mask, site, chain: 0, arrived: 0 };
        let mut warp = Warp::new(20);
        assert_eq!(warp.arrive(0, operation(0b11)), Arrival::Waits);
        assert_eq!(warp.arrive(1, operation(0b11)), Arrival::Complete(0b11));
        assert_eq!(warp.arrive(0, operation(0b11)), Arrival::Waits);
        assert_eq!(warp.arrive(1, operation(0b110)), Arrival::Waits, "may come to 0b11 later");
        assert_eq!(warp.arrive(2, operation(0b111)), Arrival::Mismatch(1));
        assert_eq!(warp.exit(2), Some(1));
        let mut warp = Warp::new(2);
        assert_eq!(warp.arrive(1, operation(u32::MAX)), Arrival::Waits);
        assert_eq!(warp.arrive(0, operation(u32::MAX)), Arrival::Complete(3));
        warp.exit(0);
        assert_eq!(warp.arrive(1, operation(3)), Arrival::Exited(0));
    }
}
