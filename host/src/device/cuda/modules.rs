//! Loaded modules, one per kernel family, with the functions looked up so far.

use super::{CudaDriver, codes, raw};
use crate::device::driver::Launch;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes for the log of the driver's compiler.
const LOG_BYTES: usize = 16 << 10;
/// The shared memory of a block without an explicit attribute.
const DEFAULT_SHARED_BYTES: usize = 48 << 10;

#[derive(Default)]
pub(super) struct Modules {
    families: Mutex<HashMap<&'static str, Module>>,
    /// Replaced modules; running work may still use them.
    replaced: Mutex<Vec<Handle>>,
}

/// A module, a function or page-locked memory of the driver, usable from every thread.
#[derive(Clone, Copy)]
pub(super) struct Handle(pub(super) *mut c_void);
// SAFETY: the driver's handles are not tied to a thread.
unsafe impl Send for Handle {}

struct Module {
    handle: Handle,
    functions: HashMap<String, Handle>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere does not corrupt the handles.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Modules {
    /// Loads a family's PTX, and replaces the family's earlier module. The context is current.
    pub(super) fn load(&self, driver: &CudaDriver, family: &'static str, text: &str) -> Result<()> {
        let module = load(driver, family, text)?;
        let old = lock(&self.families).insert(family, module);
        lock(&self.replaced).extend(old.map(|m| m.handle));
        Ok(())
    }

    /// Returns true if the family is loaded.
    pub(super) fn has(&self, family: &str) -> bool {
        lock(&self.families).contains_key(family)
    }

    /// Returns the function of a launch. The context is current.
    pub(super) fn function(&self, driver: &CudaDriver, launch: &Launch<'_>) -> Result<*mut c_void> {
        let mut families = lock(&self.families);
        let missing = || Error::MissingKernel { kernel: launch.name.into(), family: launch.family };
        let module = families.get_mut(launch.family).ok_or_else(missing)?;
        if let Some(function) = module.functions.get(launch.name) {
            return Ok(function.0);
        }
        let function = look_up(driver, module.handle, launch)?;
        module.functions.insert(launch.name.into(), function);
        Ok(function.0)
    }

    /// Unloads all modules. The context is current, and nothing is running.
    pub(super) fn unload(&self) {
        let families = std::mem::take(&mut *lock(&self.families));
        let replaced = std::mem::take(&mut *lock(&self.replaced));
        for handle in families.into_values().map(|m| m.handle).chain(replaced) {
            // SAFETY: loaded once, unloaded once.
            unsafe { raw::cuModuleUnload(handle.0) };
        }
    }
}

fn load(driver: &CudaDriver, family: &'static str, text: &str) -> Result<Module> {
    let _span = tracing::debug_span!("load_module", family).entered();
    let refused = |code: i32, log: String| {
        let known = codes::lookup(code);
        Error::BadModule { family, code, name: known.name, advice: known.advice, log }
    };
    let Ok(image) = CString::new(text) else {
        return Err(refused(218, "the PTX text holds a zero byte".into()));
    };
    let mut log = vec![0u8; LOG_BYTES];
    let mut options =
        [raw::JIT_ERROR_LOG_BUFFER, raw::JIT_ERROR_LOG_BUFFER_BYTES, raw::JIT_GENERATE_LINE_INFO];
    // The driver takes numbers in place of pointers.
    let number = std::ptr::without_provenance_mut::<c_void>;
    let mut values = [log.as_mut_ptr().cast::<c_void>(), number(LOG_BYTES), number(1)];
    let mut module = null_mut();
    // SAFETY: a zero-terminated text; as many values as options, each what its option says.
    let code = unsafe {
        raw::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if codes::is_sticky(code) {
        driver.check("cuModuleLoadDataEx", code)?;
    }
    if code != raw::SUCCESS {
        let log = CStr::from_bytes_until_nul(&log).map(|l| l.to_string_lossy().trim().to_string());
        return Err(refused(code, log.unwrap_or_default()));
    }
    driver.fault.attach(module, text)?;
    Ok(Module { handle: Handle(module), functions: HashMap::new() })
}

fn look_up(driver: &CudaDriver, module: Handle, launch: &Launch<'_>) -> Result<Handle> {
    let missing = || Error::MissingKernel { kernel: launch.name.into(), family: launch.family };
    let name = CString::new(launch.name).map_err(|_| missing())?;
    let mut function = null_mut();
    // SAFETY: a loaded module and a zero-terminated name.
    match unsafe { raw::cuModuleGetFunction(&mut function, module.0, name.as_ptr()) } {
        raw::NOT_FOUND => return Err(missing()),
        code => driver.check("cuModuleGetFunction", code)?,
    }
    if launch.shared_bytes > DEFAULT_SHARED_BYTES {
        // SAFETY: a function of that module.
        let code = unsafe {
            raw::cuFuncSetAttribute(function, raw::MAX_DYNAMIC_SHARED_SIZE, launch.shared_bytes as i32)
        };
        driver.check("cuFuncSetAttribute", code)?;
    }
    Ok(Handle(function))
}
