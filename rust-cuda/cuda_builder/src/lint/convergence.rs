//! Checks that the compiler kept every collective where the source has it.
//!
//! A barrier copied into both arms of a branch is correct for one thread and wrong for a block: threads in the two arms
//! wait at different barriers. The check finds two copies of one source call of which neither dominates the other. Copies
//! by loop unrolling follow each other, so the first dominates the rest.
//!
//! LLVM's passes work on IR, where a call has its complete inlining chain. Copies made by the last step, from IR to PTX,
//! show as a larger number of collectives in the PTX.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::collective::Collective;
use super::graph::{dominates, dominators};
use super::ir::{self, Callee};
use super::{Finding, Rule};
use crate::ptx;

/// A source call: the callee, and the chain of source locations.
type Source<'a> = (Callee<'a>, Vec<(u32, u32, u32)>);

/// Finds copies of one source call in branches of which neither dominates the other.
pub(super) fn duplicates(module: &ir::Module<'_>, file: &str) -> Vec<Finding> {
    let collective = collective_functions(module);
    module.functions.iter().flat_map(|function| in_function(module, function, &collective, file)).collect()
}

fn in_function(
    module: &ir::Module<'_>,
    function: &ir::Function<'_>,
    collective: &HashSet<&str>,
    file: &str,
) -> Vec<Finding> {
    let mut copies: BTreeMap<usize, (Source<'_>, Vec<(usize, usize)>)> = BTreeMap::new();
    let mut first_of: HashMap<Source<'_>, usize> = HashMap::new();
    let mut findings = Vec::new();
    for (index, block) in function.blocks.iter().enumerate() {
        for call in block.calls.iter().filter(|call| is_collective(call.callee, collective)) {
            let Some(site) = module.site(call) else {
                let message =
                    format!("{file}: a collective has no source line: build with DebugInfo::LineTables");
                findings.push(in_ir(function.name, call.line, Rule::NoLines, message));
                continue;
            };
            let source = (call.callee, site);
            let first = *first_of.entry(source.clone()).or_insert(call.line);
            copies.entry(first).or_insert_with(|| (source, Vec::new())).1.push((index, call.line));
        }
    }
    copies.retain(|_, (_, places)| places.len() > 1);
    if copies.is_empty() {
        return findings;
    }
    let successors: Vec<Vec<usize>> = function.blocks.iter().map(|block| block.successors.clone()).collect();
    let dominator = dominators(&successors);
    let apart = |a: usize, b: usize| !dominates(&dominator, a, b) && !dominates(&dominator, b, a);
    for ((callee, site), places) in copies.into_values() {
        let pairs = places.iter().enumerate().flat_map(|(i, a)| places[i + 1..].iter().map(move |b| (a, b)));
        // One pair is enough for the report.
        if let Some((a, b)) = pairs.into_iter().find(|(a, b)| apart(a.0, b.0)) {
            let message = format!(
                "{file}: one {} of the source is in two branches (lines {} and {}): {}",
                describe(callee),
                a.1,
                b.1,
                module.describe(&site)
            );
            findings.push(in_ir(function.name, b.1, Rule::DuplicatedCollective, message));
        }
    }
    findings
}

/// Returns a finding on a line of the LLVM IR.
fn in_ir(function: &str, line: usize, rule: Rule, message: String) -> Finding {
    Finding { is_in_ir: true, ..Finding::new(function, line, rule, message) }
}

/// Finds collectives of which the PTX has more than the IR.
pub(super) fn added(text: &ptx::Module<'_>, module: &ir::Module<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in &text.functions {
        let Some(before) = module.functions.iter().find(|other| other.name == function.name) else {
            continue;
        };
        let mut surplus: BTreeMap<Collective, i64> = BTreeMap::new();
        for instruction in &function.instructions {
            if let Some(kind) = Collective::of_opcode(instruction.opcode) {
                *surplus.entry(kind).or_default() += 1;
            }
        }
        for call in before.blocks.iter().flat_map(|block| &block.calls) {
            match call.callee {
                Callee::Function(name) => count_down(&mut surplus, Collective::of_intrinsic(name)),
                Callee::Asm(asm) => count_down(&mut surplus, Collective::in_asm(asm)),
            }
        }
        for (kind, count) in surplus.into_iter().filter(|(_, count)| *count > 0) {
            let message =
                format!("the last step of compilation made {count} more of a {kind} than it was given");
            findings.push(Finding::new(function.name, function.line, Rule::DuplicatedCollective, message));
        }
    }
    findings
}

fn count_down(surplus: &mut BTreeMap<Collective, i64>, kinds: impl IntoIterator<Item = Collective>) {
    for kind in kinds {
        *surplus.entry(kind).or_default() -= 1;
    }
}

/// Returns the functions that execute a collective, directly or through a call; calls of these are collectives, too.
fn collective_functions<'a>(module: &ir::Module<'a>) -> HashSet<&'a str> {
    let mut found = HashSet::new();
    loop {
        let before = found.len();
        for function in &module.functions {
            let mut calls = function.blocks.iter().flat_map(|block| &block.calls);
            if calls.any(|call| is_collective(call.callee, &found)) {
                found.insert(function.name);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn is_collective(callee: Callee<'_>, functions: &HashSet<&str>) -> bool {
    match callee {
        Callee::Function(name) => Collective::of_intrinsic(name).is_some() || functions.contains(name),
        Callee::Asm(asm) => !Collective::in_asm(asm).is_empty(),
    }
}

fn describe(callee: Callee<'_>) -> String {
    match callee {
        Callee::Function(name) => match Collective::of_intrinsic(name) {
            Some(kind) => kind.to_string(),
            None => format!("call of {name}, which holds a collective,"),
        },
        Callee::Asm(asm) => Collective::in_asm(asm).first().map_or_else(String::new, Collective::to_string),
    }
}
