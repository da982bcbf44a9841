//! Removes labels that only debug information uses. LLVM writes one for every source location, an eighth of the text; with
//! line tables alone nothing refers to them.

/// Prefix of these labels' names.
const PREFIX: &str = "$L__tmp";

/// Returns the PTX without these labels; unchanged if anything refers to one.
pub(crate) fn strip(ptx: &str) -> String {
    let is_label = |line: &str| line.starts_with(PREFIX) && line.trim_end().ends_with(':');
    if ptx.lines().any(|line| line.contains(PREFIX) && !is_label(line)) {
        return ptx.to_owned();
    }
    ptx.split_inclusive('\n').filter(|line| !is_label(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_if_nothing_refers_to_them() {
        let ptx = "{\n$L__tmp0:\n\tret;\n$L__BB0_1:\n$L__tmp12:\n}\n";
        assert_eq!(strip(ptx), "{\n\tret;\n$L__BB0_1:\n}\n");
        let used = format!("{ptx}\t.b32 $L__tmp12-$L__tmp0\n");
        assert_eq!(strip(&used), used);
    }
}
