//! Limits of memory.

use std::path::PathBuf;

/// Limits of memory for [`Terrain::read`](super::Terrain::read).
///
/// ```
/// use kauri::terrain::TerrainOptions;
/// let options = TerrainOptions::default().host_bytes(16 << 30).device_bytes(4 << 30).folder("/scratch");
/// assert_eq!(options.device_bytes, Some(4 << 30));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerrainOptions {
    /// Host memory for points; more are written to a temporary file. By default half of the free memory.
    pub host_bytes: Option<u64>,
    /// Memory of the device for a window. By default half of what is free; on the CPU half of `host_bytes`.
    pub device_bytes: Option<u64>,
    /// Folder of the temporary file. By default the system's.
    pub folder: Option<PathBuf>,
}

impl TerrainOptions {
    setters! {
        /// Sets the host memory for points.
        host_bytes: u64 = Some(host_bytes);

        /// Sets the memory of the device for a window.
        device_bytes: u64 = Some(device_bytes);

        /// Sets the folder of the temporary file.
        folder: impl Into<PathBuf> = Some(folder.into());
    }
}
