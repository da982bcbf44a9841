//! Lists the GPUs of this machine, or says why there is none.

use cuda_lazy::driver;
use std::ffi::CStr;

fn main() {
    let mut count = 0;
    // SAFETY: no pointers, and one integer.
    let code = unsafe { [driver::cuInit(0), driver::cuDeviceGetCount(&mut count)] };
    if code != [0, 0] {
        println!("no GPU: code {}, {:?}", code[0], cuda_lazy::status());
        return;
    }
    for ordinal in 0..count {
        let (mut device, mut name) = (0, [0; 256]);
        // SAFETY: an integer, and a buffer with its length.
        let code = unsafe {
            [
                driver::cuDeviceGet(&mut device, ordinal),
                driver::cuDeviceGetName(name.as_mut_ptr(), 256, device),
            ]
        };
        // SAFETY: the driver ends the name with a zero, and the buffer had zeros before.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        println!("{ordinal}: {} {code:?}", name.to_string_lossy());
    }
}
