//! The table of addresses that the trampolines jump to, and the resolver that fills it.

use cuda_lazy::{NO_DEVICE, NOT_FOUND};
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

macro_rules! define_table {
    ($($name:ident)*) => {
        /// A symbol's discriminant is its index in [`NAMES`] and [`SLOTS`].
        #[allow(non_camel_case_types, reason = "the driver's names")]
        #[derive(Clone, Copy)]
        pub(crate) enum Symbol { $($name),* }

        /// The names of all symbols that have a trampoline, sorted.
        pub(crate) static NAMES: &[&str] = &[$(stringify!($name)),*];

        /// Number of symbols.
        const COUNT: usize = [$(Symbol::$name),*].len();

        mod declared {
            unsafe extern "C" { $(pub(super) fn $name();)* }
        }

        // `#[used]` makes every program with this crate reference the table before any library is searched. The object
        // with the trampolines is therefore linked for every order of the libraries, even by a linker that reads them
        // once, from left to right.
        #[used]
        static TRAMPOLINES: [unsafe extern "C" fn(); COUNT] = [$(declared::$name),*];

        $(trampoline!($name);)*
    };
}

for_all_symbols!(define_table);

/// Jump target of each symbol's trampoline; null until the driver's function is found. Every stored address remains valid, because the
/// driver's library is never closed.
pub(crate) static SLOTS: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

// Never inlined, so that there is one copy of each: tests compare their addresses.
#[inline(never)]
extern "C" fn no_device() -> i32 {
    NO_DEVICE
}

#[inline(never)]
extern "C" fn not_found() -> i32 {
    NOT_FOUND
}

/// Finds the function behind the symbol with this index and fills its slot. Called by the assembly of the
/// first call.
pub(crate) extern "C" fn resolve(index: usize) -> *const c_void {
    // A panic must not unwind through the assembly. None is expected, and an error is better than an abort.
    catch_unwind(|| resolve_or_panic(index)).unwrap_or(no_device as *const c_void)
}

fn resolve_or_panic(index: usize) -> *const c_void {
    match cuda_lazy::address(NAMES[index]) {
        Ok(function) => {
            // Release: a thread that jumps to the address must also see the mapped and relocated library. Racing
            // threads store equal addresses.
            SLOTS[index].store(function.as_ptr(), Ordering::Release);
            function.as_ptr()
        }
        // The slot stays empty: while the library is being opened, a later call can find the function.
        Err(NOT_FOUND) => not_found as *const c_void,
        Err(_) => no_device as *const c_void,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(symbol: Symbol) -> &'static AtomicPtr<c_void> {
        &SLOTS[symbol as usize]
    }

    extern "C" fn sum_of_eleven(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
        i: u64,
        j: u64,
        k: u64,
    ) -> u64 {
        [a, b, c, d, e, f, g, h, i, j, k].iter().zip(1..).map(|(x, weight)| x * weight).sum()
    }

    #[test]
    fn names_are_sorted_and_unique() {
        assert_eq!(NAMES.len(), COUNT);
        assert!(NAMES.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(NAMES.iter().all(|name| name.starts_with("cu")));
    }

    #[test]
    fn a_trampoline_goes_through_its_own_slot() {
        let symbol = Symbol::cuGraphLaunch;
        slot(symbol).store(sum_of_eleven as *mut c_void, Ordering::Release);
        // SAFETY: the slot holds a function of this signature, and the trampoline passes everything on.
        let sum = unsafe {
            let call: extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64 =
                std::mem::transmute(TRAMPOLINES[symbol as usize]);
            call(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
        };
        assert_eq!(sum, (1..=11).map(|i| i * i).sum());
    }

    #[test]
    fn every_trampoline_has_its_own_address() {
        let mut addresses = TRAMPOLINES.map(|function| function as usize);
        addresses.sort_unstable();
        assert!(addresses.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn the_first_call_fills_the_slot_if_there_is_a_driver() {
        let symbol = Symbol::cuProfilerStop;
        assert!(slot(symbol).load(Ordering::Acquire).is_null());
        // SAFETY: the driver's function takes no arguments; without a context it does nothing.
        let call = || unsafe {
            let call: extern "C" fn() -> i32 = std::mem::transmute(TRAMPOLINES[symbol as usize]);
            call()
        };
        let first = call();
        let filled = slot(symbol).load(Ordering::Acquire);
        match cuda_lazy::address("cuProfilerStop") {
            Ok(function) => assert_eq!(filled, function.as_ptr()),
            Err(code) => assert_eq!((filled, first), (ptr::null_mut(), code)),
        }
        assert_eq!(call(), first);
    }

    #[test]
    fn the_two_answers_without_a_function() {
        assert_eq!((no_device(), not_found()), (100, 500));
    }

    #[test]
    fn an_index_out_of_range_does_not_unwind() {
        assert_eq!(resolve(COUNT), no_device as *const c_void);
    }
}
