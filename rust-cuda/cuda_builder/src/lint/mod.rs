//! Checks the compiled kernels for faults that the sources do not show.
//!
//! Most of these faults come and go with a nightly: arrays in local memory instead of registers, barriers copied into
//! branches, accesses that lost their address space.

mod collective;
mod convergence;
mod graph;
mod ir;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::{Ptx, Result, files, marker, ptx};

/// A violation of a rule in the PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The entry or function.
    pub kernel: String,
    /// Line number, from 1: of the PTX, or of the LLVM IR.
    pub line: usize,
    /// Whether the line is one of the LLVM IR, which the message names.
    pub is_in_ir: bool,
    /// Location in the source of the instruction, if the PTX has one: `FILE:LINE:COLUMN`.
    pub source: Option<String>,
    /// The violated rule.
    pub rule: Rule,
    /// Description of the fault.
    pub message: String,
}

/// Rules of the lint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// An entry without a marker, or a marker without an entry.
    Marker,
    /// An entry whose parameters differ from its marker, or that takes a struct.
    Parameters,
    /// Local memory: an array that is not in registers.
    LocalMemory,
    /// Code for panics or formatting.
    Panic,
    /// A function without a definition.
    Unresolved,
    /// A load, store or atomic of a hot kernel without an address space.
    GenericAccess,
    /// A barrier or warp operation written as `asm!`.
    AsmCollective,
    /// A barrier or warp operation that the compiler copied into branches.
    DuplicatedCollective,
    /// A collective without a source line, for which copies cannot be detected.
    NoLines,
}

impl Finding {
    fn new(kernel: &str, line: usize, rule: Rule, message: String) -> Finding {
        Finding { kernel: kernel.to_owned(), line, is_in_ir: false, source: None, rule, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kernel)?;
        if let Some(source) = &self.source {
            write!(f, ", {source}")?;
        }
        let text = if self.is_in_ir { "LLVM IR" } else { "PTX" };
        write!(f, ", line {} of the {text}: {} [{}]", self.line, self.message, self.rule)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Marker => "marker",
            Rule::Parameters => "parameters",
            Rule::LocalMemory => "local-memory",
            Rule::Panic => "panic",
            Rule::Unresolved => "unresolved",
            Rule::GenericAccess => "generic-access",
            Rule::AsmCollective => "asm-collective",
            Rule::DuplicatedCollective => "duplicated-collective",
            Rule::NoLines => "no-lines",
        })
    }
}

/// Checks a PTX text by every rule that needs only the text: all except copies of collectives.
///
/// # Errors
/// `BadPtx` if a marker cannot be read.
pub fn check(ptx_text: &str) -> Result<Vec<Finding>> {
    let module = ptx::Module::parse(ptx_text);
    let markers = marker::markers(ptx_text)?;
    let mut findings = text::markers(&module, &markers);
    findings.extend(text::instructions(&module, &markers));
    for finding in &mut findings {
        finding.source = module.source_of(finding.line);
    }
    Ok(findings)
}

/// Checks that the compiler did not copy a collective into branches, from the PTX and its LLVM IR. `ir_name` is the name
/// of the IR in messages.
pub fn check_convergence(ptx_text: &str, ir_text: &str, ir_name: &str) -> Vec<Finding> {
    let module = ir::Module::parse(ir_text);
    let mut findings = convergence::duplicates(&module, ir_name);
    findings.extend(convergence::added(&ptx::Module::parse(ptx_text), &module));
    findings
}

/// Checks the output of [`crate::CudaBuilder`] by all rules.
///
/// # Errors
/// `Io` if the files are gone, `BadPtx` if a marker cannot be read.
pub fn check_built(built: &Ptx) -> Result<Vec<Finding>> {
    let ptx_text = files::read(&built.path)?;
    let ir_text = files::read(&built.llvm_ir)?;
    let mut findings = check(&ptx_text)?;
    findings.extend(check_convergence(&ptx_text, &ir_text, &built.llvm_ir.display().to_string()));
    Ok(findings)
}
