//! Meanings of the CUDA driver's result codes, with advice, up to CUDA 13.
//!
//! The driver's own texts need a loaded driver and give no advice.

/// A result code of the driver.
#[derive(Debug)]
pub(crate) struct Code {
    /// The number.
    pub(crate) code: i32,
    /// The driver's name.
    pub(crate) name: &'static str,
    /// The meaning, as a short clause.
    pub(crate) meaning: &'static str,
    /// The advice to the user, as a short clause.
    pub(crate) advice: &'static str,
}

/// Returns the entry of a code. Codes that are not in the table, from a newer driver, get a general entry with number
/// -1: report the number that the driver returned, not the entry's.
pub(crate) fn lookup(code: i32) -> &'static Code {
    CODES.binary_search_by_key(&code, |entry| entry.code).map_or(&UNLISTED, |i| &CODES[i])
}

/// Returns true if the code means that the context is lost: every later call in it fails, and its memory is gone.
///
/// These are errors of a running kernel or of the hardware, after which the driver requires a new process, and a
/// destroyed context or driver. Code 999, unknown, is not one of them: `cuInit` also returns it where another try or a
/// reload of the driver helps. Neither is 708, an active primary context, which only rejects a change of that context's
/// flags.
pub(crate) fn is_sticky(code: i32) -> bool {
    matches!(code, 4 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810 | 911)
}

static UNLISTED: Code = Code {
    code: -1,
    name: "unlisted CUDA error",
    meaning: "the driver returned a code that this version does not know",
    advice: "look the number up under CUresult in the documentation of CUDA's driver API",
};

/// Advice for errors that only a wrong call can cause.
const BUG: &str = "this is a bug in the program or in kauri: please report it";
/// Advice for a faulty kernel. The context is lost.
const KERNEL: &str = "restart the program; `compute-sanitizer` finds the faulty access; if the kernel is \
     kauri's, please report it";
/// Advice for failed hardware. The context is lost.
const HARDWARE: &str = "restart the program; look for Xid messages in `dmesg` and check `nvidia-smi -q`; \
     if it recurs, the device may be failing";
/// Advice for errors of MPS.
const MPS: &str = "check the MPS control daemon and its log (CUDA_MPS_LOG_DIRECTORY), or run without MPS";
/// Advice for a stream that is being captured into a graph.
const CAPTURE: &str = "end the capture or call this outside of it; run once before capturing, so that memory \
     is allocated and kernels are loaded";
/// Advice for objects shared with OpenGL, Direct3D or Vulkan, and textures.
const GRAPHICS: &str = "kauri does not use this: look at the program's own graphics or texture code";

macro_rules! codes {
    ($($name:ident = $code:literal, $meaning:expr, $advice:expr;)*) => {
        /// All known codes, in ascending order.
        static CODES: &[Code] = &[
            $(Code { code: $code, name: stringify!($name), meaning: $meaning, advice: $advice }),*
        ];
    };
}

