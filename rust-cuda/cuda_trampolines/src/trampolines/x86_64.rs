//! Trampolines for x86-64, System V calling convention.

use core::arch::global_asm;

/// Defines the symbol `$name`: a jump through its slot, or to the first call while the slot is empty.
///
/// r11 is free between a call and the callee's first instruction. A plain load is an acquire load on x86.
macro_rules! trampoline {
    ($name:ident) => {
        core::arch::global_asm!(
            concat!(".pushsection .text.", stringify!($name), ",\"ax\",%progbits"),
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ",%function"),
            concat!(stringify!($name), ":"),
            "mov r11, qword ptr [rip + {slots} + {offset}]",
            "test r11, r11",
            "jz 2f",
            "jmp r11",
            "2:",
            "mov r11d, {index}",
            "jmp kauri_cuda_first_call",
            concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
            ".popsection",
            slots = sym $crate::trampolines::table::SLOTS,
            offset = const $crate::trampolines::table::Symbol::$name as usize * 8,
            index = const $crate::trampolines::table::Symbol::$name as usize,
        );
    };
}

// Entered with the symbol's index in r11 and everything else as the caller of `cuX` left it. Saves all that
// may carry an argument: six integer registers, eight vector registers, al (number of vector registers of a
// variadic call) and r10 (static chain). The stack is 8 off a multiple of 16 here; 200 bytes make it aligned
// for the call.
global_asm!(
    ".pushsection .text.kauri_cuda_first_call,\"ax\",%progbits",
    ".globl kauri_cuda_first_call",
    ".hidden kauri_cuda_first_call",
    ".type kauri_cuda_first_call,%function",
    "kauri_cuda_first_call:",
    ".cfi_startproc",
    "sub rsp, 200",
    ".cfi_adjust_cfa_offset 200",
    "movaps xmmword ptr [rsp], xmm0",
    "movaps xmmword ptr [rsp + 16], xmm1",
    "movaps xmmword ptr [rsp + 32], xmm2",
    "movaps xmmword ptr [rsp + 48], xmm3",
    "movaps xmmword ptr [rsp + 64], xmm4",
    "movaps xmmword ptr [rsp + 80], xmm5",
    "movaps xmmword ptr [rsp + 96], xmm6",
    "movaps xmmword ptr [rsp + 112], xmm7",
    "mov qword ptr [rsp + 128], rdi",
    "mov qword ptr [rsp + 136], rsi",
    "mov qword ptr [rsp + 144], rdx",
    "mov qword ptr [rsp + 152], rcx",
    "mov qword ptr [rsp + 160], r8",
    "mov qword ptr [rsp + 168], r9",
    "mov qword ptr [rsp + 176], rax",
    "mov qword ptr [rsp + 184], r10",
    "mov rdi, r11",
    "call {resolve}",
    "mov r11, rax",
    "movaps xmm0, xmmword ptr [rsp]",
    "movaps xmm1, xmmword ptr [rsp + 16]",
    "movaps xmm2, xmmword ptr [rsp + 32]",
    "movaps xmm3, xmmword ptr [rsp + 48]",
    "movaps xmm4, xmmword ptr [rsp + 64]",
    "movaps xmm5, xmmword ptr [rsp + 80]",
    "movaps xmm6, xmmword ptr [rsp + 96]",
    "movaps xmm7, xmmword ptr [rsp + 112]",
    "mov rdi, qword ptr [rsp + 128]",
    "mov rsi, qword ptr [rsp + 136]",
    "mov rdx, qword ptr [rsp + 144]",
    "mov rcx, qword ptr [rsp + 152]",
    "mov r8, qword ptr [rsp + 160]",
    "mov r9, qword ptr [rsp + 168]",
    "mov rax, qword ptr [rsp + 176]",
    "mov r10, qword ptr [rsp + 184]",
    "add rsp, 200",
    ".cfi_adjust_cfa_offset -200",
    "jmp r11",
    ".cfi_endproc",
    ".size kauri_cuda_first_call, . - kauri_cuda_first_call",
    ".popsection",
    resolve = sym crate::trampolines::table::resolve,
);
