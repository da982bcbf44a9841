//! The greatest item of an array and its index, as a key on the device.
//!
//! Any number of items below 2^32 - 1. The input is read once. Among equal items the one of the lowest index wins, so the
//! result has the same bits on every run and on the CPU.

use example_op_kernels::example_op::{ExampleOpInput, TILE, example_op_finish, example_op_tiles, key};
use kauri::device::{Buffer, Layout, Region, Stream, Workspace};
use kauri::{Error, Result};

/// The temporary memory of a call.
struct Plan {
    /// The key of each tile.
    tile_keys: Region<u64>,
}

impl Plan {
    fn new(layout: &mut Layout, len: usize) -> Self {
        Self { tile_keys: layout.reserve(len.div_ceil(TILE)) }
    }
}

/// Returns the bytes of temporary memory of a call for `len` items.
pub fn plan(len: usize) -> u64 {
    let mut layout = Layout::new();
    Plan::new(&mut layout, len);
    layout.bytes()
}

/// Writes the key of the greatest item to `output`, which has one entry; [`best`] decodes it. The call enqueues its work and
/// returns.
///
/// # Errors
/// [`Error::TooManyItems`], [`Error::Shape`] unless the output has one entry, [`Error::WrongDevice`],
/// [`Error::OutOfMemory`], and errors of the driver.
pub fn example_op(
    stream: &Stream,
    workspace: &mut Workspace,
    items: &Buffer<u32>,
    output: &mut Buffer<u64>,
) -> Result<()> {
    check_len(items.len())?;
    items.check_device(stream)?;
    output.check(stream, "items of the output", 1)?;
    let mut layout = Layout::new();
    let plan = Plan::new(&mut layout, items.len());
    let temp = workspace.carve(stream, &layout, "example_op")?;
    let tile_keys = temp.view(plan.tile_keys);
    let input = ExampleOpInput { items: items.slice(), tile_items: TILE as u32 };
    // SAFETY: there is a key for each tile. The borrows keep the buffers apart, and buffers wait for the device before they are
    // freed.
    unsafe {
        if !tile_keys.is_empty() {
            stream.launch::<example_op_tiles>(tile_keys.len() as u64, (input, tile_keys))?;
        }
        stream.launch::<example_op_finish>(1, (tile_keys.read_only(), output.slice_mut()))
    }
}

/// Returns the key of the greatest item, computed on the CPU: the twin of [`example_op`], with the same bits.
///
/// # Errors
/// [`Error::TooManyItems`].
pub fn example_op_on_cpu(items: &[u32]) -> Result<u64> {
    check_len(items.len())?;
    Ok(items.iter().zip(0..).map(|(&item, index)| key(item, index)).max().unwrap_or(0))
}

/// Returns the greatest item and its index from a key; `None` for the key of no items.
pub fn best(key: u64) -> Option<(u32, u32)> {
    (key != 0).then_some(((key >> 32) as u32, !(key as u32)))
}

/// Checks that 32 bits number the items, with one number to spare.
fn check_len(len: usize) -> Result<()> {
    let max = u32::MAX as usize;
    if len < max {
        return Ok(());
    }
    Err(Error::TooManyItems { what: "items", count: len as u64, max: max as u64 - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_items_are_refused() {
        assert!(check_len(u32::MAX as usize - 1).is_ok());
        let error = check_len(u32::MAX as usize).unwrap_err();
        assert!(matches!(error, Error::TooManyItems { max: 0xFFFF_FFFE, .. }), "{error}");
    }
}
