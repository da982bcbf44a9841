//! Trampolines for AArch64, AAPCS64 calling convention.

use core::arch::global_asm;

/// Defines the symbol `$name`: a jump through its slot, or to the first call while the slot is empty.
///
/// x16 is free between a call and the callee's first instruction; so is x15, which unlike x16 and x17 also
/// survives a long-branch veneer of the linker. `ldar` pairs with the release store that fills the slot.
macro_rules! trampoline {
    ($name:ident) => {
        core::arch::global_asm!(
            concat!(".pushsection .text.", stringify!($name), ",\"ax\",%progbits"),
            ".p2align 2",
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ",%function"),
            concat!(stringify!($name), ":"),
            "adrp x16, {slots} + {offset}",
            "add x16, x16, :lo12:{slots} + {offset}",
            "ldar x16, [x16]",
            "cbz x16, 2f",
            "br x16",
            "2:",
            "mov w15, #{index}",
            "b kauri_cuda_first_call",
            concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
            ".popsection",
            slots = sym $crate::trampolines::table::SLOTS,
            offset = const $crate::trampolines::table::Symbol::$name as usize * 8,
            index = const $crate::trampolines::table::Symbol::$name as usize,
        );
    };
}

// Entered with the symbol's index in x15 and everything else as the caller of `cuX` left it. Saves all that
// may carry an argument: x0 to x7, x8 (address of a large result) and the eight vector registers, besides
// frame and link register. The stack is a multiple of 16 here and stays one.
global_asm!(
    ".pushsection .text.kauri_cuda_first_call,\"ax\",%progbits",
    ".p2align 2",
    ".globl kauri_cuda_first_call",
    ".hidden kauri_cuda_first_call",
    ".type kauri_cuda_first_call,%function",
    "kauri_cuda_first_call:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-224]!",
    ".cfi_def_cfa_offset 224",
    ".cfi_offset x29, -224",
    ".cfi_offset x30, -216",
    "mov x29, sp",
    "stp x0, x1, [sp, #16]",
    "stp x2, x3, [sp, #32]",
    "stp x4, x5, [sp, #48]",
    "stp x6, x7, [sp, #64]",
    "str x8, [sp, #80]",
    "stp q0, q1, [sp, #96]",
    "stp q2, q3, [sp, #128]",
    "stp q4, q5, [sp, #160]",
    "stp q6, q7, [sp, #192]",
    "mov x0, x15",
    "bl {resolve}",
    "mov x16, x0",
    "ldp x0, x1, [sp, #16]",
    "ldp x2, x3, [sp, #32]",
    "ldp x4, x5, [sp, #48]",
    "ldp x6, x7, [sp, #64]",
    "ldr x8, [sp, #80]",
    "ldp q0, q1, [sp, #96]",
    "ldp q2, q3, [sp, #128]",
    "ldp q4, q5, [sp, #160]",
    "ldp q6, q7, [sp, #192]",
    "ldp x29, x30, [sp], #224",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "br x16",
    ".cfi_endproc",
    ".size kauri_cuda_first_call, . - kauri_cuda_first_call",
    ".popsection",
    resolve = sym crate::trampolines::table::resolve,
);
