//! Parses the marker line that `#[kernel]` writes into the PTX for each entry.
//!
//! `// kauri.kernel name=<entry> block=<n> min_blocks=<n> max_regs=<n> shared=<bytes> hot=<0|1> params=<b1>,<b2>,…`
//!
//! It comes from a `global_asm!`, which rustc copies verbatim into the PTX, also from a dependency. The properties of a
//! kernel therefore travel with the PTX, without a second file.

use crate::{CudaBuilderError, Result};

/// Properties that a kernel declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The entry's name in the PTX.
    pub name: String,
    /// Threads per block that the kernel is compiled for; 0 means any number.
    pub block: u32,
    /// Minimum number of resident blocks per multiprocessor; 0 leaves it to the assembler.
    pub min_blocks: u32,
    /// Maximum number of registers per thread; 0 leaves it to the assembler.
    pub max_regs: u32,
    /// Minimum bytes of dynamic shared memory.
    pub shared: u32,
    /// True if the lint applies the rules of hot loops.
    pub hot: bool,
    /// The size of each parameter in bytes, in order.
    pub params: Vec<u32>,
}

const PREFIX: &str = "// kauri.kernel ";

/// Returns the markers in a PTX text, with their line numbers (the first line is 1).
pub(crate) fn markers(ptx: &str) -> Result<Vec<(usize, KernelInfo)>> {
    let lines = ptx.lines().enumerate();
    lines
        .filter_map(|(index, line)| Some((index + 1, line.trim().strip_prefix(PREFIX)?)))
        .map(|(line, fields)| match parse(fields) {
            Ok(kernel) => Ok((line, kernel)),
            Err(reason) => Err(CudaBuilderError::BadPtx {
                name: "a kernel's marker".to_owned(),
                reason: format!("line {line}: {reason} in `{PREFIX}{fields}`"),
            }),
        })
        .collect()
}

fn parse(fields: &str) -> Result<KernelInfo, String> {
    let field = |name: &str| {
        fields
            .split_whitespace()
            .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
            .ok_or_else(|| format!("no {name}="))
    };
    let number = |name: &str| field(name)?.parse::<u32>().map_err(|_| format!("{name}= is no number"));
    let params = field("params")?;
    let params: Result<Vec<u32>, _> =
        params.split(',').filter(|size| !size.is_empty()).map(str::parse).collect();
    Ok(KernelInfo {
        name: field("name")?.to_owned(),
        block: number("block")?,
        min_blocks: number("min_blocks")?,
        max_regs: number("max_regs")?,
        shared: number("shared")?,
        hot: number("hot")? != 0,
        params: params.map_err(|_| "params= is no list of numbers".to_owned())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read() {
        let ptx = ".version 7.8\n\t// kauri.kernel name=scan_up block=256 min_blocks=2 max_regs=0 shared=1024 hot=1 \
            params=8,8,4\n// kauri.kernel name=noop block=0 min_blocks=0 max_regs=0 shared=0 hot=0 params=\n";
        let found = markers(ptx).unwrap();
        assert_eq!(found[0].0, 2);
        assert_eq!(found[0].1.name, "scan_up");
        assert_eq!((found[0].1.block, found[0].1.min_blocks, found[0].1.shared), (256, 2, 1024));
        assert_eq!(found[0].1.params, [8, 8, 4]);
        assert!(found[0].1.hot && !found[1].1.hot);
        assert!(found[1].1.params.is_empty());
    }

    #[test]
    fn a_broken_marker_is_an_error_with_its_line() {
        let error = markers("\n// kauri.kernel name=a block=x min_blocks=0\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("params"), "{error}");
    }
}
