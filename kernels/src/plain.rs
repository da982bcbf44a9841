//! Structs that host and device share.

/// Lets `#[repr(C)]` structs of numbers be copied between host and device bit by bit. Each is given with the types of its fields, in
/// order; one with padding does not compile.
macro_rules! plain {
    ($($Struct:ty { $($Field:ty),* })*) => {$(
        const _: () = {
            const fn plain_size<T: bytemuck::Pod>() -> usize {
                size_of::<T>()
            }
            assert!(size_of::<$Struct>() == plain_size::<()>() $(+ plain_size::<$Field>())*, "other fields, or padding");
        };
        // SAFETY: plain fields, and nothing beside them.
        unsafe impl cust_core::DeviceCopy for $Struct {}
        // SAFETY: as above.
        unsafe impl bytemuck::Zeroable for $Struct {}
        // SAFETY: as above.
        unsafe impl bytemuck::Pod for $Struct {}
    )*};
}
pub(crate) use plain;
