//! Inserts launch bounds into the PTX text, between an entry's parameters and its body.
//!
//! LLVM could set them from a list (`-forceattrs-csv-path`). But the list must exist before the compilation, and the
//! numbers are constants that only the compilation evaluates; also, the option is hidden and may be removed. The PTX text
//! has both names and numbers.

use crate::{CudaBuilderError, KernelInfo, Result};

/// Returns the PTX with the bounds of each kernel. The lint reports kernels without an entry in the text.
pub(crate) fn insert(ptx: &str, kernels: &[KernelInfo]) -> Result<String> {
    let mut out = String::with_capacity(ptx.len() + 64 * kernels.len());
    // The kernel whose parameter list is being read.
    let mut open: Option<&KernelInfo> = None;
    for line in ptx.lines() {
        out.push_str(line);
        out.push('\n');
        if let Some(name) = entry_name(line) {
            open = kernels.iter().find(|kernel| kernel.name == name);
        }
        if let Some(kernel) = open
            && line.trim_end().ends_with(')')
        {
            out.push_str(&directives(kernel));
            open = None;
        }
    }
    match open {
        None => Ok(out),
        Some(kernel) => Err(CudaBuilderError::BadPtx {
            name: kernel.name.clone(),
            reason: "its parameter list does not end".to_owned(),
        }),
    }
}

/// `.visible .entry name(` -> `name`
fn entry_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once(".entry ")?;
    if before.trim_start().starts_with("//") {
        return None;
    }
    Some(after.split('(').next()?.trim())
}

fn directives(kernel: &KernelInfo) -> String {
    let mut text = String::new();
    if kernel.block != 0 {
        text.push_str(&format!(".maxntid {}, 1, 1\n", kernel.block));
    }
    // The assembler accepts a minimum number of blocks only together with the block size.
    if kernel.min_blocks != 0 && kernel.block != 0 {
        text.push_str(&format!(".minnctapersm {}\n", kernel.min_blocks));
    }
    if kernel.max_regs != 0 {
        text.push_str(&format!(".maxnreg {}\n", kernel.max_regs));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, block: u32, min_blocks: u32, max_regs: u32) -> KernelInfo {
        KernelInfo {
            name: name.to_owned(),
            block,
            min_blocks,
            max_regs,
            shared: 0,
            hot: false,
            params: vec![],
        }
    }

    #[test]
    fn bounds_go_before_the_body() {
        let ptx = ".visible .entry a(\n\t.param .u64 .ptr .align 1 a_param_0\n)\n{\n\tret;\n}\n.visible .entry b()\n{\n}\n";
        let out = insert(ptx, &[kernel("a", 128, 2, 0), kernel("b", 0, 4, 32)]).unwrap();
        assert!(out.contains("a_param_0\n)\n.maxntid 128, 1, 1\n.minnctapersm 2\n{\n"), "{out}");
        assert!(out.contains("b()\n.maxnreg 32\n{\n"), "{out}");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let ptx = ".extern .shared .align 16 .b8 smem[];\n// .entry a(\n.visible .entry c(\n)\n{\n}\n";
        assert_eq!(insert(ptx, &[kernel("a", 64, 0, 0)]).unwrap(), ptx);
    }
}
