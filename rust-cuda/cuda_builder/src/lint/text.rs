//! Rules that need only the PTX text.

use std::collections::{HashMap, HashSet};

use super::collective::Collective;
use super::{Finding, Rule};
use crate::KernelInfo;
use crate::ptx::{Function, Instruction, Module};

/// Functions that the driver supplies.
const SUPPLIED: [&str; 5] = ["vprintf", "malloc", "free", "__assertfail", "__nv_ptx_builtin_ocg_printf"];

pub(super) fn markers(module: &Module<'_>, markers: &[(usize, KernelInfo)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in module.functions.iter().filter(|function| function.is_entry) {
        match markers.iter().find(|(_, kernel)| kernel.name == entry.name) {
            Some((_, kernel)) => findings.extend(parameters(entry, kernel)),
            None => findings.push(Finding::new(
                entry.name,
                entry.line,
                Rule::Marker,
                "the entry has no marker: use #[kernel]".to_owned(),
            )),
        }
    }
    for (line, kernel) in markers {
        if !module.functions.iter().any(|function| function.is_entry && function.name == kernel.name) {
            let message = "the marker has no entry: the kernel was not compiled".to_owned();
            findings.push(Finding::new(&kernel.name, *line, Rule::Marker, message));
        }
    }
    findings
}

/// Compares an entry's parameters with its marker, because the host passes the marker's parameters. An aggregate is a
/// separate finding: pointers inside one are not known to be global, so every access through them is generic.
fn parameters(entry: &Function<'_>, kernel: &KernelInfo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, param) in entry.params.iter().enumerate().filter(|(_, param)| param.aggregate) {
        let message =
            format!("parameter {index} is passed as {} bytes: pass its fields as parameters", param.bytes);
        findings.push(Finding::new(entry.name, entry.line, Rule::Parameters, message));
    }
    let sizes: Vec<u32> = entry.params.iter().map(|param| param.bytes).collect();
    if sizes != kernel.params {
        let message = format!("the entry takes {sizes:?} bytes, its marker says {:?}", kernel.params);
        findings.push(Finding::new(entry.name, entry.line, Rule::Parameters, message));
    }
    findings
}

pub(super) fn instructions(module: &Module<'_>, markers: &[(usize, KernelInfo)]) -> Vec<Finding> {
    let hot = hot_functions(module, markers);
    let mut findings = Vec::new();
    for function in &module.functions {
        if function.is_declaration {
            // A function may be declared before its definition.
            let is_defined =
                module.functions.iter().any(|other| other.name == function.name && !other.is_declaration);
            if !is_defined && !SUPPLIED.contains(&function.name) {
                let message =
                    "it is declared here and defined nowhere: the driver will refuse the module".to_owned();
                findings.push(Finding::new(function.name, function.line, Rule::Unresolved, message));
            }
            continue;
        }
        findings.extend(local_memory(function));
        findings.extend(panics(function));
        findings.extend(asm_collectives(function));
        if hot.contains(function.name) {
            findings.extend(generic_accesses(function));
        }
    }
    findings
}

fn local_memory(function: &Function<'_>) -> Option<Finding> {
    // The arguments of a print must be there. Prints are for debugging.
    if function.instructions.iter().any(|i| i.opcode.starts_with("call") && i.operands.contains("vprintf")) {
        return None;
    }
    // An access, unlike the array, has a source location.
    let access = function.instructions.iter().find(|i| i.has("local")).map(|i| i.line);
    let line = access.or(function.local)?;
    let message =
        "an array lives in local memory: index it by constants, or see CudaBuilder::unroll_threshold";
    Some(Finding::new(function.name, line, Rule::LocalMemory, message.to_owned()))
}

/// Finds panicking and formatting functions. With panics as traps none is left; one costs registers in every kernel that
/// may call it.
fn panics(function: &Function<'_>) -> Vec<Finding> {
    let is_panic = |name: &str| name.contains("4core9panicking") || name.contains("4core3fmt");
    let mut findings = Vec::new();
    if is_panic(function.name) {
        let message = "a panicking or formatting function was compiled".to_owned();
        findings.push(Finding::new(function.name, function.line, Rule::Panic, message));
    }
    for call in function.instructions.iter().filter(|i| i.opcode.starts_with("call") && is_panic(i.operands))
    {
        let message = format!("calls a panicking or formatting function: {}", call.operands);
        findings.push(Finding::new(function.name, call.line, Rule::Panic, message));
    }
    findings
}

/// Finds collectives written as `asm!`. LLVM assumes that `asm!` is independent of other threads and may copy it into
/// branches.
fn asm_collectives(function: &Function<'_>) -> Vec<Finding> {
    let written = function.instructions.iter().filter(|i| i.inline_asm);
    written
        .filter_map(|i| {
            let kind = Collective::of_opcode(i.opcode)?;
            let message = format!(
                "a {kind} (`{}`) in asm!, where the compiler may copy it: use its intrinsic",
                i.opcode
            );
            Some(Finding::new(function.name, i.line, Rule::AsmCollective, message))
        })
        .collect()
}

fn generic_accesses(function: &Function<'_>) -> Vec<Finding> {
    let finding = |i: &Instruction<'_>| {
        let message = format!("`{}` does not know its address space", i.opcode);
        Finding::new(function.name, i.line, Rule::GenericAccess, message)
    };
    function.instructions.iter().filter(|i| is_generic(i.opcode)).map(finding).collect()
}

fn is_generic(opcode: &str) -> bool {
    const ACCESSES: [&str; 5] = ["ld", "st", "atom", "red", "ldu"];
    const SPACES: [&str; 5] = ["global", "shared", "local", "const", "param"];
    let mut parts = opcode.split('.');
    parts.next().is_some_and(|first| ACCESSES.contains(&first))
        // `shared::cta` is shared too.
        && !parts.any(|part| SPACES.contains(&part.split(':').next().unwrap_or_default()))
}

/// Returns the hot kernels and all functions that they call.
fn hot_functions<'a>(module: &Module<'a>, markers: &[(usize, KernelInfo)]) -> HashSet<&'a str> {
    let by_name: HashMap<&str, &Function<'a>> = module.functions.iter().map(|f| (f.name, f)).collect();
    let is_hot = |name: &str| markers.iter().any(|(_, kernel)| kernel.hot && kernel.name == name);
    let mut open: Vec<&Function<'a>> =
        module.functions.iter().filter(|f| f.is_entry && is_hot(f.name)).collect();
    let mut hot = HashSet::new();
    while let Some(function) = open.pop() {
        if hot.insert(function.name) {
            let calls = function.instructions.iter().filter(|i| i.opcode.starts_with("call"));
            open.extend(
                calls
                    .flat_map(|call| call.operands.split([',', ' ', '(', ')']))
                    .filter_map(|n| by_name.get(n)),
            );
        }
    }
    hot
}
