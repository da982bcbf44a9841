//! Address spaces of pointers.

use crate::sys;

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSpace {
    /// Device memory.
    Global,
    /// The block's shared memory.
    Shared,
}

/// True if the generic pointer is into that space.
#[inline(always)]
pub fn is_in_address_space<T>(pointer: *const T, space: AddressSpace) -> bool {
    match space {
        AddressSpace::Global => sys::is_global(pointer.cast()),
        AddressSpace::Shared => sys::is_shared(pointer.cast()),
    }
}