codes! {
    CUDA_SUCCESS = 0, "no error", "nothing is to be done";
    CUDA_ERROR_INVALID_VALUE = 1, "an argument is out of its range", BUG;
    CUDA_ERROR_OUT_OF_MEMORY = 2, "the device's memory is exhausted",
        "use smaller batches, free buffers, or look in `nvidia-smi` for other programs on the device";
    CUDA_ERROR_NOT_INITIALIZED = 3, "the driver was not initialized", BUG;
    CUDA_ERROR_DEINITIALIZED = 4, "the driver is shutting down",
        "do not use the device while the process ends; drop its objects before `main` returns";
    CUDA_ERROR_PROFILER_DISABLED = 5, "the profiler is not active", "start the program under a profiler";
    CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6, "the profiler was not initialized",
        "start the program under a profiler";
    CUDA_ERROR_PROFILER_ALREADY_STARTED = 7, "the profiler already runs", "nothing is to be done";
    CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8, "the profiler does not run", "nothing is to be done";
    CUDA_ERROR_STUB_LIBRARY = 34, "the library found is the toolkit's stub, made for linking, not a driver",
        "take the toolkit's `stubs` folder out of LD_LIBRARY_PATH and KAURI_LIBCUDA, and install the driver";
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36, "the driver is too old for this call",
        "update NVIDIA's driver";
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46, "the device is busy or closed to this program",
        "look in `nvidia-smi` for other programs and for the compute mode, then try again";
    CUDA_ERROR_NO_DEVICE = 100, "there is no CUDA device",
        "check `nvidia-smi` and CUDA_VISIBLE_DEVICES; a container has to be started with its GPUs";
    CUDA_ERROR_INVALID_DEVICE = 101, "there is no device of this number",
        "count the devices in `nvidia-smi -L`; CUDA_VISIBLE_DEVICES hides and renumbers them";
    CUDA_ERROR_DEVICE_NOT_LICENSED = 102, "the virtual GPU has no license",
        "check the vGPU license (`nvidia-smi -q`)";
    CUDA_ERROR_INVALID_IMAGE = 200, "the kernels are not in a form that the driver reads",
        "rebuild the PTX; a file may be cut short";
    CUDA_ERROR_INVALID_CONTEXT = 201, "no context, or one that is gone, is current on this thread",
        "do not destroy or reset contexts that kauri uses";
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202, "the context already is current", BUG;
    CUDA_ERROR_MAP_FAILED = 205, "memory could not be mapped",
        "check the limits on locked and mapped memory (`ulimit`)";
    CUDA_ERROR_UNMAP_FAILED = 206, "memory could not be unmapped", BUG;
    CUDA_ERROR_ARRAY_IS_MAPPED = 207, "the array is mapped", GRAPHICS;
    CUDA_ERROR_ALREADY_MAPPED = 208, "the resource already is mapped", GRAPHICS;
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209, "the module has no kernels for this device",
        "build the PTX for this device's compute capability or an older one";
    CUDA_ERROR_ALREADY_ACQUIRED = 210, "the resource already is acquired", GRAPHICS;
    CUDA_ERROR_NOT_MAPPED = 211, "the resource is not mapped", GRAPHICS;
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212, "the resource is not mapped as an array", GRAPHICS;
    CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213, "the resource is not mapped as a pointer", GRAPHICS;
    CUDA_ERROR_ECC_UNCORRECTABLE = 214, "the device's memory had an error that ECC could not correct",
        HARDWARE;
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215, "the device does not have this limit", BUG;
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216, "another thread uses the context",
        "do not make kauri's context exclusive to a thread";
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217, "these devices cannot reach each other's memory",
        "check `nvidia-smi topo -p2p r`, or copy through the host";
    CUDA_ERROR_INVALID_PTX = 218, "the driver's compiler refuses the PTX",
        "read the compiler's log; rebuild the PTX for this device's compute capability or an older one";
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219, "the graphics context is not usable", GRAPHICS;
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220, "NVLink had an error that could not be corrected", HARDWARE;
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221, "the driver's PTX compiler library is missing",
        "install libnvidia-ptxjitcompiler of the same version as the driver; in a container, let it have the \
         whole driver (NVIDIA_DRIVER_CAPABILITIES=compute,utility)";
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222, "the PTX is of a version that this driver does not know",
        "update NVIDIA's driver, or build the PTX for an older PTX version";
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223, "compiling PTX is switched off",
        "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT";
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224, "the device does not have this kind of affinity", BUG;
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225, "a kernel waits for kernels that it launched",
        "rebuild the PTX without that";
    CUDA_ERROR_CONTAINED = 226, "the device stopped the work after an access over NVLink or a hardware error",
        HARDWARE;
    CUDA_ERROR_INVALID_SOURCE = 300, "the kernels' source is not valid",
        "rebuild the PTX and read the compiler's log";
    CUDA_ERROR_FILE_NOT_FOUND = 301, "a file is missing", "check the path of the module";
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, "a library of the driver lacks a symbol",
        "reinstall the driver: its libraries are of different versions";
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303, "a library of the driver did not start",
        "reinstall the driver; in a container, check that it sees the host's driver";
    CUDA_ERROR_OPERATING_SYSTEM = 304, "a call to the operating system failed",
        "check permissions on /dev/nvidia*, the memory limits (`ulimit`), and `dmesg`";
    CUDA_ERROR_INVALID_HANDLE = 400, "a stream, event, module or similar is not valid",
        "check streams and events that were passed in: they must be alive and of this device";
    CUDA_ERROR_ILLEGAL_STATE = 401, "an object is not in the state that the call needs", BUG;
    CUDA_ERROR_LOSSY_QUERY = 402, "the answer would leave out something that matters", "update kauri";
    CUDA_ERROR_NOT_FOUND = 500, "a kernel, variable or function of the driver has not been found",
        "rebuild the PTX; if a function of the driver is missing, update NVIDIA's driver";
    CUDA_ERROR_NOT_READY = 600, "work on the device is not done yet", "wait for it";
    CUDA_ERROR_ILLEGAL_ADDRESS = 700, "a kernel accessed memory that is not its own", KERNEL;
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701, "the launch needs more registers than there are",
        "use a smaller block, or rebuild the PTX for this device";
    CUDA_ERROR_LAUNCH_TIMEOUT = 702, "a kernel ran longer than the display's watchdog allows",
        "restart the program with smaller batches, or on a device that drives no display";
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703, "the launch uses an incompatible texturing mode",
        GRAPHICS;
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704, "access to the other device is already enabled",
        "nothing is to be done";
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705, "access to the other device is not enabled", BUG;
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708, "the device's primary context is already in use",
        "set its flags before anything uses the device";
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, "the context was destroyed or reset",
        "do not destroy or reset contexts that kauri uses; recreate the device and its objects";
    CUDA_ERROR_ASSERT = 710, "an assertion in a kernel failed", KERNEL;
    CUDA_ERROR_TOO_MANY_PEERS = 711, "the device has too many peers",
        "use fewer devices together";
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, "the host memory is already pinned",
        "pin a range once only, and not one that overlaps it";
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713, "the host memory is not pinned", BUG;
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714, "a kernel's stack overflowed or was damaged", KERNEL;
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715, "a kernel ran an illegal instruction, as a trap or a panic does",
        KERNEL;
    CUDA_ERROR_MISALIGNED_ADDRESS = 716, "a kernel accessed an address that is not aligned", KERNEL;
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717, "a kernel used an address of the wrong address space", KERNEL;
    CUDA_ERROR_INVALID_PC = 718, "a kernel jumped out of its code", KERNEL;
    CUDA_ERROR_LAUNCH_FAILED = 719, "a kernel failed while running", KERNEL;
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720, "a cooperative launch has more blocks than fit at once",
        "use fewer blocks; other programs may hold a part of the device";
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721, "a kernel ended without freeing its tensor memory", KERNEL;
    CUDA_ERROR_NOT_PERMITTED = 800, "this is not permitted",
        "check the rights of the user and the container; profiling counters need an administrator";
    CUDA_ERROR_NOT_SUPPORTED = 801, "this device or system does not support the operation",
        "update NVIDIA's driver; virtual GPUs, WSL and older devices lack some features";
    CUDA_ERROR_SYSTEM_NOT_READY = 802, "the system is not ready for CUDA",
        "on machines with NVSwitch, start nvidia-fabricmanager of the driver's version";
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803, "the driver's library and its kernel module do not match",
        "restart the machine after a driver update; in a container, take CUDA's compat folder away";
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, "CUDA's compat library is not for this device",
        "take CUDA's compat folder off the library path, or update NVIDIA's driver";
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805, "the MPS daemon cannot be reached", MPS;
    CUDA_ERROR_MPS_RPC_FAILURE = 806, "the MPS server did not answer a call", MPS;
    CUDA_ERROR_MPS_SERVER_NOT_READY = 807, "the MPS server takes no clients now", MPS;
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808, "the MPS server has as many clients as it can", MPS;
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809, "the device has as many connections as it can", MPS;
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810, "the MPS server ended this client",
        "restart the program, and look in the MPS log for the reason";
    CUDA_ERROR_CDP_NOT_SUPPORTED = 811, "kernels that launch kernels are not supported here", MPS;
    CUDA_ERROR_CDP_VERSION_MISMATCH = 812, "modules launch kernels from kernels in incompatible ways",
        "build all modules with one toolkit";
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, "this is not possible while the stream is captured", CAPTURE;
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901, "an earlier error ended the capture", CAPTURE;
    CUDA_ERROR_STREAM_CAPTURE_MERGE = 902, "this would join two captures", CAPTURE;
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903, "the capture began on another stream", CAPTURE;
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904, "a captured stream was not joined to the first one",
        "let the first stream wait for the others before the capture ends";
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905, "this would depend on work outside of the capture", CAPTURE;
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906, "the default stream would have to wait for the capture",
        CAPTURE;
    CUDA_ERROR_CAPTURED_EVENT = 907, "the event belongs to a capture", CAPTURE;
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, "the capture began on another thread",
        "end the capture on the thread that began it";
    CUDA_ERROR_TIMEOUT = 909, "the wait took longer than allowed", "try again, or allow more time";
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910, "the graph has changed too much to be updated",
        "instantiate the graph again";
    CUDA_ERROR_EXTERNAL_DEVICE = 911, "a device outside of CUDA reported an error", HARDWARE;
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912, "the launch's cluster of blocks is too large for the device",
        "use smaller clusters";
    CUDA_ERROR_FUNCTION_NOT_LOADED = 913, "the kernel is not loaded yet",
        "load it first, or set CUDA_MODULE_LOADING=EAGER";
    CUDA_ERROR_INVALID_RESOURCE_TYPE = 914, "a resource is not of the right type", BUG;
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915, "the resources are too few or do not fit", BUG;
    CUDA_ERROR_KEY_ROTATION = 916, "the change of keys of confidential computing failed",
        "restart the program; if it recurs, check the confidential-computing setup";
    CUDA_ERROR_STREAM_DETACHED = 917, "the stream's green context is gone",
        "keep the green context as long as its streams";
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE = 918, "the graph could not be captured again", "capture a new graph";
    CUDA_ERROR_UNKNOWN = 999, "the driver failed for an unknown reason",
        "look for NVIDIA's messages in `dmesg`; after a suspend or an update, reload nvidia_uvm or restart";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_names_are_unique() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
        let mut names: Vec<_> = CODES.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(CODES.iter().all(|entry| (0..=999).contains(&entry.code)));
    }

    #[test]
    fn texts_can_follow_a_colon() {
        for entry in CODES.iter().chain([&UNLISTED]) {
            for text in [entry.meaning, entry.advice] {
                assert!(!text.is_empty() && !text.ends_with(['.', ' ']) && !text.contains("  "), "{entry:?}");
                assert!(!text.starts_with([' ', '.']), "{entry:?}");
            }
        }
        assert!(CODES.iter().skip(1).all(|entry| entry.name.starts_with("CUDA_ERROR_")));
    }

    #[test]
    fn every_code_finds_itself() {
        for entry in CODES {
            assert_eq!(lookup(entry.code).name, entry.name);
        }
        assert_eq!(lookup(0).name, "CUDA_SUCCESS");
        assert_eq!(lookup(222).name, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
        assert_eq!(lookup(999).name, "CUDA_ERROR_UNKNOWN");
    }

    #[test]
    fn codes_not_in_the_table_get_the_general_entry() {
        for code in [i32::MIN, -1, 9, 99, 203, 706, 998, 1000, i32::MAX] {
            assert_eq!(lookup(code).code, -1, "{code}");
        }
    }

    #[test]
    fn sticky_codes_are_known_and_the_harmless_ones_are_not_sticky() {
        let sticky: Vec<_> = (-1..1100).filter(|&code| is_sticky(code)).collect();
        assert_eq!(
            sticky,
            [4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911]
        );
        assert!(sticky.iter().all(|&code| lookup(code).code == code));
        for harmless in [0, 1, 2, 100, 209, 218, 222, 500, 600, 701, 704, 708, 720, 900, 999] {
            assert!(!is_sticky(harmless), "{harmless}");
        }
    }
}
