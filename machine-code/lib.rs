//! Machine code of kauri's kernels for one GPU architecture, so that first calls load kernels instead of compiling them. The crate `kauri`
//! uses it; nothing here is for direct use.

/// The packs of kernels: one, or none in a build without it.
pub static PACKS: &[&[u8]] = &include!(concat!(env!("OUT_DIR"), "/packs.rs"));
