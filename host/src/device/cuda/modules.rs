//! Loaded modules: one for each kernel of kauri, and one for each family that the user loaded.

use super::{CudaDriver, codes, raw};
use crate::device::driver::Launch;
use crate::device::images::{self, KernelId};
use crate::error::{Error, Result};
use crate::threads::lock;
use cuda_pack::Form;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The bytes for the log of the driver's compiler.
const LOG_BYTES: usize = 16 << 10;
/// The shared memory of a block without an explicit attribute.
const DEFAULT_SHARED_BYTES: usize = 48 << 10;

#[derive(Default)]
pub(super) struct Modules {
    families: RwLock<HashMap<&'static str, Family>>,
    /// Replaced modules; running work may still use them.
    replaced: Mutex<Vec<Handle>>,
}

/// The loaded modules of a family.
#[derive(Default)]
struct Family {
    /// The module that the user loaded. Its kernels replace kauri's.
    own: Option<Handle>,
    /// kauri's modules by kernel.
    kernels: HashMap<String, Handle>,
    /// Functions that were launched, by kernel.
    functions: HashMap<String, Handle>,
}

/// A module, a function or page-locked memory of the driver, usable from every thread.
#[derive(Clone, Copy)]
pub(super) struct Handle(pub(super) *mut c_void);
// SAFETY: the driver's handles are not tied to a thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Family {
    fn module(&self, name: &str) -> Option<Handle> {
        self.own.or_else(|| self.kernels.get(name).copied())
    }
}

impl Modules {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<&'static str, Family>> {
        self.families.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<&'static str, Family>> {
        self.families.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a family's PTX, and replaces the family's earlier module. The context is current.
    pub(super) fn load_family(&self, driver: &CudaDriver, family: &'static str, ptx: &str) -> Result<()> {
        let module = load(driver, family, ptx.into(), Form::Ptx)?;
        let mut families = self.write();
        let family = families.entry(family).or_default();
        family.functions.clear();
        lock(&self.replaced).extend(family.own.replace(module));
        Ok(())
    }

    /// Loads a kernel of this build: its machine code, or its PTX if there is none that the driver takes. No lock is held while the
    /// driver compiles. The context is current.
    pub(super) fn load_kernel(&self, driver: &CudaDriver, kernel: KernelId<'_>) -> Result<()> {
        let _span = tracing::debug_span!("load_kernel", kernel.name).entered();
        let images = images::find(kernel, driver.info.capability)?;
        let loaded = images.machine_code.and_then(|code| {
            let loaded = code.read().and_then(|code| load(driver, kernel.family, code, Form::MachineCode));
            loaded.inspect_err(|error| images::warn_once(&format!("PTX replaces machine code: {error}"))).ok()
        });
        let module = match loaded {
            Some(module) => module,
            None => load(driver, kernel.family, images.ptx.read()?, Form::Ptx)?,
        };
        let old = self.write().entry(kernel.family).or_default().kernels.insert(kernel.name.into(), module);
        lock(&self.replaced).extend(old);
        Ok(())
    }

    /// Returns true if the kernel is loaded, by itself or with its family.
    pub(super) fn has(&self, kernel: KernelId<'_>) -> bool {
        self.read().get(kernel.family).is_some_and(|family| family.module(kernel.name).is_some())
    }

    /// Returns the function of a launch. The context is current.
    pub(super) fn function(&self, driver: &CudaDriver, launch: &Launch<'_>) -> Result<*mut c_void> {
        let find =
            |families: &HashMap<_, Family>| families.get(launch.family)?.functions.get(launch.name).copied();
        if let Some(function) = find(&self.read()) {
            return Ok(function.0);
        }
        let mut families = self.write();
        let missing = || Error::MissingKernel { kernel: launch.name.into(), family: launch.family };
        let family = families.get_mut(launch.family).ok_or_else(missing)?;
        let function = look_up(driver, family.module(launch.name).ok_or_else(missing)?, launch)?;
        family.functions.insert(launch.name.into(), function);
        Ok(function.0)
    }

    /// Unloads all modules. The context is current, and nothing is running.
    pub(super) fn unload(&self) {
        let families = std::mem::take(&mut *self.write());
        let replaced = std::mem::take(&mut *lock(&self.replaced));
        let modules =
            families.into_values().flat_map(|family| family.kernels.into_values().chain(family.own));
        for handle in modules.chain(replaced) {
            // SAFETY: loaded once, unloaded once.
            unsafe { raw::cuModuleUnload(handle.0) };
        }
    }
}

/// Returns true if an image has this text.
pub(super) fn contains(image: &[u8], text: &str) -> bool {
    image.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Loads an image as a module.
fn load(driver: &CudaDriver, family: &'static str, mut image: Vec<u8>, form: Form) -> Result<Handle> {
    let refused = |code: i32, log: String| {
        let known = codes::lookup(code);
        Error::BadModule { family, code, name: known.name, advice: known.advice, log }
    };
    // Machine code has its line information already.
    let has_lines = form == Form::Ptx && contains(&image, ".loc");
    if form == Form::Ptx {
        if image.contains(&0) {
            return Err(refused(218, "the PTX text holds a zero byte".into()));
        }
        image.push(0);
    }
    let mut log = vec![0u8; LOG_BYTES];
    let mut options =
        [raw::JIT_ERROR_LOG_BUFFER, raw::JIT_ERROR_LOG_BUFFER_BYTES, raw::JIT_GENERATE_LINE_INFO];
    // The driver takes numbers in place of pointers.
    let number = std::ptr::without_provenance_mut::<c_void>;
    let mut values = [log.as_mut_ptr().cast::<c_void>(), number(LOG_BYTES), number(usize::from(has_lines))];
    let num_options = if form == Form::Ptx { options.len() } else { 0 };
    let mut module = null_mut();
    // SAFETY: a zero-terminated text or machine code; each option has a value of the type that it takes.
    let code = unsafe {
        raw::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            num_options as u32,
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
    driver.fault.attach(module, &image)?;
    Ok(Handle(module))
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
    // Set once, for all later launches.
    if launch.max_shared_bytes > DEFAULT_SHARED_BYTES {
        // SAFETY: a function of that module.
        let code = unsafe {
            raw::cuFuncSetAttribute(function, raw::MAX_DYNAMIC_SHARED_SIZE, launch.max_shared_bytes as i32)
        };
        driver.check("cuFuncSetAttribute", code)?;
    }
    Ok(Handle(function))
}
