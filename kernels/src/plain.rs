//! Structs that host and device share.

/// Implements [`bytemuck::Pod`] and [`cust_core::DeviceCopy`] for `#[repr(C)]` structs of numbers. The caller lists the
/// types of the fields in order; a struct with padding does not compile.
macro_rules! plain {
    ($($Struct:ty { $($Field:ty),* })*) => {$(
        const _: () = {
            const fn plain_size<T: bytemuck::Pod>() -> usize {
                size_of::<T>()
            }
            assert!(size_of::<$Struct>() == plain_size::<()>() $(+ plain_size::<$Field>())*, "the listed field types do not match the struct, or it has padding");
        };
        // SAFETY: the fields are `Pod`, and the assertion above rules out padding.
        unsafe impl cust_core::DeviceCopy for $Struct {}
        // SAFETY: as above.
        unsafe impl bytemuck::Zeroable for $Struct {}
        // SAFETY: as above.
        unsafe impl bytemuck::Pod for $Struct {}
    )*};
}
pub(crate) use plain;
