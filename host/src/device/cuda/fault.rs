//! The report of an out-of-bounds access by a kernel of a `checked` build.
//!
//! The kernel writes the report to page-locked host memory before it stops, because the context and all device memory
//! are lost then. Modules of other builds have no global for its address, and nothing is allocated.

use super::modules::{Handle, contains};
use super::raw;
use crate::error::{Error, Result};
use crate::threads::lock;
use cuda_std::mem::FaultRecord;
use cuda_std::sys::FAULT_WRITTEN;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

/// The global variable of checked modules that holds the record's address.
const GLOBAL_NAME: &str = "CUDA_STD_FAULT_RECORD";

/// The record of a device, allocated when a checked module is loaded.
#[derive(Default)]
pub(super) struct FaultReport {
    record: Mutex<Option<Handle>>,
}

impl FaultReport {
    /// Passes the address of the record to a module, if its image is of a checked build. The context is current.
    pub(super) fn attach(&self, module: *mut c_void, image: &[u8]) -> Result<()> {
        if !contains(image, GLOBAL_NAME) {
            return Ok(());
        }
        let name = CString::new(GLOBAL_NAME).expect("no zero byte in it");
        let (mut global, mut bytes) = (0u64, 0usize);
        // SAFETY: a loaded module; writes an address and a size.
        let code = unsafe { raw::cuModuleGetGlobal_v2(&mut global, &mut bytes, module, name.as_ptr()) };
        raw::check("cuModuleGetGlobal", code)?;
        let record = self.record()?;
        let mut address = 0u64;
        // SAFETY: the record is mapped memory; the global holds one address.
        unsafe {
            let code = raw::cuMemHostGetDevicePointer_v2(&mut address, record, 0);
            raw::check("cuMemHostGetDevicePointer", code)?;
            let code = raw::cuMemcpyHtoD_v2(global, (&raw const address).cast(), size_of::<u64>());
            raw::check("cuMemcpyHtoD", code)
        }
    }

    /// Returns the record, allocated and zeroed at the first call.
    fn record(&self) -> Result<*mut c_void> {
        let mut record = lock(&self.record);
        if let Some(Handle(record)) = *record {
            return Ok(record);
        }
        let mut pointer = null_mut();
        // SAFETY: writes one pointer, to memory of the requested size.
        unsafe {
            let code =
                raw::cuMemHostAlloc(&mut pointer, size_of::<FaultRecord>(), raw::HOST_ALLOC_PORTABLE_MAPPED);
            raw::check("cuMemHostAlloc", code)?;
            pointer.cast::<u8>().write_bytes(0, size_of::<FaultRecord>());
        }
        *record = Some(Handle(pointer));
        Ok(pointer)
    }

    /// Returns the report, if there is one.
    pub(super) fn read(&self) -> Option<Error> {
        let record = lock(&self.record).as_ref()?.0.cast::<FaultRecord>();
        // SAFETY: allocated by `record`, freed only with `self`; volatile, because the device wrote it.
        let record = unsafe { record.read_volatile() };
        if record.state != FAULT_WRITTEN {
            return None;
        }
        let name = &record.file[..record.file.len().min(record.file_len as usize)];
        Some(Error::KernelFault {
            file: String::from_utf8_lossy(name).into_owned(),
            line: record.line,
            block: record.block,
            thread: record.thread,
            index: record.index,
            len: record.len,
        })
    }

    /// Frees the record. The context is current, and no kernel is running.
    pub(super) fn release(&self) {
        if let Some(Handle(record)) = lock(&self.record).take() {
            // SAFETY: taken out, so freed once.
            unsafe { raw::cuMemFreeHost(record) };
        }
    }
}
