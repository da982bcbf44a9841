//! The resource budget: the resources that NVIDIA's assembler gave each kernel when the file was last written, as upper
//! limits. The file is a table that is readable in a diff: one line for each kernel, one column for each architecture.

use anyhow::{Context, Result, bail};
use cuda_builder::KernelResources;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Path of the budget, from the workspace's root.
pub(crate) const FILE: &str = "kernels/budget.txt";

const HEADER: &str = "\
# What a kernel may take at most, as NVIDIA's assembler says: bytes of static shared memory a block; bytes of stack and of
# spills a thread, which should be 0; and for each architecture the registers a thread. `cargo xtask test` compares and
# `cargo xtask test --bless` writes this file again: look at the difference before it is committed.
";

/// Resources of one kernel: the maximum over all PTX and architectures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    shared: u32,
    stack: u32,
    spills: u32,
    /// Registers by architecture number.
    registers: BTreeMap<u16, u32>,
}

/// Kernels by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Budget(BTreeMap<String, Usage>);

impl Budget {
    /// Records the resources of a kernel on an architecture.
    pub(crate) fn note(&mut self, sm: u16, kernel: &KernelResources) {
        let usage = self.0.entry(kernel.name.clone()).or_default();
        usage.shared = usage.shared.max(kernel.shared);
        usage.stack = usage.stack.max(kernel.stack);
        usage.spills = usage.spills.max(kernel.spill_stores.max(kernel.spill_loads));
        let registers = usage.registers.entry(sm).or_default();
        *registers = kernel.registers.max(*registers);
    }

    /// Describes where `taken` exceeds this budget or is unknown to it.
    pub(crate) fn violations(&self, taken: &Budget) -> Vec<String> {
        let mut found = Vec::new();
        for (name, usage) in &taken.0 {
            match self.0.get(name) {
                None => found.push(format!("{name} is not in the budget")),
                Some(allowed) => usage.compare(allowed, name, &mut found),
            }
        }
        let gone = self.0.keys().filter(|name| !taken.0.contains_key(*name));
        found.extend(gone.map(|name| format!("{name} is in the budget and not in the PTX")));
        found
    }

    /// Kernels that use local memory, which costs more than anything else.
    pub(crate) fn spilling(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, usage)| usage.stack + usage.spills > 0).map(|(name, _)| name.as_str())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn parse(text: &str) -> Result<Budget> {
        let mut lines =
            text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
        let Some((_, head)) = lines.next() else { return Ok(Budget::default()) };
        let sms: Option<Vec<u16>> =
            head.split_whitespace().skip(4).map(|sm| sm.strip_prefix("sm_")?.parse().ok()).collect();
        let sms = sms.with_context(|| format!("`{head}` is not the table's head"))?;
        let mut budget = Budget::default();
        for (index, line) in lines {
            let (name, usage) = parse_line(line, &sms).with_context(|| format!("line {}", index + 1))?;
            budget.0.insert(name.to_owned(), usage);
        }
        Ok(budget)
    }

    /// Returns the text of the file.
    pub(crate) fn to_text(&self) -> String {
        HEADER.to_owned() + &self.to_table()
    }

    /// Returns the table: a line for each kernel, a column of registers for each architecture.
    pub(crate) fn to_table(&self) -> String {
        let mut sms: Vec<u16> = self.0.values().flat_map(|usage| usage.registers.keys().copied()).collect();
        sms.sort_unstable();
        sms.dedup();
        let width = self.0.keys().map(String::len).max().unwrap_or(0).max("kernel".len());
        let mut text = format!("{:width$} {:>6} {:>5} {:>6}", "kernel", "shared", "stack", "spills");
        for sm in &sms {
            write!(text, " {:>6}", format!("sm_{sm}")).expect("writing to a string");
        }
        for (name, usage) in &self.0 {
            write!(text, "\n{name:width$} {:>6} {:>5} {:>6}", usage.shared, usage.stack, usage.spills)
                .expect("writing to a string");
            for sm in &sms {
                let registers = usage.registers.get(sm).map_or("-".to_owned(), u32::to_string);
                write!(text, " {registers:>6}").expect("writing to a string");
            }
        }
        text.push('\n');
        text
    }
}

impl Usage {
    fn compare(&self, allowed: &Usage, name: &str, found: &mut Vec<String>) {
        let mut check = |what: &str, have: u32, may: u32| {
            if have > may {
                found.push(format!("{name} takes {have} {what}, its budget is {may}"));
            }
        };
        check("bytes of shared memory", self.shared, allowed.shared);
        check("bytes of stack", self.stack, allowed.stack);
        check("bytes of spills", self.spills, allowed.spills);
        for (sm, registers) in &self.registers {
            // An assembler that is newer than the file knows more architectures.
            if let Some(may) = allowed.registers.get(sm) {
                check(&format!("registers on sm_{sm}"), *registers, *may);
            }
        }
    }
}

fn parse_line<'a>(line: &'a str, sms: &[u16]) -> Result<(&'a str, Usage)> {
    let mut words = line.split_whitespace();
    let name = words.next().context("no kernel")?;
    let mut number = |what: &str| words.next().with_context(|| format!("no {what}"));
    let mut usage = Usage {
        shared: number("shared")?.parse()?,
        stack: number("stack")?.parse()?,
        spills: number("spills")?.parse()?,
        ..Usage::default()
    };
    for sm in sms {
        match number("registers")? {
            "-" => {}
            registers => {
                usage.registers.insert(*sm, registers.parse()?);
            }
        }
    }
    if let Some(more) = words.next() {
        bail!("`{more}` is one too many");
    }
    Ok((name, usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, registers: u32, stack: u32) -> KernelResources {
        KernelResources { name: name.into(), registers, stack, ..KernelResources::default() }
    }

    fn budget() -> Budget {
        let mut budget = Budget::default();
        budget.note(75, &kernel("a_long_name", 40, 0));
        budget.note(90, &kernel("a_long_name", 38, 0));
        budget.note(90, &kernel("b", 255, 16));
        budget
    }

    #[test]
    fn reads_what_it_writes() {
        assert_eq!(Budget::parse(&budget().to_text()).unwrap(), budget());
        assert_eq!(Budget::parse(&Budget::default().to_text()).unwrap(), Budget::default());
        assert!(Budget::parse("kernel shared stack spills sm_75\na 0 0 0\n").is_err());
    }

    #[test]
    fn growth_is_found_and_shrinking_is_not() {
        let mut taken = budget();
        assert!(budget().violations(&taken).is_empty());
        taken.note(100, &kernel("b", 300, 0));
        assert!(budget().violations(&taken).is_empty());
        taken.note(90, &kernel("a_long_name", 41, 0));
        taken.note(90, &kernel("b", 1, 24));
        taken.note(90, &kernel("new", 1, 0));
        let found = budget().violations(&taken);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].contains("41 registers on sm_90, its budget is 40") || found[0].contains("is 38"),
            "{found:?}"
        );
        assert_eq!(taken.violations(&budget()).len(), 1);
    }

    #[test]
    fn local_memory_is_named() {
        assert_eq!(budget().spilling().collect::<Vec<_>>(), ["b"]);
    }
}
